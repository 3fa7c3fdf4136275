"""What in a tokenizer can keep decoding from giving a text back, read from its tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

# Ordinary text is NFC already, and the run's own proof on a sample covers it.
_HARMLESS = ("NFC", "ByteLevel", "Prepend")
_DROPPING = ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "CharDelimiterSplit")
_SPACE_MARK = "the character U+2581 in a text becomes a space"


def losses(tokenizer_json: bytes) -> list[str]:
    """Every way in which this tokenizer.json can lose or change text, in words; empty if there is none.

    NFC is not one of them, although it changes text that is not in this form.
    """
    value = json.loads(tokenizer_json)
    return list(dict.fromkeys(_losses(value)))


def has_all_bytes(value: dict[str, Any]) -> bool:
    """Whether any text has ids: the tokenizer works on bytes, or falls back to them."""
    return is_byte_level(value) or bool(value["model"].get("byte_fallback"))


def is_byte_level(value: dict[str, Any]) -> bool:
    """Whether text becomes bytes before the model sees it."""
    parts = [*_steps(value.get("pre_tokenizer")), *_steps(value.get("normalizer"))]
    return any(part["type"] == "ByteLevel" for part in parts)


def _losses(value: dict[str, Any]) -> Iterator[str]:
    if not has_all_bytes(value):
        yield "characters outside the vocabulary become the unknown token"
    for part in _steps(value.get("normalizer")):
        if part["type"] not in _HARMLESS:
            yield _normalized(part)
    for part in _steps(value.get("pre_tokenizer")):
        yield from _pre_tokenized(part)
    if not list(_steps(value.get("decoder"))):
        yield "it has no decoder"
    for token in value.get("added_tokens") or []:
        if token["lstrip"] or token["rstrip"]:
            yield f"the token {token['content']!r} takes the white space beside it"


def _pre_tokenized(part: dict[str, Any]) -> Iterator[str]:
    if part["type"] in _DROPPING:
        yield f"the pre-tokenizer {part['type']} drops white space"
    if part["type"] == "ByteLevel" and part.get("add_prefix_space"):
        yield "the pre-tokenizer puts a space before texts that do not begin with one"
    if part["type"] == "Metaspace":
        yield _SPACE_MARK
    if part["type"] == "Split" and part["behavior"] == "Removed":
        yield f"the pre-tokenizer drops what {part['pattern']} matches"


def _normalized(part: dict[str, Any]) -> str:
    if part["type"] == "Replace" and part["content"] == "\u2581":
        return _SPACE_MARK
    if part["type"] == "Replace":
        return f"the normaliser replaces {part['pattern']} by {part['content']!r}"
    return f"the normaliser {part['type']} changes text"


def _steps(part: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The steps of a component, sequences taken apart."""
    if part is None:
        return
    if part["type"] != "Sequence":
        yield part
        return
    for key in ("normalizers", "pretokenizers", "decoders"):
        for inner in part.get(key, ()):
            yield from _steps(inner)
