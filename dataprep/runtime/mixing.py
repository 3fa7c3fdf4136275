"""Work out how often each source is taken, from what there is of it and what the pipeline file asks for."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from dataprep.config.mix import MixConfig
from dataprep.errors import ConfigError
from dataprep.wording import counted, shortened, some_of

# Figures are kept to so many digits: whatever differs behind them between two machines' arithmetic cannot show.
_DIGITS = 9


def settle_epochs(mix: MixConfig, available: Mapping[str, float], where: str) -> dict[str, float]:
    """Epochs of each source of `available` (tokens there are of it, estimated).

    With weights w the tokens of a source are `total * w / sum(w)`; with a temperature t its weight is
    `available ** (1 / t)`. The total is the configured one, or the largest that takes no source more than max_epochs
    times and none beyond its max_tokens. Where nothing is left of any source, all are taken once. Raises ConfigError,
    at `where`, if the configured total is larger, or a source is named that is not there, or one with a weight has no
    tokens.
    """
    if not any(available.values()):
        return dict.fromkeys(sorted(available), 1.0)
    check_sources(mix, available, where)
    caps = {name: entry.max_tokens for name, entry in mix.sources.items() if entry.max_tokens is not None}
    if mix.shares_out:
        taken = _shared_out(mix, available, caps, where)
        epochs = {name: taken[name] / tokens if tokens else 0.0 for name, tokens in available.items()}
    else:
        wanted = {name: entry.epochs for name, entry in mix.sources.items() if entry.epochs is not None}
        epochs = {
            name: min(wanted.get(name, 1.0), caps[name] / tokens if name in caps and tokens else wanted.get(name, 1.0))
            for name, tokens in available.items()
        }
    return {name: float(f"{epochs[name]:.{_DIGITS}g}") for name in sorted(epochs)}


def check_sources(mix: MixConfig, available: Mapping[str, float], where: str) -> None:
    """Raise ConfigError for a source that is named and not there, or that has text and no weight among others' weights.

    `available` are tokens, or any positive numbers for sources that have text.
    """
    unknown = sorted(set(mix.sources) - set(available))
    if unknown:
        close = get_close_matches(unknown[0], available, 1)
        mend = f"did you mean {shortened(close[0])}?" if close else f"they are {some_of(sorted(available))}"
        raise ConfigError(f"mix.sources: no input has the source {shortened(unknown[0])!r}", where=where, mend=mend)
    missing = sorted(name for name, tokens in available.items() if tokens and name not in mix.sources)
    if mix.weighted and missing:
        mend = "give every source a weight; 0 leaves it out"
        raise ConfigError(f"mix.sources: the source {shortened(missing[0])!r} has no weight", where=where, mend=mend)


def _shared_out(
    mix: MixConfig, available: Mapping[str, float], caps: Mapping[str, int], where: str
) -> dict[str, float]:
    """Tokens of each source."""
    if mix.weighted:
        weights = {name: float(entry.weight or 0.0) for name, entry in mix.sources.items()}
    else:
        weights = {name: tokens ** (1 / (mix.temperature or 1.0)) for name, tokens in available.items()}
    whole = sum(weights.values())
    shares = {name: weight / whole for name, weight in sorted(weights.items()) if weight}
    empty = [name for name in shares if not available[name]]
    if empty:
        mend = "give it the weight 0, or look at what its documents were dropped for"
        what = f"mix.sources: the source {shortened(empty[0])!r} has a weight, but no text is left of it"
        raise ConfigError(what, where=where, mend=mend)
    room = {name: min(available[name] * mix.max_epochs, caps.get(name, float("inf"))) / shares[name] for name in shares}
    largest = min(room.values(), default=0.0)
    if mix.tokens is None:
        total = largest
    elif mix.tokens <= largest:
        total = float(mix.tokens)
    else:
        raise _too_many(mix, min(room, key=lambda name: room[name]), available, shares, where)
    return {name: total * shares.get(name, 0.0) for name in available}


def _too_many(
    mix: MixConfig, scarcest: str, available: Mapping[str, float], shares: Mapping[str, float], where: str
) -> ConfigError:
    wanted = shares[scarcest] * (mix.tokens or 0)
    cap = mix.sources[scarcest].max_tokens if scarcest in mix.sources else None
    what = (
        f"{counted(mix.tokens or 0, 'token')} want {wanted:,.0f} of {scarcest}: "
        f"there are about {available[scarcest]:,.0f}, to be taken at most {mix.max_epochs:g} times"
    )
    if cap is not None and cap < available[scarcest] * mix.max_epochs:
        what = f"{counted(mix.tokens or 0, 'token')} want {wanted:,.0f} of {scarcest}, whose max_tokens is {cap:,}"
    return ConfigError(what, where=where, mend="lower mix.tokens, or raise mix.max_epochs, or change the weights")
