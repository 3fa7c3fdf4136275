"""Which of the documents that are drawn belong to a shard set, and how often each of them does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataprep.batch import LABEL, with_column
from dataprep.dedup.keys import Normalization, content_keys
from dataprep.shards.manifest import LEFT_OUT

# Draws are 64-bit: every one lies in [0, DRAW_END).
DRAW_END = 1 << 64
_BYTES_OF_A_HASH = 16


class Picks(Protocol):
    """What is wanted of the documents that are read."""

    @property
    def copies(self) -> int:
        """How often a document is taken at most."""

    def may_take(self, sources: Iterable[str], copy: int) -> bool:
        """Whether copy `copy` can hold documents of these sources."""

    def of(self, batch: pa.RecordBatch, copy: int) -> pa.RecordBatch:
        """The rows of a batch that are wanted as copy `copy`."""


@dataclass(frozen=True, slots=True)
class OfSource:
    """The living documents of one source, once."""

    source: str
    copies: ClassVar[int] = 1

    def may_take(self, sources: Iterable[str], copy: int) -> bool:
        """Whether it is among these sources."""
        return copy == 0 and self.source in sources

    def of(self, batch: pa.RecordBatch, copy: int) -> pa.RecordBatch:
        """The rows of the source."""
        source = batch.column("source").cast(pa.string())
        return batch.filter(pc.and_(pc.is_null(batch.column("reason")), pc.equal(source, self.source)))


@dataclass(frozen=True, slots=True)
class FirstOf:
    """The living documents of some sources, once, whose order lies below an end of their source's own."""

    ends: Mapping[str, int]
    copies: ClassVar[int] = 1

    def may_take(self, sources: Iterable[str], copy: int) -> bool:
        """Whether one of them is among these sources."""
        return copy == 0 and not self.ends.keys().isdisjoint(sources)

    def of(self, batch: pa.RecordBatch, copy: int) -> pa.RecordBatch:
        """The rows below the ends."""
        source = batch.column("source")
        last = [self.ends.get(name, 0) - 1 for name in source.dictionary.to_pylist()]
        known = np.array([end >= 0 for end in last], np.bool_)[source.indices.to_numpy()]
        below = np.array([max(end, 0) for end in last], np.uint64)[source.indices.to_numpy()]
        alive = np.asarray(pc.is_null(batch.column("reason")).to_numpy(zero_copy_only=False), np.bool_)
        return _where(batch, alive & known & (batch.column("order").to_numpy() <= below))


@dataclass(frozen=True, slots=True)
class Membership:
    """A shard set's claim on documents: those of its side, each as often as its source's epochs say.

    `side` is a range of the 64-bit draws of contents, [low, high): texts that count as equal under `normalize` have
    equal draws and so never stand on two sides. `epochs` (by source, 1 where absent) are whole repetitions and, for the
    fraction, one more of the documents whose draw lies below it: those of 1.2 epochs are among those of 1.5.
    `takes_removed` makes this set the one that accounts for removed duplicates, which have no side.
    """

    seed: int
    side: tuple[int, int] = (0, DRAW_END)
    normalize: Normalization = "none"
    takes_removed: bool = True
    epochs: Mapping[str, float] = field(default_factory=dict)

    @property
    def copies(self) -> int:
        """How often a document is taken at most, at least 1: a document left out is drawn once to be accounted for."""
        return max(1, math.ceil(max(self.epochs.values(), default=1.0)))

    def may_take(self, sources: Iterable[str], copy: int) -> bool:
        """Whether copy `copy` can hold documents of these sources."""
        return copy == 0 or any(self.epochs.get(source, 1.0) > copy for source in sources)

    def of(self, batch: pa.RecordBatch, copy: int) -> pa.RecordBatch:
        """The rows of a batch that this set draws as its copy `copy` (from 0), of those with a `reason` as well.

        In copy 0 every document of the side is there, those the mix leaves out with the reason `mix.left_out`.
        """
        alive = np.asarray(pc.is_null(batch.column("reason")).to_numpy(zero_copy_only=False), np.bool_)
        mine = alive & self._on_side(batch)
        if not self.epochs:
            wanted = mine
        else:
            left = np.clip(self._epochs_of(batch) - copy, 0.0, 1.0)
            wanted = mine & _below(_draws(batch.column("content_hash"), self.seed, b"mix"), left)
        if copy:
            return _where(batch, wanted)
        left_out = mine & ~wanted
        if left_out.any():
            reasons = pc.if_else(pa.array(left_out), LEFT_OUT, batch.column("reason").cast(pa.string()))
            batch = with_column(batch, "reason", reasons.dictionary_encode().cast(LABEL))
        return _where(batch, mine | (~alive & self.takes_removed))

    def _on_side(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        low, high = self.side
        if (low, high) == (0, DRAW_END):
            return np.ones(batch.num_rows, np.bool_)
        hashes = batch.column("content_hash")
        if self.normalize != "none":
            keys = content_keys(batch.column("text"), self.normalize).astype(">u8").tobytes()
            hashes = pa.FixedSizeBinaryArray.from_buffers(hashes.type, batch.num_rows, [None, pa.py_buffer(keys)])
        draws = _draws(hashes, self.seed, b"split")
        return (draws >= np.uint64(low)) & (draws <= np.uint64(high - 1))

    def _epochs_of(self, batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
        source = batch.column("source")
        by_code = np.array([self.epochs.get(name, 1.0) for name in source.dictionary.to_pylist()], np.float64)
        of_rows: npt.NDArray[np.float64] = by_code[source.indices.to_numpy()]
        return of_rows


def _draws(hashes: pa.FixedSizeBinaryArray, seed: int, purpose: bytes) -> npt.NDArray[np.uint64]:
    """One 64-bit number a content hash, independent from purpose to purpose."""
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(purpose + value, seed) for value in _values(hashes)), np.uint64, len(hashes))


def _values(hashes: pa.FixedSizeBinaryArray) -> Iterator[bytes]:
    start = hashes.offset * _BYTES_OF_A_HASH
    data = hashes.buffers()[1].to_pybytes()[start : start + len(hashes) * _BYTES_OF_A_HASH]
    return (data[at : at + _BYTES_OF_A_HASH] for at in range(0, len(data), _BYTES_OF_A_HASH))


def _below(draws: npt.NDArray[np.uint64], shares: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Whether each draw lies in the first `shares` (0 to 1) of all draws."""
    # A double has 53 bits: the draws' upper ones are enough, and compare exactly.
    return (draws >> np.uint64(11)).astype(np.float64) < shares * 2.0**53


def _where(batch: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    return batch if mask.all() else batch.filter(pa.array(mask))
