"""Special tokens: which ids end, begin and pad, and proof that no text can spell them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError
from dataprep.tokens.config import DEFAULT_EOS, FimConfig, TokenizerConfig
from dataprep.tokens.fim_tokens import FimTokens, choose_fim_tokens
from dataprep.tokens.source import DocumentMarks

# Names under which published tokenizers keep a padding token.
PAD_NAMES = ("<|pad|>", "[PAD]", "<pad>")
ADD_PAD = 'add one: tokenizer: {add_special_tokens: ["<|pad|>"], pad: "<|pad|>"}'


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Names of the tokens that mark documents, and their parts if some are to be filled in the middle.

    `bos` None puts nothing before a document.
    """

    eos: str
    bos: str | None
    pad: str
    fim: FimTokens | None = None

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> SpecialTokens:
        """Make it from what `asdict` gave, read back from JSON."""
        fim = facts["fim"]
        return cls(**{**facts, "fim": None if fim is None else FimTokens(**fim)})

    def names(self) -> list[str]:
        """Every name, eos first."""
        fim = () if self.fim is None else (self.fim.prefix, self.fim.middle, self.fim.suffix)
        return [self.eos, *([self.bos] if self.bos is not None else []), self.pad, *fim]


def choose_special_tokens(
    config: TokenizerConfig, value: dict[str, Any], own: DocumentMarks, where: str, fim: FimConfig | None = None
) -> SpecialTokens:
    """Settle the special tokens from the configuration, the parsed tokenizer.json `value` and its files' `own` names.

    Raises ConfigError when eos, bos, pad or one of the tokens of `fim` is neither in the file nor in
    `add_special_tokens`, or one of them has two tasks that must be told apart.
    """
    eos = config.eos or own.eos or DEFAULT_EOS
    added = value.get("added_tokens") or []
    special = [*(token["content"] for token in added if token["special"]), *config.add_special_tokens]
    known = {*_vocabulary(value["model"]), *(token["content"] for token in added), *config.add_special_tokens}
    for key, name in (("eos", eos), ("bos", config.bos), ("pad", config.pad)):
        if name is not None and name not in known:
            _refuse_unknown(key, name, special, where)
    # Many folders name their eos as padding too, which is no padding of their own.
    own_pad = own.pad if own.pad not in (eos, config.bos) else None
    free = [name for name in special if name not in (eos, config.bos)]
    tokens = SpecialTokens(eos, config.bos, config.pad or _own_pad(value, own_pad, known, free, where))
    for key, name in (("eos", tokens.eos), ("bos", tokens.bos)):
        if tokens.pad == name:
            what = f"tokenizer.pad and tokenizer.{key} are both {name!r}, but padding must be told from text by its id"
            raise ConfigError(what, where=where, mend=ADD_PAD)
    return tokens if fim is None else replace(tokens, fim=choose_fim_tokens(fim, known, tokens.names(), where))


def check_unspeakable(backend: Backend, model: dict[str, Any], names: list[str], where: str) -> None:
    """Raise ConfigError if encoding some text could yield the id of one of the special tokens `names`.

    A BPE can only form a token by a merge that results in it, or by finding the token itself as a whole word.
    """
    merged = _merge_results(model) if model.get("type") == "BPE" else set()
    for name in names:
        spelled = backend.encode(name, add_special_tokens=False).ids
        if name in merged or backend.token_to_id(name) in spelled:
            _refuse_speakable(f"text that spells {name!r} would be encoded as the special token", where)


def check_unspeakable_pieces(backend: Backend, processor: Any, names: list[str], where: str) -> None:
    """Raise ConfigError if SentencePiece could encode some text as one of the special tokens `names`.

    It never does so with its control pieces and with ids it does not have.
    """
    for name in names:
        token = backend.token_to_id(name)
        if token < processor.vocab_size() and not processor.is_control(token):
            _refuse_speakable(f"some text would be encoded as the special token {name!r}", where)


def _refuse_speakable(what: str, where: str) -> None:
    raise ConfigError(what, where=where, mend="choose another special token, or add one by add_special_tokens")


def check_bos(config: TokenizerConfig, backend: Backend, own: DocumentMarks, where: str) -> None:
    """Raise ConfigError if the tokenizer by itself puts tokens before a text and the pipeline file does not decide.

    Its post-processor never runs: bos comes from the pipeline file alone, so that it is neither lost nor doubled.
    """
    if config.decides_bos:
        return
    plain = backend.encode("a", add_special_tokens=False).ids
    marked = backend.encode("a", add_special_tokens=True).ids
    before = marked[: next((at for at in range(len(marked)) if marked[at : at + len(plain)] == plain), 0)]
    name = backend.id_to_token(before[0]) if before else own.bos
    if name is not None:
        quoted = json.dumps(name, ensure_ascii=False)
        mend = f"set tokenizer.bos: {quoted} to have it, or tokenizer.bos: null to go without"
        raise ConfigError(f"the tokenizer puts {name!r} before every text by itself", where=where, mend=mend)


def _vocabulary(model: dict[str, Any]) -> list[str]:
    vocabulary = model.get("vocab") or {}
    # Unigram models list [token, score] pairs, all others map tokens to ids.
    return list(vocabulary) if isinstance(vocabulary, dict) else [str(token) for token, _ in vocabulary]


def _merge_results(model: dict[str, Any]) -> set[str]:
    merges = model.get("merges") or []
    return {merge.replace(" ", "", 1) if isinstance(merge, str) else "".join(merge) for merge in merges}


def _refuse_unknown(key: str, name: str, special: list[str], where: str) -> None:
    mend = f"its special tokens are {_listing(special)}; set tokenizer.{key} to one, or name it in add_special_tokens"
    raise ConfigError(f"tokenizer.{key} {name!r} is not in the vocabulary", where=where, mend=mend)


def _own_pad(value: dict[str, Any], own_pad: str | None, known: set[str], special: list[str], where: str) -> str:
    padding = value.get("padding") or {}
    candidates = [own_pad, padding.get("pad_token"), *PAD_NAMES]
    found = next((name for name in candidates if name in known), None)
    if found is None:
        mend = f"{ADD_PAD}, or set tokenizer.pad to one of {_listing(special)}" if special else ADD_PAD
        raise ConfigError("the tokenizer has no padding token", where=where, mend=mend)
    return str(found)


def _listing(names: list[str]) -> str:
    """Up to twelve names, quoted, for a message."""
    shown = ", ".join(repr(name) for name in names[:12])
    return (f"{shown} and {len(names) - 12} more" if len(names) > 12 else shown) or "none"
