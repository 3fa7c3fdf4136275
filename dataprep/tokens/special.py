"""Special tokens: which ids end, begin and pad, and proof that no text can spell them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError
from dataprep.tokens.config import TokenizerConfig

# Names under which published tokenizers keep a padding token.
PAD_NAMES = ("<|pad|>", "[PAD]", "<pad>")
ADD_PAD = 'add one: tokenizer: {add_special_tokens: ["<|pad|>"], pad: "<|pad|>"}'


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Names of the tokens that mark documents; `bos` None puts nothing before a document."""

    eos: str
    bos: str | None
    pad: str

    def names(self) -> list[str]:
        """Every name, eos first."""
        return [self.eos, *([self.bos] if self.bos is not None else []), self.pad]


def choose_special_tokens(config: TokenizerConfig, value: dict[str, Any], where: str) -> SpecialTokens:
    """Settle the special tokens from the configuration and the parsed tokenizer.json `value`.

    Raises ConfigError when eos, bos or pad is neither in the file nor in `add_special_tokens`, or pad is also eos or
    bos.
    """
    added = value.get("added_tokens") or []
    special = [*(token["content"] for token in added if token["special"]), *config.add_special_tokens]
    known = {*_vocabulary(value["model"]), *(token["content"] for token in added), *config.add_special_tokens}
    for key, name in (("eos", config.eos), ("bos", config.bos), ("pad", config.pad)):
        if name is not None and name not in known:
            _refuse_unknown(key, name, special, where)
    tokens = SpecialTokens(config.eos, config.bos, config.pad or _own_pad(value, known, _free(special, config), where))
    for key, name in (("eos", tokens.eos), ("bos", tokens.bos)):
        if tokens.pad == name:
            what = f"tokenizer.pad and tokenizer.{key} are both {name!r}, but padding must be told from text by its id"
            raise ConfigError(what, where=where, mend=ADD_PAD)
    return tokens


def check_unspeakable(backend: Backend, model: dict[str, Any], names: list[str], where: str) -> None:
    """Raise ConfigError if encoding some text could yield the id of one of the special tokens `names`.

    A BPE can only form a token by a merge that results in it, or by finding the token itself as a whole word.
    """
    merged = _merge_results(model) if model.get("type") == "BPE" else set()
    for name in names:
        spelled = backend.encode(name, add_special_tokens=False).ids
        if name in merged or backend.token_to_id(name) in spelled:
            what = f"text that spells {name!r} would be encoded as the special token"
            raise ConfigError(what, where=where, mend="choose another special token, or add one by add_special_tokens")


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


def _own_pad(value: dict[str, Any], known: set[str], special: list[str], where: str) -> str:
    padding = value.get("padding") or {}
    candidates = [padding.get("pad_token"), *PAD_NAMES]
    found = next((name for name in candidates if name in known), None)
    if found is None:
        mend = f"{ADD_PAD}, or set tokenizer.pad to one of {_listing(special)}" if special else ADD_PAD
        raise ConfigError("the tokenizer has no padding token", where=where, mend=mend)
    return str(found)


def _free(special: list[str], config: TokenizerConfig) -> list[str]:
    return [name for name in special if name not in (config.eos, config.bos)]


def _listing(names: list[str]) -> str:
    """Up to twelve names, quoted, for a message."""
    shown = ", ".join(repr(name) for name in names[:12])
    return (f"{shown} and {len(names) - 12} more" if len(names) > 12 else shown) or "none"
