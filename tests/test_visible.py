"""Text for people hides nothing: what has no look of its own shows as an escape."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.visible import stretches, visible

# Format characters with a look of their own: signs above or around digits and words in Arabic, Syriac, Kaithi scripts,
# and those that stack Egyptian hieroglyphs.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}
# Letters and marks without one: joiners, fillers, vowels that only sort.
UNSEEN = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0}


def test_every_control_format_surrogate_and_line_character_is_an_escape_and_no_other() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Cn" or 0xE0000 <= code < 0xE1000:
            continue
        hidden = (category in ("Cc", "Cf", "Cs", "Zl", "Zp") and code not in SEEN) or code in UNSEEN
        assert (visible(character) != character) == hidden, hex(code)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x9b0m", r"\x1b[31mred\x9b0m"),
        ("a\tb\r\nc\x00\x07\x08\x0b\x0c\x7f", r"a\tb\r\nc\x00\x07\x08\x0b\x0c\x7f"),
        ("user\u202e\u2066;)", r"user\u202e\u2066;)"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("tag\U000e0041, file\udcff", r"tag\U000e0041, file\udcff"),
        ("全角　空格\xa0é ❤\ufe0f 😀", "全角　空格\xa0é ❤\ufe0f 😀"),
    ],
)
def test_escapes_are_those_of_python(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_what_is_kept_stays_as_it_is() -> None:
    assert visible("a\tb\r\n\x1b", keep="\n\t") == "a\tb\\r\n\\x1b"
    assert list(stretches("a\n\x1b\rb", keep="\n")) == [("a\n", False), (r"\x1b", True), (r"\r", True), ("b", False)]


@given(st.text())
def test_stretches_are_the_text_when_escapes_are_undone(text: str) -> None:
    undone = "".join(
        part.encode("ascii").decode("unicode_escape") if hidden else part for part, hidden in stretches(text)
    )
    assert undone == text
