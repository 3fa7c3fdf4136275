"""Packing of token sequences into rows: which row has room for which piece, and the copying of pieces to their rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dataprep.kernels import kernel

Lengths = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]


# A set of spaces is a binary tree whose second half are its leaves, one a space: a node is 1 where one below it is in
# the set.
Tree = npt.NDArray[np.uint8]


@kernel
def _least_from(tree: Tree, length: int) -> int:
    """The least space of the set that is at least `length`, or -1."""
    leaves = len(tree) // 2
    node = leaves + length
    if tree[node]:
        return length
    # Up to the first ancestor with something on its right, then down to the leftmost leaf of that.
    while node > 1 and (node & 1 or not tree[node + 1]):
        node >>= 1
    if node <= 1:
        return -1
    node += 1
    while node < leaves:
        node *= 2
        if not tree[node]:
            node += 1
    return node - leaves


@kernel
def _put_in(tree: Tree, space: int) -> None:
    node = len(tree) // 2 + space
    while node > 0 and not tree[node]:
        tree[node] = 1
        node >>= 1


@kernel
def _take_out(tree: Tree, space: int) -> None:
    node = len(tree) // 2 + space
    tree[node] = 0
    while node > 1 and not tree[node ^ 1]:
        node >>= 1
        tree[node] = 0


@kernel
def _best_fit(
    lengths: Lengths, row_length: int, tree: Tree, top: Rows, below: Rows, rows: Rows, starts: Lengths
) -> int:
    # Open rows of equal space form a stack: `top[space]` is the last of them, `below[row]` the one under it.
    count = 0
    for piece in range(len(lengths)):
        space = _least_from(tree, lengths[piece])
        if space < 0:
            row, space = count, row_length
            count += 1
        else:
            row = top[space]
            top[space] = below[row]
            if top[space] < 0:
                _take_out(tree, space)
        rows[piece] = row
        starts[piece] = row_length - space
        left = space - lengths[piece]
        # A full row is never looked for again: no piece is empty.
        if left > 0:
            below[row] = top[left]
            top[left] = row
            _put_in(tree, left)
    return count


def best_fit(lengths: Lengths, row_length: int) -> tuple[Rows, Lengths, int]:
    """Give each piece, in the order given, to the open row with the least space that holds it, else to a new row.

    lengths: int32 [pieces], each from 1 to `row_length`. Of rows with equal space, the one that came to it last is
    taken. Returns rows int64 [pieces], starts int32 [pieces] and the number of rows, which are numbered as they were
    opened. Takes O(log row_length) a piece.
    """
    leaves = 1 << row_length.bit_length()
    rows = np.empty(len(lengths), np.int64)
    starts = np.empty(len(lengths), np.int32)
    top = np.full(row_length + 1, -1, np.int64)
    below = np.empty(len(lengths), np.int64)
    count = _best_fit(lengths, row_length, np.zeros(2 * leaves, np.uint8), top, below, rows, starts)
    return rows, starts, count


@kernel
def _copy(ids: npt.NDArray[np.int32], begins: Rows, lengths: Lengths, places: Rows, out: npt.NDArray[np.int32]) -> None:
    for piece in range(len(lengths)):
        begin, place, length = begins[piece], places[piece], lengths[piece]
        out[place : place + length] = ids[begin : begin + length]


def copy_pieces(
    ids: npt.NDArray[np.int32], begins: Rows, lengths: Lengths, places: Rows, out: npt.NDArray[np.int32]
) -> None:
    """Copy ids[begins[i] : begins[i] + lengths[i]] to `out` from places[i] on, for every piece i.

    ids, out: int32 flat; begins, places: int64 [pieces]; lengths: int32 [pieces]. Nothing checks the bounds.
    """
    _copy(ids, begins, lengths, places, out)


@kernel
def _fill_ends(rows: npt.NDArray[np.int32], lengths: Lengths, value: np.int32) -> None:
    for row in range(len(rows)):
        rows[row, lengths[row] :] = value


def fill_ends(rows: npt.NDArray[np.int32], lengths: Lengths, value: int) -> None:
    """Set every row, int32 [n, row_length], to `value` from its length, int32 [n], on."""
    _fill_ends(rows, lengths, np.int32(value))


def warm() -> None:
    """Compile or load the kernels."""
    rows, _, _ = best_fit(np.ones(1, np.int32), 1)
    ids = np.zeros(1, np.int32)
    copy_pieces(ids, rows, np.ones(1, np.int32), rows, ids)
    fill_ends(ids.reshape(1, 1), ids, 0)
