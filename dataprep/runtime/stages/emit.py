"""emit: draw one shard's documents, run the steps after deduplication, tokenize, pack, shuffle and write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataprep.batch import utf8_buffers
from dataprep.runtime.draw import Drawn, DrawnPart, draw
from dataprep.runtime.ledger import Tally, add_tallies
from dataprep.runtime.parts import content_hashes
from dataprep.runtime.rejected import DROPPED_SCHEMA, KeepText, Table, dropped_rows, rejected_table
from dataprep.runtime.stages.dedup import REASON
from dataprep.runtime.stages.dedup import STAGE as DEDUP
from dataprep.runtime.steps import judge
from dataprep.runtime.task import Outcome
from dataprep.shards.documents import SCHEMA as DOCUMENTS_SCHEMA
from dataprep.shards.documents import write_documents
from dataprep.shards.layout import Layout
from dataprep.step import Step
from dataprep.storage import disk_errors
from dataprep.tokens.config import PackConfig
from dataprep.tokens.packing import Packed, document_rows, pack_concat, shuffle_rows
from dataprep.tokens.special import SpecialTokens
from dataprep.tokens.tokenizer import Tokenizer, open_settled

STAGE = "emit"


@dataclass(frozen=True, slots=True)
class Emit:
    """One shard: the documents of `parts` whose order lies in [low, high)."""

    parts: tuple[DrawnPart, ...]
    removal_lists: tuple[Path, ...]
    low: int
    high: int
    steps: tuple[Step, ...]
    tokenizer_json: Path
    special: SpecialTokens
    pack: PackConfig
    layout: Layout
    seed: int
    keep_text: KeepText
    shard: Path
    documents: Path
    dropped: Path
    scratch: Path

    def run(self) -> Outcome:
        """Write the shard, its document index and its dropped documents; an empty shard is not written."""
        with rejected_table(self.dropped, DROPPED_SCHEMA) as dropped:
            content = _Content(self, dropped)
            for drawn in draw(self.parts, self.removal_lists, self.low, self.high, REASON):
                content.add(drawn)
        outputs: dict[Path, int | None] = {self.dropped: dropped.rows} if dropped.rows else {}
        facts: dict[str, Any] = {"removed": content.removed}
        if content.index:
            packed = content.packed()
            facts["writer"] = self._write(packed)
            rows = len(packed.rows)
            write_documents(self.documents, content.table(packed))
            outputs |= {self.shard: rows, Path(f"{self.shard}.db"): None, self.documents: len(packed.doc_offset)}
            facts |= {"tokens": packed.rows.size - packed.padding, "padding": packed.padding, "rows": rows}
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


# A worker writes many shards by one tokenizer, whose file carries the id of the task that settled it.
@lru_cache(maxsize=1)
def _opened(path: Path, special: SpecialTokens) -> Tokenizer:
    with disk_errors(path):
        return open_settled(path.read_bytes(), special)


class _Content:
    """The tokens of a shard and the index of its documents, gathered batch by batch."""

    def __init__(self, job: Emit, dropped: Table) -> None:
        self.job = job
        self.tokenizer = _opened(job.tokenizer_json, job.special)
        self.dropped = dropped
        self.tallies: list[Mapping[str, Tally]] = []
        self.edits: Counter[str] = Counter()
        self.removed = 0
        self.index: list[pa.RecordBatch] = []
        self._ids: list[npt.NDArray[np.int32]] = []
        self._lengths: list[npt.NDArray[np.int64]] = []

    def add(self, drawn: Drawn) -> None:
        """Judge and encode a batch of drawn documents."""
        alive = pc.is_null(drawn.documents.column("reason"))
        removed = drawn.documents.filter(pc.invert(alive))
        self.removed += removed.num_rows
        matched = drawn.matched.filter(pc.invert(alive))
        self.dropped.write(dropped_rows(removed, DEDUP, self.job.keep_text, matched))
        judged = judge(drawn.documents.filter(alive), self.job.steps)
        self.dropped.write(dropped_rows(judged.dropped, STAGE, self.job.keep_text))
        self.tallies.append(judged.tallies)
        self.edits.update(judged.edits)
        self._encode(judged.kept)

    def _encode(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        text = batch.column("text")
        tokens = self.tokenizer.encode(text.to_pylist())
        lengths = np.diff(tokens.offsets)
        self._ids.append(tokens.ids)
        self._lengths.append(lengths)
        _, offsets = utf8_buffers(text)
        columns = {
            **{name: batch.column(name) for name in ("doc_id", "source", "origin", "meta")},
            "tokens": pa.array(lengths.astype(np.int32)),
            "text_bytes": pa.array(np.diff(offsets)),
            "text_xxh3": content_hashes(text),
        }
        self.index.append(pa.RecordBatch.from_pydict(columns))

    def packed(self) -> Packed:
        """All tokens as shuffled rows."""
        offsets = np.zeros(sum(map(len, self._lengths)) + 1, np.int64)
        np.cumsum(np.concatenate(self._lengths), out=offsets[1:])
        ids = np.concatenate(self._ids)
        self._ids.clear()
        packed = pack_concat(ids, offsets, self.job.pack.seq_length + 1, self.tokenizer.pad_id)
        return shuffle_rows(packed, self.job.seed, self.job.shard.name)

    def table(self, packed: Packed) -> pa.Table:
        """The document index."""
        rows, offsets = document_rows(packed)
        table = pa.Table.from_batches(self.index).unify_dictionaries()
        table = table.append_column(
            "rows", pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(rows))
        )
        return table.append_column("offset", pa.array(packed.doc_offset)).select(DOCUMENTS_SCHEMA.names)

    @property
    def sources(self) -> dict[str, dict[str, int]]:
        """Documents, tokens and text bytes per source."""
        if not self.index:
            return {}
        table = pa.Table.from_batches(self.index).unify_dictionaries()
        table = table.set_column(1, "source", table.column("source").cast(pa.string()))
        sums = table.group_by("source", use_threads=False).aggregate(
            [("doc_id", "count"), ("tokens", "sum"), ("text_bytes", "sum")]
        )
        return {
            row["source"]: {
                "documents": row["doc_id_count"],
                "tokens": row["tokens_sum"],
                "text_bytes": row["text_bytes_sum"],
            }
            for row in sums.sort_by("source").to_pylist()
        }
