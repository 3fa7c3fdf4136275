"""The whole job as a user runs it: real files, real processes, real kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dataprep.shards.documents import read_documents
from dataprep.shards.manifest import load_manifest
from dataprep.shards.verify import verify

PIPELINE = """\
name: small
inputs:
{inputs}
steps:
  - normalize
  - length: {{min_chars: 5}}
  - exact_dedup
  - length: {{max_chars: 400}}
tokenizer: {{train: {{vocab_size: 400}}}}
pack: {{seq_length: 32}}
output: {{path: out, shard_tokens: 3000}}
run: {{split_bytes: 6000, part_bytes: 3000, work_dir: work, workers: {workers}, max_bad_fraction: 0.5}}
"""
EN = "  - {path: en.jsonl, source: en}"
ZH = "  - {path: zh.jsonl, source: zh, text: content}"


def write_inputs(folder: Path, inputs: str = f"{EN}\n{ZH}", workers: int = 2) -> Path:
    """400 documents, every tenth repeated, some too short, too long or broken."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, field, words in (("en", "text", "the ship came home at night"), ("zh", "content", "夜里的船回来了")):
        lines = []
        for number in range(200):
            body = f"{words} {number // 10 if number % 10 == 0 else number + 1000} " * (1 + number % 7)
            body = "ab" if number % 50 == 7 else body * 20 if number % 50 == 9 else body
            lines.append(json.dumps({"id": f"{name}-{number:03d}", field: body}, ensure_ascii=False))
        lines.insert(100, '{"id": "broken"')
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pipeline = folder / "small.yaml"
    pipeline.write_text(PIPELINE.format(inputs=inputs, workers=workers))
    return pipeline


def command(pipeline: Path, *more: str) -> list[str]:
    return [sys.executable, "-c", "from dataprep.cli import main; main()", "run", str(pipeline), *more]


def run(pipeline: Path, *more: str) -> dict[str, Any]:
    done = subprocess.run(command(pipeline, *more), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads((pipeline.parent / "out" / "manifest.json").read_text())
    return content


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run by one worker."""
    pipeline = write_inputs(tmp_path_factory.mktemp("reference"), workers=1)
    run(pipeline)
    return pipeline.parent / "out"


def test_every_record_read_is_kept_dropped_or_quarantined(reference: Path) -> None:
    manifest = load_manifest(reference)
    prepare, dedup, emit = (manifest.ledger[stage] for stage in ("prepare", "dedup", "emit"))
    for source in ("en", "zh"):
        # 200 documents and the broken line; numbers 7, 57, 107, 157 are too short.
        assert prepare[source].in_ == 201
        assert prepare[source].quarantined == {"broken_json": 1}
        assert prepare[source].dropped == {"length.min_chars": 4}
        assert prepare[source].kept == 196 == dedup[source].in_
        assert dedup[source].kept == emit[source].in_
        assert emit[source].kept == manifest.sources[source].documents
    assert manifest.totals.rows * 33 - manifest.totals.padding == manifest.totals.tokens
    assert len(manifest.shards) > 1


def test_verify_finds_no_damage_and_decodes_every_document_to_its_text(reference: Path) -> None:
    assert verify(reference, rows=10_000, documents=10_000) == []


def test_tokens_of_the_index_are_the_tokens_of_the_rows(reference: Path) -> None:
    for shard in load_manifest(reference).shards:
        index = read_documents(reference / shard.documents_file)
        assert sum(index.column("tokens").to_pylist()) == shard.tokens == shard.rows * 33 - shard.padding


@pytest.mark.parametrize("workers", [2, 4])
def test_neither_workers_nor_the_order_of_inputs_change_a_byte(reference: Path, tmp_path: Path, workers: int) -> None:
    manifest = run(write_inputs(tmp_path, f"{ZH}\n{EN}", workers))
    assert manifest["hash"] == load_manifest(reference).hash


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_with_the_same_hash(reference: Path, tmp_path: Path) -> None:
    pipeline = write_inputs(tmp_path)
    for number in range(8):
        process = subprocess.Popen(
            command(pipeline), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(timeout=1.0 + number)
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            # Killed between its last write and its exit, a run is finished; a manifest is never half true.
            if (tmp_path / "out" / "manifest.json").exists():
                assert load_manifest(tmp_path / "out").hash == load_manifest(reference).hash
    assert run(pipeline)["hash"] == load_manifest(reference).hash


def test_a_second_run_finds_the_set_finished_and_another_configuration_is_refused(tmp_path: Path) -> None:
    pipeline = write_inputs(tmp_path)
    before = run(pipeline)
    assert run(pipeline) == before
    refused = subprocess.run(
        command(pipeline, "--set", "run.seed=7"), capture_output=True, text=True, timeout=60, check=False
    )
    assert refused.returncode == 2
    assert "choose another output.path, or replace it with --force" in refused.stderr


def test_a_missing_input_is_one_line_and_leaves_no_manifest(tmp_path: Path) -> None:
    pipeline = write_inputs(tmp_path, "  - {path: nowhere.jsonl, source: en}")
    failed = subprocess.run(command(pipeline), capture_output=True, text=True, timeout=60, check=False)
    assert failed.returncode == 2
    assert "nowhere.jsonl" in failed.stderr
    assert not (tmp_path / "out" / "manifest.json").exists()


def plain_pipeline(folder: Path, lines: list[str], steps: str, run_keys: str = "") -> Path:
    (folder / "en.jsonl").write_text("".join(line + "\n" for line in lines))
    pipeline = folder / "plain.yaml"
    pipeline.write_text(
        f"inputs: [{{path: en.jsonl, source: en}}]\nsteps: {steps}\ntokenizer: {{train: {{vocab_size: 300}}}}\n"
        f"pack: {{seq_length: 8}}\noutput: {{path: out}}\nrun: {{work_dir: work, workers: 4{run_keys}}}\n"
    )
    return pipeline


def test_empty_documents_are_accounted_for_like_any_other(tmp_path: Path) -> None:
    manifest = run(plain_pipeline(tmp_path, ['{"text": ""}', '{"text": ""}'], "[exact_dedup]"))
    assert manifest["ledger"]["dedup"]["en"]["dropped"] == {"exact_dedup.duplicate": 1}
    # One EOS, and seq_length + 1 tokens a row.
    assert manifest["totals"] == {"documents": 1, "tokens": 1, "padding": 8, "rows": 1, "text_bytes": 0}


def test_a_run_that_keeps_nothing_finishes_with_an_empty_set_that_says_why(tmp_path: Path) -> None:
    manifest = run(plain_pipeline(tmp_path, ['{"text": "short"}'] * 3, "[length: {min_chars: 100}]"))
    assert manifest["shards"] == []
    assert manifest["ledger"]["prepare"]["en"]["dropped"] == {"length.min_chars": 3}


def test_asking_to_fail_on_bad_records_also_refuses_those_an_earlier_run_set_aside(tmp_path: Path) -> None:
    pipeline = plain_pipeline(tmp_path, ['{"text": "good"}', "broken"], "[]", ", max_bad_fraction: 0.5")
    run(pipeline)
    (tmp_path / "out" / "manifest.json").unlink()
    failed = subprocess.run(
        command(pipeline, "--set", "run.on_bad_record=fail"), capture_output=True, text=True, timeout=60, check=False
    )
    assert failed.returncode == 3
    assert "1 of 2 records are bad and run.on_bad_record is fail" in failed.stderr


def test_finishing_touches_no_file_of_the_users_in_the_output_folder(tmp_path: Path) -> None:
    pipeline = plain_pipeline(tmp_path, ['{"text": "one document"}'], "[]")
    theirs = [tmp_path / "out" / name for name in ("documents/mine.parquet", ".mine.tmp", "notes/.draft.1.tmp")]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    run(pipeline)
    assert [path.read_text() for path in theirs] == ["precious"] * 3
