"""Packing: token sequences become rows of equal length, with every token accounted for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import xxhash

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of tokens, and which piece of which document stands where.

    rows: int32 [n, row_length]; lengths: int32 [n], how many tokens of a row are the documents', the rest is padding.
    doc_starts: int32 flat, doc_start_offsets: int64 [n + 1]: per row the positions at which a piece of a document
    begins, ascending, the first always 0; padding begins nothing.
    doc_rows: int64 flat, doc_row_offsets: int64 [documents + 1]: per document the rows its pieces stand in, in reading
    order; doc_offset: int32 [documents], where its first piece begins in its first row.
    """

    rows: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    doc_starts: npt.NDArray[np.int32]
    doc_start_offsets: npt.NDArray[np.int64]
    doc_rows: npt.NDArray[np.int64]
    doc_row_offsets: npt.NDArray[np.int64]
    doc_offset: npt.NDArray[np.int32]

    @property
    def padding(self) -> int:
        """Tokens of all rows that are padding."""
        return self.rows.size - int(self.lengths.sum(dtype=np.int64))

    @property
    def first_row(self) -> npt.NDArray[np.int64]:
        """int64 [documents]: the row a document begins in."""
        rows: npt.NDArray[np.int64] = self.doc_rows[self.doc_row_offsets[:-1]]
        return rows

    @property
    def last_row(self) -> npt.NDArray[np.int64]:
        """int64 [documents]: the row a document ends in."""
        rows: npt.NDArray[np.int64] = self.doc_rows[self.doc_row_offsets[1:] - 1]
        return rows


def pack_concat(ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], row_length: int, pad_id: int) -> Packed:
    """Join documents end to end and cut every `row_length` tokens; the last row is filled with `pad_id`.

    ids: int32 [tokens]; offsets: int64 [documents + 1], from 0 to tokens. Every document must hold a token, as its
    EOS sees to; raises ValueError otherwise.
    """
    if offsets[0] != 0 or offsets[-1] != len(ids) or (np.diff(offsets) < 1).any():
        raise ValueError("offsets must rise from 0 to the number of ids, with at least one token a document")
    count = -(-len(ids) // row_length)
    rows = np.empty((count, row_length), np.int32)
    rows.reshape(-1)[: len(ids)] = ids
    rows.reshape(-1)[len(ids) :] = pad_id
    begins, ends = offsets[:-1], offsets[1:]
    first, last = begins // row_length, (ends - 1) // row_length
    lengths = np.full(count, row_length, np.int32)
    if count:
        lengths[-1] = len(ids) - (count - 1) * row_length
    places = _piece_starts(begins, count, row_length)
    doc_row_offsets = _offsets(last - first + 1)
    return Packed(
        rows=rows,
        lengths=lengths,
        doc_starts=(places % row_length).astype(np.int32),
        doc_start_offsets=np.searchsorted(places, np.arange(count + 1, dtype=np.int64) * row_length).astype(np.int64),
        doc_rows=_ranges(first, doc_row_offsets),
        doc_row_offsets=doc_row_offsets,
        doc_offset=(begins % row_length).astype(np.int32),
    )


def shuffle_rows(packed: Packed, seed: int, key: str) -> Packed:
    """Permute the rows by `seed` and `key` (the shard's name); documents keep their rows, in reading order.

    The order is ours to define, not numpy's, so that no library version can change it: row i is sorted by output i of
    the SplitMix64 generator (Steele, Lea, Flood 2014) seeded with xxh3-64 of "seed:key". It is one to one, so there
    are no ties.
    """
    order = np.argsort(_splitmix64(xxhash.xxh3_64_intdigest(f"{seed}:{key}".encode()), len(packed.rows)))
    new_place = np.empty(len(order), np.int64)
    new_place[order] = np.arange(len(order))
    counts = np.diff(packed.doc_start_offsets)[order]
    start_offsets = _offsets(counts)
    return replace(
        packed,
        rows=packed.rows[order],
        lengths=packed.lengths[order],
        doc_starts=packed.doc_starts[_ranges(packed.doc_start_offsets[:-1][order], start_offsets)],
        doc_start_offsets=start_offsets,
        doc_rows=new_place[packed.doc_rows],
    )


def document_rows(packed: Packed) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Per document the rows that hold it, in reading order: int32 flat, offsets int64 [documents + 1]."""
    return packed.doc_rows.astype(np.int32), packed.doc_row_offsets


def _piece_starts(begins: npt.NDArray[np.int64], count: int, row_length: int) -> npt.NDArray[np.int64]:
    """Places in the joined tokens where a document or a row begins, ascending."""
    row_begins = np.arange(count, dtype=np.int64) * row_length
    places = np.concatenate([row_begins, begins[begins % row_length != 0]])
    # Two sorted runs: the stable sort merges them in one pass.
    return np.sort(places, kind="stable")


def _offsets(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _ranges(starts: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Join the ranges starts[i], starts[i] + 1, …, each as long as offsets[i + 1] - offsets[i]."""
    shifts: npt.NDArray[np.int64] = np.repeat(starts - offsets[:-1], np.diff(offsets))
    return shifts + np.arange(offsets[-1], dtype=np.int64)


def _splitmix64(seed: int, count: int) -> npt.NDArray[np.uint64]:
    # uint64 arithmetic of arrays wraps around, which is what the generator is defined by.
    mixed = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
