"""Token ids back to text, by the tokenizer stored with the shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dataprep.errors import DamageError
from dataprep.shards.manifest import Manifest, SpecialToken, TokenizerFacts
from dataprep.tokens.fingerprint import fingerprint

Decoder = Callable[[npt.NDArray[Any]], str]


def open_decoder(directory: Path, manifest: Manifest) -> Decoder:
    """Load the set's tokenizer; the decoder maps ids to text and keeps special tokens.

    Both raise DamageError: the loader for a broken file or another tokenizer than the manifest's, the decoder for ids
    the tokenizer cannot have made.
    """
    # Here and not above: counting and hashing need no tokenizer.
    from tokenizers import Tokenizer

    path = directory / manifest.tokenizer.file
    check_fingerprint(path, manifest.tokenizer)
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


def check_fingerprint(path: Path, facts: TokenizerFacts) -> None:
    """Raise DamageError if the tokenizer.json at `path` and the model beside it have not the manifest's fingerprint."""
    ids = {"eos": facts.eos.id, "bos": facts.bos.id if facts.bos else None, "pad": facts.pad.id}
    try:
        model = None if facts.model is None else (path.parent / facts.model).read_bytes()
        found = fingerprint(json.loads(path.read_bytes()), model, ids, facts.allow_special)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DamageError(f"cannot be loaded: {error}", where=str(path)) from error
    if found != facts.fingerprint:
        what = f"is another tokenizer than made the ids: fingerprint {found}, the manifest says {facts.fingerprint}"
        raise DamageError(what, where=str(path), mend="restore the file or run the pipeline again with --force")


def in_vocabulary(ids: npt.NDArray[Any], manifest: Manifest) -> bool:
    """Whether every id is one of the tokenizer's."""
    return not len(ids) or bool(ids.min() >= 0 and ids.max() < manifest.tokenizer.used_vocab_size)


def document_text(ids: npt.NDArray[Any], manifest: Manifest, decode: Decoder) -> str | None:
    """Text of a whole document's ids, or None if they lack the special tokens that begin and end a document."""
    content = content_ids(ids, manifest)
    return None if content is None else decode(content)


def rearranged_text(ids: npt.NDArray[Any], manifest: Manifest, decode: Decoder) -> str | None:
    """Text of a document that was rearranged to fill in the middle, its parts put back in order.

    None if the ids lack the special tokens that begin and end a document or stand before its parts.
    """
    content, fim = content_ids(ids, manifest), manifest.pack.fim
    if content is None or fim is None:
        return None
    parts = put_back(content, fim.prefix.id, fim.middle.id, fim.suffix.id)
    return None if parts is None else "".join(map(decode, parts))


def put_back(ids: npt.NDArray[Any], prefix: int, middle: int, suffix: int) -> tuple[npt.NDArray[Any], ...] | None:
    """The parts of a rearranged document in the order of its text, by the ids of the tokens that stand before them.

    Both orders read alike: what stands between prefix and suffix token, what is behind the middle token, what is
    between suffix and middle token. With the suffix first, the first is empty and the second is prefix and middle.
    Returns None unless each of the tokens stands once, the prefix token first and the middle token last.
    """
    places = [np.flatnonzero(ids == token) for token in (prefix, suffix, middle)]
    if any(len(found) != 1 for found in places):
        return None
    before_prefix, before_suffix, before_middle = (int(found[0]) for found in places)
    if not before_prefix == 0 < before_suffix < before_middle:
        return None
    return ids[1:before_suffix], ids[before_middle + 1 :], ids[before_suffix + 1 : before_middle]


def content_ids(ids: npt.NDArray[Any], manifest: Manifest) -> npt.NDArray[Any] | None:
    """Ids between the special tokens that begin and end a document, or None if those are not there."""
    begin: Sequence[SpecialToken] = [manifest.tokenizer.bos] if manifest.tokenizer.bos else []
    eos = manifest.tokenizer.eos.id
    if len(ids) <= len(begin) or ids[-1] != eos or (begin and ids[0] != begin[0].id):
        return None
    return ids[len(begin) : -1]
