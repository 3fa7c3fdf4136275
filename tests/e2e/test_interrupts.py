"""Ctrl-C, SIGTERM and SIGHUP: one line and exit code 130, whenever they come; workers and bystanders stay quiet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from dataprep.shards.manifest import load_manifest

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
RESUME = "interrupted: what is finished is kept; run the same command again to resume"


@contextmanager
def started(*words: object, hangup: Any = signal.SIG_DFL, path: Path | None = None) -> Iterator[Any]:
    """The command in a process group of its own; `hangup` is what it is to do with SIGHUP as it starts."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [path and str(path), *sys.path]))}
    process = subprocess.Popen(
        [sys.executable, "-m", "dataprep", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True, env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, hangup),
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupt_while_modules_are_loaded_is_one_line(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "click.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(300)\n")
    with started("schema", path=tmp_path) as process:
        assert process.stdout.readline() == "loading\n"
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, "interrupted\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupt_in_the_middle_of_a_command_is_one_line(tmp_path: Path, number: signal.Signals) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    with started("stats", tmp_path) as process, (tmp_path / "manifest.json").open("wb"):
        os.killpg(process.pid, number)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, "interrupted\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupt_before_the_first_task_says_how_to_resume(tmp_path: Path, number: signal.Signals) -> None:
    os.mkfifo(tmp_path / "x.yaml")
    with started("run", tmp_path / "x.yaml") as process, (tmp_path / "x.yaml").open("wb"):
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, RESUME + "\n")


def test_an_interrupt_is_an_event_where_events_are_asked_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.yaml")
    with started("run", tmp_path / "x.yaml", "--log-json") as process, (tmp_path / "x.yaml").open("wb"):
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    [event] = [json.loads(line) for line in told.splitlines()]
    assert (event["event"], event["message"], event["exit_code"]) == ("run_failed", RESUME, process.returncode)
    assert process.returncode == 130


def test_what_nohup_has_ignored_stays_ignored(reference: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    with started("stats", tmp_path, "--json", hangup=signal.SIG_IGN) as process:
        with (tmp_path / "manifest.json").open("wb") as manifest:
            process.send_signal(signal.SIGHUP)
            (tmp_path / "documents").symlink_to(reference / "documents")
            manifest.write((reference / "manifest.json").read_bytes())
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(told)["hash"] == load_manifest(reference).hash


def fork_server_of(process: Any) -> psutil.Process:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children():
            if "forkserver" in " ".join(child.cmdline()):
                return child
    raise AssertionError("no fork server came up")


def test_signals_to_what_starts_the_workers_are_not_heard(tmp_path: Path, write_small: Any, reference: Path) -> None:
    with started("run", write_small(tmp_path)) as process:
        server = fork_server_of(process)
        for number in (*SIGNALS, *SIGNALS):
            server.send_signal(number)
        _, told = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "Traceback" not in told
    assert load_manifest(tmp_path / "out").hash == load_manifest(reference).hash


@pytest.mark.parametrize("number", SIGNALS)
def test_two_to_the_whole_group_while_workers_start_are_one_line_and_leave_no_process(
    tmp_path: Path, write_small: Any, number: signal.Signals
) -> None:
    with started("run", write_small(tmp_path)) as process:
        server = fork_server_of(process)
        os.killpg(process.pid, number)
        os.killpg(process.pid, number)
        _, told = process.communicate(timeout=60)
    *before, last = told.splitlines()
    assert (process.returncode, last) == (130, RESUME)
    assert [line for line in before if not line.startswith(("small: ", "prepare: "))] == []
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("number", SIGNALS)
def test_a_run_interrupted_at_work_is_resumed_to_the_same_hash(
    tmp_path: Path, write_small: Any, dataprep: Any, reference: Path, number: signal.Signals
) -> None:
    pipeline = write_small(tmp_path)
    with started("run", pipeline, "--log-json") as process:
        for line in process.stderr:
            if json.loads(line)["event"] == "task_finished":
                break
        os.killpg(process.pid, number)
        _, told = process.communicate(timeout=60)
    last = json.loads(told.splitlines()[-1])
    assert (process.returncode, last["event"], last["message"]) == (130, "run_failed", RESUME)
    assert dataprep.run(pipeline)["hash"] == load_manifest(reference).hash
