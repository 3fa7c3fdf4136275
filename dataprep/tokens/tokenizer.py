"""Tokenizer: texts to token ids and back, with exactly one EOS a document and no control token out of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError
from dataprep.storage import hash_value
from dataprep.tokens.config import FimConfig, TokenizerConfig
from dataprep.tokens.cuts import Cutter, cutter_for
from dataprep.tokens.encoding import TokenBatch, encode_texts, with_borders
from dataprep.tokens.fim_tokens import FimTokens
from dataprep.tokens.special import SpecialTokens, check_unspeakable, choose_special_tokens
from dataprep.tokens.tokenizer_json import open_backend, parse_tokenizer_json, settle

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FimIds:
    """Ids of the tokens before the parts of a document that is to be filled in the middle."""

    prefix: int
    middle: int
    suffix: int


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """One tokenizer as a run uses it.

    `json` is the exact tokenizer.json to publish beside the shards; `fingerprint` (xxh3-128 hex) hashes all that
    changes ids; `vocab_size` is the largest id + 1, added tokens included; `bos_id` None puts nothing before documents,
    `fim` None rearranges none.
    """

    json: bytes = field(repr=False)
    fingerprint: str
    vocab_size: int
    eos_id: int
    bos_id: int | None
    pad_id: int
    fim: FimIds | None
    _backend: Backend = field(repr=False, compare=False)
    _cutter: Cutter | None = field(repr=False, compare=False)

    # The backend's own pickle forgets that special tokens in text are text, so a copy is opened anew.
    def __reduce__(self) -> tuple[object, ...]:
        return open_settled, (self.json, self.special)

    @property
    def special(self) -> SpecialTokens:
        """Names of the tokens that mark documents; with `json` they make this tokenizer again."""
        eos, bos, pad = (self._name(token) for token in (self.eos_id, self.bos_id, self.pad_id))
        return SpecialTokens(
            eos, bos, pad, None if self.fim is None else FimTokens(*map(self._name, astuple(self.fim)))
        )

    def encode(self, texts: Sequence[str]) -> TokenBatch:
        """Encode documents: text, then eos (and bos before it, if configured); an empty text gives these alone.

        Texts must be valid Unicode: a lone surrogate raises UnicodeEncodeError.
        """
        return with_borders(self.encode_plain(texts), self.eos_id, self.bos_id)

    def encode_plain(self, texts: Sequence[str]) -> TokenBatch:
        """Encode texts as they are, without any special token."""
        return encode_texts(self._backend, self._cutter, texts)

    def decode(self, ids: Sequence[int] | npt.NDArray[np.int32], *, show_special: bool = False) -> str:
        """Text of token ids; special tokens are left out, or written by name if `show_special`."""
        return str(self._backend.decode(np.asarray(ids, np.int32).tolist(), skip_special_tokens=not show_special))

    def is_lossless(self, texts: Sequence[str]) -> bool:
        """Whether decoding gives each of these texts back, character for character."""
        tokens = self.encode(texts)
        bounds = zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)
        return all(self.decode(tokens.ids[a:b]) == text for (a, b), text in zip(bounds, texts, strict=True))

    def _name(self, token: int | None) -> Any:
        return None if token is None else self._backend.id_to_token(token)


def load_tokenizer(config: TokenizerConfig, json_text: bytes, fim: FimConfig | None = None) -> Tokenizer:
    """Make the run's tokenizer from a tokenizer.json (bytes) and the configuration's special tokens.

    Raises ConfigError naming the file and the mend if it is not a tokenizer, or its special tokens cannot mark
    documents and, with `fim`, their parts.
    """
    where = "tokenizer" if config.path is None else str(config.path)
    value = parse_tokenizer_json(json_text, where)
    names = choose_special_tokens(config, value, where, fim)
    settled = settle(value, [*config.add_special_tokens, *names.names()], where)
    tokenizer = open_settled(settled, names)
    if tokenizer.vocab_size > _INT32_MAX:
        raise ConfigError(f"token id {tokenizer.vocab_size - 1} does not fit int32", where=where)
    check_unspeakable(tokenizer._backend, value["model"], names.names(), where)
    return tokenizer


def open_settled(settled: bytes, names: SpecialTokens) -> Tokenizer:
    """Make the tokenizer from the `json` and `special` of one that was loaded and checked before."""
    value = parse_tokenizer_json(settled, "tokenizer.json")
    backend = open_backend(settled)
    ids = {key: _id(backend, name) for key, name in (("eos", names.eos), ("bos", names.bos), ("pad", names.pad))}
    fim = None if names.fim is None else FimIds(*map(backend.token_to_id, astuple(names.fim)))
    return Tokenizer(
        json=settled,
        fingerprint=_fingerprint(value, ids, fim),
        vocab_size=max(backend.get_vocab(with_added_tokens=True).values()) + 1,
        eos_id=backend.token_to_id(names.eos),
        bos_id=ids["bos"],
        pad_id=backend.token_to_id(names.pad),
        fim=fim,
        _backend=backend,
        _cutter=cutter_for(value),
    )


def _id(backend: Backend, name: str | None) -> int | None:
    return None if name is None else backend.token_to_id(name)


def _fingerprint(value: dict[str, Any], ids: dict[str, int | None], fim: FimIds | None) -> str:
    """The post-processor is left out: it is never run, eos and bos are put by us."""
    parts = {key: value[key] for key in ("model", "normalizer", "pre_tokenizer", "added_tokens")}
    more = {} if fim is None else {"fim": asdict(fim)}
    return hash_value({**parts, **ids, **more, "special_tokens_in_text": "text"})
