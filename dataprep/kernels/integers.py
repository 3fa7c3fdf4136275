"""Integer columns as MindRecord stores them: each value in the fewest of 1, 2 or 4 bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dataprep.kernels import kernel

# The column's length (8 bytes, big-endian), then its count (4, big-endian).
_HEAD = 12


@kernel
def _encode(
    values: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
) -> None:
    for row in range(len(ends)):
        first = offsets[row]
        count = offsets[row + 1] - first
        begin = ends[row]
        widths = begin + _HEAD
        w = widths + (count + 3) // 4
        pairs = 0
        for i in range(count):
            value = values[first + i]
            out[w] = value & 0xFF
            if -0x80 <= value < 0x80:
                w += 1
                exponent = 0
            else:
                out[w + 1] = (value >> 8) & 0xFF
                if -0x8000 <= value < 0x8000:
                    w += 2
                    exponent = 1
                else:
                    out[w + 2] = (value >> 16) & 0xFF
                    out[w + 3] = (value >> 24) & 0xFF
                    w += 4
                    exponent = 2
            pairs = (pairs << 2) | exponent
            if i & 3 == 3:
                out[widths + (i >> 2)] = pairs
                pairs = 0
        if count & 3:
            out[widths + (count >> 2)] = pairs << 2 * (4 - (count & 3))
        length = w - begin - 8
        for k in range(8):
            out[begin + k] = (length >> 8 * (7 - k)) & 0xFF
        for k in range(4):
            out[begin + 8 + k] = (count >> 8 * (3 - k)) & 0xFF
        ends[row] = w


def room(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The most bytes columns of so many values can take: int64 [rows]."""
    most: npt.NDArray[np.int64] = _HEAD + (counts + 3) // 4 + 4 * counts
    return most


def encode(
    values: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
) -> None:
    """Append one column to rows that grow in `out`: row i takes `values[offsets[i]:offsets[i + 1]]`.

    values: int32 flat, offsets: int64 [rows + 1]; out: uint8, with `room` behind each of `ends` (int64 [rows]), the
    bytes where the rows end so far, which move on. Format: see shards/records.py.
    """
    _encode(values, offsets, out, ends)


def warm() -> None:
    """Compile or load the kernel."""
    encode(np.zeros(1, np.int32), np.array([0, 1], np.int64), np.zeros(20, np.uint8), np.zeros(1, np.int64))
