"""White space, line ends and invisible characters of every document put in order in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataprep.kernels import kernel
from dataprep.kernels.classes import CODE_POINTS
from dataprep.kernels.utf8 import read_point

# What happens to a code point. WHITE is white space that stays as it is, FOREIGN white space becomes a space,
# INDENT becomes one except at the start of a line, JOINER stays only behind a JOINABLE code point.
PLAIN, CONTROL, INVISIBLE, JOINER, WHITE, FOREIGN, INDENT, NEWLINE, RETURN, BREAK = range(10)
ACTION_BITS = 0x0F
JOINABLE = 0x40
UNSURE_FORM = 0x80

# Which edits are counted, by column. The first four are code points, LINE_ENDS is line ends.
(
    N_CONTROLS,
    N_INVISIBLE,
    N_SPACES,
    N_BREAKS,
    N_LINE_ENDS,
    N_RUNS,
    N_TRAILING,
    N_LEADING,
    N_BLANK_LINES,
    N_STRIPPED,
) = range(10)
COUNTERS = 10

Bytes = npt.NDArray[np.uint8]


class Layout(NamedTuple):
    """How lines are laid out; `max_blank_lines` -1 keeps all."""

    collapse_runs: bool
    trim_trailing: bool
    trim_leading: bool
    max_blank_lines: int
    strip: bool


@kernel
def _clean_one(  # noqa: C901  one state machine; its state lives in registers, not in an object
    data: Bytes, i: int, stop: int, actions: Bytes, layout: Layout, out: Bytes, w: int, counts: npt.NDArray[np.int64]
) -> tuple[int, bool]:
    start = line = ink = last = w  # `ink`: behind the line's last visible byte; `last`: behind the document's
    run = 0  # white characters since `ink`
    blank_lines = 0
    begun = False  # a visible character has been written
    joinable = False  # the last character written may be followed by a joiner
    unsure = 0
    while i < stop:
        point, size = read_point(data, i)
        entry = actions[point]
        unsure |= entry & UNSURE_FORM
        action = entry & ACTION_BITS
        if action == JOINER:
            if not joinable:
                counts[N_INVISIBLE] += 1
                i += size
                continue
            action = PLAIN

        if action == PLAIN:
            if run > 0:
                if ink == line:
                    if layout.trim_leading:
                        w = line
                        counts[N_LEADING] += 1
                elif run > 1 and layout.collapse_runs:
                    out[ink] = 0x20
                    w = ink + 1
                    counts[N_RUNS] += 1
                run = 0
            if not begun:
                begun = True
                if layout.strip and line > start:
                    for k in range(w - line):
                        out[start + k] = out[line + k]
                    w -= line - start
                    line = start
                    counts[N_STRIPPED] += 1
                    start = -1  # marks the document as counted
            for k in range(size):
                out[w + k] = data[i + k]
            w += size
            i += size
            joinable = (entry & JOINABLE) != 0
            # Most of most texts: characters of one byte that need no decision.
            while i < stop and data[i] < 0x80 and actions[data[i]] == PLAIN:
                out[w] = data[i]
                w += 1
                i += 1
                joinable = False
            ink = w
            continue

        i += size
        if action == CONTROL:
            counts[N_CONTROLS] += 1
            continue
        if action == INVISIBLE:
            counts[N_INVISIBLE] += 1
            continue
        joinable = False
        if action == WHITE or (action == INDENT and ink == line):
            for k in range(size):
                out[w + k] = data[i - size + k]
            w += size
            run += 1
            continue
        if action in (FOREIGN, INDENT):
            out[w] = 0x20
            w += 1
            run += 1
            counts[N_SPACES] += 1
            continue

        if action == RETURN:
            counts[N_LINE_ENDS] += 1
            if i < stop and data[i] == 0x0A:
                i += 1
        elif action == BREAK:
            counts[N_BREAKS] += 1
        if run > 0 and layout.trim_trailing:
            w = ink
            counts[N_TRAILING] += 1
        if ink > line:
            blank_lines = 0
            last = ink
        else:
            blank_lines += 1
        run = 0
        if layout.max_blank_lines >= 0 and blank_lines > layout.max_blank_lines:
            w = ink = line
            counts[N_BLANK_LINES] += 1
            continue
        out[w] = 0x0A
        w += 1
        line = ink = w

    if run > 0 and layout.trim_trailing:
        w = ink
        counts[N_TRAILING] += 1
    if ink > line:
        last = ink
    if layout.strip and w > last:
        w = last
        if start >= 0:
            counts[N_STRIPPED] += 1
    return w, unsure != 0


@kernel
def _clean(
    data: Bytes,
    offsets: npt.NDArray[np.int64],
    actions: Bytes,
    layout: Layout,
    out: Bytes,
    out_offsets: npt.NDArray[np.int64],
    unsure: npt.NDArray[np.bool_],
    counts: npt.NDArray[np.int64],
) -> None:
    w = 0
    out_offsets[0] = 0
    for row in range(len(offsets) - 1):
        w, unsure[row] = _clean_one(data, offsets[row], offsets[row + 1], actions, layout, out, w, counts)
        out_offsets[row + 1] = w


class Cleaned(NamedTuple):
    """Texts (data uint8, offsets int64 [rows + 1]), rows that hold an UNSURE_FORM code point, counts int64."""

    data: Bytes
    offsets: npt.NDArray[np.int64]
    unsure: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]


def clean(data: Bytes, offsets: npt.NDArray[np.int64], actions: Bytes, layout: Layout) -> Cleaned:
    """Clean each document of valid UTF-8 by `actions` uint8 [0x110000] and `layout`; the result is valid UTF-8.

    Runs of two or more white characters inside a line become one space; lines are trimmed; blank lines beyond the
    allowed number in a row are removed; strip removes blank lines before and all white space after the visible text.
    """
    rows = len(offsets) - 1
    out = np.empty(int(offsets[-1] - offsets[0]), np.uint8)
    out_offsets = np.empty(rows + 1, np.int64)
    unsure = np.zeros(rows, np.bool_)
    counts = np.zeros(COUNTERS, np.int64)
    _clean(data, offsets, actions, layout, out, out_offsets, unsure, counts)
    return Cleaned(out[: out_offsets[-1]], out_offsets, unsure, counts)


def warm() -> None:
    """Compile or load the kernel."""
    actions = np.zeros(CODE_POINTS, np.uint8)
    actions.flags.writeable = False
    data = np.frombuffer(b"a", np.uint8)
    offsets = np.frombuffer(np.array([0, 1], np.int64).tobytes(), np.int64)
    clean(data, offsets, actions, Layout(True, True, True, 1, True))
