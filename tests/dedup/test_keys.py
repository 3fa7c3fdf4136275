"""Which texts count as equal, and the keys that say so."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dataprep.batch import doc_batch
from dataprep.dedup.keys import ExactDedup, Normalization, content_keys
from dataprep.kernels import classes as c
from dataprep.text.segment import code_point_classes

NASTY = st.text(
    st.one_of(
        st.sampled_from("aAßİ .,!\n\t\u00a0\u3000\u2028\x1c\u200b\u0301中。😀1٣"),
        st.characters(exclude_categories=("Cs",)),
    ),
    max_size=20,
)
SPACE = "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"


def keys(normalize: Normalization, *texts: str) -> list[tuple[int, int]]:
    found = content_keys(pa.array(texts, pa.large_string()), normalize)
    assert found.shape == (len(texts), 2)
    assert found.dtype == np.uint64
    return [(int(high), int(low)) for high, low in found]


def key_of(text: str) -> tuple[int, int]:
    return divmod(xxhash.xxh3_128_intdigest(text.encode()), 1 << 64)


def letters_only(text: str) -> str:
    table = code_point_classes()
    kept = [
        ch
        for ch in text.casefold()
        if table[ord(ch)] in (c.HAN, c.MARK) or unicodedata.category(ch)[0] in "LMN" or re.fullmatch(SPACE, ch)
    ]
    return re.sub(SPACE, " ", "".join(kept)).strip(" ")


@settings(deadline=None)
@given(st.lists(NASTY, max_size=4))
def test_the_key_is_the_hash_of_the_text_under_its_normalisation(texts: list[str]) -> None:
    spaced = [re.sub(SPACE, " ", text).strip(" ") for text in texts]
    assert keys("none", *texts) == [key_of(text) for text in texts]
    assert keys("whitespace", *texts) == [key_of(normal or text) for normal, text in zip(spaced, texts, strict=True)]
    assert keys("casefold_no_punct", *texts) == [key_of(letters_only(text) or text) for text in texts]


def test_the_key_of_the_empty_text_is_xxh3s_published_value() -> None:
    assert keys("none", "") == [(0x99AA06D3014798D8, 0x6001C324468D497F)]


@pytest.mark.parametrize(
    ("normalize", "one", "other", "equal"),
    [
        ("none", "a b", "a  b", False),
        ("whitespace", " a\u3000\n b\t", "a b", True),
        ("whitespace", "a b", "ab", False),
        ("whitespace", "A b", "a b", False),
        ("casefold_no_punct", "Don't STOP — now!", "dont stop now", True),
        ("casefold_no_punct", "Straße", "STRASSE", True),
        ("casefold_no_punct", "你好,世界", "你好，世界。", True),
        ("casefold_no_punct", "page 1", "page 2", False),
        ("casefold_no_punct", "a b", "ab", False),
        ("casefold_no_punct", "!!!", "???", False),
        ("casefold_no_punct", "😀", "😁", False),
        ("casefold_no_punct", "!!!", "", False),
        ("whitespace", " ", "\n", False),
    ],
)
def test_texts_count_as_equal_or_not(normalize: Normalization, one: str, other: str, equal: bool) -> None:
    first, second = keys(normalize, one, other)
    assert (first == second) is equal


@pytest.mark.parametrize("normalize", ["none", "whitespace", "casefold_no_punct"])
def test_a_sliced_column_gives_the_same_keys(normalize: Normalization) -> None:
    column = pa.array(["zero", "One  1", "...", "二 2", "five"], pa.large_string())
    whole = content_keys(column, normalize)
    assert np.array_equal(content_keys(column.slice(1, 3), normalize), whole[1:4])


@pytest.mark.parametrize("normalize", ["none", "whitespace", "casefold_no_punct"])
@pytest.mark.parametrize("text", ["", " ", "\n\n", "a", "。", "😀", "x" * 1_000_000])
def test_degenerate_texts_have_a_key_of_their_own(normalize: Normalization, text: str) -> None:
    assert keys(normalize, text)[0] == key_of(text)


@pytest.mark.parametrize("normalize", ["none", "whitespace", "casefold_no_punct"])
def test_a_batch_without_rows_has_no_keys(normalize: Normalization) -> None:
    assert keys(normalize) == []


def test_only_and_except_choose_the_live_documents_that_take_part() -> None:
    batch = doc_batch(["1", "2", "3"], ["a", "a", "a"], ["web", "code", "news"], [""] * 3)
    assert ExactDedup().selected(batch).tolist() == [True, True, True]
    assert ExactDedup(only={"source": ["web", "code"]}).selected(batch).tolist() == [True, True, False]
    assert ExactDedup(**{"except": {"source": ["web"]}}).selected(batch).tolist() == [False, True, True]


def test_an_unknown_normalisation_is_refused() -> None:
    with pytest.raises(ValidationError, match="casefold_no_punct"):
        ExactDedup(normalize="lower")
