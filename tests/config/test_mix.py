"""What the mix and the splits of a pipeline file may say, and what they are told otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.config.load import load
from dataprep.errors import ConfigErrors

TEXT = "inputs: [{path: a.jsonl}]\ntokenizer: {train: {}}\noutput: {path: out}\n"


def loaded(folder: Path, *overrides: str) -> object:
    path = folder / "p.yaml"
    path.write_text(TEXT)
    return load(path, overrides, {}).pipeline


@pytest.mark.parametrize(
    "override",
    [
        "mix={sources: {a: {weight: 1}, b: {weight: 0}}, tokens: 10, max_epochs: 2}",
        "mix={sources: {a: {epochs: 1.5, max_tokens: 3}, b: {max_tokens: 1}}}",
        "mix={sources: {a: {max_tokens: 5}}, temperature: 3.3}",
        "mix={tokens: 5}",
        "output.splits={train: 0.7, validation: 0.1, test_1: 0.2}",
    ],
)
def test_one_way_of_mixing_and_whole_splits_load(override: str, tmp_path: Path) -> None:
    loaded(tmp_path, override)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("mix={sources: {a: {weight: 1}, b: {}}}", "give every source a weight, or none: b has none"),
        ("mix={sources: {a: {weight: 1}}, temperature: 2}", "either weights or temperature"),
        ("mix={sources: {a: {weight: 0}}}", "all weights are 0"),
        ("mix={sources: {a: {epochs: 2}}, tokens: 7}", "a has epochs"),
        ("mix={sources: {a: {epochs: 1, weight: 2}}}", "a has epochs"),
        ("mix={sources: {a: {epochs: 1}}, max_epochs: 2}", "max_epochs bounds"),
        ("mix={temperature: 0.5}", "at least 1"),
        ("mix={sources: {a: {epochs: .inf}}}", "mix.sources.a.epochs"),
        ("mix={sources: {a: {weight: -1}}}", "at least 0"),
        ("mix={sources: {a: {max_tokens: 0}}}", "at least 1"),
        ("mix={sources: {a: {epoch: 1}}}", "did you mean epochs?"),
        ("mix={sources: {a: {weight: 1e-300}, b: {weight: 1}}}", "must be 0 or at least 1e-09, not 1e-300"),
        ("mix={sources: {a: {weight: 1e300}}}", "at most"),
        ("mix={sources: {a: {epochs: 101}}}", "at most 100"),
        ("output.splits={train: 0.9999999, validation: 0.0000001}", "at least 1e-06"),
        ("output.splits={train: 0.9, validation: 0.2}", "shares add up to 1.1, not to 1"),
        ("output.splits={train: 1}", "less than 1"),
        ("output.splits={train: 0.5, dropped: 0.5}", "'dropped' is the name of a folder of tables"),
        ("output.splits={../x: 0.5, train: 0.5}", "cannot name a folder"),
        ("output.splits={Train: 0.5, train: 0.5}", "cannot name a folder"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(override: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        loaded(tmp_path, override)
    (fault,) = caught.value.faults
    assert told in str(fault)
    assert override.partition("=")[0] in str(fault)
