"""Standard output and error as a shell hands them over: closed, full, left by their reader, or of another encoding."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dataprep.shards.manifest import load_manifest

COMMAND = [sys.executable, "-m", "dataprep"]


@contextmanager
def left_pipe() -> Iterator[int]:
    """The end to write to of a pipe that has nobody at the other."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def shell(line: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `dataprep` is the command, in a bare UTF-8 environment but for what is given."""
    bare = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'dataprep() {{ {shlex.join(COMMAND)} "$@"; }}; {line}'],
        capture_output=True, encoding="utf-8", timeout=300, check=False,
        env={**bare, "LC_ALL": "C.UTF-8", **(environment or {})},
    )  # fmt: skip


@pytest.mark.parametrize(
    "words", ["stats {0}", "verify {0} --quick", "inspect {0}", "dropped {0}", "schema", "--help", "run --help"]
)
@pytest.mark.parametrize(("output", "why"), [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")])
def test_a_result_that_cannot_be_written_is_one_line_and_exit_4(
    reference: Path, words: str, output: str, why: str
) -> None:
    done = shell(f"dataprep {words.format(reference)} {output}")
    assert done.stderr == f"error: standard output: cannot be written: {why}; send it elsewhere\n"
    assert done.returncode == 4


def test_a_reader_that_leaves_ends_a_command_as_pipes_do() -> None:
    with left_pipe() as output:
        done = subprocess.run([*COMMAND, "schema"], stdout=output, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_a_run_whose_log_is_read_no_more_goes_on(reference: Path, tmp_path: Path, write_small: Any) -> None:
    pipeline = write_small(tmp_path)
    with left_pipe() as log:
        done = subprocess.run([*COMMAND, "run", str(pipeline), "--log-json"], stderr=log, check=False)
    assert done.returncode == 0
    assert load_manifest(tmp_path / "out").hash == load_manifest(reference).hash


@pytest.mark.parametrize("error", ["2>&-", "2>/dev/full", ">/dev/null 2>&- <&-"])
def test_a_run_goes_on_when_nobody_hears_what_it_tells(
    reference: Path, tmp_path: Path, write_small: Any, error: str
) -> None:
    pipeline = write_small(tmp_path)
    assert shell(f"dataprep run {pipeline} {error}").returncode == 0
    assert load_manifest(tmp_path / "out").hash == load_manifest(reference).hash


def test_an_error_that_nobody_hears_keeps_its_exit_code(tmp_path: Path) -> None:
    assert shell(f"dataprep run {tmp_path}/nowhere.yaml 2>/dev/full").returncode == 2


def test_with_closed_output_no_file_of_a_run_takes_its_place(tmp_path: Path, write_small: Any) -> None:
    done = shell(f"dataprep run {write_small(tmp_path)} <&- >&-")
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].startswith("error: standard output: cannot be written")
    assert shell(f"dataprep verify {tmp_path}/out").stdout.startswith("No damage found: ")


def test_characters_that_the_encoding_lacks_show_as_escapes(reference: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = shell(f"dataprep inspect {reference} --doc zh-001", ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert r"\u591c\u91cc\u7684\u8239" in done.stdout
    for words in ("schema", f"stats {reference} --json"):
        told = shell(f"dataprep {words}", ascii_only).stdout
        assert told.isascii()
        assert json.loads(told) == json.loads(shell(f"dataprep {words}").stdout)


def test_figures_are_whole_on_a_narrow_terminal(reference: Path) -> None:
    wide, narrow = (shell(f"dataprep stats {reference}", {"COLUMNS": width}).stdout for width in ("160", "40"))
    assert narrow == wide
    assert "…" not in wide


def test_help_names_every_command_in_a_whole_sentence() -> None:
    listed = shell("dataprep -h").stdout.partition("Commands:\n")[2].splitlines()
    assert len(listed) >= 8
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


def test_an_error_is_an_event_where_events_are_asked_for(tmp_path: Path) -> None:
    done = shell(f"dataprep run {tmp_path}/nowhere.yaml --log-json")
    [event] = [json.loads(line) for line in done.stderr.splitlines()]
    assert (event["event"], event["exit_code"], done.returncode) == ("run_failed", 2, 2)
    assert event["message"] == f"{tmp_path}/nowhere.yaml: no such file; check the path"


def test_debug_shows_the_traceback_and_keeps_the_exit_code(tmp_path: Path) -> None:
    done = shell(f"dataprep --debug run {tmp_path}/nowhere.yaml")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("nowhere.yaml: no such file; check the path")


def test_names_in_errors_cannot_steer_the_terminal(tmp_path: Path) -> None:
    done = shell(f"dataprep stats $'{tmp_path}/\\x1b[2J'")
    assert "\x1b" not in done.stderr
    assert r"\x1b[2J" in done.stderr


def test_a_terminal_that_cannot_draw_bars_gets_lines(tmp_path: Path, write_small: Any) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb"}
    line = [*COMMAND, "run", str(write_small(tmp_path))]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as process:
        os.close(theirs)
        told = b"".join(iter(lambda: read_to_end(ours), b"")).decode()
    os.close(ours)
    assert process.returncode == 0
    assert "\x1b" not in told
    assert [line for line in told.splitlines() if line.startswith("emit: done in ")] != []


def read_to_end(terminal: int) -> bytes:
    """What a terminal shows next; reading on after its last writer has left is an error on Linux."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
