"""What a tokenizer comes from: one tokenizer.json, whatever kind of file it was made of, and what the files name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DocumentMarks:
    """Names of the tokens that the files themselves give to the end, the beginning and the padding of a text.

    `bos` is set only where the tokenizer puts it before texts by itself.
    """

    eos: str | None = None
    bos: str | None = None
    pad: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A tokenizer of any kind as a tokenizer.json (UTF-8); `files` are all that were read for it.

    `model` is the SentencePiece model that encodes in its place, where the tokenizer.json gives only names and text;
    `notes` say why.
    """

    kind: str
    json: bytes
    marks: DocumentMarks = DocumentMarks()
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    model: bytes | None = field(default=None, repr=False)
