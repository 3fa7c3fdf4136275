"""What a tokenizer can lose is read off its parts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from dataprep.tokens.losses import losses


def byte_level(**parts: Any) -> bytes:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=parts.pop("prefix", False))
    backend.decoder = decoders.ByteLevel()
    for name, part in parts.items():
        setattr(backend, name, part)
    return backend.to_str().encode()


def test_bytes_as_they_are_lose_nothing() -> None:
    assert losses(byte_level()) == []
    assert losses(byte_level(normalizer=normalizers.NFC())) == []


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        (byte_level(prefix=True), "the pre-tokenizer puts a space before texts that do not begin with one"),
        (byte_level(normalizer=normalizers.Lowercase()), "the normaliser Lowercase changes text"),
        (byte_level(normalizer=normalizers.Replace(" ", "\u2581")), "the character U+2581 in a text becomes a space"),
        (byte_level(normalizer=normalizers.Replace("a", "b")), "the normaliser replaces {'String': 'a'} by 'b'"),
        (byte_level(decoder=None), "it has no decoder"),
    ],
)
def test_each_part_that_changes_text_is_told(text: bytes, loss: str) -> None:
    assert losses(text) == [loss]


def test_dropped_white_space_unknown_characters_and_greedy_tokens_are_told() -> None:
    backend = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    split = pre_tokenizers.Split(Regex("x"), "removed")
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), split])
    backend.decoder = decoders.Fuse()
    value = json.loads(backend.to_str())
    flags = {"single_word": False, "lstrip": True, "rstrip": False, "normalized": False, "special": True}
    value["added_tokens"] = [{"id": 2, "content": "<mask>", **flags}]
    assert losses(json.dumps(value).encode()) == [
        "characters outside the vocabulary become the unknown token",
        "the pre-tokenizer Whitespace drops white space",
        "the pre-tokenizer drops what {'Regex': 'x'} matches",
        "the token '<mask>' takes the white space beside it",
    ]
