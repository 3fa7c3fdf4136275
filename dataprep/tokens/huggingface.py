"""Hugging Face tokenizer folders: tokenizer.json with what the files beside it say about special and added tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError
from dataprep.tokens.cuts import GPT2, GPT4_DIGITS_1
from dataprep.tokens.source import DocumentMarks, Source
from dataprep.tokens.tokenizer_json import parse_tokenizer_json

CONFIG, MAP, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
_BORDERS = ("eos_token", "bos_token", "pad_token")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
# vocab.json and merges.txt do not say how text is split; the class they are published for does.
_SPLITS = {None: GPT2, "GPT2Tokenizer": GPT2, "Qwen2Tokenizer": GPT4_DIGITS_1}


def settings_of(folder: Path) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """What the folder's configuration files say, as one tokenizer_config, and which files that were."""
    found = [folder / name for name in (CONFIG, MAP, ADDED) if (folder / name).is_file()]
    read = {path.name: _read_object(path) for path in found}
    settings = {**read.get(MAP, {}), **{k: v for k, v in read.get(CONFIG, {}).items() if v is not None}}
    decoder = dict(settings.get("added_tokens_decoder") or {})
    named = {_content(entry) for entry in decoder.values()}
    for name, token in read.get(ADDED, {}).items():
        if name not in named:
            decoder[str(token)] = {"content": name}
    return {**settings, "added_tokens_decoder": decoder}, tuple(found)


def with_settings(source: Source, settings: dict[str, Any], where: str) -> Source:
    """The tokenizer with the added and special tokens that the settings name, and their names for eos and pad.

    Raises ConfigError if the settings give a token another id than the tokenizer does.
    """
    value = parse_tokenizer_json(source.json, where)
    added = {token["content"]: token for token in value.get("added_tokens") or []}
    for name, token, entry in sorted(_decoder_entries(settings, where), key=lambda one: one[1]):
        known = added.get(name, {}).get("id", _vocabulary_id(value, name))
        if known is not None and known != token:
            what = f"added token {name!r} has id {token} in {CONFIG} but {known} in the tokenizer"
            raise ConfigError(what, where=where, mend="make the folder's files agree")
        flags = {flag: bool(entry.get(flag, added.get(name, {}).get(flag, False))) for flag in _FLAGS}
        added[name] = {"id": token, "content": name, **flags}
    marks = {key: _content(settings.get(key)) for key in _BORDERS}
    for name in {*_extra(settings), *filter(None, marks.values())}:
        if name in added:
            added[name] = {**added[name], "special": True}
    value["added_tokens"] = sorted(added.values(), key=lambda token: int(token["id"]))
    own = source.marks
    bos = marks["bos_token"] if settings.get("add_bos_token") else own.bos
    chosen = DocumentMarks(marks["eos_token"] or own.eos, bos, marks["pad_token"] or own.pad)
    return replace(source, json=json.dumps(value, ensure_ascii=False).encode(), marks=chosen)


def from_vocabulary(folder: Path, settings: dict[str, Any]) -> Source:
    """Build the byte-level BPE of vocab.json and merges.txt. Raises ConfigError if how it splits is not known."""
    where = str(folder)
    name = settings.get("tokenizer_class")
    kind = name.removesuffix("Fast") if isinstance(name, str) else None
    if kind not in _SPLITS:
        mend = f"save its tokenizer.json there; known are {', '.join(one for one in _SPLITS if one)}"
        raise ConfigError(
            f"vocab.json and merges.txt of a {kind} do not say how it splits text", where=where, mend=mend
        )
    try:
        backend = Backend(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    except Exception as error:  # the library raises bare Exception for every fault of the files
        raise ConfigError(f"vocab.json and merges.txt are not usable: {error}", where=where) from error
    prefix = bool(settings.get("add_prefix_space"))
    split = pre_tokenizers.Split(Regex(_SPLITS[kind]), "isolated")
    plain = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=True)
    other = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False)])
    backend.pre_tokenizer = plain if _SPLITS[kind] == GPT2 else other
    if kind == "Qwen2Tokenizer":
        backend.normalizer = normalizers.NFC()
    backend.decoder = decoders.ByteLevel()
    borders = [_content(settings.get(key)) for key in _BORDERS] if settings else []
    special = [
        name for name in dict.fromkeys(borders or ["<|endoftext|>"]) if name and backend.token_to_id(name) is not None
    ]
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in special])
    return Source("vocab.json and merges.txt", backend.to_str().encode())


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", where=str(path), mend="mend or remove the file") from error
    if not isinstance(value, dict):
        raise ConfigError("is not a JSON object", where=str(path), mend="mend or remove the file")
    return value


def _content(entry: Any) -> str | None:
    """A token as written in these files: its name, or an object that holds it."""
    name = entry.get("content") if isinstance(entry, dict) else entry
    return name if isinstance(name, str) and name else None


def _decoder_entries(settings: dict[str, Any], where: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for token, entry in settings["added_tokens_decoder"].items():
        name = _content(entry)
        if name is None or not str(token).isdigit():
            raise ConfigError(f"added_tokens_decoder has no token at {token!r}", where=where, mend=f"mend {CONFIG}")
        yield name, int(token), entry


def _extra(settings: dict[str, Any]) -> Iterator[str]:
    for key in ("additional_special_tokens", "extra_special_tokens"):
        entries = settings.get(key) or []
        for entry in entries.values() if isinstance(entries, dict) else entries:
            if (name := _content(entry)) is not None:
                yield name


def _vocabulary_id(value: dict[str, Any], name: str) -> int | None:
    vocabulary = value["model"].get("vocab") or {}
    if isinstance(vocabulary, dict):
        return vocabulary.get(name)
    return next((token for token, (piece, _) in enumerate(vocabulary) if piece == name), None)
