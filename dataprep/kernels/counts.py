"""Counts of each document in one pass: code points, words, and code points that are no text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dataprep.kernels import kernel
from dataprep.kernels.classes import (
    APOSTROPHE,
    CLASS_COUNT,
    CODE_POINTS,
    DIGIT,
    FORMAT,
    HAN,
    LETTER,
    MARK,
    OTHER,
    SYMBOL,
    UNSPACED,
)
from dataprep.kernels.utf8 import read_point

CHARS, WORDS, NON_TEXT = 0, 1, 2

# Where a word stands while a text is read: outside, inside, or after an apostrophe that may join two halves.
_OUTSIDE, _INSIDE, _JOINING = 0, 1, 2


def _transitions() -> npt.NDArray[np.uint8]:
    # [state, class] -> next state, plus 4 where a word begins: one look-up a character instead of branches.
    table = np.zeros((3, CLASS_COUNT), np.uint8)
    for code in (LETTER, DIGIT):
        table[:, code] = (_INSIDE + 4, _INSIDE, _INSIDE)
    for code in (HAN, UNSPACED):
        table[:, code] = _OUTSIDE + 4
    for code in (MARK, FORMAT):
        table[:, code] = (_OUTSIDE, _INSIDE, _JOINING)
    table[_INSIDE, APOSTROPHE] = _JOINING
    return table


_TRANSITIONS = _transitions()
_NO_TEXT = np.isin(np.arange(CLASS_COUNT), (OTHER, SYMBOL, FORMAT)).astype(np.uint8)


@kernel
def _count(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    classes: npt.NDArray[np.uint8],
    transitions: npt.NDArray[np.uint8],
    no_text: npt.NDArray[np.uint8],
    ascii_steps: npt.NDArray[np.uint8],
    counts: npt.NDArray[np.int64],
) -> None:
    for row in range(len(counts)):
        i = offsets[row]
        stop = offsets[row + 1]
        chars = words = strange = 0
        state = 0
        while i < stop:
            if data[i] < 0x80:
                step = ascii_steps[state, data[i]]
                state = step & 3
                words += (step >> 2) & 1
                strange += step >> 3
                i += 1
                chars += 1
                continue
            point, size = read_point(data, i)
            i += size
            code = classes[point]
            step = transitions[state, code]
            state = step & 3
            words += step >> 2
            strange += no_text[code]
            chars += 1
        counts[row, CHARS] = chars
        counts[row, WORDS] = words
        counts[row, NON_TEXT] = strange


def count(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], classes: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int64]:
    """Count each document of valid UTF-8: int64 [rows, 3] of code points, words and non-text code points.

    Words are as `text.segment` defines them. Non-text is what is neither letter, mark, digit, punctuation nor white
    space: controls, unassigned and private code points, format characters, and symbols other than currency signs
    and those of the ASCII keyboard (also full-width).
    """
    counts = np.empty((len(offsets) - 1, 3), np.int64)
    # [state, byte] -> the transition, plus 8 for no text: one small table instead of three look-ups in turn.
    ascii_steps = _TRANSITIONS[:, classes[:0x80]] + (_NO_TEXT[classes[:0x80]] << 3)
    _count(data, offsets, classes, _TRANSITIONS, _NO_TEXT, ascii_steps, counts)
    return counts


def warm() -> None:
    """Compile or load the kernel."""
    classes = np.zeros(CODE_POINTS, np.uint8)
    classes.flags.writeable = False
    count(np.frombuffer(b"a", np.uint8), np.frombuffer(np.array([0, 1], np.int64).tobytes(), np.int64), classes)
