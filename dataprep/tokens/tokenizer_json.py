"""tokenizer.json files: read one, settle everything in it that must not vary, open it with the reference library."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import msgspec
import zstandard
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError

ACCEPTED = (
    "a tokenizer.json, a Hugging Face tokenizer folder, a SentencePiece .model or a tiktoken file, "
    "or train one in the run: tokenizer: {train: {}}"
)
_MEND = f"give {ACCEPTED}"


def decompressed(path: Path, data: bytes) -> bytes:
    """The content of a tokenizer file, decompressed if its name ends in .zst; ConfigError if that is damaged."""
    try:
        return _decompress(data) if path.suffix == ".zst" else data
    except zstandard.ZstdError as error:
        raise ConfigError(f"the tokenizer is not valid zstd: {error}", where=str(path), mend=_MEND) from error


def _decompress(data: bytes) -> bytes:
    reader = zstandard.ZstdDecompressor().decompressobj()
    text = bytes(reader.decompress(data))
    # A cut-off frame is not an error to the library, only an end that never comes.
    if not reader.eof:
        raise zstandard.ZstdError("the file is cut off")
    return text


def parse_tokenizer_json(text: bytes, where: str) -> dict[str, Any]:
    """Parse a tokenizer.json into its object; raises ConfigError when it is something else."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(f"not a tokenizer.json: {error}", where=where, mend=_MEND) from error
    if not isinstance(value, dict) or not isinstance(value.get("model"), dict):
        raise ConfigError("not a tokenizer.json: it has no model", where=where, mend=_MEND)
    return value


def settle(value: dict[str, Any], special: Iterable[str], where: str) -> bytes:
    """Return the tokenizer.json (UTF-8) that a run uses and publishes, made from the parsed file `value`.

    Padding, truncation and BPE dropout are off, because they would change or lose tokens; each of `special` is a
    special token, added behind the vocabulary if the file does not know it. Raises ConfigError if ids would clash.
    """
    names = list(dict.fromkeys(special))
    added = [{**token, "special": token["special"] or token["content"] in names} for token in _added_tokens(value)]
    model = {**value["model"], "dropout": None} if "dropout" in value["model"] else value["model"]
    steady = {**value, "padding": None, "truncation": None, "added_tokens": added, "model": model}
    backend = _open(json.dumps(steady, ensure_ascii=False), where)
    _check_added_ids(backend, added, where)
    backend.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    _check_distinct_ids(backend, where)
    return str(backend.to_str()).encode()


def as_encoded(text: bytes, control: Container[str]) -> bytes:
    """The settled tokenizer.json in which tokens of `control` are not special: spelled in texts, they are tokens."""
    if not control:
        return text
    value = msgspec.json.decode(text)
    freed = [
        {**token, "special": token["special"] and token["content"] not in control} for token in value["added_tokens"]
    ]
    return json.dumps({**value, "added_tokens": freed}, ensure_ascii=False).encode()


def open_backend(text: bytes) -> Backend:
    """Open a settled tokenizer.json so that special tokens written in a text are encoded as text."""
    backend = _open(text.decode(), "tokenizer.json")
    backend.encode_special_tokens = True
    return backend


def _added_tokens(value: dict[str, Any]) -> list[dict[str, Any]]:
    return value.get("added_tokens") or []


def _open(text: str, where: str) -> Backend:
    try:
        return Backend.from_str(text)
    except Exception as error:  # the library raises bare Exception for every fault of the file
        raise ConfigError(f"not a usable tokenizer.json: {error}", where=where, mend=_MEND) from error


def _check_added_ids(backend: Backend, added: list[dict[str, Any]], where: str) -> None:
    # The library renumbers added tokens in silence when their ids leave a gap behind the vocabulary.
    for token in added:
        got = backend.token_to_id(token["content"])
        if got != token["id"]:
            what = f"added token {token['content']!r} has id {token['id']} in the file but is read as {got}"
            raise ConfigError(what, where=where, mend="renumber added_tokens without gaps behind the vocabulary")


def _check_distinct_ids(backend: Backend, where: str) -> None:
    ids = list(backend.get_vocab(with_added_tokens=True).values())
    if len(set(ids)) != len(ids):
        mend = "renumber the vocabulary without gaps, or add no special tokens"
        raise ConfigError("two tokens share one id after adding special tokens", where=where, mend=mend)
