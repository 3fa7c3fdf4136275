"""Fold texts for comparison: drop some code points and make one space of every run of others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dataprep.kernels import kernel
from dataprep.kernels.classes import CODE_POINTS
from dataprep.kernels.utf8 import read_point

DROP, KEEP, BLANK = 0, 1, 2


@kernel
def _fold(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    actions: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    out_offsets: npt.NDArray[np.int64],
) -> None:
    w = 0
    out_offsets[0] = 0
    for row in range(len(offsets) - 1):
        start = w
        blank = False
        i = offsets[row]
        stop = offsets[row + 1]
        while i < stop:
            point, size = read_point(data, i)
            action = actions[point]
            if action == KEEP:
                if blank and w > start:
                    out[w] = 0x20
                    w += 1
                blank = False
                for k in range(size):
                    out[w + k] = data[i + k]
                w += size
            elif action == BLANK:
                blank = True
            i += size
        out_offsets[row + 1] = w


def fold(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], actions: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Fold each document of valid UTF-8 by `actions` uint8 [0x110000] (DROP, KEEP or BLANK a code point).

    Returns (data uint8, offsets int64 [rows + 1] starting at 0). A run of BLANK code points, whatever was dropped
    between them, becomes one space; none stays at either end.
    """
    out = np.empty(int(offsets[-1] - offsets[0]), np.uint8)
    out_offsets = np.empty(len(offsets), np.int64)
    _fold(data, offsets, actions, out, out_offsets)
    return out[: out_offsets[-1]], out_offsets


def warm() -> None:
    """Compile or load the kernel."""
    actions = np.zeros(CODE_POINTS, np.uint8)
    actions.flags.writeable = False
    fold(np.frombuffer(b"a", np.uint8), np.frombuffer(np.array([0, 1], np.int64).tobytes(), np.int64), actions)
