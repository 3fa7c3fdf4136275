"""Task: the smallest piece of a run that is planned, executed, committed and resumed."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dataprep import storage
from dataprep.errors import EnvironmentFailure
from dataprep.runtime.ledger import Ledger, Output, Tallies, TaskRecord


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job has done: files with their rows (None: not a table), tallies, edits, and facts for later stages."""

    outputs: Mapping[Path, int | None] = field(default_factory=dict)
    tallies: Tallies = field(default_factory=dict)
    edits: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


class Job(Protocol):
    """The work of one task: picklable, and a pure function from its fields and inputs to its files."""

    def run(self) -> Outcome:
        """Do the work and move finished files to their final names."""


@dataclass(frozen=True, slots=True)
class Task:
    """A job with its identity. `id` hashes everything that can change the outputs; `bytes` is for progress.

    `files` are configured files the job reads (a list of terms, a tokenizer), each with the xxh3-128 that is in `id`.
    """

    stage: str
    key: str
    id: str
    job: Job
    bytes: int
    memory: int
    files: Mapping[str, str] = field(default_factory=dict)

    def execute(self, ledger: Path) -> TaskRecord:
        """Run the job, hash its outputs and commit its ledger record.

        Raises EnvironmentFailure if one of `files` is not what it was when the run was planned.
        """
        wall, cpu = time.monotonic(), time.process_time()
        self._check_files()
        outcome = self.job.run()
        self._check_files()
        record = TaskRecord(
            id=self.id,
            stage=self.stage,
            key=self.key,
            outputs=tuple(_output(path, rows) for path, rows in outcome.outputs.items()),
            tallies=outcome.tallies,
            edits=outcome.edits,
            facts=outcome.facts,
            run={
                "seconds": round(time.monotonic() - wall, 3),
                "cpu_seconds": round(time.process_time() - cpu, 3),
                "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
            },
        )
        Ledger(ledger).commit(record)
        return record

    def _check_files(self) -> None:
        for path, planned in self.files.items():
            if storage.hash_file(Path(path)) != planned:
                raise EnvironmentFailure(
                    "the file changed while the run was using it", where=path, mend="run again, with the file at rest"
                )


def _output(path: Path, rows: int | None) -> Output:
    return Output(str(path), path.stat().st_size, storage.hash_file(path), rows)
