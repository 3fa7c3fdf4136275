"""emit: draw one shard's documents, run the steps after deduplication, tokenize, pack, shuffle and write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataprep.batch import utf8_buffers
from dataprep.runtime.draw import Drawn, DrawnPart, draw
from dataprep.runtime.ledger import Tally, add_tallies
from dataprep.runtime.membership import Membership
from dataprep.runtime.parts import content_hashes
from dataprep.runtime.rejected import DROPPED_SCHEMA, KeepText, Table, dropped_rows, rejected_table
from dataprep.runtime.stages.dedup import REASON
from dataprep.runtime.stages.dedup import STAGE as DEDUP
from dataprep.runtime.steps import judge
from dataprep.runtime.task import Outcome
from dataprep.runtime.trust import Trust
from dataprep.shards.documents import SCHEMA as DOCUMENTS_SCHEMA
from dataprep.shards.documents import write_documents
from dataprep.shards.layout import Layout
from dataprep.step import Step, selected_rows
from dataprep.tokens.config import PackConfig
from dataprep.tokens.encoding import TokenBatch
from dataprep.tokens.engines import Encoded, Encoder, EngineDiffers, EngineUnusable, Fastokens
from dataprep.tokens.fim import draw_cuts, joined_parts, parts_of
from dataprep.tokens.packing import Packed, document_rows, pack, shuffle_rows, truncate
from dataprep.tokens.special import SpecialTokens
from dataprep.tokens.spelling import Spelling, spelling_of
from dataprep.tokens.tokenizer import Tokenizer, read_settled

STAGE = "emit"


@dataclass(frozen=True, slots=True)
class EngineUse:
    """The engine that was settled on by name and version, how closely it is watched, and what speaks against it."""

    name: str
    check_every: int
    trust: Trust


@dataclass(frozen=True, slots=True)
class Emit:
    """One shard: the documents of `parts` whose place lies in [low, high), as often as `membership` takes them."""

    parts: tuple[DrawnPart, ...]
    removal_lists: tuple[Path, ...]
    low: int
    high: int
    membership: Membership
    steps: tuple[Step, ...]
    tokenizer_files: tuple[Path, ...]
    special: SpecialTokens
    allow_special: bool
    engine: EngineUse
    pack: PackConfig
    layout: Layout
    seed: int
    keep_text: KeepText
    shard: Path
    documents: Path
    dropped: Path
    scratch: Path

    def run(self) -> Outcome:
        """Write the shard, its document index and its dropped documents; an empty shard is not written.

        A fast engine that gives other ids is reported to `engine.trust`, and the shard begun anew with the reference.
        """
        tokenizer, spelling = _opened(self.tokenizer_files, self.special, self.allow_special)
        engine = self._fast_engine(tokenizer)
        if engine is not None:
            try:
                return self._emit(Encoder(tokenizer, engine, self.engine.check_every, spelling))
            except EngineDiffers as error:
                self.engine.trust.withdraw(self.engine.name, self._finder, error.texts)
        return self._emit(Encoder(tokenizer, None, self.engine.check_every, spelling))

    @property
    def _finder(self) -> str:
        # Shards of two splits have one name.
        return f"{self.shard.stem}-{self.membership.side[0]:016x}"

    def _fast_engine(self, tokenizer: Tokenizer) -> Fastokens | None:
        use = self.engine
        if use.name == tokenizer.reference or use.name in use.trust.findings():
            return None
        try:
            fast = _opened_fast(tokenizer)
        except EngineUnusable:  # this machine lacks it
            return None
        return fast if fast.identity == use.name else None

    def _emit(self, encoder: Encoder) -> Outcome:
        with rejected_table(self.dropped, DROPPED_SCHEMA) as dropped:
            content = _Content(self, dropped, encoder)
            for drawn in draw(self.parts, self.removal_lists, self.low, self.high, REASON, self.membership):
                content.add(drawn)
        outputs: dict[Path, int | None] = {self.dropped: dropped.rows} if dropped.rows else {}
        name = encoder.tokenizer.reference if encoder.engine is None else self.engine.name
        engine = {"name": name, **asdict(encoder.checks)}
        facts: dict[str, Any] = {"removed": content.removed, "inexact": content.inexact, "engine": engine}
        if content.index:
            packed = content.packed()
            facts["writer"] = self._write(packed)
            rows = len(packed.rows)
            write_documents(self.documents, content.table(packed))
            outputs |= {self.shard: rows, Path(f"{self.shard}.db"): None, self.documents: packed.documents}
            facts |= {"padding": packed.padding, "rows": rows}
        facts |= {"sources": content.sources}
        return Outcome(outputs, add_tallies(content.tallies), dict(sorted(content.edits.items())), facts)

    def _write(self, packed: Packed) -> str:
        # Late: this brings in mindspore, which only the processes that write shards need.
        from dataprep.shards.mindrecord import write_shard

        files = write_shard(
            self.shard,
            packed.rows,
            packed.doc_starts,
            packed.doc_start_offsets,
            scratch=self.scratch,
            layout=self.layout,
            columns=self.pack.layout,
            lengths=packed.lengths,
        )
        return files.writer


# A worker writes many shards by one tokenizer, whose files carry the id of the task that settled it.
@lru_cache(maxsize=1)
def _opened(files: tuple[Path, ...], special: SpecialTokens, allow_special: bool) -> tuple[Tokenizer, Spelling | None]:
    tokenizer = read_settled(files, special, allow_special)
    return tokenizer, spelling_of(msgspec.json.decode(tokenizer.encoding_json))


# Opening takes seconds where the vocabulary is large.
@lru_cache(maxsize=1)
def _opened_fast(tokenizer: Tokenizer) -> Fastokens:
    return Fastokens(tokenizer.encoding_json)


class _Content:
    """The tokens of a shard and the index of its documents, gathered batch by batch."""

    def __init__(self, job: Emit, dropped: Table, encoder: Encoder) -> None:
        self.job = job
        self.encoder = encoder
        self.inexact = 0
        self.dropped = dropped
        self.tallies: list[Mapping[str, Tally]] = []
        self.edits: Counter[str] = Counter()
        self.removed = 0
        self.index: list[pa.RecordBatch] = []
        self._ids: list[npt.NDArray[np.int32]] = []
        self._lengths: list[npt.NDArray[np.int64]] = []

    def add(self, drawn: Drawn) -> None:
        """Judge and encode a batch of drawn documents."""
        reason = drawn.documents.column("reason").cast(pa.string())
        duplicate = pc.fill_null(pc.equal(reason, REASON), fill_value=False)
        removed = drawn.documents.filter(duplicate)
        self.removed += removed.num_rows
        self.dropped.write(dropped_rows(removed, DEDUP, self.job.keep_text, drawn.matched.filter(duplicate)))
        first = pa.array(drawn.copy == 0)
        judged = judge(drawn.documents.filter(pc.and_not(first, duplicate)), self.job.steps)
        self.dropped.write(dropped_rows(judged.dropped, STAGE, self.job.keep_text))
        self.tallies.append(judged.tallies)
        self.edits.update(judged.edits)
        self._encode(judged.kept, np.zeros(judged.kept.num_rows, np.int32))
        if drawn.copy.any():
            # Accounted for where they were drawn first.
            self._encode(*_kept_copies(drawn, self.job.steps))

    def _encode(self, batch: pa.RecordBatch, copy: npt.NDArray[np.int32]) -> None:
        if batch.num_rows == 0:
            return
        text = batch.column("text")
        hashes = content_hashes(text)
        encoded, rearranged = self._encoded(batch, hashes)
        tokens = encoded.tokens
        ids, offsets, truncated = self._shortened(tokens)
        self.inexact += int((~encoded.exact).sum())
        self._ids.append(ids)
        self._lengths.append(np.diff(offsets))
        _, text_offsets = utf8_buffers(text)
        columns = {
            **{name: batch.column(name) for name in ("doc_id", "source", "origin", "meta")},
            "copy": pa.array(copy),
            "tokens": pa.array(np.diff(tokens.offsets).astype(np.int32)),
            "truncated": pa.array(truncated),
            "fim": pa.array(rearranged),
            "text_bytes": pa.array(np.diff(text_offsets)),
            "text_xxh3": hashes,
            "exact": pa.array(encoded.exact),
        }
        self.index.append(pa.RecordBatch.from_pydict(columns))

    def _encoded(self, batch: pa.RecordBatch, hashes: pa.FixedSizeBinaryArray) -> tuple[Encoded, npt.NDArray[np.bool_]]:
        """Tokens of each document, and which of them were rearranged to fill in the middle."""
        text, fim = batch.column("text"), self.job.pack.fim
        if fim is None:
            return self.encoder.encode(text, hashes), np.zeros(len(text), np.bool_)
        texts = text.to_pylist()
        allowed = selected_rows(batch, fim.only, fim.except_)
        cuts = draw_cuts(texts, hashes.to_pylist(), allowed, fim, self.job.seed)
        parts = pa.array(parts_of(texts, cuts), pa.large_string())
        plain = self.encoder.encode_plain(parts, content_hashes(parts))
        exact = np.logical_and.reduceat(plain.exact, cuts.first_parts)
        return Encoded(joined_parts(plain.tokens, cuts, self.encoder.tokenizer), exact), cuts.chosen

    def _shortened(
        self, tokens: TokenBatch
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Ids and offsets as they are packed, and how many tokens of each document were cut away."""
        if self.job.pack.overlong == "split":
            return tokens.ids, tokens.offsets, np.zeros(len(tokens), np.int32)
        return truncate(tokens.ids, tokens.offsets, self.job.pack.row_length, self.encoder.tokenizer.eos_id)

    def packed(self) -> Packed:
        """All tokens as shuffled rows."""
        offsets = np.zeros(sum(map(len, self._lengths)) + 1, np.int64)
        np.cumsum(np.concatenate(self._lengths), out=offsets[1:])
        ids = np.concatenate(self._ids)
        self._ids.clear()
        packed = pack(ids, offsets, self.job.pack, self.encoder.tokenizer.pad_id)
        return shuffle_rows(packed, self.job.seed, self.job.shard.name)

    def table(self, packed: Packed) -> pa.Table:
        """The document index."""
        rows, offsets = document_rows(packed)
        bounds = pa.array(offsets.astype(np.int32))
        places = {"rows": rows, "offsets": packed.piece_starts}
        table = pa.Table.from_batches(self.index).unify_dictionaries()
        for name, values in places.items():
            table = table.append_column(name, pa.ListArray.from_arrays(bounds, pa.array(values)))
        return table.select(DOCUMENTS_SCHEMA.names)

    @property
    def sources(self) -> dict[str, dict[str, int]]:
        """What the documents of each source add up to, as the manifest names it."""
        if not self.index:
            return {}
        table = pa.Table.from_batches(self.index).unify_dictionaries()
        table = table.set_column(1, "source", table.column("source").cast(pa.string()))
        table = table.append_column("repeated", pc.greater(table.column("copy"), 0))
        wanted = {name: name for name in ("repeated", "tokens", "truncated", "text_bytes")} | {"fim_documents": "fim"}
        sums = table.group_by("source", use_threads=False).aggregate(
            [("doc_id", "count"), *((column, "sum") for column in wanted.values())]
        )
        return {
            row["source"]: {
                "documents": row["doc_id_count"],
                **{name: row[f"{column}_sum"] for name, column in wanted.items()},
            }
            for row in sums.sort_by("source").to_pylist()
        }


def _kept_copies(drawn: Drawn, steps: Sequence[Step]) -> tuple[pa.RecordBatch, npt.NDArray[np.int32]]:
    """The repetitions among drawn documents that the steps keep, and the number of each."""
    numbers = np.unique(drawn.copy)
    kept = [judge(drawn.documents.filter(pa.array(drawn.copy == number)), steps).kept for number in numbers if number]
    whole = pa.Table.from_batches(kept).unify_dictionaries().combine_chunks().to_batches()
    batch = whole[0] if whole else kept[0]
    return batch, np.repeat(numbers[numbers > 0], [each.num_rows for each in kept])
