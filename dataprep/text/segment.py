"""What a character, a word, a line and a paragraph are, for every rule of the pipeline.

- Character: one Unicode code point. Lengths "in characters" are code points, not bytes and not graphemes.
- Word: a maximal run of letters and digits; marks and format characters (accents, ZWJ, soft hyphen) extend the
  character before them and begin no word. `'` and `’` between two letters or digits belong to the word (`don't` is
  one word); every other punctuation ends it (`snake_case` and `3.14` are two words each). Scripts written without
  spaces have no runs: each Han, Kana, Bopomofo, Hangul, Yi, Thai, Lao, Khmer, Myanmar, Tai or Javanese letter is a
  word by itself. Thresholds on words therefore assume one word a character for Chinese. Hangul is counted so too,
  although Korean has spaces: a space-delimited unit holds several words' worth of morphemes.
- Line: what lies between `\\n`; no other character ends a line. Text that ends in `\\n` has no line after it.
- Paragraph: a maximal run of lines that are not blank; a blank line holds white space only.
- White space: the 25 code points of Unicode's White_Space property.

The classes come from the running Python's `unicodedata`; Han by block, so that ideographs of newer Unicode versions
are Han on every Python.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dataprep.kernels import classes as c

# Letters of these blocks are words one by one: the scripts of line-breaking class SA (UAX #14), Javanese, Yi, Kana,
# Bopomofo and Hangul. Conjoining vowels and finals (0x1160-0x11FF, 0xD7B0-0xD7FF) extend their syllable's initial.
UNSPACED_BLOCKS = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1100, 0x115F),
    (0x1780, 0x17FF),
    (0x1950, 0x19DF),
    (0x1A20, 0x1AAF),
    (0x3040, 0x318F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0xA000, 0xA48F),
    (0xA960, 0xA97F),
    (0xA980, 0xA9FF),
    (0xAA60, 0xAADF),
    (0xAC00, 0xD7A3),
    (0xFF66, 0xFF9F),
    (0xFFA0, 0xFFDC),
    (0x1AFF0, 0x1B16F),
)
HANGUL_EXTENDERS = ((0x1160, 0x11FF), (0xD7B0, 0xD7FF))
HAN_BLOCKS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2FFFD), (0x30000, 0x3FFFD))
HAN_MARKS = (0x3005, 0x3007, 0x303B)  # repetition marks and the ideographic zero

# Everything beyond is unassigned, private, or a plane-14 tag or variation selector.
_LAST_ASSIGNED = 0x3FFFF
_SELECTORS = (0xE0100, 0xE01EF)
_SYMBOLS_OF_TEXT = frozenset("$+<=>^`|~＄＋＜＝＞＾｀｜～")
_SEPARATORS_THAT_ARE_CONTROLS = frozenset("\x1c\x1d\x1e\x1f")  # str.isspace() counts them, White_Space does not
_GROUPS = {"L": c.LETTER, "M": c.MARK, "N": c.DIGIT, "P": c.PUNCTUATION, "S": c.SYMBOL}


def _class_of(character: str) -> int:
    if character.isspace() and character not in _SEPARATORS_THAT_ARE_CONTROLS:
        return c.SPACE
    if character in "'’":
        return c.APOSTROPHE
    category = unicodedata.category(character)
    if character in _SYMBOLS_OF_TEXT or category == "Sc":
        return c.PUNCTUATION
    if category == "Cf":
        return c.FORMAT
    return _GROUPS.get(category[0], c.OTHER)


@lru_cache(maxsize=1)
def code_point_classes() -> npt.NDArray[np.uint8]:
    """Class of every code point: uint8 [0x110000] of the codes in `kernels.classes`, read-only, built once (~0.1 s)."""
    table = np.zeros(c.CODE_POINTS, np.uint8)
    table[: _LAST_ASSIGNED + 1] = [_class_of(chr(point)) for point in range(_LAST_ASSIGNED + 1)]
    for first, last in UNSPACED_BLOCKS:
        block = table[first : last + 1]
        block[block == c.LETTER] = c.UNSPACED
    for first, last in HANGUL_EXTENDERS:
        table[first : last + 1] = c.MARK
    for first, last in HAN_BLOCKS:
        table[first : last + 1] = c.HAN
    table[list(HAN_MARKS)] = c.HAN
    table[_SELECTORS[0] : _SELECTORS[1] + 1] = c.MARK
    table.flags.writeable = False
    return table


def _class_at(text: str, at: int, step: int) -> tuple[int, int]:
    """Class and place of the nearest character from `at` on in direction `step` that extends no other."""
    classes = code_point_classes()
    while 0 <= at < len(text):
        found = int(classes[ord(text[at])])
        if found not in (c.MARK, c.FORMAT):
            return found, at
        at += step
    return c.SPACE, at


def cuts_word(text: str, at: int) -> bool:
    """Whether a cut before character `at` would fall inside a word, or between a character and its marks."""
    if not 0 < at < len(text):
        return False
    word = (c.LETTER, c.DIGIT)
    left, left_at = _class_at(text, at - 1, -1)
    right, right_at = _class_at(text, at, 1)
    if right_at != at:
        return left in (*word, c.HAN, c.UNSPACED, c.APOSTROPHE)
    if left in word and right == c.APOSTROPHE:
        return _class_at(text, right_at + 1, 1)[0] in word
    if left == c.APOSTROPHE and right in word:
        return _class_at(text, left_at - 1, -1)[0] in word
    return left in word and right in word
