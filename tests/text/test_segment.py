"""The classes of code points, and where words may be cut."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.batch import utf8_buffers
from dataprep.kernels import classes as c
from dataprep.kernels.counts import WORDS, count
from dataprep.text.segment import code_point_classes, cuts_word


@pytest.mark.parametrize(
    ("characters", "expected"),
    [
        ("\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000", c.SPACE),
        ("aZéßяעعअ", c.LETTER),
        ("\u0301\u094d\ufe0f\U000e0100\u1161\u11a8", c.MARK),
        ("09٣Ⅷ½", c.DIGIT),
        ("中㐀\u9fff豈𠀀々〇", c.HAN),
        ("あカーㄅ한ᄀกກកမꀀｱ", c.UNSPACED),
        (".,;!?_-()«»。，、「」$€+<=>^`|~＋～", c.PUNCTUATION),
        ("'’", c.APOSTROPHE),
        ("→■☃😀∑©\ufffd", c.SYMBOL),
        ("\xad\u200b\u200c\u200d\ufeff", c.FORMAT),
        ("\x00\x1c\x7f\x80\ue000\u0378", c.OTHER),
    ],
)
def test_characters_belong_to_their_class(characters: str, expected: int) -> None:
    assert {character: int(code_point_classes()[ord(character)]) for character in characters} == dict.fromkeys(
        characters, expected
    )


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("", []),
        ("a", []),
        ("ab c", [1]),
        ("don't", [1, 2, 3, 4]),
        ("dogs' x", [1, 2, 3]),
        ("'ab'", [2]),
        ("e\u0301a", [1, 2]),
        ("汉字a1", [3]),
        ("กำ", []),
        ("ก\u0e34", [1]),
        ("a_b", []),
    ],
)
def test_these_places_lie_inside_a_word(text: str, places: list[int]) -> None:
    assert [at for at in range(-1, len(text) + 2) if cuts_word(text, at)] == places


@settings(deadline=None)
@given(st.text("ab1'’ -中ก\u0e34\u0301\u200d", max_size=12), st.integers(0, 12))
def test_cutting_where_no_word_is_cut_keeps_the_number_of_words(text: str, at: int) -> None:
    def words(part: str) -> int:
        return int(count(*utf8_buffers(pa.array([part], pa.large_string())), code_point_classes())[0, WORDS])

    if not cuts_word(text, at):
        assert words(text[:at]) + words(text[at:]) == words(text)
