"""tokenizer: settle the run's tokenizer on a seeded sample of the kept documents, and measure it there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dataprep import storage
from dataprep.runtime.draw import DrawnPart, draw
from dataprep.runtime.parts import ORDER_END
from dataprep.runtime.stages.dedup import REASON
from dataprep.runtime.steps import judge
from dataprep.runtime.task import Outcome
from dataprep.step import Step
from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.kinds import read_source
from dataprep.tokens.losses import losses
from dataprep.tokens.source import Source
from dataprep.tokens.tokenizer import load_tokenizer
from dataprep.tokens.train import train_tokenizer

STAGE = "tokenizer"
# Enough text for bytes per token to within a percent or so, and for a first proof that decoding loses nothing.
MEASURED_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class SettleTokenizer:
    """Train or load the tokenizer, and count the tokens of a sample. `kept_bytes` is all text there is to draw from."""

    config: TokenizerConfig
    parts: tuple[DrawnPart, ...]
    removal_lists: tuple[Path, ...]
    steps: tuple[Step, ...]
    kept_bytes: int
    json: Path

    def run(self) -> Outcome:
        """Write the tokenizer.json that goes with the shards; facts: its special tokens; tokens, text_bytes of the
        sample; `lossless`, whether the sample came back and nothing in the tokenizer can lose text.
        """
        source = self._source()
        tokenizer = load_tokenizer(self.config, source.json, source.marks)
        texts = list(self._sample(MEASURED_BYTES))
        storage.write_bytes(self.json, tokenizer.json)
        facts = {
            "special": asdict(tokenizer.special),
            "tokens": len(tokenizer.encode(texts).ids),
            "text_bytes": sum(len(text.encode()) for text in texts),
            "lossless": not losses(tokenizer.json) and tokenizer.is_lossless(texts),
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


def _texts(batch: pa.RecordBatch) -> list[str]:
    texts: list[str] = batch.column("text").to_pylist()
    return texts
