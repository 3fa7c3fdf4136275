"""Every kind of tokenizer that `tokenizer.path` may name, told apart by its content and read as one tokenizer.json."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import xxhash

from dataprep.errors import ConfigError
from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.huggingface import from_vocabulary, settings_of, with_settings
from dataprep.tokens.sentencepiece_model import convert_sentencepiece, is_sentencepiece
from dataprep.tokens.source import Source
from dataprep.tokens.tiktoken_ranks import PATTERNS, convert_tiktoken, is_tiktoken
from dataprep.tokens.tokenizer_json import ACCEPTED, decompressed, parse_tokenizer_json

_JSON, _MODEL, _RANKS = "tokenizer.json", "tokenizer.model", "*.tiktoken"


def read_source(config: TokenizerConfig) -> Source:
    """Read the tokenizer at `config.path`: a tokenizer.json, a folder, a SentencePiece model or a tiktoken file.

    Files may be .zst compressed. Raises ConfigError, naming the file and the mend, if it is none of these or cannot be
    converted exactly.
    """
    if config.path is None:
        raise ValueError("the configuration names no tokenizer")
    path = config.path
    return _read_folder(path, config) if path.is_dir() else _read_file(path, config)


def named_on_command_line(name: str) -> TokenizerConfig:
    """The tokenizer that `PATH` names, or `PATH:PATTERN` for a tiktoken file."""
    path, _, pattern = name.rpartition(":")
    return TokenizerConfig.model_validate({"path": path, "pattern": pattern} if pattern in PATTERNS else {"path": name})


def source_hash(source: Source) -> str:
    """xxh3-128 (hex) of the content of every file that was read, in order."""
    digest = xxhash.xxh3_128()
    for path in source.files:
        digest.update(path.name.encode() + b"\0" + xxhash.xxh3_128_digest(_bytes(path)))
    return digest.hexdigest()


def _read_file(path: Path, config: TokenizerConfig) -> Source:
    data, where = decompressed(path, _bytes(path)), str(path)
    if is_sentencepiece(data):
        _refuse_unused(config, where, "pattern", "special_tokens")
        source = convert_sentencepiece(data, where)
    elif is_tiktoken(data):
        source = convert_tiktoken(data, where, config.pattern, config.special_tokens)
    else:
        _refuse_unused(config, where, "pattern", "special_tokens")
        parse_tokenizer_json(data, where)
        source = Source("tokenizer.json", data)
    return replace(source, files=(path,))


def _read_folder(folder: Path, config: TokenizerConfig) -> Source:
    settings, files = settings_of(folder)
    models = [folder / name for name in (_JSON, _MODEL) if (folder / name).is_file()] or sorted(folder.glob(_RANKS))[:1]
    pair = (folder / "vocab.json", folder / "merges.txt")
    if models:
        source = _read_file(models[0], config)
    elif all(path.is_file() for path in pair):
        _refuse_unused(config, str(folder), "pattern", "special_tokens")
        source = replace(from_vocabulary(folder, settings), files=pair)
    else:
        raise ConfigError("no tokenizer in this folder", where=str(folder), mend=f"give {ACCEPTED}")
    source = with_settings(source, settings, str(folder))
    return replace(source, kind=f"folder: {source.kind}", files=(*source.files, *files))


def _refuse_unused(config: TokenizerConfig, where: str, *keys: str) -> None:
    for key in keys:
        if getattr(config, key):
            raise ConfigError(f"tokenizer.{key} is for tiktoken files, and this is none", where=where, mend="remove it")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        what = f"cannot read the tokenizer: {error.strerror or error}"
        raise ConfigError(what, where=str(path), mend=f"give {ACCEPTED}") from error
