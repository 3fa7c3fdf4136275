"""Where documents lie in the rows of a shard: every document is one or more pieces, one a row it touches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataprep.errors import DamageError
from dataprep.shards.layouts import row_tokens
from dataprep.shards.manifest import PackFacts
from dataprep.shards.records import read_rows

Places = npt.NDArray[np.int64]

# The columns of the document index that say where documents lie.
PLACE_COLUMNS = ("tokens", "truncated", "rows", "offsets")
# Rows decoded at a time while a document is gathered.
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces in reading order: number of the document in the index, row of the shard, first token in it, tokens."""

    document: Places
    row: Places
    start: Places
    length: Places


def pieces_of(index: pa.Table, row_length: int) -> Pieces:
    """Lay out the documents of one shard's index (columns tokens, truncated, rows, offsets) as pieces.

    Every piece but a document's last reaches the end of its row. Documents whose tokens do not fit the rows they name
    get pieces of 0, too few or too many tokens: see `misplaced`. Raises DamageError where rows and offsets differ in
    number.
    """
    rows, offsets = (index.column(name).combine_chunks() for name in ("rows", "offsets"))
    counts, others = (each.value_lengths().to_numpy(zero_copy_only=False) for each in (rows, offsets))
    if (counts != others).any():
        number = int(np.argmax(counts != others))
        what = f"document {number} has {counts[number]} rows and {others[number]} offsets"
        raise DamageError(what, mend="run dataprep verify")
    row, start = (each.flatten().to_numpy().astype(np.int64) for each in (rows, offsets))
    document = np.repeat(np.arange(len(index)), counts)
    length = row_length - start
    named = counts > 0
    last = np.cumsum(counts)[named] - 1
    sums = np.concatenate([[0], np.cumsum(length)])
    before = sums[last] - sums[last + 1 - counts[named]]
    length[last] = _tokens_in_rows(index)[named] - before
    return Pieces(document, row, start, length)


def _tokens_in_rows(index: pa.Table) -> Places:
    tokens, truncated = (index.column(name).to_numpy().astype(np.int64) for name in ("tokens", "truncated"))
    kept: Places = tokens - truncated
    return kept


def misplaced(index: pa.Table, pieces: Pieces, rows: int, padding: int, pack: PackFacts) -> str | None:
    """Say what keeps the pieces from filling rows 0 … `rows` - 1 up to `padding` tokens at their ends."""
    return (
        _misfit(index, pieces, pack.row_length)
        or _miscut(index, pieces, pack)
        or _untiled(pieces, rows, padding, pack.row_length)
        or _badly_padded(pieces, rows, padding, pack)
    )


def _misfit(index: pa.Table, pieces: Pieces, row_length: int) -> str | None:
    """A document without rows, or with a piece that is empty or does not lie in its row."""
    outside = (pieces.start < 0) | (pieces.length < 1) | (pieces.start + pieces.length > row_length)
    wrong = np.bincount(pieces.document, minlength=len(index)) == 0
    wrong[pieces.document[outside]] = True
    return f"document {int(np.argmax(wrong))} does not fit the rows it names" if wrong.any() else None


def _miscut(index: pa.Table, pieces: Pieces, pack: PackFacts) -> str | None:
    """A document cut down that does not fill one row, or that the configuration would not have cut down."""
    truncated = index.column("truncated").to_numpy()
    whole_row = np.zeros(len(index), np.bool_)
    whole_row[pieces.document[pieces.length == pack.row_length]] = True
    may = whole_row & (np.bincount(pieces.document, minlength=len(index)) == 1) & (pack.overlong == "truncate")
    wrong = (truncated < 0) | ((truncated > 0) & ~may)
    if not wrong.any():
        return None
    number = int(np.argmax(wrong))
    return f"document {number} cannot have had {int(truncated[number])} tokens cut away"


def _untiled(pieces: Pieces, rows: int, padding: int, row_length: int) -> str | None:
    """A row whose pieces do not follow one another from its first token on."""
    order = np.argsort(pieces.row * row_length + pieces.start, kind="stable")
    row, start = pieces.row[order], pieces.start[order]
    ends = start + pieces.length[order]
    begins_row = np.ones(len(row), np.bool_)
    begins_row[1:] = row[1:] != row[:-1]
    gaps = start - np.where(begins_row, 0, np.roll(ends, 1))
    if (gaps != 0).any():
        first = int(np.argmax(gaps != 0))
        if gaps[first] > 0:
            return f"padding inside row {int(row[first])}"
        return _unfilled(int(row[first]), padding)
    named = row[begins_row]
    if np.array_equal(named, np.arange(rows)):
        return None
    missing = np.setdiff1d(np.arange(rows), named)
    return _unfilled(int(missing[0] if len(missing) else named[-1]), padding)


def _badly_padded(pieces: Pieces, rows: int, padding: int, pack: PackFacts) -> str | None:
    """More or less padding than there should be, or more than one row with some where documents are joined."""
    content = np.bincount(pieces.row, pieces.length, rows)
    padded = np.flatnonzero(content < pack.row_length)
    if rows * pack.row_length - content.sum() != padding:
        return _unfilled(int(padded[0]) if len(padded) else rows - 1, padding)
    if pack.method == "concat" and len(padded) > 1:
        return f"padding inside row {int(padded[0])}"
    return None


def _unfilled(row: int, padding: int) -> str:
    return f"documents and {padding} tokens of padding do not fill its rows (row {row})"


def in_row(pieces: Pieces, row: int) -> Pieces:
    """The pieces of one row, by their place in it."""
    found = np.flatnonzero(pieces.row == row)
    found = found[np.argsort(pieces.start[found], kind="stable")]
    return _some(pieces, found)


def of_document(pieces: Pieces, document: int) -> Pieces:
    """The pieces of one document, in reading order."""
    first, last = np.searchsorted(pieces.document, [document, document + 1])
    return _some(pieces, np.arange(first, last))


def piece_tokens(path: Path, pieces: Pieces) -> Iterator[npt.NDArray[Any]]:
    """Read the token ids of each piece from the shard `path`, in order, int32. Raises DamageError."""
    for first in range(0, len(pieces.row), _BLOCK):
        block = _some(pieces, np.arange(first, min(first + _BLOCK, len(pieces.row))))
        decoded = read_rows(path, block.row.tolist())
        for row, start, length in zip(decoded, block.start, block.length, strict=True):
            yield row_tokens(row)[start : start + length]


def _some(pieces: Pieces, chosen: Places) -> Pieces:
    return Pieces(pieces.document[chosen], pieces.row[chosen], pieces.start[chosen], pieces.length[chosen])
