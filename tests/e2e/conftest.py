"""The command as a user runs it, and a small bilingual pipeline to run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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


class Command:
    """`dataprep` in processes of its own."""

    def line(self, pipeline: Path, *more: str) -> list[str]:
        """The command line of a run."""
        return [sys.executable, "-m", "dataprep", "run", str(pipeline), *more]

    def run(self, pipeline: Path, *more: str) -> dict[str, Any]:
        """Run to the end; the manifest of the set in `out` beside the pipeline."""
        done = subprocess.run(self.line(pipeline, *more), capture_output=True, text=True, timeout=500, check=False)
        assert done.returncode == 0, done.stderr
        content: dict[str, Any] = json.loads((pipeline.parent / "out" / "manifest.json").read_text())
        return content

    def fail(self, pipeline: Path, *more: str) -> tuple[int, str]:
        """Run and fail: the exit code, and the one line that says why; no set is taken for finished."""
        done = subprocess.run(self.line(pipeline, *more), capture_output=True, text=True, timeout=500, check=False)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1, done.stderr
        assert errors[0] == done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
        return done.returncode, errors[0].removeprefix("error: ")


@pytest.fixture(scope="session")
def dataprep() -> Command:
    return Command()


def write_inputs(folder: Path, inputs: str = f"{EN}\n{ZH}", workers: int = 2) -> Path:
    """400 documents: every tenth is one of two texts of its source, some are too short, too long or broken."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, field, words in (("en", "text", "the ship came home at night"), ("zh", "content", "夜里的船回来了")):
        lines = []
        for number in range(200):
            told = number // 100 if number % 10 == 0 else number + 1000
            body = f"{words} {told} " * (1 + told % 7)
            body = "ab" if number % 50 == 7 else body * 20 if number % 50 == 9 else body
            lines.append(json.dumps({"id": f"{name}-{number:03d}", field: body}, ensure_ascii=False))
        lines.insert(100, '{"id": "broken"')
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pipeline = folder / "small.yaml"
    pipeline.write_text(PIPELINE.format(inputs=inputs, workers=workers))
    return pipeline


@pytest.fixture(scope="session")
def write_small() -> Callable[..., Path]:
    """Writes the small pipeline with its inputs into a folder."""
    return write_inputs


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory, dataprep: Command) -> Path:
    """The set that one worker makes of the small pipeline."""
    pipeline = write_inputs(tmp_path_factory.mktemp("reference"), workers=1)
    dataprep.run(pipeline)
    return pipeline.parent / "out"
