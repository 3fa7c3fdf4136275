"""The hashed configuration changes with the output's bytes and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.config.canonical import hashed_config
from dataprep.config.load import load
from dataprep.storage import hash_value

TEXT = """\
name: n
inputs:
  - {path: raw/a.jsonl, source: a}
  - {path: BASE/raw/b.jsonl, source: b}
steps:
  - normalize
  - length: {min_words: 5}
  - exact_dedup
tokenizer: {path: lists/../t.json}
output: {path: shards}
"""


def config_hash(folder: Path, text: str = TEXT, *overrides: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / "x.yaml"
    path.write_text(text.replace("BASE", str(folder)), encoding="utf-8")
    loaded = load(path, overrides, {})
    return hash_value(hashed_config(loaded.pipeline, loaded.base))


def test_the_order_of_inputs_does_not_show(tmp_path: Path) -> None:
    lines = TEXT.splitlines(keepends=True)
    lines[2], lines[3] = lines[3], lines[2]
    assert config_hash(tmp_path, "".join(lines)) == config_hash(tmp_path)


def test_a_moved_folder_does_not_show(tmp_path: Path) -> None:
    assert config_hash(tmp_path / "here") == config_hash(tmp_path / "there")


def test_a_default_spelled_out_does_not_show(tmp_path: Path) -> None:
    spelled = TEXT + "pack: {seq_length: 4096}\nrun: {seed: 42, split_bytes: 64MiB}\ndedup: {memory: 1GiB}\n"
    assert config_hash(tmp_path, spelled) == config_hash(tmp_path)


@pytest.mark.parametrize(
    "override",
    [
        "run.workers=7",
        "run.work_dir=elsewhere",
        "run.memory_limit=1GB",
        "run.on_bad_record=fail",
        "run.max_bad_fraction=1",
        "output.path=other",
        "output.shard_tokens=50_000_000",
        "tokenizer.path=moved.json",
    ],
)
def test_how_the_run_goes_does_not_show(override: str, tmp_path: Path) -> None:
    assert config_hash(tmp_path, TEXT, override) == config_hash(tmp_path)


@pytest.mark.parametrize(
    "override",
    [
        "name=m",
        "inputs.0.path=raw/c.jsonl",
        "inputs.0.source=c",
        "inputs.0.text=body",
        "inputs.0.encoding=auto",
        "inputs.0.max_doc_bytes=5",
        "inputs.0.exclude=[x]",
        "steps.length.min_words=6",
        "steps.length.only={source: [a]}",
        "steps.length.except={source: [a]}",
        "steps.exact_dedup.normalize=whitespace",
        "steps=[exact_dedup, normalize, length: {min_words: 5}]",
        "dedup.memory=1GB",
        "tokenizer.eos=<eos>",
        "tokenizer.bos=<bos>",
        "tokenizer.pad=<pad>",
        "tokenizer.add_special_tokens=[a]",
        "tokenizer={train: {}}",
        "pack.seq_length=8",
        "output.shard_tokens=8",
        "output={path: o, shard_bytes: 50_000_000}",
        "output.dropped_text=full",
        "run.seed=1",
        "run.split_bytes=1MB",
        "run.part_bytes=1MB",
    ],
)
def test_whatever_shapes_the_output_shows(override: str, tmp_path: Path) -> None:
    assert config_hash(tmp_path, TEXT, override) != config_hash(tmp_path)
