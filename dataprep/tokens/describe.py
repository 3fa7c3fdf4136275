"""Say what a tokenizer is: its kind, special tokens, normalisation, what it can lose, and how it cuts example texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError
from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.encoding import Encode
from dataprep.tokens.kinds import read_source
from dataprep.tokens.losses import is_byte_level, losses
from dataprep.tokens.source import Source
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer, reference_encode
from dataprep.tokens.tokenizer_json import open_backend, settle

EXAMPLES = (
    "The quick brown fox jumps over the lazy dog.",
    "北京大学创办于1898年，是中国第一所国立综合性大学。",
    "def area(r):\n    return 3.14159 * r ** 2\n",
    "1234567 + 89 = 1,234,656",
    "caf\u00e9 na\u00efve \U0001f44d\U0001f3fd \u4f60\u597d!",
)
# More names than a page holds: published tokenizers reserve hundreds.
_SHOWN = 24


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A token added to the vocabulary; one that is not `special` is found in texts."""

    id: int
    token: str
    special: bool


@dataclass(frozen=True, slots=True)
class Example:
    """A text and the tokens it is cut into, bytes that are no character shown as U+FFFD."""

    text: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """What a tokenizer is; `fingerprint` is that of a run with the marks named, None if no run could use it as it is.

    `vocab_size` is the largest id + 1.
    """

    path: str
    kind: str
    model: str
    vocab_size: int
    alphabet: str
    normalizer: str
    pre_tokenizer: str
    added: tuple[SpecialToken, ...]
    marks: dict[str, str | None]
    fingerprint: str | None
    losses: tuple[str, ...]
    notes: tuple[str, ...]
    examples: tuple[Example, ...]


def describe(config: TokenizerConfig, texts: Sequence[str] = EXAMPLES) -> Description:
    """Read the tokenizer at `config.path` and describe it. Raises ConfigError if it cannot be read or converted."""
    source = read_source(config)
    tokenizer, notes = _as_run(config, source)
    settled = settle(json.loads(source.json), config.add_special_tokens, str(config.path))
    value = json.loads(settled)
    backend = open_backend(settled)
    encode = reference_encode(backend, source.model)
    special = tokenizer.special if tokenizer else None
    marks = {"eos": source.marks.eos, "bos": source.marks.bos, "pad": source.marks.pad}
    return Description(
        path=str(config.path),
        kind=source.kind,
        model=str(value["model"]["type"]),
        vocab_size=max(backend.get_vocab(with_added_tokens=True).values()) + 1,
        alphabet=_alphabet(value),
        normalizer=_steps(value.get("normalizer")),
        pre_tokenizer=_steps(value.get("pre_tokenizer")),
        added=tuple(SpecialToken(one["id"], one["content"], one["special"]) for one in value["added_tokens"]),
        marks={key: getattr(special, key) for key in marks} if special else marks,
        fingerprint=tokenizer.fingerprint if tokenizer else None,
        losses=tuple(losses(settled)),
        notes=(*source.notes, *notes),
        examples=tuple(Example(text, _cut(backend, encode, text)) for text in texts),
    )


def as_json(description: Description) -> dict[str, Any]:
    """The description as a JSON object."""
    return asdict(description)


def render_description(description: Description) -> RenderableType:
    """Facts, notes and examples as tables."""
    facts = Table("fact", "value", show_header=False)
    rows = [
        ("tokenizer", description.path),
        ("kind", description.kind),
        ("model", description.model),
        ("vocabulary size", f"{description.vocab_size:,}"),
        ("alphabet", description.alphabet),
        ("normaliser", description.normalizer),
        ("pre-tokenizer", description.pre_tokenizer),
        ("marks", ", ".join(f"{key} {name!r}" for key, name in description.marks.items() if name) or "none named"),
        ("added tokens", _added(description.added)),
        ("fingerprint", description.fingerprint or "none: see the notes"),
        ("can lose", "\n".join(description.losses) or "nothing"),
        *(("note", note) for note in description.notes),
    ]
    for name, text in rows:
        facts.add_row(Text(name), Text(text))
    examples = Table("text", "tokens", "cut")
    for example in description.examples:
        cut = "|".join(json.dumps(token, ensure_ascii=False)[1:-1] for token in example.tokens)
        examples.add_row(Text(example.text.rstrip("\n")), str(len(example.tokens)), Text(cut))
    return Group(facts, examples)


def _as_run(config: TokenizerConfig, source: Source) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """The tokenizer as a run would load it, or a note why none could."""
    try:
        return load_tokenizer(config, source), ()
    except ConfigError as error:
        return None, (f"a run needs more settings: {error.what}; {error.mend}",)


def _alphabet(value: dict[str, Any]) -> str:
    if is_byte_level(value):
        return "bytes: every text has ids"
    if value["model"].get("byte_fallback"):
        return "characters, others as bytes"
    return "characters, others unknown"


def _steps(part: dict[str, Any] | None) -> str:
    if part is None:
        return "none"
    inner = next((part[key] for key in ("normalizers", "pretokenizers") if key in part), None)
    if inner is not None:
        return "\n".join(_steps(one) for one in inner) or "none"
    settings = {key: one for key, one in part.items() if key not in ("type", "precompiled_charsmap")}
    return " ".join([str(part["type"]), *(f"{key}={one!r}" for key, one in settings.items())])


def _cut(backend: Backend, encode: Encode, text: str) -> tuple[str, ...]:
    return tuple(_shown(backend, token) for token in encode([text]).ids.tolist())


def _shown(backend: Backend, token: int) -> str:
    # A decoder strips the space of a text's first token, so a token alone is shown by its name where that is plainer.
    name = str(backend.id_to_token(token))
    return name.replace("\u2581", " ") if "\u2581" in name else str(backend.decode([token], skip_special_tokens=False))


def _added(added: Sequence[SpecialToken]) -> str:
    shown = [f"{one.id} {one.token!r}{'' if one.special else ' (found in texts)'}" for one in added[:_SHOWN]]
    more = [f"and {len(added) - _SHOWN} more"] if len(added) > _SHOWN else []
    return "\n".join([*shown, *more]) or "none"
