"""tokenizer: settle the run's tokenizer on a seeded sample of the kept documents, measure it and prove its engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataprep import storage
from dataprep.errors import ConfigError
from dataprep.runtime.draw import DrawnPart, draw
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


@dataclass(frozen=True, slots=True)
class SettleTokenizer:
    """Train or load the tokenizer, and count the tokens of a sample. `kept_bytes` is all text there is to draw from."""

    config: TokenizerConfig
    parts: tuple[DrawnPart, ...]
    removal_lists: tuple[Path, ...]
    steps: tuple[Step, ...]
    kept_bytes: int
    fim: FimConfig | None
    seed: int
    json: Path

    def run(self) -> Outcome:
        """Write the tokenizer.json that goes with the shards.

        Facts: its special tokens and fingerprint; text_bytes of the sample and lengths (of its documents in tokens,
        each with the number of documents); the engine to use. Raises ConfigError if the configuration insists on an
        engine that does not prove itself.
        """
        source = self._source()
        tokenizer = load_tokenizer(self.config, source.json, source.marks, self.fim)
        texts = list(self._sample(MEASURED_BYTES))
        plain = tokenizer.encode_plain(texts)
        storage.write_bytes(self.json, tokenizer.json)
        lengths, counts = np.unique(np.diff(tokenizer.bordered(plain).offsets), return_counts=True)
        facts = {
            "special": asdict(tokenizer.special),
            "fingerprint": tokenizer.fingerprint,
            "lengths": [lengths.tolist(), counts.tolist()],
            "text_bytes": sum(len(text.encode()) for text in texts),
            "engine": self._engine(tokenizer, texts, plain),
        }
        return Outcome({self.json: None}, facts=facts)

    def _source(self) -> Source:
        if self.config.train is None:
            return read_source(self.config)
        return Source("trained", train_tokenizer(self.config, self._sample(self.config.train.sample_bytes)))

    def _sample(self, size: int) -> Iterator[str]:
        """Texts of the documents that come first in the seeded order: a uniform sample of about `size` bytes."""
        high = min(ORDER_END, ORDER_END * size // max(1, self.kept_bytes))
        for drawn in draw(self.parts, self.removal_lists, 0, max(1, high), REASON):
            alive = drawn.documents.filter(pc.is_null(drawn.documents.column("reason")))
            yield from _texts(judge(alive, self.steps).kept)

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
            return {"name": engine.identity, "compared": len(texts) + len(probes), "why": None, "differences": []}
        except EngineUnusable as error:
            why = str(error)
        except EngineDiffers as error:
            why, differences = f"{engine.identity} gave {error}", error.texts
        if self.config.engine == FASTOKENS:
            raise ConfigError(why, where="tokenizer.engine", mend="set tokenizer.engine to auto or hf")
        return {"name": REFERENCE, "compared": 0, "why": why, "differences": list(differences)}


def cells_per_byte(facts: Mapping[str, Any], pack: PackConfig) -> float:
    """Tokens of rows, padding included, that a byte of text takes, by the sample of the task with these facts."""
    if not facts["text_bytes"]:
        # An empty sample cannot say how many tokens there are; at least one text byte a token is a safe bound.
        return 1.0
    lengths = np.repeat(*(np.array(column, np.int64) for column in facts["lengths"]))
    return cells(lengths, pack) / int(facts["text_bytes"])


def _texts(batch: pa.RecordBatch) -> list[str]:
    texts: list[str] = batch.column("text").to_pylist()
    return texts
