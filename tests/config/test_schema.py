"""The JSON schema tells an editor what the loader will say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from dataprep.config.schema import keys_at, pipeline_schema
from dataprep.config.starter import starter_text
from dataprep.config.steps import STEP_TYPES

BASE: dict[str, Any] = {"inputs": [{"path": "a"}], "tokenizer": {"path": "t"}, "output": {"path": "o"}}
SHIPPED = sorted((Path(__file__).parents[2] / "pipelines").glob("*.yaml"))


def problems(value: object) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(pipeline_schema()).iter_errors(value)]


def test_the_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(pipeline_schema())
    assert pipeline_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("text", [starter_text(), *(path.read_text(encoding="utf-8") for path in SHIPPED)])
def test_shipped_pipelines_fit_the_schema(text: str) -> None:
    assert problems(YAML(typ="safe", pure=True).load(text)) == []


@pytest.mark.parametrize(
    "more",
    [
        {"steps": ["normalize", {"normalize": None}, {"length": {"min_words": 5}}, "exact_dedup"]},
        {"steps": [{"length": {"only": {"source": ["a"]}}}]},
        {"run": {"workers": "auto", "memory_limit": "1GiB"}},
        {"run": {"workers": "${N:-2}"}},
        {"name": "${NAME}"},
    ],
)
def test_what_loads_fits_the_schema(more: dict[str, Any]) -> None:
    assert problems({**BASE, **more}) == []


@pytest.mark.parametrize(
    "more",
    [
        {"steps": [{"lenght": {}}]},
        {"steps": ["no_such_step"]},
        {"steps": [{"length": {"min_wrds": 5}}]},
        {"steps": [{"length": {}, "normalize": {}}]},
        {"steps": [{}]},
        {"run": {"workers": "many"}},
        {"run": {"sed": 1}},
        {"output": {}},
    ],
)
def test_what_does_not_load_does_not_fit(more: dict[str, Any]) -> None:
    assert problems({**BASE, **more}) != []


@pytest.mark.parametrize(
    ("more", "place", "word"),
    [
        ({"inputs": [{"path": "a", "fromat": "csv"}]}, ["inputs", 0], "fromat"),
        ({"inputs": [{"path": "a", "format": "cvs"}]}, ["inputs", 0, "format"], "cvs"),
        ({"inputs": [{"path": ["a", 3]}]}, ["inputs", 0, "path", 1], "3"),
        ({"inputs": "a"}, ["inputs"], "array"),
        ({"steps": ["normalize", "lenght"]}, ["steps", 1], "lenght"),
        ({"steps": ["normalize", {"lenght": {}}]}, ["steps", 1], "lenght"),
        ({"steps": ["normalize", {"length": {"min_wrds": 5}}]}, ["steps", 1, "length"], "min_wrds"),
        ({"steps": [{"normalize": 5}]}, ["steps", 0, "normalize"], "5"),
        ({"steps": [{"regex": {"drop": ["a", 3]}}]}, ["steps", 0, "regex", "drop", 1], "3"),
        ({"steps": [{"normalize": {"only": {"sorce": ["a"]}}}]}, ["steps", 0, "normalize", "only"], "sorce"),
        ({"tokenizer": {"train": {"vocb_size": 300}}}, ["tokenizer", "train"], "vocb_size"),
        ({"run": {"workers": "many"}}, ["run", "workers"], "many"),
    ],
)
def test_a_validator_points_at_the_very_key(more: dict[str, Any], place: list[str | int], word: str) -> None:
    errors = list(jsonschema.Draft202012Validator(pipeline_schema()).iter_errors({**BASE, **more}))
    assert {tuple(error.absolute_path) for error in errors} == {tuple(place)}
    best = jsonschema.exceptions.best_match(errors)
    assert word in best.message


def test_every_setting_and_step_is_described() -> None:
    schema = pipeline_schema()
    for name, model in [("Pipeline", schema), *schema["$defs"].items()]:
        bare = [key for key, described in model.get("properties", {}).items() if not described.get("description")]
        assert bare == [], name
    assert set(schema["$defs"]["StepEntry"]["properties"]) == set(STEP_TYPES)


def test_known_keys_are_found_through_lists_and_choices() -> None:
    assert keys_at(("pack",)) == ("seq_length", "method", "window", "overlong", "fim", "layout")
    assert "min_words" in keys_at(("steps", 0, "length"))
    assert keys_at(("steps", 0, "length", "only")) == ("source",)
    assert keys_at(("tokenizer", "train")) == ("vocab_size", "min_frequency", "sample_bytes")
    assert keys_at(("run", "seed")) == ()
