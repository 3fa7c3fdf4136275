"""kill -9, of a worker and of whole runs: what ends finished has the bytes of a run that nothing happened to."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from dataprep.shards.manifest import load_manifest

KILLS = 20


@contextmanager
def started(dataprep: Any, pipeline: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own, its events as JSON lines on standard error."""
    process = subprocess.Popen(
        dataprep.line(pipeline, "--log-json"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def after_tasks(process: subprocess.Popen[str], count: int) -> None:
    """Return when the run has told of `count` finished tasks, or is at its end."""
    assert process.stderr is not None
    for line in process.stderr:
        event = json.loads(line)
        count -= event["event"] == "task_finished" and not event["reused"]
        if count <= 0:
            return


@pytest.mark.slow
def test_a_run_killed_at_twenty_random_moments_ends_with_the_same_hash(
    reference: Path, tmp_path: Path, dataprep: Any, write_small: Any
) -> None:
    pipeline = write_small(tmp_path)
    moments = random.Random(20)
    killed = 0
    while killed < KILLS:
        with started(dataprep, pipeline) as process:
            after_tasks(process, moments.randrange(4))
            time.sleep(moments.uniform(0, 0.1))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                killed += 1
        # Killed between its last write and its exit, a run is finished; a manifest is never half true.
        if (tmp_path / "out" / "manifest.json").exists():
            assert load_manifest(tmp_path / "out").hash == load_manifest(reference).hash
            shutil.rmtree(tmp_path / "out")
            shutil.rmtree(tmp_path / "work")
    assert dataprep.run(pipeline)["hash"] == load_manifest(reference).hash


def long_pipeline(folder: Path) -> Path:
    """One task of a second or so in each stage."""
    folder.mkdir()
    lines = (json.dumps({"text": f"the ship number {number} came home at night " * 8}) for number in range(20_000))
    (folder / "en.jsonl").write_text("\n".join(lines))
    pipeline = folder / "long.yaml"
    pipeline.write_text(
        "name: long\ninputs: [{path: en.jsonl, source: en}]\nsteps: [normalize, exact_dedup]\n"
        "tokenizer: {train: {vocab_size: 300}}\npack: {seq_length: 128}\noutput: {path: out}\nrun: {workers: 1}\n"
    )
    return pipeline


def busy_worker_of(process: subprocess.Popen[str]) -> psutil.Process:
    """The run's only worker, a child of the fork server, as soon as it works: waiting for work takes no CPU."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children():
            for worker in child.children():
                if worker.cpu_times().user > 0.05:
                    return worker
    raise AssertionError("no worker came up")


def test_a_run_that_loses_a_worker_in_mid_task_tells_so_and_ends_with_the_same_hash(
    tmp_path: Path, dataprep: Any
) -> None:
    untouched = dataprep.run(long_pipeline(tmp_path / "untouched"))
    pipeline = long_pipeline(tmp_path / "bereft")
    with started(dataprep, pipeline) as process:
        busy_worker_of(process).kill()
        _, told = process.communicate(timeout=120)
    events = [json.loads(line) for line in told.splitlines()]
    [retried] = [event for event in events if event["event"] == "task_retried"]
    assert (retried["stage"], retried["why"]) == ("prepare", "killed by SIGKILL")
    assert process.returncode == 0
    assert load_manifest(tmp_path / "bereft" / "out").hash == untouched["hash"]
