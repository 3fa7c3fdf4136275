"""Texts for tokenizers are drawn by seed from what the steps keep, and files are read like inputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from dataprep.config.load import load
from dataprep.errors import ConfigError
from dataprep.runtime.sampled_texts import file_texts, pipeline_texts, train_on_sample

PIPELINE = """\
inputs: [{path: en.jsonl, source: en}, {path: zh.jsonl, source: zh}]
steps: [{length: {min_chars: 5}}, exact_dedup, {length: {max_chars: 60}}]
tokenizer: {train: {vocab_size: 320}}
output: {path: out}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """200 documents a source; every tenth is too short or too long."""
    for source, words in (("en", "a ship came home"), ("zh", "\u8239\u56de\u6765\u4e86")):
        texts = [f"{words} {number}" if number % 10 else "ab" if number % 20 else words * 40 for number in range(200)]
        lines = [json.dumps({"id": f"{source}{number}", "text": text}) for number, text in enumerate(texts)]
        (tmp_path / f"{source}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)
    return path


def test_all_kept_texts_are_drawn_when_there_is_room(pipeline: Path) -> None:
    texts = pipeline_texts(load(pipeline), 1 << 20, by_size=False)
    assert {source: len(one) for source, one in texts.items()} == {"en": 180, "zh": 180}
    assert sorted(texts["en"]) == sorted(f"a ship came home {number}" for number in range(200) if number % 10)


def test_the_seed_draws_and_decides_alike_each_time(pipeline: Path) -> None:
    first = pipeline_texts(load(pipeline), 2000, by_size=True)
    assert first == pipeline_texts(load(pipeline), 2000, by_size=True)
    other = pipeline_texts(load(pipeline, ("run.seed=7",)), 2000, by_size=True)
    assert first != other
    assert 1500 < sum(len(text.encode()) for one in first.values() for text in one) < 2200


def test_training_gives_the_same_tokenizer_each_time_and_no_run(pipeline: Path) -> None:
    trained = train_on_sample(load(pipeline))
    assert trained == train_on_sample(load(pipeline))
    assert Tokenizer.from_str(trained.decode()).get_vocab_size() <= 320
    assert "<|endoftext|>" in Tokenizer.from_str(trained.decode()).get_vocab()
    assert sorted(path.name for path in pipeline.parent.iterdir()) == ["en.jsonl", "p.yaml", "zh.jsonl"]


def test_a_pipeline_that_trains_none_and_inputs_without_text_are_refused(pipeline: Path) -> None:
    with pytest.raises(ConfigError, match="this pipeline trains no tokenizer"):
        train_on_sample(load(pipeline, ("tokenizer={path: x.json}",)))
    with pytest.raises(ConfigError, match="no text is left to train on"):
        train_on_sample(load(pipeline, ("steps=[{length: {min_chars: 9999}}]",)))


def test_files_of_any_format_give_texts_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one text\nof two lines")
    (tmp_path / "b.jsonl").write_text('{"text": "x"}\n{"text": "y"}\n')
    texts = file_texts([tmp_path / "a.txt", tmp_path / "b.jsonl"], 1 << 20)
    assert {name: sorted(one) for name, one in texts.items()} == {
        "a.txt": ["one text\nof two lines"],
        "b.jsonl": ["x", "y"],
    }
