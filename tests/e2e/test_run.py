"""The whole job as a user runs it: real files, real processes, real kills."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from dataprep.shards.documents import read_documents
from dataprep.shards.manifest import load_manifest
from dataprep.shards.verify import verify

EN = "  - {path: en.jsonl, source: en}"
ZH = "  - {path: zh.jsonl, source: zh, text: content}"


def test_every_record_read_is_kept_dropped_or_quarantined(reference: Path) -> None:
    manifest = load_manifest(reference)
    prepare, dedup, emit = (manifest.ledger[stage] for stage in ("prepare", "dedup", "emit"))
    for source in ("en", "zh"):
        # 200 documents and the broken line; numbers 7, 57, 107, 157 are too short.
        assert prepare[source].in_ == 201
        assert prepare[source].quarantined == {"broken_json": 1}
        assert prepare[source].dropped == {"length.min_chars": 4}
        assert prepare[source].kept == 196 == dedup[source].in_
        # Twenty documents of two texts.
        assert dedup[source].dropped == {"exact_dedup.duplicate": 18}
        assert dedup[source].kept == 178 == emit[source].in_
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
def test_neither_workers_nor_the_order_of_inputs_change_a_byte(
    reference: Path, tmp_path: Path, dataprep: Any, write_small: Any, workers: int
) -> None:
    manifest = dataprep.run(write_small(tmp_path, f"{ZH}\n{EN}", workers))
    assert manifest["hash"] == load_manifest(reference).hash


def test_a_second_run_finds_the_set_finished_and_another_configuration_is_refused(
    tmp_path: Path, dataprep: Any, write_small: Any
) -> None:
    pipeline = write_small(tmp_path)
    before = dataprep.run(pipeline)
    assert dataprep.run(pipeline) == before
    code, message = dataprep.fail(pipeline, "--set", "run.seed=7")
    assert code == 2
    assert "choose another output.path, or replace it with --force" in message
    assert dataprep.fail(pipeline, "--set", "run.seed=7", "--dry-run") == (2, message)
    forced = subprocess.run(dataprep.line(pipeline, "--set", "run.seed=7", "--dry-run", "--force"), check=True)
    assert forced.returncode == 0
    assert dataprep.run(pipeline) == before


def test_rows_that_no_page_holds_are_refused_before_anything_is_read(
    tmp_path: Path, dataprep: Any, write_small: Any
) -> None:
    code, message = dataprep.fail(write_small(tmp_path), "--set", "pack.seq_length=100000000")
    assert (code, message) == (
        2,
        "--set pack.seq_length=100000000: a row of 100000001 tokens does not fit a MindRecord page; "
        "lower pack.seq_length",
    )
    assert not (tmp_path / "work").exists()


def test_a_missing_input_is_one_line_and_leaves_no_manifest(tmp_path: Path, dataprep: Any, write_small: Any) -> None:
    pipeline = write_small(tmp_path, "  - {path: nowhere.jsonl, source: en}")
    code, message = dataprep.fail(pipeline)
    assert code == 2
    assert "nowhere.jsonl" in message
    assert not (tmp_path / "out" / "manifest.json").exists()


def plain_pipeline(folder: Path, lines: list[str], steps: str, run_keys: str = "") -> Path:
    (folder / "en.jsonl").write_text("".join(line + "\n" for line in lines))
    pipeline = folder / "plain.yaml"
    pipeline.write_text(
        f"inputs: [{{path: en.jsonl, source: en}}]\nsteps: {steps}\ntokenizer: {{train: {{vocab_size: 300}}}}\n"
        f"pack: {{seq_length: 8}}\noutput: {{path: out}}\nrun: {{work_dir: work, workers: 4{run_keys}}}\n"
    )
    return pipeline


def test_empty_documents_are_accounted_for_like_any_other(tmp_path: Path, dataprep: Any) -> None:
    manifest = dataprep.run(plain_pipeline(tmp_path, ['{"text": ""}', '{"text": ""}'], "[exact_dedup]"))
    assert manifest["ledger"]["dedup"]["en"]["dropped"] == {"exact_dedup.duplicate": 1}
    # One EOS, and seq_length + 1 tokens a row.
    counts = {"documents": 1, "tokens": 1, "padding": 8, "rows": 1}
    assert manifest["totals"] == {**counts, "text_bytes": 0, "fim_documents": 0, "truncated": 0, "repeated": 0}


def test_a_run_that_keeps_nothing_finishes_with_an_empty_set_that_says_why(tmp_path: Path, dataprep: Any) -> None:
    manifest = dataprep.run(plain_pipeline(tmp_path, ['{"text": "short"}'] * 3, "[length: {min_chars: 100}]"))
    assert manifest["shards"] == []
    assert manifest["ledger"]["prepare"]["en"]["dropped"] == {"length.min_chars": 3}


def test_asking_to_fail_on_bad_records_also_refuses_those_an_earlier_run_set_aside(
    tmp_path: Path, dataprep: Any
) -> None:
    pipeline = plain_pipeline(tmp_path, ['{"text": "good"}', "broken"], "[]", ", max_bad_fraction: 0.5")
    dataprep.run(pipeline)
    (tmp_path / "out" / "manifest.json").unlink()
    code, message = dataprep.fail(pipeline, "--set", "run.on_bad_record=fail")
    assert code == 3
    assert "1 of 2 records is bad and run.on_bad_record is fail" in message


def test_finishing_touches_no_file_of_the_users_in_the_output_folder(tmp_path: Path, dataprep: Any) -> None:
    pipeline = plain_pipeline(tmp_path, ['{"text": "one document"}'], "[]")
    theirs = [tmp_path / "out" / name for name in ("documents/mine.parquet", ".mine.tmp", "notes/.draft.1.tmp")]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    dataprep.run(pipeline)
    assert [path.read_text() for path in theirs] == ["precious"] * 3
