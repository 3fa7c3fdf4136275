"""The starter file loads as it is, and knows every setting there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from dataprep.config.load import load
from dataprep.config.mix import MixConfig
from dataprep.config.models import DedupConfig, OutputConfig, Pipeline, RunConfig
from dataprep.config.starter import starter_text
from dataprep.config.steps import STEP_TYPES
from dataprep.readers.inputs import Input
from dataprep.tokens.config import PackConfig, TokenizerConfig, TrainTokenizer

MODELS: list[type[BaseModel]] = [
    *(Pipeline, Input, DedupConfig, MixConfig, TokenizerConfig, TrainTokenizer, PackConfig),
    *(OutputConfig, RunConfig),
]
SETTING = re.compile(r"^ *(?:# )? *(?:- )?([a-z_]+):(?= |$)", re.MULTILINE)


def test_the_starter_loads_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(starter_text(), encoding="utf-8")
    assert load(path, (), {}).pipeline.name == "p"


@pytest.mark.parametrize("model", MODELS)
def test_the_starter_names_every_setting(model: type[BaseModel]) -> None:
    assert set(model.model_fields) - set(SETTING.findall(starter_text())) == set()


def test_the_starter_names_every_step() -> None:
    assert all(re.search(rf"^  (# )?- {name}\b", starter_text(), re.MULTILINE) for name in STEP_TYPES)


def test_steps_in_comments_load_when_uncommented(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(starter_text().replace("  # - ", "  - "), encoding="utf-8")
    names = [step.name for step in load(path, (), {}).pipeline.steps]
    assert list(dict.fromkeys(names)) == list(STEP_TYPES)


def test_a_tokenizer_of_ones_own_loads_when_uncommented(tmp_path: Path) -> None:
    text = re.sub(r"^  train:\n(    .*\n)+", "", starter_text(), flags=re.MULTILINE)
    path = tmp_path / "p.yaml"
    path.write_text(
        re.sub(r"^  # (?=(path|add_special_tokens|pad): )", "  ", text, flags=re.MULTILINE), encoding="utf-8"
    )
    tokenizer = load(path, (), {}).pipeline.tokenizer
    assert (tokenizer.path, tokenizer.train) == (tmp_path / "tokenizer.json", None)
    assert (tokenizer.add_special_tokens, tokenizer.pad) == (("<|pad|>",), "<|pad|>")


def test_the_starter_names_no_setting_that_does_not_exist() -> None:
    known = {name for model in MODELS for name in model.model_fields} | set(STEP_TYPES)
    assert set(SETTING.findall(starter_text())) - known == set()


def test_defaults_in_comments_still_load_when_uncommented(tmp_path: Path) -> None:
    text = re.sub(r"^# (?=(dedup|mix|pack|run):|  \w)", "", starter_text(), flags=re.MULTILINE)
    text = re.sub(r"^#(?=  [a-z_]+:)", "", text, flags=re.MULTILINE)
    path = tmp_path / "p.yaml"
    path.write_text(text, encoding="utf-8")
    assert "\nrun:\n  executor: local" in text
    loaded = load(path, (), {}).pipeline
    path.write_text(starter_text(), encoding="utf-8")
    assert loaded == load(path, (), {}).pipeline
