"""Which special tokens stand before the parts of a document that is to be filled in the middle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass

from dataprep.errors import ConfigError
from dataprep.tokens.config import FimConfig, TokenizerConfig

_KEYS = "pack.fim.prefix, pack.fim.middle and pack.fim.suffix"


@dataclass(frozen=True, slots=True)
class FimTokens:
    """Names of the tokens before the three parts."""

    prefix: str
    middle: str
    suffix: str


# As their published tokenizers name them. DeepSeek calls what is to be filled the hole, and the suffix follows it.
FAMILIES: Mapping[str, FimTokens] = {
    "Qwen": FimTokens("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    "StarCoder": FimTokens("<fim_prefix>", "<fim_middle>", "<fim_suffix>"),
    "DeepSeek": FimTokens("<｜fim▁begin｜>", "<｜fim▁end｜>", "<｜fim▁hole｜>"),
    "Code Llama": FimTokens("▁<PRE>", "▁<MID>", "▁<SUF>"),
}


def choose_fim_tokens(fim: FimConfig, known: Collection[str], others: Collection[str], where: str) -> FimTokens:
    """Take the configured tokens, else those of the one family whose tokens are all among the `known`.

    Raises ConfigError when a token is not known, is one of the `others` or has two tasks, or no single family is found.
    """
    if fim.prefix is None or fim.middle is None or fim.suffix is None:
        return _of_a_family(known, where)
    tokens = FimTokens(fim.prefix, fim.middle, fim.suffix)
    names = astuple(tokens)
    unknown = [name for name in names if name not in known]
    if unknown:
        mend = "name special tokens it has, or add them by tokenizer.add_special_tokens"
        raise ConfigError(f"{_KEYS}: {unknown[0]!r} is not in the vocabulary", where=where, mend=mend)
    twice = [name for name in names if names.count(name) > 1 or name in others]
    if twice:
        mend = "name three tokens that are used for nothing else"
        raise ConfigError(f"{_KEYS}: {twice[0]!r} has another task too", where=where, mend=mend)
    return tokens


def check_fim_of_trained(config: TokenizerConfig, fim: FimConfig | None) -> None:
    """Raise the ConfigError of `choose_fim_tokens` if a tokenizer that is still to be trained will lack the tokens."""
    if config.train is not None and fim is not None:
        marks = [name for name in (config.eos, config.bos, config.pad) if name is not None]
        choose_fim_tokens(fim, {*marks, *config.add_special_tokens}, marks, "tokenizer")


def _of_a_family(known: Collection[str], where: str) -> FimTokens:
    found = {family: tokens for family, tokens in FAMILIES.items() if all(name in known for name in astuple(tokens))}
    if len(found) == 1:
        return next(iter(found.values()))
    which = f"those of {' and '.join(found)}" if found else "none of a known family"
    mend = f"name them by {_KEYS}, and add those it lacks by tokenizer.add_special_tokens"
    raise ConfigError(f"the tokenizer has {which} to fill in the middle", where=where, mend=mend)
