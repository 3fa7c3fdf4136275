"""Packing: token sequences become rows of equal length, with every token accounted for.

A document is one or more pieces, at most one a row. Whatever the method, each piece but a document's last reaches the
end of its row, pieces of a row follow one another from its first token on, and padding stands behind them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import xxhash

from dataprep.kernels.pack import best_fit, copy_pieces, fill_ends
from dataprep.tokens.config import PackConfig
from dataprep.tokens.generator import splitmix64

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of tokens, and which piece of which document stands where.

    rows: int32 [n, row_length]; lengths: int32 [n], how many tokens of a row are the documents', the rest is padding.
    doc_starts: int32 flat, doc_start_offsets: int64 [n + 1]: per row the positions at which a piece of a document
    begins, ascending, the first always 0; padding begins nothing.
    doc_rows, piece_starts: int64 and int32 flat, doc_row_offsets: int64 [documents + 1]: per document the rows its
    pieces stand in, in reading order, and where in each of these rows its piece begins.
    """

    rows: Ids
    lengths: Ids
    doc_starts: Ids
    doc_start_offsets: Offsets
    doc_rows: Offsets
    piece_starts: Ids
    doc_row_offsets: Offsets

    @property
    def documents(self) -> int:
        """How many documents the rows hold."""
        return len(self.doc_row_offsets) - 1

    @property
    def padding(self) -> int:
        """Tokens of all rows that are padding."""
        return self.rows.size - int(self.lengths.sum(dtype=np.int64))

    @property
    def first_row(self) -> Offsets:
        """int64 [documents]: the row a document begins in."""
        rows: Offsets = self.doc_rows[self.doc_row_offsets[:-1]]
        return rows

    @property
    def last_row(self) -> Offsets:
        """int64 [documents]: the row a document ends in."""
        rows: Offsets = self.doc_rows[self.doc_row_offsets[1:] - 1]
        return rows


def pack(ids: Ids, offsets: Offsets, config: PackConfig, pad_id: int) -> Packed:
    """Pack documents by the configured method.

    ids: int32 [tokens]; offsets: int64 [documents + 1], from 0 to tokens. Every document must hold a token, as its
    EOS sees to; raises ValueError otherwise.
    """
    if config.method == "concat":
        return pack_concat(ids, offsets, config.row_length, pad_id)
    if config.method == "best_fit":
        return pack_best_fit(ids, offsets, config.row_length, pad_id, config.window)
    return pack_none(ids, offsets, config.row_length, pad_id)


def pack_concat(ids: Ids, offsets: Offsets, row_length: int, pad_id: int) -> Packed:
    """Join documents end to end and cut every `row_length` tokens; the last row is filled with `pad_id`."""
    _check(ids, offsets)
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
    piece_starts = np.zeros(doc_row_offsets[-1], np.int32)
    piece_starts[doc_row_offsets[:-1]] = begins % row_length
    return Packed(
        rows=rows,
        lengths=lengths,
        doc_starts=(places % row_length).astype(np.int32),
        doc_start_offsets=np.searchsorted(places, np.arange(count + 1, dtype=np.int64) * row_length).astype(np.int64),
        doc_rows=_ranges(first, doc_row_offsets),
        piece_starts=piece_starts,
        doc_row_offsets=doc_row_offsets,
    )


def pack_best_fit(ids: Ids, offsets: Offsets, row_length: int, pad_id: int, window: int) -> Packed:
    """Pack documents whole, by best-fit decreasing (Johnson 1973; for pretraining: Ding et al. 2024, arXiv 2404.10830).

    A document longer than a row becomes full rows and a rest, which is packed like a document. Of each `window`
    documents the pieces are taken from the longest to the shortest, equal ones in reading order; a piece goes to the
    open row with the least space that holds it, of equal ones to that which came to this space last, and opens a row
    where none has room. Rows stay open from window to window and are numbered as they were opened.
    """
    _check(ids, offsets)
    lengths, piece_offsets = _pieces(offsets, row_length)
    windows = np.repeat(np.arange(len(offsets) - 1) // window, np.diff(piece_offsets))
    order = np.argsort(windows * (row_length + 1) + (row_length - lengths), kind="stable")
    rows, starts = np.empty(len(order), np.int64), np.empty(len(order), np.int32)
    rows[order], starts[order], count = best_fit(lengths[order], row_length)
    return _laid_down(ids, lengths, piece_offsets, rows, starts, np.empty((count, row_length), np.int32), pad_id)


def pack_none(ids: Ids, offsets: Offsets, row_length: int, pad_id: int) -> Packed:
    """Give each document a row of its own; a longer one becomes full rows and a row with the rest."""
    _check(ids, offsets)
    lengths, piece_offsets = _pieces(offsets, row_length)
    count = len(lengths)
    rows, starts = np.arange(count, dtype=np.int64), np.zeros(count, np.int32)
    return _laid_down(ids, lengths, piece_offsets, rows, starts, np.empty((count, row_length), np.int32), pad_id)


def truncate(ids: Ids, offsets: Offsets, row_length: int, eos_id: int) -> tuple[Ids, Offsets, Ids]:
    """Cut documents down to `row_length` (2 or more) tokens: the first ones, and `eos_id` in the last place.

    Returns ids, offsets and, int32 [documents], how many tokens were cut away from each.
    """
    lengths = np.diff(offsets)
    cut = np.maximum(lengths - row_length, 0).astype(np.int32)
    if not cut.any():
        return ids, offsets, cut
    kept_offsets = _offsets(lengths - cut)
    kept = np.empty(kept_offsets[-1], np.int32)
    copy_pieces(ids, offsets[:-1], np.diff(kept_offsets).astype(np.int32), kept_offsets[:-1], kept)
    kept[kept_offsets[1:][cut > 0] - 1] = eos_id
    return kept, kept_offsets, cut


def cells(lengths: Offsets, config: PackConfig) -> int:
    """Tokens of the rows that documents of these lengths take, padding included; best_fit is taken to leave none."""
    kept = np.minimum(lengths, config.row_length) if config.overlong == "truncate" else lengths
    if config.method == "none":
        return int((-(-kept // config.row_length)).sum()) * config.row_length
    return int(kept.sum())


def shuffle_rows(packed: Packed, seed: int, key: str) -> Packed:
    """Permute the rows by `seed` and `key` (the shard's name); documents keep their rows, in reading order.

    The order is ours to define, not numpy's, so that no library version can change it: row i is sorted by output i of
    the SplitMix64 generator seeded with xxh3-64 of "seed:key". It is one to one, so there are no ties.
    """
    state = np.array([xxhash.xxh3_64_intdigest(f"{seed}:{key}".encode())], np.uint64)
    order = np.argsort(splitmix64(state, len(packed.rows))[0])
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


def document_rows(packed: Packed) -> tuple[Ids, Offsets]:
    """Per document the rows that hold it, in reading order: int32 flat, offsets int64 [documents + 1]."""
    return packed.doc_rows.astype(np.int32), packed.doc_row_offsets


def _check(ids: Ids, offsets: Offsets) -> None:
    if offsets[0] != 0 or offsets[-1] != len(ids) or (np.diff(offsets) < 1).any():
        raise ValueError("offsets must rise from 0 to the number of ids, with at least one token a document")


def _pieces(offsets: Offsets, row_length: int) -> tuple[Ids, Offsets]:
    """Cut documents into full rows and a rest: int32 [pieces] lengths, int64 [documents + 1] pieces before each."""
    lengths = np.diff(offsets)
    piece_offsets = _offsets(-(-lengths // row_length))
    pieces = np.full(piece_offsets[-1], row_length, np.int32)
    pieces[piece_offsets[1:] - 1] = (lengths - 1) % row_length + 1
    return pieces, piece_offsets


def _laid_down(
    ids: Ids, lengths: Ids, piece_offsets: Offsets, piece_rows: Offsets, piece_starts: Ids, rows: Ids, pad_id: int
) -> Packed:
    """Fill `rows` with pieces that were given their places; `ids` holds them one behind the other."""
    count, row_length = rows.shape
    places = piece_rows * row_length + piece_starts
    copy_pieces(ids, _offsets(lengths.astype(np.int64))[:-1], lengths, places, rows.reshape(-1))
    content = np.bincount(piece_rows, lengths, count).astype(np.int32)
    fill_ends(rows, content, pad_id)
    in_rows = np.argsort(places)
    return Packed(
        rows=rows,
        lengths=content,
        doc_starts=piece_starts[in_rows],
        doc_start_offsets=_offsets(np.bincount(piece_rows, minlength=count)),
        doc_rows=piece_rows,
        piece_starts=piece_starts,
        doc_row_offsets=piece_offsets,
    )


def _piece_starts(begins: Offsets, count: int, row_length: int) -> Offsets:
    """Places in the joined tokens where a document or a row begins, ascending."""
    row_begins = np.arange(count, dtype=np.int64) * row_length
    places = np.concatenate([row_begins, begins[begins % row_length != 0]])
    # Two sorted runs: the stable sort merges them in one pass.
    return np.sort(places, kind="stable")


def _offsets(lengths: Offsets) -> Offsets:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _ranges(starts: Offsets, offsets: Offsets) -> Offsets:
    """Join the ranges starts[i], starts[i] + 1, …, each as long as offsets[i + 1] - offsets[i]."""
    shifts: Offsets = np.repeat(starts - offsets[:-1], np.diff(offsets))
    return shifts + np.arange(offsets[-1], dtype=np.int64)
