"""How many tokens tokenizers need for the same texts, by source and by script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from rich.table import Table
from rich.text import Text
from tokenizers import Tokenizer as Backend

from dataprep.text.segment import HAN_BLOCKS
from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.cuts import Cutter, cutter_for
from dataprep.tokens.encoding import Encode, encode_texts
from dataprep.tokens.kinds import read_source
from dataprep.tokens.tokenizer import reference_encode
from dataprep.tokens.tokenizer_json import open_backend, settle

# Unicode blocks of the letters of each script, by block and not by property, so that every Python agrees.
SCRIPTS: Mapping[str, Sequence[tuple[int, int]]] = {
    "Latin": ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF)),
    "Han": HAN_BLOCKS,
    "Kana": ((0x3041, 0x30FF),),
    "Hangul": ((0x1100, 0x11FF), (0xAC00, 0xD7A3)),
    "Cyrillic": ((0x400, 0x52F),),
    "Greek": ((0x370, 0x3FF),),
    "Arabic": ((0x600, 0x6FF), (0x750, 0x77F)),
    "Hebrew": ((0x590, 0x5FF),),
    "Devanagari": ((0x900, 0x97F),),
    "Thai": ((0xE00, 0xE7F),),
}
_NAMES = (*SCRIPTS, "other")
_BLOCKS = sorted((first, last, number) for number, blocks in enumerate(SCRIPTS.values()) for first, last in blocks)
_FIRST, _LAST, _NUMBER = (np.array(column) for column in zip(*_BLOCKS, strict=True))


@dataclass(frozen=True, slots=True)
class Fertility:
    """Tokens of one tokenizer for the texts of one source or script; `bytes` are UTF-8, `unknown` a share of tokens."""

    tokenizer: str
    by: Literal["source", "script"]
    group: str
    documents: int
    characters: int
    bytes: int
    tokens: int
    per_1000_characters: float
    per_1000_bytes: float
    bytes_per_token: float
    unknown: float


@dataclass(frozen=True, slots=True)
class _Compared:
    name: str
    encode: Encode
    cutter: Cutter | None
    unknown: int | None


def compare(configs: Sequence[TokenizerConfig], texts: Mapping[str, Sequence[str]]) -> list[Fertility]:
    """Encode the texts of each source by each tokenizer, without document marks, special tokens in them as text.

    Every text counts once for its source and once for the script of most of its letters (kana beside Han make it Kana).
    """
    groups = [("source", source, list(one)) for source, one in texts.items() if one]
    by_script: dict[str, list[str]] = {}
    for text in (text for one in texts.values() for text in one):
        by_script.setdefault(script(text), []).append(text)
    groups += [("script", name, by_script[name]) for name in _NAMES if name in by_script]
    compared = [_open(config) for config in configs]
    return [_measure(one, by, group, members) for by, group, members in groups for one in compared]


def script(text: str) -> str:
    """The script of most letters of a text, "other" if it has none that SCRIPTS lists."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    block = np.searchsorted(_FIRST, points, side="right") - 1
    inside = (block >= 0) & (points <= _LAST[block])
    counts = np.bincount(_NUMBER[block[inside]], minlength=len(SCRIPTS))
    if not counts.any():
        return "other"
    most = list(SCRIPTS)[int(counts.argmax())]
    # Japanese is written in Han and kana, mostly Han by count in dense prose; Chinese has next to no kana.
    has_kana = 10 * counts[list(SCRIPTS).index("Kana")] > counts[list(SCRIPTS).index("Han")]
    return "Kana" if most == "Han" and has_kana else most


def as_json(figures: Sequence[Fertility]) -> list[dict[str, Any]]:
    """The figures as a JSON list."""
    return [asdict(one) for one in figures]


def render_fertility(figures: Sequence[Fertility]) -> Table:
    """One line a group and tokenizer."""
    table = Table("by", "group", "tokenizer")
    for name in ("documents", "tokens", "tokens/1000 chars", "tokens/1000 bytes", "bytes/token", "unknown"):
        table.add_column(name, justify="right")
    group = None
    for one in figures:
        if group not in (None, (one.by, one.group)):
            table.add_section()
        group = (one.by, one.group)
        ratios = (one.per_1000_characters, one.per_1000_bytes, one.bytes_per_token)
        numbers = [f"{one.documents:,}", f"{one.tokens:,}", *(f"{ratio:.2f}" for ratio in ratios), f"{one.unknown:.4%}"]
        table.add_row(one.by, Text(one.group), Text(one.tokenizer), *numbers)
    return table


def _open(config: TokenizerConfig) -> _Compared:
    source = read_source(config)
    settled = settle(json.loads(source.json), (), str(config.path))
    value, backend = json.loads(settled), open_backend(settled)
    cutter = cutter_for(value) if source.model is None else None
    encode = reference_encode(backend, source.model)
    return _Compared(str(config.path), encode, cutter, _unknown_id(value["model"], backend))


def _unknown_id(model: dict[str, Any], backend: Backend) -> int | None:
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    name = model.get("unk_token")
    return None if name is None else backend.token_to_id(name)


def _measure(one: _Compared, by: Any, group: str, texts: Sequence[str]) -> Fertility:
    ids = encode_texts(one.encode, one.cutter, texts).ids
    characters, size, tokens = sum(map(len, texts)), sum(_sizes(texts)), len(ids)
    return Fertility(
        tokenizer=one.name,
        by=by,
        group=group,
        documents=len(texts),
        characters=characters,
        bytes=size,
        tokens=tokens,
        per_1000_characters=1000 * tokens / max(1, characters),
        per_1000_bytes=1000 * tokens / max(1, size),
        bytes_per_token=size / max(1, tokens),
        unknown=0.0 if one.unknown is None else float(np.count_nonzero(ids == one.unknown)) / max(1, tokens),
    )


def _sizes(texts: Sequence[str]) -> Iterator[int]:
    return (len(text.encode()) for text in texts)
