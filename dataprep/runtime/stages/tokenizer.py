"""tokenizer: settle the run's tokenizer on a seeded sample of the kept documents, measure it and prove its engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataprep import storage
from dataprep.batch import text_bytes
from dataprep.errors import ConfigError
from dataprep.runtime.draw import DrawnPart, draw
from dataprep.runtime.membership import FirstOf, OfSource
from dataprep.runtime.parts import ORDER_END
from dataprep.runtime.stages.dedup import REASON
from dataprep.runtime.steps import judge
from dataprep.runtime.task import Outcome
from dataprep.step import Step
from dataprep.tokens.config import FimConfig, PackConfig, TokenizerConfig
from dataprep.tokens.encoding import TokenBatch
from dataprep.tokens.engines import FASTOKENS, EngineDiffers, EngineUnusable, Fastokens, prove
from dataprep.tokens.kinds import read_source
from dataprep.tokens.packing import cells
from dataprep.tokens.probes import probe_texts
from dataprep.tokens.source import Source
from dataprep.tokens.tokenizer import HF, Tokenizer, load_tokenizer
from dataprep.tokens.train import train_tokenizer

STAGE = "tokenizer"
# Enough text for bytes per token to within a percent or so, and for a first proof of the engine.
MEASURED_BYTES = 2 << 20
# For each source of a mix, whose epochs can be no better than this estimate of its tokens, and for all of them.
_A_SOURCE, _ALL_SOURCES, _AT_LEAST = 4 << 20, 128 << 20, 128 << 10
# So much text one pass over the parts goes through for it.
_READ_AT_MOST = 4 << 30


@dataclass(frozen=True, slots=True)
class SettleTokenizer:
    """Train or load the tokenizer, and count the tokens of a sample. `kept_bytes` is all text there is to draw from.

    `mixed` are the text bytes of each source whose own tokens are to be counted.
    """

    config: TokenizerConfig
    parts: tuple[DrawnPart, ...]
    removal_lists: tuple[Path, ...]
    steps: tuple[Step, ...]
    kept_bytes: int
    mixed: Mapping[str, int]
    fim: FimConfig | None
    seed: int
    json: Path

    def run(self) -> Outcome:
        """Write the tokenizer.json that goes with the shards, and the SentencePiece model if that is what encodes.

        Facts: its special tokens and fingerprint; text_bytes of the sample and lengths (of its documents in tokens,
        each with the number of documents); the engine to use; tokens and text bytes, before the steps, of a sample of
        each source in `mixed`. Raises ConfigError if the configuration insists on an
        engine that does not prove itself.
        """
        source = self._source()
        tokenizer = load_tokenizer(self.config, source, self.fim)
        texts = [text for drawn in self._drawn(MEASURED_BYTES) for text in self._kept(drawn)]
        plain = tokenizer.encode_plain(texts)
        written = {self.json: tokenizer.json}
        if tokenizer.model is not None:
            written[self.json.with_suffix(".model")] = tokenizer.model
        for path, content in written.items():
            storage.write_bytes(path, content)
        lengths, counts = np.unique(np.diff(tokenizer.bordered(plain).offsets), return_counts=True)
        facts = {
            "special": asdict(tokenizer.special),
            "fingerprint": tokenizer.fingerprint,
            "lengths": [lengths.tolist(), counts.tolist()],
            "text_bytes": sum(len(text.encode()) for text in texts),
            "engine": self._engine(tokenizer, source, texts, plain),
            "sources": self._measured(tokenizer),
        }
        return Outcome(dict.fromkeys(written), facts=facts)

    def _measured(self, tokenizer: Tokenizer) -> dict[str, list[int]]:
        """Of a sample of each mixed source the tokens by the reference, and the text bytes before the steps.

        All sources are sampled in one pass over the parts that hold them. A source whose sample turns out small, since
        its documents are few and large, is sampled from a longer stretch of the order, within a bound on what is read.
        """
        wanted = max(_AT_LEAST, min(_A_SOURCE, _ALL_SOURCES // max(1, len(self.mixed))))
        found: dict[str, list[int]] = {}
        todo = dict(self.mixed)
        size = wanted
        while todo:
            ends = {source: _end(size, of) for source, of in todo.items()}
            parts = [drawn for drawn in self.parts if not ends.keys().isdisjoint(drawn.part.sources)]
            most = ORDER_END * _READ_AT_MOST // max(1, sum(drawn.part.text_bytes for drawn in parts))
            picks = FirstOf({source: min(end, most) for source, end in ends.items()})
            figures = self._figures(tokenizer, parts, picks)
            found |= figures
            whole = [source for source, end in ends.items() if end >= min(most, ORDER_END)]
            few = [source for source in todo if figures.get(source, (0, 0))[1] < wanted // 4]
            todo = {source: todo[source] for source in few if source not in whole}
            size *= 4
        return {source: found.get(source, [0, 0]) for source in sorted(self.mixed)}

    def _figures(self, tokenizer: Tokenizer, parts: Sequence[DrawnPart], picks: FirstOf) -> dict[str, list[int]]:
        """Tokens and text bytes of what is picked, by source."""
        figures: dict[str, list[int]] = {}
        for drawn in draw(parts, self.removal_lists, 0, max(picks.ends.values()), REASON, picks):
            for name in drawn.documents.column("source").unique().to_pylist():
                batch = OfSource(name).of(drawn.documents, 0)
                sums = figures.setdefault(name, [0, 0])
                sums[0] += len(tokenizer.encode(self._kept(batch)).ids)
                sums[1] += text_bytes(batch)
        return figures

    def _source(self) -> Source:
        if self.config.train is None:
            return read_source(self.config)
        drawn = self._drawn(self.config.train.sample_bytes)
        return Source("trained", train_tokenizer(self.config, (text for alive in drawn for text in self._kept(alive))))

    def _drawn(self, size: int) -> Iterator[pa.RecordBatch]:
        """The documents that come first in the seeded order: a uniform sample of about `size` bytes."""
        for drawn in draw(self.parts, self.removal_lists, 0, _end(size, self.kept_bytes), REASON):
            yield drawn.documents.filter(pc.is_null(drawn.documents.column("reason")))

    def _kept(self, batch: pa.RecordBatch) -> list[str]:
        """Texts after the steps."""
        texts: list[str] = judge(batch, self.steps).kept.column("text").to_pylist()
        return texts

    def _engine(self, tokenizer: Tokenizer, source: Source, texts: list[str], plain: TokenBatch) -> dict[str, Any]:
        """Name and version of the engine, the texts it was compared on, and why it is not the fast one."""
        slow = {"name": tokenizer.reference, "compared": 0, "why": None, "differences": []}
        if tokenizer.model is not None:
            return {**slow, "why": "; ".join(source.notes)}
        if self.config.engine == HF:
            return slow
        probes = probe_texts(tokenizer.added_tokens)
        why: str
        differences: tuple[str, ...] = ()
        try:
            engine = Fastokens(tokenizer.encoding_json)
            prove(tokenizer, engine, texts, plain)
            prove(tokenizer, engine, probes, tokenizer.encode_plain(probes))
            compared = len(texts) + len(probes)
            return {"name": engine.identity, "compared": compared, "why": None, "differences": []}
        except EngineUnusable as error:
            why = str(error)
        except EngineDiffers as error:
            why, differences = f"{engine.identity} gave {error}", error.texts
        if self.config.engine == FASTOKENS:
            raise ConfigError(why, where="tokenizer.engine", mend="set tokenizer.engine to auto or hf")
        return {**slow, "why": why, "differences": list(differences)}


def _end(size: int, of: int) -> int:
    """The end of a stretch of all orders, from 0, that holds about `size` of `of` bytes."""
    return max(1, min(ORDER_END, ORDER_END * size // max(1, of)))


def tokens_per_byte(facts: Mapping[str, Any], source: str) -> float:
    """Tokens that a byte of a source's text before the steps comes to, by the sample of the task with these facts.

    A source of which nothing could be sampled is taken to be like all text.
    """
    tokens, size = facts["sources"].get(source, (0, 0))
    if size:
        return float(tokens / size)
    lengths, counts = (np.array(column, np.int64) for column in facts["lengths"])
    return float(lengths @ counts / facts["text_bytes"]) if facts["text_bytes"] else 1.0


def cells_per_byte(facts: Mapping[str, Any], pack: PackConfig, source: str | None = None) -> float:
    """Tokens of rows, padding included, that a byte of text (of a source) takes, by the sample of these facts."""
    if not facts["text_bytes"]:
        # An empty sample cannot say how many tokens there are; at least one text byte a token is a safe bound.
        return 1.0
    lengths = np.repeat(*(np.array(column, np.int64) for column in facts["lengths"]))
    taken = cells(lengths, pack)
    if source is None:
        return taken / int(facts["text_bytes"])
    return tokens_per_byte(facts, source) * taken / int(lengths.sum())
