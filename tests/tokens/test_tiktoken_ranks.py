"""A converted tiktoken file gives tiktoken's own ids for any text."""

from __future__ import annotations

from typing import Any

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError
from dataprep.tokens.cuts import cutter_for
from dataprep.tokens.tiktoken_ranks import PATTERNS, convert_tiktoken, is_tiktoken
from dataprep.tokens.tokenizer_json import open_backend, parse_tokenizer_json
from tests.tokens.samples import ODD, SENTENCES, rank_file

# The expressions as tiktoken and the models' own code write them.
PUBLISHED = {
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
    "cl100k": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"""
    r"""\s*[\r\n]|\s+(?!\S)|\s""",
    "o200k": r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"""
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"""
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "llama3": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"""
    r"""\s*[\r\n]+|\s+(?!\S)|\s+""",
    "qwen": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"""
    r"""\s+(?!\S)|\s+""",
}
WORDS = (*SENTENCES, *ODD, "\u8fd9\u4e2a", "zqxj", "aaaa", "aaa", "'S", "'\u017f", "\n\n  ", "  ", "12345", "a/\n")
TEXT = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=6).map("".join)


@pytest.fixture(scope="module", params=list(PUBLISHED))
def pair(request: pytest.FixtureRequest, ranks: dict[bytes, int]) -> tuple[Backend, tiktoken.Encoding]:
    pattern = PUBLISHED[request.param]
    reference = tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    source = convert_tiktoken(rank_file(ranks), "t.tiktoken", request.param, ["<|endoftext|>", "<|pad|>"])
    return open_backend(source.json), reference


@example(text="words end \n  ")
@example(text="it\u2019S DON'T'ſ 'LL")
@given(text=TEXT)
def test_ids_are_tiktokens_own_for_any_text(pair: tuple[Backend, tiktoken.Encoding], text: str) -> None:
    ours, reference = pair
    assert ours.encode(text).ids == reference.encode_ordinary(text)


@given(data=st.data())
def test_ids_are_tiktokens_own_for_any_vocabulary(data: st.DataObject) -> None:
    # Tokens that no order of joining reaches, equal joins that overlap, ranks that do not grow with length.
    tokens = data.draw(st.lists(st.binary(min_size=2, max_size=5).map(_few_letters), unique=True, max_size=24))
    letters = [bytes([byte]) for byte in range(256)]
    ranks = {token: rank for rank, token in enumerate(data.draw(st.permutations([*tokens, *letters[97:100]])))}
    ranks |= {letter: len(ranks) + number for number, letter in enumerate(one for one in letters if one not in ranks)}
    reference = tiktoken.Encoding("test", pat_str=PUBLISHED["qwen"], mergeable_ranks=ranks, special_tokens={})
    ours = open_backend(convert_tiktoken(rank_file(ranks), "t", "qwen", []).json)
    for word in data.draw(st.lists(st.text("abc", max_size=12), max_size=8)):
        assert ours.encode(word).ids == reference.encode_ordinary(word)


def _few_letters(token: bytes) -> bytes:
    return bytes(97 + byte % 3 for byte in token)


def test_every_pattern_is_one_of_the_published_and_long_texts_can_be_cut(ranks: dict[bytes, int]) -> None:
    assert set(PATTERNS) == set(PUBLISHED)
    for name in PATTERNS:
        value = parse_tokenizer_json(convert_tiktoken(rank_file(ranks), "t", name, []).json, "t")
        cutter = cutter_for(value)
        assert cutter is not None
        text = " ".join(SENTENCES) * 5
        ours = Backend.from_str(convert_tiktoken(rank_file(ranks), "t", name, []).json.decode())
        pieces = [ours.encode(piece).ids for piece in cutter.pieces(text, 50)]
        assert len(pieces) > 10
        assert [token for piece in pieces for token in piece] == ours.encode(text).ids


@pytest.mark.parametrize(
    ("special", "expected"),
    [(["<|a|>", "<|b|>"], {"<|a|>": 0, "<|b|>": 1}), ({"<|a|>": 20, "<|b|>": 7}, {"<|a|>": 20, "<|b|>": 7})],
)
def test_special_tokens_follow_the_ranks_or_get_the_ids_they_are_given(
    ranks: dict[bytes, int], special: Any, expected: dict[str, int]
) -> None:
    first = max(ranks.values()) + 1
    given_ids = {name: first + token for name, token in special.items()} if isinstance(special, dict) else special
    backend = open_backend(convert_tiktoken(rank_file(ranks), "t", "qwen", given_ids).json)
    assert {name: backend.token_to_id(name) - first for name in expected} == expected
    assert backend.encode("<|a|>").ids == [token for part in ("<|", "a", "|>") for token in backend.encode(part).ids]


def refusal(data: bytes, pattern: str | None = "qwen", special: Any = ()) -> str:
    with pytest.raises(ConfigError) as caught:
        convert_tiktoken(data, "t.tiktoken", pattern, special)
    return str(caught.value)


def test_a_file_without_a_pattern_is_told_the_patterns_there_are(ranks: dict[bytes, int]) -> None:
    assert refusal(rank_file(ranks), None) == (
        "t.tiktoken: a tiktoken file does not say how it splits text; "
        "set tokenizer.pattern to one of gpt2, cl100k, o200k, llama3, qwen"
    )


def test_faults_of_the_file_and_of_special_tokens_are_named(ranks: dict[bytes, int]) -> None:
    whole = rank_file(ranks)
    assert "line 258 is not a base64 token and its rank" in refusal(_lines(whole, 257) + b"!!! 7\n")
    assert "byte 0x" in refusal(_lines(whole, 100))
    assert "a rank stands twice" in refusal(whole + b"enp6eg== 3\n")
    assert "the id 3 of special token '<|a|>' is a rank" in refusal(whole, special={"<|a|>": 3})
    assert "two special tokens share an id" in refusal(whole, special={"<|a|>": 9000, "<|b|>": 9000})
    assert "text that spells 'stop' would be encoded as the special token" in refusal(whole, special=["stop"])


def _lines(data: bytes, count: int) -> bytes:
    return b"".join(data.splitlines(keepends=True)[:count])


def test_rank_files_are_told_from_other_files_by_their_first_line() -> None:
    assert is_tiktoken(b"IQ== 0\nIg== 1\n")
    assert not any(is_tiktoken(data) for data in (b'{"model": {}}', b"", b"hello world\n", b"\n\x0c\n\x05<unk>"))
