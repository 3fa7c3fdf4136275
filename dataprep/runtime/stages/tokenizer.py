"""tokenizer: settle the run's tokenizer on a seeded sample of the kept documents, and measure it there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataprep import storage
from dataprep.runtime.draw import DrawnPart, draw
from dataprep.runtime.parts import ORDER_END
from dataprep.runtime.stages.dedup import REASON
from dataprep.runtime.steps import judge
from dataprep.runtime.task import Outcome
from dataprep.shards.decoder import put_back
from dataprep.step import Step
from dataprep.tokens.config import FimConfig, PackConfig, TokenizerConfig
from dataprep.tokens.fim import draw_cuts, encode_with_fim
from dataprep.tokens.packing import cells
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer
from dataprep.tokens.tokenizer_json import read_tokenizer_file
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
    fim: FimConfig | None
    seed: int
    json: Path

    def run(self) -> Outcome:
        """Write the tokenizer.json that goes with the shards; facts: its special tokens and what the sample shows.

        These are text_bytes, lengths (of documents in tokens, each with the number of documents), and whether decoding
        is lossless, also with documents rearranged (fim_lossless, false without `fim`).
        """
        tokenizer = load_tokenizer(self.config, self._source(), self.fim)
        texts = list(self._sample(MEASURED_BYTES))
        storage.write_bytes(self.json, tokenizer.json)
        lengths, counts = np.unique(np.diff(tokenizer.encode(texts).offsets), return_counts=True)
        facts = {
            "special": asdict(tokenizer.special),
            "lengths": [lengths.tolist(), counts.tolist()],
            "text_bytes": sum(len(text.encode()) for text in texts),
            "lossless": tokenizer.is_lossless(texts),
            "fim_lossless": self.fim is not None and _is_fim_lossless(tokenizer, texts, self.fim, self.seed),
        }
        return Outcome({self.json: None}, facts=facts)

    def _source(self) -> bytes:
        if self.config.train is not None:
            return train_tokenizer(self.config, self._sample(self.config.train.sample_bytes))
        if self.config.path is None:
            raise ValueError("the configuration names no tokenizer")
        return read_tokenizer_file(self.config.path)

    def _sample(self, size: int) -> Iterator[str]:
        """Texts of the documents that come first in the seeded order: a uniform sample of about `size` bytes."""
        high = min(ORDER_END, ORDER_END * size // max(1, self.kept_bytes))
        for drawn in draw(self.parts, self.removal_lists, 0, max(1, high), REASON):
            alive = drawn.documents.filter(pc.is_null(drawn.documents.column("reason")))
            yield from _texts(judge(alive, self.steps).kept)


def cells_per_byte(facts: Mapping[str, Any], pack: PackConfig) -> float:
    """Tokens of rows, padding included, that a byte of text takes, by the sample of the task with these facts."""
    if not facts["text_bytes"]:
        # An empty sample cannot say how many tokens there are; at least one text byte a token is a safe bound.
        return 1.0
    lengths = np.repeat(*(np.array(column, np.int64) for column in facts["lengths"]))
    return cells(lengths, pack) / int(facts["text_bytes"])


def _is_fim_lossless(tokenizer: Tokenizer, texts: list[str], fim: FimConfig, seed: int) -> bool:
    """Whether decoding gives all of these texts back when every one that is long enough is rearranged."""
    hashes = [xxhash.xxh3_128_digest(text.encode()) for text in texts]
    every = fim.model_copy(update={"rate": 1.0})
    cuts = draw_cuts(texts, hashes, np.ones(len(texts), np.bool_), every, seed)
    tokens = encode_with_fim(tokenizer, texts, cuts)
    bounds = zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)
    documents = (tokens.ids[first:last] for first, last in bounds)
    return all(
        _restored(tokenizer, ids) == text
        for text, ids, chosen in zip(texts, documents, cuts.chosen, strict=True)
        if chosen
    )


def _restored(tokenizer: Tokenizer, ids: npt.NDArray[np.int32]) -> str | None:
    if tokenizer.fim is None:
        return None
    parts = put_back(ids[0 if tokenizer.bos_id is None else 1 : -1], **asdict(tokenizer.fim))
    return None if parts is None else "".join(map(tokenizer.decode, parts))


def _texts(batch: pa.RecordBatch) -> list[str]:
    texts: list[str] = batch.column("text").to_pylist()
    return texts
