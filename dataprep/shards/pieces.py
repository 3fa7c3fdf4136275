"""Where documents lie in the rows of a shard: every document is one or more pieces, one a row it touches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataprep.shards.layouts import row_tokens
from dataprep.shards.records import read_rows

Places = npt.NDArray[np.int64]

# The columns of the document index that say where documents lie.
PLACE_COLUMNS = ("tokens", "rows", "offset")
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
    """Lay out the documents of one shard's index (columns tokens, rows, offset) as pieces.

    Documents whose tokens do not fit the rows they name get pieces of 0, too few or too many tokens: see `misplaced`.
    """
    rows = index.column("rows").combine_chunks()
    counts = rows.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    tokens, offset = (index.column(name).to_numpy().astype(np.int64) for name in ("tokens", "offset"))
    document = np.repeat(np.arange(len(index)), counts)
    firsts = np.cumsum(counts) - counts
    nth = np.arange(len(document)) - firsts[document]
    start = np.where(nth == 0, offset[document], 0)
    before = np.where(nth == 0, 0, nth * row_length - offset[document])
    length = np.minimum(row_length - start, tokens[document] - before)
    return Pieces(document, rows.flatten().to_numpy().astype(np.int64), start, length)


def misplaced(index: pa.Table, pieces: Pieces, rows: int, row_length: int, padding: int) -> str | None:
    """Say what keeps the pieces from tiling rows 0 … `rows` - 1, all but the `padding` last tokens of one row."""
    tokens, offset = (index.column(name).to_numpy() for name in ("tokens", "offset"))
    sums = np.concatenate([[0], np.cumsum(pieces.length)])
    first, last = (np.searchsorted(pieces.document, np.arange(len(index)), side) for side in ("left", "right"))
    wrong = (sums[last] - sums[first] != tokens) | (offset < 0) | (offset >= row_length)
    wrong[pieces.document[pieces.length < 1]] = True
    if wrong.any():
        return f"document {int(np.argmax(wrong))} does not fit the rows it names"
    starts = np.sort(pieces.row * row_length + pieces.start)
    ends = np.sort(pieces.row * row_length + pieces.start + pieces.length)
    gaps = np.append(starts, rows * row_length) - np.insert(ends, 0, 0)
    holes = np.flatnonzero(gaps)
    if not len(holes) and padding == 0:
        return None
    if len(holes) == 1 and gaps[holes[0]] == padding < row_length:
        hole_end = int(np.append(starts, rows * row_length)[holes[0]])
        return None if hole_end % row_length == 0 else f"padding inside row {hole_end // row_length}"
    place = int(np.insert(ends, 0, 0)[holes[0]]) // row_length if len(holes) else rows - 1
    return f"documents and {padding} tokens of padding do not fill its rows (row {place})"


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
