"""A long text cut in pieces has exactly the ids of the whole."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from dataprep.tokens import encoding
from dataprep.tokens.config import TokenizerConfig, TrainTokenizer
from dataprep.tokens.cuts import GPT4_DIGITS_1, GPT4_DIGITS_3, Cutter, cutter_for
from dataprep.tokens.source import Source
from dataprep.tokens.tokenizer import load_tokenizer
from dataprep.tokens.train import train_tokenizer

PROSE = [
    "We'll see: it's a test, isn't it?  Yes\n\nand\tno; call(arg_one, b.c)/x-y\r\n  end 12345a 6",
    "我们，他们。你们；a，我b 中文 abc中文，ok\n第二行，12年！好",
    "a.b c,d e\nf -x =y (z \"q 's 'tis don't a’b",
] * 4


def trained_with(pre_tokenizer: Any, normalizer: dict[str, Any] | None = None) -> dict[str, Any]:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizer
    backend.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend.train_from_iterator(
        PROSE, trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
    )
    return {**json.loads(backend.to_str()), "normalizer": normalizer}


def split_by(pattern: str) -> Any:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), byte_level])


GPT2 = trained_with(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True))
QWEN = trained_with(split_by(GPT4_DIGITS_1), {"type": "NFC"})
GPT4 = trained_with(split_by(GPT4_DIGITS_3))
OURS = json.loads(train_tokenizer(TokenizerConfig(train=TrainTokenizer(vocab_size=500)), PROSE))
TOOL = {"id": 500, "content": "<tool_call>", "special": False, "normalized": False}
TOOL |= {"single_word": False, "lstrip": False, "rstrip": False}
WITH_ADDED_TOKEN = {**GPT4, "added_tokens": [{**TOOL, "id": len(GPT4["model"]["vocab"])}]}

TOKENIZERS = {"gpt2": GPT2, "qwen": QWEN, "gpt4": GPT4, "ours": OURS, "added token": WITH_ADDED_TOKEN}
BACKENDS = {name: Backend.from_str(json.dumps(value)) for name, value in TOKENIZERS.items()}

# Everything the split expressions treat differently, and the neighbours that could join across a cut.
characters = "aZstmdé\u0301ß中文龥1９²'’.,;:!?，。、_/+-=<>(\"\n\r\t \u3000\u00a0\u2028\u200b😀ا\u0e33ﬀ\u212a\u017f"
tricky = st.sampled_from(
    [*characters, "'s", "'LL", " a", "a b", "a\nb", "\n\n", "  ", "中，文", "<tool_call>", "l_c", "1a1"]
)
tricky_texts = st.lists(tricky, max_size=60).map("".join)


def cutter_of(name: str) -> Cutter:
    cutter = cutter_for(TOKENIZERS[name])
    assert cutter is not None
    return cutter


def ids(backend: Backend, text: str) -> list[int]:
    return list(backend.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=tricky_texts, characters=st.integers(0, 9))
def test_pieces_encode_to_the_ids_of_the_whole(name: str, text: str, characters: int) -> None:
    pieces = list(cutter_of(name).pieces(text, characters))
    assert "".join(pieces) == text
    joined = [token for piece in pieces for token in ids(BACKENDS[name], piece)]
    assert joined == ids(BACKENDS[name], text)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=st.text("ab中文 .,，\n_(", min_size=40, max_size=80))
def test_texts_dense_with_places_to_cut_are_cut_and_keep_their_ids(name: str, text: str) -> None:
    pieces = list(cutter_of(name).pieces(text, 0))
    joined = [token for piece in pieces for token in ids(BACKENDS[name], piece)]
    assert joined == ids(BACKENDS[name], text)


def test_english_chinese_and_base64_are_cut_before_a_separator_between_letters() -> None:
    cutter = cutter_of("ours")
    assert list(cutter.pieces("one two\nthree", 0)) == ["one", " two", "\nthree"]
    assert list(cutter.pieces("我们，他们。", 0)) == ["我们", "，他们。"]
    assert list(cutter.pieces("QUJD/REVG+x", 0)) == ["QUJD", "/REVG", "+x"]


def test_no_cut_at_apostrophes_doubled_separators_or_digits() -> None:
    text = "it's a1 b2,3  c\n\nd"
    assert list(cutter_of("gpt4").pieces(text, 0)) == ["it's", " a1 b2,3  c\n\nd"]


def test_a_piece_is_as_long_as_asked_and_no_longer_than_to_the_next_safe_place() -> None:
    pieces = list(cutter_of("gpt4").pieces("word " * 100, 12))
    assert pieces[0] == "word word word"
    assert max(len(piece) for piece in pieces) <= 12 + len(" word")


def test_an_added_token_with_separators_in_it_is_never_cut_through() -> None:
    assert list(cutter_of("gpt4").pieces("x <tool_call> y", 0)) == ["x <tool", "_call> y"]
    assert list(cutter_of("added token").pieces("x <tool_call> y z", 0)) == ["x <tool_call> y", " z"]


def test_tokenizers_outside_the_proof_are_not_cut() -> None:
    stripping = {**WITH_ADDED_TOKEN["added_tokens"][0], "lstrip": True}
    outside = [
        {**GPT4, "pre_tokenizer": None},
        {**GPT4, "normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}},
        {**GPT4, "added_tokens": [stripping]},
        trained_with(pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)),
        trained_with(split_by(r"\p{N}{1,3}")),
        trained_with(split_by(r"[^\n]+\n?")),
        trained_with(pre_tokenizers.Metaspace()),
    ]
    assert [cutter_for(value) for value in outside] == [None] * len(outside)


def test_long_documents_among_short_ones_keep_their_ids_and_borders() -> None:
    config = TokenizerConfig(train=TrainTokenizer(vocab_size=500))
    tokenizer = load_tokenizer(config, Source("tokenizer.json", json.dumps(OURS).encode()))
    long = PROSE[0] * (2 * encoding.BATCH_BYTES // len(PROSE[0]))
    texts = ["short", long, "", "中文，" * 200_000, "end"]
    tokens = tokenizer.encode(texts)
    whole = Backend.from_str(json.dumps(OURS))
    for text, start, end in zip(texts, tokens.offsets[:-1], tokens.offsets[1:], strict=True):
        expected = [*ids(whole, text), tokenizer.eos_id]
        assert np.array_equal(tokens.ids[start:end], expected)
