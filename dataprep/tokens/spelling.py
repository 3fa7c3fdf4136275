"""The bytes that each token of a byte-level vocabulary stands for: a proof of ids that needs no second tokenizer."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataprep.batch import utf8_buffers
from dataprep.kernels.spell import spell
from dataprep.tokens.encoding import TokenBatch


@dataclass(frozen=True, slots=True)
class Spelling:
    """Bytes of token t: `data[offsets[t]:offsets[t + 1]]`; a special token has none. `composes`: texts become NFC."""

    data: npt.NDArray[np.uint8] = field(repr=False)
    offsets: npt.NDArray[np.int64] = field(repr=False)
    composes: bool

    def spells(self, tokens: TokenBatch, text: pa.LargeStringArray) -> npt.NDArray[np.bool_]:
        """For each document whether its tokens (without eos, bos) stand for exactly its text: bool [documents]."""
        return spell(tokens.ids, tokens.offsets, self.data, self.offsets, *utf8_buffers(text))

    def spells_composed(
        self, tokens: TokenBatch, text: pa.LargeStringArray, spelled: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Like `spells`, whose answer is `spelled`, but also true where they stand for the text as it is normalised."""
        if not self.composes or spelled.all():
            return spelled
        entries = zip(text.to_pylist(), spelled, strict=True)
        composed = ["" if done else unicodedata.normalize("NFC", entry) for entry, done in entries]
        return spelled | self.spells(tokens, pa.array(composed, pa.large_string()))


def spelling_of(tokenizer: dict[str, Any]) -> Spelling | None:
    """The spelling of a parsed tokenizer.json, or None if its tokens are not plain bytes of the text."""
    normalizer = tokenizer["normalizer"]
    composes = normalizer is not None and normalizer["type"] == "NFC"
    vocabulary = tokenizer["model"].get("vocab")
    if not (normalizer is None or composes) or not isinstance(vocabulary, dict):
        return None
    if not _is_byte_level(tokenizer["pre_tokenizer"]):
        return None
    added = {token["id"]: b"" if token["special"] else token["content"].encode() for token in tokenizer["added_tokens"]}
    pieces = dict(zip(vocabulary.values(), _spelled(vocabulary), strict=True)) | added
    ordered = [pieces.get(token, b"") for token in range(max(pieces, default=-1) + 1)]
    offsets = np.zeros(len(ordered) + 1, np.int64)
    np.cumsum([len(piece) for piece in ordered], out=offsets[1:])
    return Spelling(np.frombuffer(b"".join(ordered), np.uint8).copy(), offsets, composes)


def _spelled(names: Iterable[str]) -> Iterator[bytes]:
    """The bytes each name stands for; none for a name with a character that stands for no byte."""
    byte_of = {ord(letter): byte for letter, byte in _letters_of_bytes()}
    letters = set(map(chr, byte_of))
    for name in names:
        yield name.translate(byte_of).encode("latin-1") if letters.issuperset(name) else b""


def _is_byte_level(pre_tokenizer: dict[str, Any] | None) -> bool:
    if pre_tokenizer is None:
        return False
    parts = pre_tokenizer["pretokenizers"] if pre_tokenizer["type"] == "Sequence" else [pre_tokenizer]
    kinds = {"ByteLevel", "Split", "Digits"}
    levels = [part for part in parts if part["type"] == "ByteLevel"]
    return bool(levels) and all(_keeps_bytes(part) for part in parts) and {part["type"] for part in parts} <= kinds


def _keeps_bytes(part: dict[str, Any]) -> bool:
    return part.get("add_prefix_space", False) is False and part.get("behavior", "Isolated") != "Removed"


def _letters_of_bytes() -> Iterator[tuple[str, int]]:
    """Each character of a byte-level vocabulary and the byte it stands for (GPT-2, Radford et al. 2019)."""
    # Bytes that print stand for themselves, the others take the code points behind U+00FF in order.
    spare = 0x100
    for byte in range(0x100):
        if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE:
            yield chr(byte), byte
        else:
            yield chr(spare), byte
            spare += 1
