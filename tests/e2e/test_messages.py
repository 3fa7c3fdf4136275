"""What a user reads when something is wrong, from the command itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

HEAD = "tokenizer: {train: {vocab_size: 300}}\npack: {seq_length: 8}\n"


def pipeline(folder: Path, name: str, inputs: str, steps: str = "[]") -> Path:
    path = folder / name
    path.write_text(
        f"inputs: {inputs}\nsteps: {steps}\n{HEAD}output: {{path: out}}\nrun: {{work_dir: work, workers: 1}}\n"
    )
    return path


def command(line: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    """Another subcommand than `run`, as `line` begins."""
    return subprocess.run([*line[:3], *words], capture_output=True, text=True, timeout=100, check=False)


def events(stderr: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stderr.splitlines()]


def test_too_many_bad_records_name_their_cause_and_can_be_listed(tmp_path: Path, dataprep: Any) -> None:
    (tmp_path / "zh.jsonl").write_text('{"id": "1", "text": "一"}\n' * 20, encoding="utf-8")
    (tmp_path / "en.jsonl").write_text('{"id": "1", "text": "one"}\n' * 2, encoding="utf-8")
    path = pipeline(tmp_path, "p.yaml", "[{path: en.jsonl}, {path: zh.jsonl, text: content}]")
    assert dataprep.fail(path) == (
        3,
        "20 of 22 records are bad, more than run.max_bad_fraction 0.05 allows: zh: text_missing in 20 of 20 records "
        "(100%), such as zh.jsonl#0: the record has no field content; it has id, text; set inputs[1].text to the field "
        f"that holds the text; or raise the fraction; `dataprep dropped {tmp_path}/out` lists them",
    )
    listed = command(dataprep.line(path), "dropped", str(tmp_path / "out"), "--limit", "3")
    assert listed.returncode == 0
    assert "3 of 20 shown, --limit 20 shows all" in listed.stdout
    assert "this set is unfinished" in listed.stderr
    as_json = command(dataprep.line(path), "dropped", str(tmp_path / "out"), "--json", "--reason", "text_missing")
    assert [json.loads(line)["origin"] for line in as_json.stdout.splitlines()][:2] == ["zh.jsonl#0", "zh.jsonl#27"]
    assert len(as_json.stdout.splitlines()) == 20
    failed = subprocess.run(dataprep.line(path, "--log-json"), capture_output=True, text=True, check=False)
    *_, last = events(failed.stderr)
    assert (failed.returncode, last["event"], last["exit_code"]) == (3, "run_failed", 3)
    assert last["message"].startswith("20 of 22 records are bad")
    assert [event["event"] for event in events(failed.stderr)].count("run_failed") == 1


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_json_events_are_all_there_is_on_standard_error_of_a_refused_pipeline(
    tmp_path: Path, dataprep: Any, more: tuple[str, ...]
) -> None:
    path = pipeline(tmp_path, "p.yaml", "[{path: en.jsonl, txt: a}]", "[lenght]")
    failed = subprocess.run(dataprep.line(path, "--log-json", *more), capture_output=True, text=True, check=False)
    [event] = events(failed.stderr)
    assert (failed.returncode, event["event"], event["exit_code"]) == (2, "run_failed", 2)
    assert "inputs[0].txt: unknown key" in event["message"]
    assert "unknown step lenght, did you mean length?" in event["message"]


def test_a_run_tells_its_seconds_to_the_millisecond(tmp_path: Path, dataprep: Any) -> None:
    (tmp_path / "en.jsonl").write_text('{"text": "one"}\n')
    path = pipeline(tmp_path, "p.yaml", "[{path: en.jsonl}]")
    done = subprocess.run(dataprep.line(path, "--log-json"), capture_output=True, text=True, check=True)
    seconds = events(done.stderr)[-1]["seconds"]
    assert seconds == round(seconds, 3)


@pytest.mark.parametrize(
    ("records", "steps", "why"),
    [
        (['{"text": "a"}'] * 3, "[length: {min_chars: 9}]", "length.min_chars took all 3 records"),
        (
            ['{"text": "a"}', '{"text": "????????????"}', '{"text": "bb"}'],
            '[length: {min_chars: 9}, regex: {drop: "[?]"}]',
            "length.min_chars took 2 of 3 records",
        ),
        ([], "[]", "there are no records in the inputs"),
    ],
)
def test_a_set_that_keeps_nothing_says_why(
    tmp_path: Path, dataprep: Any, records: list[str], steps: str, why: str
) -> None:
    (tmp_path / "en.jsonl").write_text("".join(record + "\n" for record in records))
    path = pipeline(tmp_path, "p.yaml", "[{path: en.jsonl}]", steps)
    done = subprocess.run(dataprep.line(path), capture_output=True, text=True, check=True)
    assert f"the set holds no documents: {why}" in done.stderr
    out = str(tmp_path / "out")
    assert "the set holds no rows" in command(dataprep.line(path), "inspect", out).stderr
    assert command(dataprep.line(path), "verify", out).stdout.startswith("No damage found: the set holds no rows")


def test_a_limited_run_says_that_sizes_are_of_whole_files(tmp_path: Path, dataprep: Any) -> None:
    (tmp_path / "en.jsonl").write_text('{"text": "one"}\n' * 50)
    path = pipeline(tmp_path, "p.yaml", "[{path: en.jsonl}]")
    done = subprocess.run(dataprep.line(path, "--limit", "3"), capture_output=True, text=True, check=True)
    assert "reading 3 records of each input at most; sizes are of whole files" in done.stderr
