"""Filling in the middle: which documents, cut where, in which order, between which tokens; and back again."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from dataprep.errors import ConfigError
from dataprep.shards.decoder import put_back
from dataprep.tokens.config import FimConfig, TokenizerConfig
from dataprep.tokens.fim import Cuts, draw_cuts, encode_with_fim
from dataprep.tokens.fim_tokens import FAMILIES
from dataprep.tokens.source import Source
from dataprep.tokens.special import SpecialTokens
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer, open_settled

FILE = Path("vocab/tokenizer.json")
QWEN = ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"]
EOS, PAD, PRE, MID, SUF = range(256, 261)
BOS = 261
DEFAULT = FimConfig()

texts_strategy = st.lists(st.text(max_size=12) | st.sampled_from(["\r\n", "a\r\nb", "𝒳é", QWEN[0]]), max_size=8)


def byte_level(names: list[str], merges: list[str]) -> bytes:
    """A tokenizer.json: byte b has id b, then the merges of two characters, then the special tokens `names`."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]
    vocabulary = {name: token for token, name in enumerate([*characters, *merges])}
    backend = Backend(models.BPE(vocabulary, [(merge[0], merge[1]) for merge in merges]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(names)
    value = json.loads(backend.to_str())
    # As published: not all that should be special is called so.
    added = [{**token, "special": token["content"].startswith("<|")} for token in value["added_tokens"]]
    return json.dumps({**value, "added_tokens": added}).encode()


def load(
    fim: FimConfig | None = DEFAULT, names: list[str] = QWEN, merges: list[str] | None = None, **more: Any
) -> Tokenizer:
    text = byte_level(["<|endoftext|>", "<|pad|>", *names], merges or [])
    return load_tokenizer(TokenizerConfig(path=FILE, **more), Source("tokenizer.json", text), fim)


TOKENIZER = load()
WITH_BOS = load(add_special_tokens=("<s>",), bos="<s>")


def cuts_of(*each: tuple[str, int, int]) -> Cuts:
    """Cuts by hand: ("", "psm" or "spm", first cut, second cut) a document."""
    kinds, first, second = zip(*each, strict=True)
    chosen = np.array([kind != "" for kind in kinds])
    return Cuts(chosen, np.array([kind == "spm" for kind in kinds]), np.array(first), np.array(second))


def digests(texts: list[str]) -> list[bytes]:
    return [xxhash.xxh3_128_digest(text.encode()) for text in texts]


def documents(tokens: Any) -> list[list[int]]:
    return [tokens.ids[a:b].tolist() for a, b in pairwise(tokens.offsets)]


def data(text: str) -> list[int]:
    return list(text.encode())


def test_both_orders_worked_out_by_hand() -> None:
    texts = ["one", "prefix|middle|suffix", "prefix|middle|suffix"]
    tokens = encode_with_fim(TOKENIZER, texts, cuts_of(("", 0, 0), ("psm", 7, 14), ("spm", 7, 14)))
    assert documents(tokens) == [
        [*data("one"), EOS],
        [PRE, *data("prefix|"), SUF, *data("suffix"), MID, *data("middle|"), EOS],
        [PRE, SUF, *data("suffix"), MID, *data("prefix|"), *data("middle|"), EOS],
    ]
    assert (tokens.ids.dtype, tokens.offsets.dtype) == (np.int32, np.int64)


def test_bos_stands_before_all_of_it() -> None:
    tokens = encode_with_fim(WITH_BOS, ["ab", "ab", "ab"], cuts_of(("spm", 1, 1), ("psm", 1, 2), ("", 0, 0)))
    assert documents(tokens) == [
        [BOS, PRE, SUF, *data("b"), MID, *data("a"), EOS],
        [BOS, PRE, *data("a"), SUF, MID, *data("b"), EOS],
        [BOS, *data("ab"), EOS],
    ]


def test_a_cut_falls_between_characters_even_of_several_bytes_and_inside_crlf() -> None:
    tokens = encode_with_fim(TOKENIZER, ["é\r\n𝒳"], cuts_of(("psm", 2, 3)))
    assert documents(tokens) == [[PRE, *data("é\r"), SUF, *data("𝒳"), MID, *data("\n"), EOS]]


def test_parts_are_encoded_each_for_itself() -> None:
    merged = load(merges=["ab"])
    tokens = encode_with_fim(merged, ["abab"], cuts_of(("psm", 1, 4)))
    # "ab" is one token (256), but not across the cut.
    assert [token for token in tokens.ids.tolist() if token < 257] == [97, 98, 256]


@given(texts_strategy, st.integers(0, 2**63 - 1), st.floats(0, 1), st.floats(0, 1), st.booleans())
@settings(deadline=None)
def test_every_document_is_put_back_to_its_text(
    texts: list[str], seed: int, rate: float, spm_rate: float, bos: bool
) -> None:
    tokenizer = WITH_BOS if bos else TOKENIZER
    fim = FimConfig(rate=rate, spm_rate=spm_rate)
    cuts = draw_cuts(texts, digests(texts), np.ones(len(texts), np.bool_), fim, seed)
    tokens = encode_with_fim(tokenizer, texts, cuts)
    plain = documents(tokenizer.encode(texts))
    for text, chosen, ids, whole in zip(texts, cuts.chosen, documents(tokens), plain, strict=True):
        assert chosen or ids == whole
        content = np.array(ids[bos:-1])
        parts = put_back(content, PRE, MID, SUF)
        assert (parts is not None) == chosen
        assert tokenizer.decode(np.concatenate(parts) if parts is not None else content) == text
        assert len(ids) == len(whole) + 3 * chosen


def slow_draw(text: str, digest: bytes, fim: FimConfig, seed: int) -> tuple[bool, bool, int, int]:
    """The published generator on Python integers."""
    state, outputs = xxhash.xxh3_64_intdigest(b"fim:" + digest, seed), []
    for _ in range(4):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        outputs.append(mixed ^ mixed >> 31)
    first, second = sorted((output >> 32) * (len(text) + 1) >> 32 for output in outputs[2:])
    chosen = len(text) >= fim.min_chars and (outputs[0] >> 11) / 2**53 < fim.rate
    return chosen, chosen and (outputs[1] >> 11) / 2**53 < fim.spm_rate, first, second


@given(texts_strategy, st.integers(0, 2**63 - 1), st.floats(0, 1), st.floats(0, 1))
@settings(deadline=None)
def test_cuts_are_those_of_the_documented_generator(texts: list[str], seed: int, rate: float, spm_rate: float) -> None:
    fim = FimConfig(rate=rate, spm_rate=spm_rate, min_chars=2)
    cuts = draw_cuts(texts, digests(texts), np.ones(len(texts), np.bool_), fim, seed)
    found = zip(*(each.tolist() for each in (cuts.chosen, cuts.suffix_first, cuts.first, cuts.second)), strict=True)
    assert list(found) == [
        slow_draw(text, digest, fim, seed) for text, digest in zip(texts, digests(texts), strict=True)
    ]


def test_shares_come_out_as_configured_and_cuts_reach_both_ends() -> None:
    texts = [f"{number:04d}" for number in range(4000)]
    cuts = draw_cuts(texts, digests(texts), np.ones(4000, np.bool_), FimConfig(rate=0.25, spm_rate=0.75), 1)
    assert abs(cuts.chosen.mean() - 0.25) < 0.03
    assert abs(cuts.suffix_first[cuts.chosen].mean() - 0.75) < 0.05
    assert not cuts.suffix_first[~cuts.chosen].any()
    assert {*cuts.first.tolist()} == {*cuts.second.tolist()} == {0, 1, 2, 3, 4}


def test_short_documents_and_those_not_allowed_are_left_alone() -> None:
    texts = ["ab", "abc", "abcd", "abcde"]
    allowed = np.array([True, True, False, True])
    cuts = draw_cuts(texts, digests(texts), allowed, FimConfig(rate=1), 0)
    assert cuts.chosen.tolist() == [False, True, False, True]


def test_what_is_drawn_depends_on_seed_and_text_alone() -> None:
    texts = [f"document {number}" for number in range(200)]
    fim, every = FimConfig(), np.ones(200, np.bool_)
    cuts = draw_cuts(texts, digests(texts), every, fim, 1)
    backwards = draw_cuts(texts[::-1], digests(texts[::-1]), every, fim, 1)
    assert cuts.chosen.tolist() == backwards.chosen.tolist()[::-1]
    assert cuts.chosen.tolist() != draw_cuts(texts, digests(texts), every, fim, 2).chosen.tolist()


@pytest.mark.parametrize(
    "ids", [[], [65], [PRE, SUF, 65], [PRE, MID, 65, SUF], [SUF, PRE, MID], [65, PRE, SUF, MID], [PRE, SUF, SUF, MID]]
)
def test_what_is_not_rearranged_is_not_put_back(ids: list[int]) -> None:
    assert put_back(np.array(ids), PRE, MID, SUF) is None


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tokens_of_a_known_family_are_found(family: str) -> None:
    tokens = FAMILIES[family]
    loaded = load(names=[tokens.prefix, tokens.middle, tokens.suffix])
    assert loaded.fim is not None
    assert (loaded.fim.prefix, loaded.fim.middle, loaded.fim.suffix) == (PRE, MID, SUF)
    assert loaded.special.fim == tokens


def test_names_from_the_pipeline_file_come_first_and_may_be_added_to_the_vocabulary() -> None:
    fim = FimConfig(prefix="<P>", middle="<M>", suffix="<S>")
    loaded = load(fim, add_special_tokens=("<P>", "<M>", "<S>"))
    assert loaded.fim is not None
    assert (loaded.fim.prefix, loaded.fim.middle, loaded.fim.suffix) == (261, 262, 263)
    again = open_settled(
        loaded.json,
        None,
        SpecialTokens.from_facts(
            {
                "eos": "<|endoftext|>",
                "bos": None,
                "pad": "<|pad|>",
                "fim": {"prefix": "<P>", "middle": "<M>", "suffix": "<S>"},
            }
        ),
        allow_special=False,
    )
    assert again.fim == loaded.fim
    # It is the tokenizer's own, however its tokens are used.
    assert again.fingerprint == loaded.fingerprint == load(None, add_special_tokens=("<P>", "<M>", "<S>")).fingerprint


def test_tokens_spelled_in_a_text_stay_text() -> None:
    assert documents(TOKENIZER.encode([QWEN[0]])) == [[*data(QWEN[0]), EOS]]


@pytest.mark.parametrize(
    ("fim", "names", "words"),
    [
        ({}, ["<x>"], "has none of a known family to fill in the middle; name them by pack.fim.prefix"),
        ({}, [*QWEN, "<fim_prefix>", "<fim_middle>", "<fim_suffix>"], "has those of Qwen and StarCoder to fill"),
        ({"prefix": "<P>", "middle": QWEN[1], "suffix": QWEN[2]}, QWEN, "'<P>' is not in the vocabulary"),
        ({"prefix": QWEN[1], "middle": QWEN[1], "suffix": QWEN[2]}, QWEN, "has another task too"),
        ({"prefix": "<|pad|>", "middle": QWEN[1], "suffix": QWEN[2]}, QWEN, "'<|pad|>' has another task too"),
        # A token of the vocabulary that text yields.
        ({"prefix": "a", "middle": QWEN[1], "suffix": QWEN[2]}, QWEN, "would be encoded as the special token"),
    ],
)
def test_tokens_that_cannot_mark_parts_are_refused(fim: dict[str, str], names: list[str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(FimConfig.model_validate(fim), names)
    assert words in str(caught.value)


def test_some_names_without_the_others_are_refused() -> None:
    with pytest.raises(ValueError, match="give prefix, middle and suffix, or none of them"):
        FimConfig(prefix="<P>")
