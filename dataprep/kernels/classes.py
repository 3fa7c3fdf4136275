"""Codes of the code-point classes that kernels branch on; `text.segment` defines who belongs to which."""

from __future__ import annotations

CODE_POINTS = 0x110000

OTHER = 0
SPACE = 1
LETTER = 2
MARK = 3
DIGIT = 4
HAN = 5
UNSPACED = 6
PUNCTUATION = 7
APOSTROPHE = 8
SYMBOL = 9
FORMAT = 10
CLASS_COUNT = 11
