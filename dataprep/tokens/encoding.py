"""Texts to flat token ids by the reference library, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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


def encode_texts(backend: Backend, cutter: Cutter | None, texts: Sequence[str]) -> TokenBatch:
    """Encode texts as they are, without any special token; long ones in pieces where `cutter` proves that harmless."""
    flat: list[npt.NDArray[np.int32]] = []
    lengths = np.zeros(len(texts), np.int64)
    for batch in _work_batches(_pieces(texts, cutter)):
        encodings = backend.encode_batch_fast([piece for _, piece in batch], add_special_tokens=False)
        for (document, _), encoding in zip(batch, encodings, strict=True):
            ids = np.array(encoding.ids, np.int32)
            lengths[document] += len(ids)
            flat.append(ids)
    return TokenBatch(np.concatenate(flat) if flat else np.empty(0, np.int32), _offsets(lengths))


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
