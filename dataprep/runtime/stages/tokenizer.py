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
from dataprep.runtime.membership import OfSource, Picks
from dataprep.runtime.parts import ORDER_END
from dataprep.runtime.stages.dedup import REASON
from dataprep.runtime.steps import judge
from dataprep.runtime.task import Outcome
from dataprep.step import Step
from dataprep.tokens.config import FimConfig, PackConfig, TokenizerConfig
from dataprep.tokens.encoding import TokenBatch
from dataprep.tokens.engines import FASTOKENS, REFERENCE, EngineDiffers, EngineUnusable, Fastokens, prove
from dataprep.tokens.kinds import read_source
from dataprep.tokens.packing import cells
from dataprep.tokens.probes import probe_texts
from dataprep.tokens.source import Source
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer
from dataprep.tokens.train import train_tokenizer

STAGE = "tokenizer"
# Enough text for bytes per token to within a percent or so, and for a first proof of the engine.
MEASURED_BYTES = 2 << 20
# For each source of a mix, whose epochs can be no better than this estimate of its tokens, and for all of them.
_A_SOURCE, _ALL_SOURCES, _AT_LEAST = 4 << 20, 128 << 20, 128 << 10


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
        """Write the tokenizer.json that goes with the shards.

        Facts: its special tokens and fingerprint; text_bytes of the sample and lengths (of its documents in tokens,
        each with the number of documents); the engine to use; tokens and text bytes, before the steps, of a sample of
        each source in `mixed`. Raises ConfigError if the configuration insists on an
        engine that does not prove itself.
        """
        source = self._source()
        tokenizer = load_tokenizer(self.config, source.json, source.marks, self.fim)
        texts = [
            text for drawn in self._drawn(MEASURED_BYTES, self.kept_bytes, self.parts) for text in self._kept(drawn)
        ]
        plain = tokenizer.encode_plain(texts)
        storage.write_bytes(self.json, tokenizer.json)
        lengths, counts = np.unique(np.diff(tokenizer.bordered(plain).offsets), return_counts=True)
        facts = {
            "special": asdict(tokenizer.special),
            "fingerprint": tokenizer.fingerprint,
            "lengths": [lengths.tolist(), counts.tolist()],
            "text_bytes": sum(len(text.encode()) for text in texts),
            "engine": self._engine(tokenizer, texts, plain),
            "sources": {source: self._measured(source, tokenizer) for source in sorted(self.mixed)},
        }
        return Outcome({self.json: None}, facts=facts)

    def _measured(self, source: str, tokenizer: Tokenizer) -> list[int]:
        """Tokens by the reference of a sample of a source, and its text bytes before the steps."""
        parts = [drawn for drawn in self.parts if source in drawn.part.sources]
        tokens = size = 0
        wanted = max(_AT_LEAST, min(_A_SOURCE, _ALL_SOURCES // len(self.mixed)))
        for alive in self._drawn(wanted, self.mixed[source], parts, OfSource(source)):
            size += text_bytes(alive)
            tokens += len(tokenizer.encode(self._kept(alive)).ids)
        return [tokens, size]

    def _source(self) -> Source:
        if self.config.train is None:
            return read_source(self.config)
        drawn = self._drawn(self.config.train.sample_bytes, self.kept_bytes, self.parts)
        return Source("trained", train_tokenizer(self.config, (text for alive in drawn for text in self._kept(alive))))

    def _drawn(
        self, size: int, of: int, parts: Sequence[DrawnPart], picks: Picks | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The documents that come first in the seeded order: a uniform sample of about `size` of their `of` bytes."""
        high = min(ORDER_END, ORDER_END * size // max(1, of))
        for drawn in draw(parts, self.removal_lists, 0, max(1, high), REASON, picks):
            yield drawn.documents.filter(pc.is_null(drawn.documents.column("reason")))

    def _kept(self, batch: pa.RecordBatch) -> list[str]:
        """Texts after the steps."""
        texts: list[str] = judge(batch, self.steps).kept.column("text").to_pylist()
        return texts

    def _engine(self, tokenizer: Tokenizer, texts: list[str], plain: TokenBatch) -> dict[str, Any]:
        """Name and version of the engine, the texts it was compared on, and why it is not the fast one."""
        if self.config.engine == REFERENCE:
            return {"name": REFERENCE, "compared": 0, "why": None, "differences": []}
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
        return {"name": REFERENCE, "compared": 0, "why": why, "differences": list(differences)}


def tokens_per_byte(facts: Mapping[str, Any], source: str) -> float:
    """Tokens that a byte of a source's text before the steps comes to, by the sample of the task with these facts."""
    tokens, size = facts["sources"][source]
    return tokens / size if size else 0.0


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
