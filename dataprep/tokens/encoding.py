"""Texts to flat token ids in bounded memory, by the reference library or by another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Backend

from dataprep.tokens.cuts import Cutter

# The library holds some 150 bytes a token while it encodes, so one call gets about this much text.
BATCH_BYTES = 1 << 20
# No character needs more UTF-8 bytes than 4, so a piece of this many stays within one call.
PIECE_CHARACTERS = BATCH_BYTES // 4


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Token ids of several documents: ids int32 [tokens], offsets int64 [documents + 1] into it."""

    ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


Encode = Callable[[list[str]], TokenBatch]


def hf_encode(backend: Backend) -> Encode:
    """The encoding of `tokenizers`, special tokens neither added nor recognised."""

    def encode(texts: list[str]) -> TokenBatch:
        return _batch([encoding.ids for encoding in backend.encode_batch_fast(texts, add_special_tokens=False)])

    return encode


def sentencepiece_encode(processor: Any) -> Encode:
    """The encoding of an opened SentencePiece model, by one thread."""

    def encode(texts: list[str]) -> TokenBatch:
        for text in texts:
            # The library would take a lone surrogate for another text.
            text.encode()
        return _batch(processor.encode(texts, num_threads=1))

    return encode


def _batch(lists: list[list[int]]) -> TokenBatch:
    ids = [np.array(each, np.int32) for each in lists]
    return _joined(ids, np.array([len(each) for each in ids], np.int64))


def encode_texts(encode: Encode, cutter: Cutter | None, texts: Sequence[str]) -> TokenBatch:
    """Encode texts as they are, in calls of bounded size; long ones in pieces where `cutter` proves that harmless."""
    flat: list[npt.NDArray[np.int32]] = []
    lengths = np.zeros(len(texts), np.int64)
    for batch in _work_batches(_pieces(texts, cutter)):
        tokens = encode([piece for _, piece in batch])
        np.add.at(lengths, [document for document, _ in batch], np.diff(tokens.offsets))
        flat.append(tokens.ids)
    return _joined(flat, lengths)


def _joined(ids: list[npt.NDArray[np.int32]], lengths: npt.NDArray[np.int64]) -> TokenBatch:
    return TokenBatch(np.concatenate(ids) if ids else np.empty(0, np.int32), _offsets(lengths))


def with_borders(plain: TokenBatch, eos_id: int, bos_id: int | None) -> TokenBatch:
    """Put eos after every document, and bos before it if there is one."""
    offsets = _offsets(np.diff(plain.offsets) + (1 if bos_id is None else 2))
    ids = np.empty(offsets[-1], np.int32)
    is_text = np.ones(len(ids), np.bool_)
    is_text[offsets[1:] - 1] = False
    ids[offsets[1:] - 1] = eos_id
    if bos_id is not None:
        is_text[offsets[:-1]] = False
        ids[offsets[:-1]] = bos_id
    ids[is_text] = plain.ids
    return TokenBatch(ids, offsets)


def _offsets(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _pieces(texts: Sequence[str], cutter: Cutter | None) -> Iterator[tuple[int, str]]:
    for document, text in enumerate(texts):
        if cutter is None or _most_bytes(text) <= BATCH_BYTES:
            yield document, text
            continue
        for piece in cutter.pieces(text, PIECE_CHARACTERS):
            yield document, piece


def _work_batches(pieces: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    batch: list[tuple[int, str]] = []
    size = 0
    for piece in pieces:
        weight = _most_bytes(piece[1])
        if batch and size + weight > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += weight
    if batch:
        yield batch


def _most_bytes(text: str) -> int:
    """Upper bound of the UTF-8 length, without encoding."""
    return len(text) if text.isascii() else 4 * len(text)
