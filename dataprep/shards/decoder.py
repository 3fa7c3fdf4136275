"""Token ids back to text, by the tokenizer stored with the shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from dataprep.errors import DamageError
from dataprep.shards.manifest import Manifest, SpecialToken

Decoder = Callable[[npt.NDArray[Any]], str]


def open_decoder(directory: Path, manifest: Manifest) -> Decoder:
    """Load the set's tokenizer; the decoder maps ids to text and keeps special tokens.

    Both raise DamageError: the loader for a broken file, the decoder for ids the tokenizer cannot have made.
    """
    # Here and not above: counting and hashing need no tokenizer.
    from tokenizers import Tokenizer

    path = directory / manifest.tokenizer.file
    try:
        tokenizer = Tokenizer.from_file(str(path))
    # tokenizers raises bare Exception for every fault of the file.
    except Exception as error:
        raise DamageError(f"cannot be loaded: {error}", where=str(path)) from error

    def decode(ids: npt.NDArray[Any]) -> str:
        if not in_vocabulary(ids, manifest):
            raise DamageError(
                "its rows hold ids outside the vocabulary", where=str(directory), mend="run dataprep verify"
            )
        return str(tokenizer.decode(ids.tolist(), skip_special_tokens=False))

    return decode


def in_vocabulary(ids: npt.NDArray[Any], manifest: Manifest) -> bool:
    """Whether every id is one of the tokenizer's."""
    return not len(ids) or bool(ids.min() >= 0 and ids.max() < manifest.tokenizer.vocab_size)


def document_text(ids: npt.NDArray[Any], manifest: Manifest, decode: Decoder) -> str | None:
    """Text of a whole document's ids, or None if they lack the special tokens that begin and end a document."""
    begin: Sequence[SpecialToken] = [manifest.tokenizer.bos] if manifest.tokenizer.bos else []
    eos = manifest.tokenizer.eos.id
    if len(ids) <= len(begin) or ids[-1] != eos or (begin and ids[0] != begin[0].id):
        return None
    return decode(ids[len(begin) : -1])
