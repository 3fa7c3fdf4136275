"""A run neither eats its own output, nor strangers' files, nor files that change under it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

LINES = [json.dumps({"id": f"d{number:02d}", "text": f"text number {number} " * 20}) for number in range(40)]


def write(folder: Path, inputs: str, more: str = "", output: str = "out", work: str = "work") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pipeline = folder / "p.yaml"
    pipeline.write_text(
        f"inputs: {inputs}\ntokenizer: {{train: {{vocab_size: 300}}}}\npack: {{seq_length: 16}}\n{more}\n"
        f"output: {{path: {output}}}\nrun: {{work_dir: {work}, workers: 1}}\n"
    )
    return pipeline


def write_lines(path: Path, lines: list[str] = LINES) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))


def stop_after(command: list[str], stage: str) -> None:
    """Start a run and interrupt it when the stage is done."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith(f"{stage}: done"):
                process.send_signal(signal.SIGINT)
        assert process.wait(timeout=100) == 130


def test_a_resumed_run_does_not_read_what_it_has_written(tmp_path: Path, dataprep: Any) -> None:
    steps = "steps: [{length: {max_chars: 330}}]"
    pipeline = write(tmp_path, "[{path: data, source: en}]", steps, "data/out", "data/w")
    write_lines(tmp_path / "data" / "a.jsonl")
    stop_after(dataprep.line(pipeline), "prepare")
    assert (tmp_path / "data" / "out" / "dropped").is_dir()
    done = subprocess.run(dataprep.line(pipeline), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "data" / "out" / "manifest.json").read_text())
    assert manifest["inputs"]["files"] == 1
    assert manifest["inputs"]["records"] == 40
    again = subprocess.run(dataprep.line(pipeline), capture_output=True, text=True, check=False)
    assert "is finished already" in again.stderr


@pytest.mark.parametrize("name", ["inputs.parquet", "tokenizer.json", "manifest.json"])
def test_a_stranger_file_that_a_run_would_replace_stops_it(tmp_path: Path, dataprep: Any, name: str) -> None:
    pipeline = write(tmp_path, "[{path: a.jsonl}]")
    write_lines(tmp_path / "a.jsonl")
    write_lines(tmp_path / "out" / name, ["mine"])
    for more in ((), ("--force",), ("--dry-run",)):
        code, message = dataprep.fail(pipeline, *more)
        assert code == 2
        assert f"holds {name}, which no run of this tool has put there" in message
    assert (tmp_path / "out" / name).read_text() == "mine\n"


def test_a_stranger_folder_in_the_work_directory_is_not_cleared(tmp_path: Path, dataprep: Any) -> None:
    pipeline = write(tmp_path, "[{path: a.jsonl}]")
    write_lines(tmp_path / "a.jsonl")
    write_lines(tmp_path / "work" / "parts" / "mine.txt", ["mine"])
    code, message = dataprep.fail(pipeline, "--force")
    assert (code, "holds parts, which no run" in message) == (2, True)
    assert (tmp_path / "work" / "parts" / "mine.txt").exists()


@pytest.mark.parametrize("output", ["documents", "dropped", "quarantine", "x.mindrecord"])
def test_an_output_folder_may_have_the_name_of_a_table(tmp_path: Path, dataprep: Any, output: str) -> None:
    lines = [*LINES, "{", json.dumps({"text": "short"})]
    more = "steps: [{length: {min_chars: 10}}]"
    pipeline = write(tmp_path, "[{path: a.jsonl}]", more, output)
    write_lines(tmp_path / "a.jsonl", lines)
    done = subprocess.run(dataprep.line(pipeline), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    command = [*dataprep.line(pipeline)[:-2], "verify", str(tmp_path / output)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    manifest = json.loads((tmp_path / output / "manifest.json").read_text())
    names = [file["path"].split("-")[0] for file in manifest["files"]]
    assert names == ["dropped/prepare", "inputs.parquet", "quarantine/prepare", "tokenizer.json"]


def test_a_pipeline_named_like_a_shard_file_runs(tmp_path: Path, dataprep: Any) -> None:
    pipeline = write(tmp_path, "[{path: a.jsonl}]", "name: x.mindrecord")
    write_lines(tmp_path / "a.jsonl")
    assert [shard["file"] for shard in dataprep.run(pipeline)["shards"]] == ["x.mindrecord-00000-of-00001.mindrecord"]


def test_a_list_of_terms_that_changes_while_it_is_used_stops_the_run(tmp_path: Path, dataprep: Any) -> None:
    pipeline = write(tmp_path, "[{path: a.jsonl}]", "steps: [{blocklist: {path: terms.txt}}]")
    write_lines(tmp_path / "a.jsonl")
    terms = tmp_path / "terms.txt"
    terms.write_text("nowhere\n")
    with subprocess.Popen(dataprep.line(pipeline), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("prepare: 1 task"):
                terms.write_text("number\n")
            last = line
        assert process.wait(timeout=100) == 4
    assert "terms.txt: the file changed while the run was using it; run again" in last
    terms.write_text("nowhere\n")
    assert dataprep.run(pipeline)["totals"]["documents"] == 40


def test_another_tokenizer_under_the_same_path_is_another_configuration(tmp_path: Path, dataprep: Any) -> None:
    pipeline = write(tmp_path, "[{path: a.jsonl}]")
    write_lines(tmp_path / "a.jsonl")
    dataprep.run(pipeline)
    mine = tmp_path / "mine.json"
    mine.write_bytes((tmp_path / "out" / "tokenizer.json").read_bytes())
    use = ("--set", f"tokenizer={{path: {mine}}}", "--set", f"output.path={tmp_path / 'second'}")
    assert subprocess.run(dataprep.line(pipeline, *use), check=False).returncode == 0
    value = json.loads(mine.read_text())
    mine.write_text(json.dumps({**value, "version": "1.0", "truncation": None}) + "\n")
    code, message = dataprep.fail(pipeline, *use)
    assert (code, "another configuration or other inputs" in message) == (2, True)


def test_faults_of_several_keys_are_told_at_once_with_their_places(tmp_path: Path, dataprep: Any) -> None:
    more = "steps: [{blocklist: {path: nope.txt}}]"
    pipeline = write(tmp_path, "[{path: a.jsonl}]", more, "a.jsonl/out")
    write_lines(tmp_path / "a.jsonl")
    done = subprocess.run(dataprep.line(pipeline, "--dry-run"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{pipeline}:5:10: output.path: {tmp_path / 'a.jsonl'} is a file, not a folder" in done.stderr
    assert f"{pipeline}:4:9: steps[0].blocklist: {tmp_path / 'nope.txt'}: no such file" in done.stderr


def test_a_source_that_no_input_has_is_refused(tmp_path: Path, dataprep: Any) -> None:
    more = "steps:\n  - length: {min_chars: 1, only: {source: [cod]}}"
    pipeline = write(tmp_path, "[{path: a.jsonl, source: code}]", more)
    write_lines(tmp_path / "a.jsonl")
    code, message = dataprep.fail(pipeline, "--dry-run")
    wanted = f"{pipeline}:5:35: steps[0].length.only.source: no input has the source 'cod'; did you mean code?"
    assert (code, message) == (2, wanted)
    assert dataprep.run(pipeline, "--set", "inputs.0.source_field=kind")["totals"]["documents"] == 40
