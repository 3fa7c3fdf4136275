"""The counting kernel against hand counts and a regular-expression reading of the same definitions."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.batch import utf8_buffers
from dataprep.kernels import classes as c
from dataprep.kernels.counts import count
from dataprep.text.segment import code_point_classes

NASTY = st.text(
    st.one_of(
        st.sampled_from("ab1'’ _-.\n\t\u00a0\u0301\u200d\u200c\u00ad中文ひ한กำé😀❤\ufe0f\u3000。\ue000\x00٣Ⅷ"),
        st.characters(exclude_categories=("Cs",)),
    ),
    max_size=40,
)


def counted(*texts: str) -> list[list[int]]:
    return count(*utf8_buffers(pa.array(texts, pa.large_string())), code_point_classes()).tolist()


def words_by_splitting(text: str) -> int:
    """Words the long way round: drop what extends, mark the kind of every character, then split."""
    table = code_point_classes()
    kinds = [int(table[ord(ch)]) for ch in text]
    solid = [kind for kind in kinds if kind not in (c.MARK, c.FORMAT)]
    symbols = []
    for at, kind in enumerate(solid):
        around = solid[max(at - 1, 0) : at] + solid[at + 1 : at + 2]
        if kind in (c.LETTER, c.DIGIT):
            symbols.append("w")
        elif kind in (c.HAN, c.UNSPACED):
            symbols.append(" h ")
        elif kind == c.APOSTROPHE and len(around) == 2 and at > 0 and set(around) <= {c.LETTER, c.DIGIT}:
            symbols.append("w")
        else:
            symbols.append(" ")
    return len("".join(symbols).split())


def non_text_by_category(text: str) -> int:
    def strange(ch: str) -> bool:
        if ch.isspace() and not "\x1c" <= ch <= "\x1f":
            return False
        if ch in "$+<=>^`|~＄＋＜＝＞＾｀｜～" or int(code_point_classes()[ord(ch)]) in (c.HAN, c.MARK):
            return False
        category = unicodedata.category(ch)
        return not (category[0] in "LMNP" or category == "Sc")

    return sum(map(strange, text))


@pytest.mark.parametrize(
    ("text", "chars", "words", "non_text"),
    [
        ("", 0, 0, 0),
        ("   ", 3, 0, 0),
        ("\n\n", 2, 0, 0),
        ("a", 1, 1, 0),
        ("。", 1, 0, 0),
        ("don't stop", 10, 2, 0),
        ("don’t", 5, 1, 0),
        ("dogs' 'n' cats", 14, 3, 0),
        ("rock''n", 7, 2, 0),
        ("don'\u0301t", 6, 1, 0),
        ("snake_case 3.14", 15, 4, 0),
        ("cafe\u0301 ole", 9, 2, 0),
        ("我爱Python3编程", 11, 5, 0),
        ("中文 text", 7, 3, 0),
        ("ひらカナ한글", 6, 6, 0),
        ("กำ", 2, 2, 0),
        ("می\u200cخواهم", 8, 1, 1),
        ("co\u00adop", 5, 1, 1),
        ("❤\ufe0f", 2, 0, 1),
        ("😀😀", 2, 0, 2),
        ("a→b", 3, 2, 1),
        ("x = a + b ~ $5 <€>", 18, 4, 0),
        ("\x00\ufffd\ue000\u2028", 4, 0, 3),
    ],
)
def test_hand_counted_texts_have_these_characters_words_and_non_text(
    text: str, chars: int, words: int, non_text: int
) -> None:
    assert counted(text) == [[chars, words, non_text]]


@settings(deadline=None)
@given(st.lists(NASTY, max_size=4))
def test_counts_equal_the_plain_reading_of_the_definitions_on_any_text(texts: list[str]) -> None:
    assert counted(*texts) == [[len(t), words_by_splitting(t), non_text_by_category(t)] for t in texts]


def test_a_word_of_a_megabyte_is_one_word() -> None:
    assert counted("x" * 1_000_000) == [[1_000_000, 1, 0]]


def test_a_sliced_array_is_counted_from_where_it_begins() -> None:
    column = pa.array(["one two", "三", "four"], pa.large_string())[1:]
    assert count(*utf8_buffers(column), code_point_classes())[:, 1].tolist() == [1, 1]


def test_every_code_point_has_a_class() -> None:
    table = code_point_classes()
    assert table.shape == (0x110000,)
    assert table.dtype == np.uint8
    assert int(table.max()) < c.CLASS_COUNT
