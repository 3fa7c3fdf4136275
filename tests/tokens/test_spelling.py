"""Tokens spell a text when their bytes, end to end, are the text."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.tokens.encoding import TokenBatch
from dataprep.tokens.spelling import Spelling, spelling_of
from tests.tokens.test_tokenizer import EOS_PAD, added, byte_level, load

NFC = {"type": "NFC"}


def spelling(**more: object) -> Spelling:
    found = spelling_of(
        json.loads(byte_level([(72, 105)], [added(257, "<|endoftext|>"), added(258, "ok", special=False)], **more))
    )
    assert found is not None
    return found


def batch(documents: list[list[int]]) -> TokenBatch:
    ids = [token for document in documents for token in document]
    return TokenBatch(np.array(ids, np.int32), np.cumsum([0, *map(len, documents)], dtype=np.int64))


def spelled(documents: list[list[int]], texts: list[str], **more: object) -> list[bool]:
    return spelling(**more).spells(batch(documents), pa.array(texts, pa.large_string())).tolist()


def spelled_composed(documents: list[list[int]], texts: list[str], **more: object) -> list[bool]:
    found, tokens, array = spelling(**more), batch(documents), pa.array(texts, pa.large_string())
    return found.spells_composed(tokens, array, found.spells(tokens, array)).tolist()


def test_bytes_merges_and_added_tokens_spell_what_they_stand_for() -> None:
    assert spelled([[72, 105], [256], [258, 32, 0xE4, 0xB8, 0xAD], []], ["Hi", "Hi", "ok 中", ""]) == [True] * 4


@pytest.mark.parametrize("ids", [[72], [72, 105, 33], [72, 106], [257, 72, 105], [72, 105, 257], [-1], [259], []])
def test_any_other_tokens_do_not(ids: list[int]) -> None:
    assert spelled([[256], ids, [256]], ["Hi", "Hi", "Hi"]) == [True, False, True]


def test_a_special_token_spells_nothing_not_even_its_name() -> None:
    assert spelled([[257]], ["<|endoftext|>"]) == [False]


def test_a_sliced_array_is_read_from_its_own_beginning() -> None:
    texts = pa.array(["no", "Hi", "ok"], pa.large_string()).slice(1)
    assert spelling().spells(batch([[256], [258]]), texts).tolist() == [True, True]


def test_a_tokenizer_that_composes_may_spell_the_composed_text() -> None:
    composed, plain = [0xC3, 0xA9], [101, 0xCC, 0x81]
    texts = ["e\u0301", "e\u0301"]
    assert spelled([composed, plain], texts, normalizer=NFC) == [False, True]
    assert spelled_composed([composed, plain], texts, normalizer=NFC) == [True, True]
    assert spelled_composed([composed, plain], texts) == [False, True]


@pytest.mark.parametrize(
    "more",
    [
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": None},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}},
        {"model": {"type": "Unigram", "vocab": [["a", 0.0]]}},
    ],
)
def test_other_kinds_of_tokenizer_have_no_spelling(more: dict[str, object]) -> None:
    assert spelling_of(json.loads(byte_level([], EOS_PAD, **more))) is None


@given(st.lists(st.text(), max_size=5))
def test_what_the_reference_encodes_spells_its_text(texts: list[str]) -> None:
    tokenizer = load(
        byte_level([(72, 105), (32, 97), (0xE4, 0xB8)], [added(259, "<|endoftext|>"), added(260, "<|pad|>")])
    )
    found = spelling_of(json.loads(tokenizer.json))
    assert found is not None
    assert found.spells(tokenizer.encode_plain(texts), pa.array(texts, pa.large_string())).all()


@given(
    st.lists(st.text("ab中", max_size=4), min_size=1),
    st.lists(st.lists(st.sampled_from([97, 98, 256, 257, 258]), max_size=3)),
)
def test_the_kernel_equals_joining_bytes(texts: list[str], documents: list[list[int]]) -> None:
    size = min(len(texts), len(documents))
    texts, documents = texts[:size], documents[:size]
    pieces = {256: b"Hi", 258: b"ok"}

    def slow(ids: list[int], text: str) -> bool:
        return 257 not in ids and b"".join(pieces.get(token, bytes([token % 256])) for token in ids) == text.encode()

    expected = [slow(ids, text) for ids, text in zip(documents, texts, strict=True)]
    assert spelled(documents, texts) == expected
