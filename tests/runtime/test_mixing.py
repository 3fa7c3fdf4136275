"""Epochs from what there is: worked out by hand for 600, 300 and 100 tokens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.config.mix import MixConfig
from dataprep.errors import ConfigError
from dataprep.runtime.mixing import settle_epochs

THERE = {"en": 600.0, "zh": 300.0, "code": 100.0}
WEIGHTS = {"en": {"weight": 1}, "zh": {"weight": 1}, "code": {"weight": 2}}


def settled(there: dict[str, float] = THERE, **mix: Any) -> dict[str, float]:
    return settle_epochs(MixConfig.model_validate(mix), there, "x.yaml:3:1")


@pytest.mark.parametrize(
    ("mix", "en", "zh", "code"),
    [
        ({}, 1, 1, 1),
        ({"sources": {"en": {"epochs": 1.5}, "code": {"epochs": 0.25}}}, 1.5, 1, 0.25),
        ({"sources": {"en": {"epochs": 0}}}, 0, 1, 1),
        ({"sources": {"zh": {"max_tokens": 150}, "code": {"max_tokens": 1000}}}, 1, 0.5, 1),
        ({"sources": {"en": {"epochs": 2, "max_tokens": 900}}}, 1.5, 1, 1),
        # Shares 1/4, 1/4, 1/2: the 100 tokens of code are half of 200.
        ({"sources": WEIGHTS}, 50 / 600, 50 / 300, 1),
        ({"sources": WEIGHTS, "max_epochs": 4}, 200 / 600, 200 / 300, 4),
        ({"sources": WEIGHTS, "max_epochs": 4, "tokens": 400}, 100 / 600, 100 / 300, 2),
        ({"sources": {**WEIGHTS, "code": {"weight": 2, "max_tokens": 50}}}, 25 / 600, 25 / 300, 0.5),
        ({"sources": {**WEIGHTS, "code": {"weight": 0}}}, 300 / 600, 1, 0),
        # Square roots 24.495, 17.321 and 10: the 100 tokens of code are 10 of 51.815 parts.
        ({"temperature": 2}, 244.948974 / 600, 173.205081 / 300, 1),
        ({"temperature": 1}, 1, 1, 1),
        ({"tokens": 500}, 0.5, 0.5, 0.5),
        ({"tokens": 2500, "max_epochs": 2.5}, 2.5, 2.5, 2.5),
        ({"temperature": 1e9, "max_epochs": 3, "tokens": 900}, 0.5, 1, 3),
    ],
)
def test_epochs_are_what_the_shares_come_to(mix: dict[str, Any], en: float, zh: float, code: float) -> None:
    assert settled(**mix) == pytest.approx({"code": code, "en": en, "zh": zh}, rel=1e-6)


@pytest.mark.parametrize(
    ("mix", "there", "told"),
    [
        (
            {"sources": {"web": {"epochs": 2}}},
            THERE,
            "mix.sources: no input has the source 'web'; they are code, en, zh",
        ),
        ({"sources": {"cod": {"epochs": 2}}}, THERE, "no input has the source 'cod'; did you mean code?"),
        ({"sources": {"en": {"weight": 1}}}, THERE, "mix.sources: the source 'code' has no weight"),
        ({"sources": WEIGHTS}, {**THERE, "zh": 0.0}, "the source 'zh' has a weight, but no text is left of it"),
        (
            {"sources": WEIGHTS, "tokens": 400},
            THERE,
            "400 tokens want 200 of code: there are about 100, to be taken at",
        ),
        ({"tokens": 1001}, THERE, "there are about"),
        (
            {"sources": {**WEIGHTS, "code": {"weight": 2, "max_tokens": 50}}, "tokens": 150},
            THERE,
            "150 tokens want 75 of code, whose max_tokens is 50",
        ),
    ],
)
def test_what_cannot_be_had_is_an_error_that_names_the_source(
    mix: dict[str, Any], there: dict[str, float], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        settled(there, **mix)
    assert told in str(caught.value)
    assert str(caught.value).startswith("x.yaml:3:1: ")


def test_where_nothing_is_left_of_any_source_there_is_nothing_to_share_out() -> None:
    there = {"en": 0.0, "zh": 0.0}
    weights = {"en": {"weight": 1}, "zh": {"weight": 1}}
    for mix in ({"sources": weights}, {"tokens": 500}, {"temperature": 3.0}, {"sources": {"en": {"epochs": 2}}}):
        assert settled(there, **mix) == {"en": 1.0, "zh": 1.0}


def test_a_source_without_text_needs_no_weight() -> None:
    weights = {"en": {"weight": 1}, "zh": {"weight": 1}}
    assert settled({"en": 50.0, "zh": 100.0, "": 0.0}, sources=weights) == {"": 0.0, "en": 1.0, "zh": 0.5}


def test_weights_at_the_ends_of_their_range_give_numbers() -> None:
    taken = settled({"en": 1e15, "zh": 1.0}, sources={"en": {"weight": 1e-9}, "zh": {"weight": 1e9}})
    assert taken == {"en": 1e-33, "zh": 1.0}


def test_a_source_of_which_nothing_is_left_is_no_obstacle_to_epochs() -> None:
    assert settled({"en": 10.0, "zh": 0.0}, sources={"zh": {"epochs": 2, "max_tokens": 5}}) == {"en": 1.0, "zh": 2.0}


@given(
    there=st.lists(st.floats(1, 1e13), min_size=1, max_size=6),
    weights=st.lists(st.integers(1, 1000), min_size=6, max_size=6),
    most=st.floats(0.01, 50),
)
def test_weights_are_met_and_no_source_is_taken_more_than_max_epochs_times(
    there: list[float], weights: list[int], most: float
) -> None:
    available = {str(number): tokens for number, tokens in enumerate(there)}
    sources = {name: {"weight": weight} for name, weight in zip(available, weights, strict=False)}
    epochs = settled(available, sources=sources, max_epochs=most)
    assert max(epochs.values()) == pytest.approx(most, rel=1e-6)
    taken = {name: epochs[name] * available[name] / sources[name]["weight"] for name in available}
    assert max(taken.values()) == pytest.approx(min(taken.values()), rel=1e-6)
