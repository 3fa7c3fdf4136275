"""The `mix:` part of a pipeline file: how much of each source goes into the shards."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from dataprep.step import Frozen

_MAX_EPOCHS = 100
# Between them shares stay numbers.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-9, 1e9
_Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SourceMix(Frozen):
    """How much of one source is taken."""

    weight: _Finite | None = Field(
        None, le=_MOST_WEIGHT, description="Its share of the tokens, relative to the other weights."
    )
    epochs: _Finite | None = Field(
        None,
        le=_MAX_EPOCHS,
        description="How often its documents are taken; 1.5: all once and half of them again, 0.1: a tenth of them.",
    )
    max_tokens: int | None = Field(None, ge=1, description="At most about so many of its tokens, repeats included.")

    @field_validator("weight")
    @classmethod
    def _told_from_nothing(cls, weight: float | None) -> float | None:
        if weight and weight < _LEAST_WEIGHT:
            raise ValueError(f"must be 0 or at least {_LEAST_WEIGHT:g}, not {weight:g}")
        return weight


class MixConfig(Frozen):
    """How much of each source is taken: by epochs, by weights, or by size under a temperature.

    Temperature after Devlin et al., github.com/google-research/bert/blob/master/multilingual.md, and Arivazhagan et al.
    2019, arXiv 1907.05019: shares are proportional to a source's tokens ** (1 / temperature).
    """

    sources: dict[str, SourceMix] = Field(
        default_factory=dict, description="By source label; a source left out here is taken once."
    )
    temperature: float | None = Field(
        None,
        ge=1,
        allow_inf_nan=False,
        description="Shares by size: 1 as they are, higher evens them out. Instead of weights.",
    )
    tokens: int | None = Field(
        None,
        ge=1,
        description="About so many tokens in all, by weights or sizes; default: as many as max_epochs allows.",
    )
    max_epochs: float = Field(
        1.0,
        gt=0,
        le=_MAX_EPOCHS,
        description="No source is repeated more often to meet weights, temperature or tokens.",
    )

    @property
    def changes(self) -> bool:
        """Whether anything but all of every source once is asked for."""
        return bool(self.sources) or self.shares_out

    @property
    def measures(self) -> bool:
        """Whether it must be known how many tokens there are of each source."""
        return self.shares_out or any(source.max_tokens is not None for source in self.sources.values())

    @property
    def shares_out(self) -> bool:
        """Whether a total is shared out, rather than each source taken by its own epochs."""
        return self.weighted or self.temperature is not None or self.tokens is not None

    @property
    def weighted(self) -> bool:
        """Whether shares are given as weights."""
        return any(source.weight is not None for source in self.sources.values())

    @model_validator(mode="after")
    def _one_way(self) -> MixConfig:
        with_epochs = sorted(name for name, source in self.sources.items() if source.epochs is not None)
        unweighted = sorted(name for name, source in self.sources.items() if source.weight is None)
        if self.weighted and unweighted:
            raise ValueError(f"give every source a weight, or none: {unweighted[0]} has none")
        if self.weighted and self.temperature is not None:
            raise ValueError("give either weights or temperature, not both")
        if with_epochs and self.shares_out:
            raise ValueError(
                f"{with_epochs[0]} has epochs, which say how much of it is taken; so no weight, "
                "temperature or tokens can"
            )
        if not self.shares_out and self.max_epochs != 1:
            raise ValueError("max_epochs bounds what weights, temperature or tokens come to; none of them is given")
        if self.weighted and not any(source.weight for source in self.sources.values()):
            raise ValueError("all weights are 0")
        return self
