"""Which code points normalisation removes, replaces or keeps: the table that its kernel reads."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from dataprep.kernels import clean
from dataprep.kernels.classes import CODE_POINTS

Form = Literal["NFC", "NFKC", "none"]

SPACES = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F)
IDEOGRAPHIC_SPACE = 0x3000
FEEDS = (0x0B, 0x0C)
BREAKS = (0x0085, 0x2028, 0x2029)
CONTROLS = (*range(0x09), *range(0x0E, 0x20), *range(0x7F, 0x85), *range(0x86, 0xA0))
JOINERS = (0x200C, 0x200D)
# Soft hyphen, Arabic letter mark, ZWSP, directional marks, embeddings and isolates, word joiner, invisible operators,
# deprecated format characters, BOM.
INVISIBLE = (
    0x00AD,
    0x061C,
    0x200B,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2065),
    *range(0x2066, 0x2070),
    0xFEFF,
)

# Joiners shape Arabic, Indic and other scripts and build emoji; behind Latin, Greek, Cyrillic, Hebrew, punctuation,
# CJK and Hangul they are debris. Ranges are half open.
_JOINABLE = (
    (0x0600, 0x2000),
    (0x2070, 0x3000),
    (0xFB50, 0xFE30),
    (0xFE70, 0xFEFF),
    (0x10000, 0x20000),
    (0xE0100, 0xE01F0),
)
_HANGUL_JAMO = (0x1100, 0x1200)
_JAMO_THAT_COMPOSE = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))


@lru_cache(maxsize=2)
def unsure_of_form(form: Literal["NFC", "NFKC"]) -> npt.NDArray[np.int64]:
    """Code points that a text in `form` may lack or may hold only in some places (int64, ascending).

    A text without any of them is in `form`: they are those that change by themselves, those with a combining class,
    and those that compose with what precedes them.
    """
    unsure = set(_JAMO_THAT_COMPOSE)
    for point in range(0xA0, sys.maxunicode + 1):
        character = chr(point)
        if unicodedata.combining(character):
            unsure.add(point)
        decomposition = unicodedata.decomposition(character)
        if not decomposition:
            continue
        if unicodedata.normalize(form, character) != character:
            unsure.add(point)
        if not decomposition.startswith("<"):
            unsure.update(int(part, 16) for part in decomposition.split()[1:])
    return np.array(sorted(unsure), np.int64)


@lru_cache(maxsize=8)
def code_point_actions(
    form: Form, *, controls: bool, invisible: bool, spaces: bool, line_ends: bool, breaks: bool, keep_feeds: bool
) -> npt.NDArray[np.uint8]:
    """Table uint8 [0x110000] for `kernels.clean`, read-only: an action, JOINABLE and UNSURE_FORM bits."""
    table = np.zeros(CODE_POINTS, np.uint8)
    for first, end in _JOINABLE:
        table[first:end] |= clean.JOINABLE
    table[slice(*_HANGUL_JAMO)] = 0
    if form != "none":
        table[unsure_of_form(form)] |= clean.UNSURE_FORM

    def act(points: Iterable[int], action: int) -> None:
        places = list(points)
        table[places] = (table[places] & clean.UNSURE_FORM) | action

    act((0x20, 0x09), clean.WHITE)
    act((0x0A,), clean.NEWLINE)
    act(SPACES, clean.FOREIGN if spaces else clean.WHITE)
    act((IDEOGRAPHIC_SPACE,), clean.INDENT if spaces else clean.WHITE)
    if controls:
        act(CONTROLS, clean.CONTROL)
    if controls and not keep_feeds:
        act(FEEDS, clean.CONTROL)
    if invisible:
        act(INVISIBLE, clean.INVISIBLE)
        act(JOINERS, clean.JOINER)
    if line_ends:
        act((0x0D,), clean.RETURN)
    if breaks:
        act((*FEEDS, *BREAKS), clean.BREAK)
    table.flags.writeable = False
    return table
