"""Tokenizer: texts to token ids and back, with exactly one EOS a document and no control token out of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError
from dataprep.storage import disk_errors
from dataprep.tokens.config import FimConfig, TokenizerConfig
from dataprep.tokens.cuts import Cutter, cutter_for
from dataprep.tokens.encoding import Encode, TokenBatch, encode_texts, hf_encode, sentencepiece_encode, with_borders
from dataprep.tokens.fim_tokens import FimTokens
from dataprep.tokens.fingerprint import fingerprint
from dataprep.tokens.sentencepiece_library import open_processor, user_defined
from dataprep.tokens.source import Source
from dataprep.tokens.special import (
    SpecialTokens,
    check_bos,
    check_unspeakable,
    check_unspeakable_pieces,
    choose_special_tokens,
)
from dataprep.tokens.tokenizer_json import as_encoded, open_backend, parse_tokenizer_json, settle

HF, SENTENCEPIECE = "hf", "sentencepiece"
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

    `json` is the exact tokenizer.json to publish beside the shards, `model` the SentencePiece model if that and not the
    tokenizer.json says what the ids of a text are; `vocab_size` is the largest id + 1, added tokens
    included; `bos_id` None puts nothing before documents, `fim` None rearranges none; `allow_special` makes special
    tokens spelled in texts tokens, all but those that mark documents and their parts; `encoding_json` is the
    tokenizer.json in which just those tokens are special that stay text.
    """

    json: bytes = field(repr=False)
    model: bytes | None = field(repr=False)
    vocab_size: int
    eos_id: int
    bos_id: int | None
    pad_id: int
    fim: FimIds | None
    allow_special: bool
    encoding_json: bytes = field(repr=False, compare=False)
    _backend: Backend = field(repr=False, compare=False)
    _encode: Encode = field(repr=False, compare=False)
    _cutter: Cutter | None = field(repr=False, compare=False)

    # The backend's own pickle forgets that special tokens in text are text, so a copy is opened anew.
    def __reduce__(self) -> tuple[object, ...]:
        return open_settled, (self.json, self.model, self.special, self.allow_special)

    @property
    def reference(self) -> str:
        """The library whose ids are right: `hf` (tokenizers), or `sentencepiece` if there is a model."""
        return HF if self.model is None else SENTENCEPIECE

    @property
    def special(self) -> SpecialTokens:
        """Names of the tokens that mark documents; with `json` they make this tokenizer again."""
        eos, bos, pad = (self._name(token) for token in (self.eos_id, self.bos_id, self.pad_id))
        return SpecialTokens(
            eos, bos, pad, None if self.fim is None else FimTokens(*map(self._name, astuple(self.fim)))
        )

    @property
    def fingerprint(self) -> str:
        """xxh3-128 (hex) over all that changes ids; hashed anew at each call, a second for 150,000 tokens."""
        ids = {"eos": self.eos_id, "bos": self.bos_id, "pad": self.pad_id}
        return fingerprint(parse_tokenizer_json(self.json, "tokenizer.json"), self.model, ids, self.allow_special)

    @property
    def added_tokens(self) -> list[str]:
        """Every token added to the vocabulary, by id."""
        return [token.content for _, token in sorted(self._backend.get_added_tokens_decoder().items())]

    def encode(self, texts: Sequence[str]) -> TokenBatch:
        """Encode documents: text, then eos (and bos before it, if configured); an empty text gives these alone.

        Texts must be valid Unicode: a lone surrogate raises UnicodeEncodeError.
        """
        return self.bordered(self.encode_plain(texts))

    def encode_plain(self, texts: Sequence[str], encode: Encode | None = None) -> TokenBatch:
        """Encode texts alone, without eos and bos; by the reference library, or by `encode` in its place."""
        return encode_texts(encode or self._encode, self._cutter, texts)

    def bordered(self, plain: TokenBatch) -> TokenBatch:
        """Put eos (and bos before, if configured) to the ids of texts."""
        return with_borders(plain, self.eos_id, self.bos_id)

    def decode(self, ids: Sequence[int] | npt.NDArray[np.int32], *, show_special: bool = False) -> str:
        """Text of token ids; special tokens are left out, or written by name if `show_special`."""
        return str(self._backend.decode(np.asarray(ids, np.int32).tolist(), skip_special_tokens=not show_special))

    def _name(self, token: int | None) -> Any:
        return None if token is None else self._backend.id_to_token(token)


def load_tokenizer(config: TokenizerConfig, source: Source, fim: FimConfig | None = None) -> Tokenizer:
    """Make the run's tokenizer from what the configured files hold.

    Raises ConfigError naming the file and the mend if it is not a tokenizer, its special tokens cannot mark documents
    and, with `fim`, their parts, it puts tokens before texts by itself and the configuration does not decide on bos,
    an id is too large, or its SentencePiece model would not find tokens that are to be found in texts.
    """
    where = "tokenizer" if config.path is None else str(config.path)
    value = parse_tokenizer_json(source.json, where)
    names = choose_special_tokens(config, value, source.marks, where, fim)
    settled = settle(value, [*config.add_special_tokens, *names.names()], where)
    if source.model is not None:
        _check_model_finds_all(config, source.model, settled, where)
    tokenizer = open_settled(settled, source.model, names, config.allow_special)
    if tokenizer.vocab_size > _INT32_MAX:
        raise ConfigError(f"token id {tokenizer.vocab_size - 1} does not fit int32", where=where)
    if config.vocab_size is not None and tokenizer.vocab_size > config.vocab_size:
        what = f"token id {tokenizer.vocab_size - 1} is not below tokenizer.vocab_size {config.vocab_size}"
        raise ConfigError(what, where=where, mend="declare the size of the model's embedding, or leave vocab_size out")
    check_bos(config, tokenizer._backend, source.marks, where)
    if source.model is None:
        check_unspeakable(tokenizer._backend, value["model"], names.names(), where)
    else:
        check_unspeakable_pieces(tokenizer._backend, open_processor(source.model, where), names.names(), where)
    return tokenizer


def open_settled(settled: bytes, model: bytes | None, names: SpecialTokens, allow_special: bool) -> Tokenizer:
    """Make the tokenizer from the `json`, `model`, `special` and `allow_special` of one that was checked before."""
    value = parse_tokenizer_json(settled, "tokenizer.json")
    special = [token["content"] for token in value["added_tokens"] if token["special"]]
    # The three that mark documents stay text: a text must not end, begin or pad a document.
    encoding_json = as_encoded(settled, set(special) - set(names.names()) if allow_special else ())
    backend = open_backend(encoding_json)
    fim = None if names.fim is None else FimIds(*map(backend.token_to_id, astuple(names.fim)))
    return Tokenizer(
        json=settled,
        model=model,
        vocab_size=max(backend.get_vocab(with_added_tokens=True).values()) + 1,
        eos_id=backend.token_to_id(names.eos),
        bos_id=None if names.bos is None else backend.token_to_id(names.bos),
        pad_id=backend.token_to_id(names.pad),
        fim=fim,
        allow_special=allow_special,
        encoding_json=encoding_json,
        _backend=backend,
        _encode=reference_encode(backend, model),
        # The proof that a cut is harmless is about the tokenizer.json.
        _cutter=cutter_for(value) if model is None else None,
    )


def read_settled(files: Sequence[Path], names: SpecialTokens, allow_special: bool) -> Tokenizer:
    """Make the tokenizer from its files: the tokenizer.json, and the SentencePiece model if it has one."""
    with disk_errors(files[0]):
        settled, *models = [path.read_bytes() for path in files]
    return open_settled(settled, models[0] if models else None, names, allow_special)


def reference_encode(backend: Backend, model: bytes | None) -> Encode:
    """The encoding that is right: by the SentencePiece model if there is one, else by the opened tokenizer.json."""
    return hf_encode(backend) if model is None else sentencepiece_encode(open_processor(model, "tokenizer.model"))


def _check_model_finds_all(config: TokenizerConfig, model: bytes, settled: bytes, where: str) -> None:
    """Raise ConfigError for tokens that the tokenizer.json would find in texts and the SentencePiece model not."""
    if config.allow_special:
        what = "SentencePiece, which encodes for this model, takes special tokens in texts as text"
        raise ConfigError(what, where=where, mend="leave tokenizer.allow_special out, or give a tokenizer.json")
    found = {token["content"] for token in parse_tokenizer_json(settled, where)["added_tokens"] if not token["special"]}
    if unknown := sorted(found - user_defined(model, where)):
        what = f"{unknown[0]!r} is to be found in texts, but is no user-defined symbol of the SentencePiece model"
        raise ConfigError(what, where=where, mend="declare the token special, or give a tokenizer.json")
