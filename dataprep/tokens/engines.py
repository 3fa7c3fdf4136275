"""Engines: libraries that encode. The reference defines the ids; a fast one is used only as far as it proves itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from dataprep.tokens.encoding import TokenBatch
from dataprep.tokens.spelling import Spelling
from dataprep.tokens.tokenizer import Tokenizer
from dataprep.wording import counted

FASTOKENS = "fastokens"


class EngineUnusable(Exception):
    """The fast engine is not installed, or cannot do what this tokenizer asks for."""


class EngineFails(Exception):
    """The fast engine gave no ids at all for some texts."""


class EngineDiffers(Exception):
    """The fast engine gave other ids than the reference; `texts` are xxh3-128 (hex) of the texts, sorted."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__(f"other ids than the reference for {counted(len(texts), 'text')}, the first {texts[0]}")
        self.texts = tuple(texts)


def fastokens_version() -> str | None:
    """The installed version, None if there is none."""
    try:
        return version(FASTOKENS)
    except PackageNotFoundError:
        return None


class Fastokens:
    """fastokens, opened with a settled tokenizer.json (bytes). Raises EngineUnusable."""

    def __init__(self, settled: bytes) -> None:
        installed = fastokens_version()
        if installed is None:
            raise EngineUnusable("fastokens is not installed")
        self.identity = f"{FASTOKENS} {installed}"
        try:
            from fastokens._native import Tokenizer as Native

            self._native: Any = Native.from_json_str(settled.decode())
        # ImportError on a platform it has no machine code for; the library raises ValueError for the rest.
        except (ImportError, ValueError) as error:
            raise EngineUnusable(f"{self.identity} cannot open this tokenizer: {error}") from error

    def encode(self, texts: list[str]) -> TokenBatch:
        """Encode texts, special tokens in them as text. Raises EngineFails."""
        try:
            ids, offsets = self._native.encode_batch_flat(texts, split_special_tokens=True)
        except (KeyboardInterrupt, SystemExit):
            raise
        # Rust panics come through as BaseException.
        except BaseException as error:
            raise EngineFails(str(error)) from error
        return TokenBatch(np.frombuffer(ids, np.int32), np.frombuffer(offsets, np.int64))


@dataclass(slots=True)
class Checks:
    """Documents a fast engine encoded, how many of them their tokens spell, how many the reference encoded too; and
    those it failed at, which the reference encoded alone.
    """

    documents: int = 0
    spelled: int = 0
    compared: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Encoded:
    """Tokens of documents; `exact` bool [documents] says whose tokens decode to its very text."""

    tokens: TokenBatch
    exact: npt.NDArray[np.bool_]


@dataclass(slots=True)
class Encoder:
    """Encodes documents, by the reference or by a fast engine under watch.

    What a fast engine's tokens do not spell, where the vocabulary is bytes, and one document in `check_every` by
    content hash, is encoded by the reference too, and must be equal.
    """

    tokenizer: Tokenizer
    engine: Fastokens | None
    check_every: int
    spelling: Spelling | None = field(repr=False)
    checks: Checks = field(default_factory=Checks)

    def encode(self, text: pa.LargeStringArray, hashes: pa.FixedSizeBinaryArray) -> Encoded:
        """Encode documents, eos and bos included; `hashes` are their xxh3-128, binary(16).

        Raises EngineDiffers if the reference gives other ids than the fast engine.
        """
        plain = self.encode_plain(text, hashes)
        return Encoded(self.tokenizer.bordered(plain.tokens), plain.exact)

    def encode_plain(self, text: pa.LargeStringArray, hashes: pa.FixedSizeBinaryArray) -> Encoded:
        """Encode texts alone, as `encode` does, without eos and bos."""
        texts = text.to_pylist()
        plain = self._fast(texts)
        if plain is None:
            plain = self.tokenizer.encode_plain(texts)
            return Encoded(plain, self._exact(plain, text))
        exact = self._exact(plain, text)
        suspects = _first_words(hashes) % np.uint64(self.check_every) == 0
        if self.spelling is not None:
            suspects |= ~self.spelling.spells_composed(plain, text, exact)
        chosen = np.flatnonzero(suspects)
        wrong = differing(self.tokenizer, plain, texts, chosen)
        if wrong:
            raise EngineDiffers(sorted(hashes[document].as_py().hex() for document in wrong))
        self.checks.documents += len(texts)
        self.checks.spelled += 0 if self.spelling is None else int(exact.sum())
        self.checks.compared += len(chosen)
        return Encoded(plain, exact)

    def _fast(self, texts: list[str]) -> TokenBatch | None:
        if self.engine is None:
            return None
        try:
            return self.tokenizer.encode_plain(texts, self.engine.encode)
        except EngineFails:
            self.checks.failed += len(texts)
            return None

    def _exact(self, plain: TokenBatch, text: pa.LargeStringArray) -> npt.NDArray[np.bool_]:
        if self.spelling is not None:
            return self.spelling.spells(plain, text)
        pairs = enumerate(text.to_pylist())
        return np.array([self.tokenizer.decode(_of(plain, number)) == entry for number, entry in pairs], np.bool_)


def differing(
    tokenizer: Tokenizer, plain: TokenBatch, texts: Sequence[str], chosen: npt.NDArray[np.int64]
) -> list[int]:
    """Numbers of the `chosen` documents for which the reference gives other ids than `plain` holds."""
    reference = tokenizer.encode_plain([texts[document] for document in chosen])
    return [
        int(document)
        for number, document in enumerate(chosen)
        if not np.array_equal(_of(plain, int(document)), _of(reference, number))
    ]


def _of(tokens: TokenBatch, document: int) -> npt.NDArray[np.int32]:
    return tokens.ids[tokens.offsets[document] : tokens.offsets[document + 1]]


def _first_words(hashes: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint64]:
    words = np.frombuffer(hashes.buffers()[1], ">u8").reshape(-1, 2)
    return words[hashes.offset : hashes.offset + len(hashes), 0].astype(np.uint64)


def prove(tokenizer: Tokenizer, engine: Fastokens, texts: Sequence[str], reference: TokenBatch) -> None:
    """Compare the engine with `reference`, the plain ids of `texts`. Raises EngineDiffers, EngineUnusable."""
    try:
        plain = tokenizer.encode_plain(texts, engine.encode)
    except EngineFails as error:
        raise EngineUnusable(f"{engine.identity} failed: {error}") from error
    wrong = [i for i in range(len(texts)) if not np.array_equal(_of(plain, i), _of(reference, i))]
    if wrong:
        raise EngineDiffers(sorted(xxhash.xxh3_128_hexdigest(texts[i].encode()) for i in wrong))
