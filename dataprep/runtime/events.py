"""What a run tells its listeners: one frozen record an event, and a JSON line for each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TextIO

from dataprep.streams import json_text


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The plan is made; `tasks` counts the tasks of all stages known so far."""

    name: str
    tasks: int
    workers: int


@dataclass(frozen=True, slots=True)
class StageStarted:
    """A stage of `tasks` tasks over `bytes` of input begins; `finished_before` of them an earlier run has done.

    Those may also be reported one by one as TaskFinished with `reused`; listeners do not count them twice.
    """

    stage: str
    tasks: int
    finished_before: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """One task's ledger in brief; `text_bytes` is the UTF-8 text it went through, `seconds` its own wall time."""

    stage: str
    key: str
    seconds: float
    records_in: int
    kept: int
    dropped: int
    quarantined: int
    text_bytes: int
    reused: bool = False


@dataclass(frozen=True, slots=True)
class TaskRetried:
    """A task is given to a fresh worker because its last one failed."""

    stage: str
    key: str
    why: str


@dataclass(frozen=True, slots=True)
class StageFinished:
    """Every task of the stage is committed."""

    stage: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The manifests are written: one, or one a split."""

    documents: int
    tokens: int
    rows: int
    shards: int
    seconds: float
    manifest_hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run stopped; what it had finished is kept."""

    message: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth a line that is not an error."""

    message: str


Event = RunStarted | StageStarted | TaskFinished | TaskRetried | StageFinished | RunFinished | RunFailed | Note
Reporter = Callable[[Event], None]


def event_name(event: Event) -> str:
    """The event's name in logs: `TaskFinished` → `task_finished`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()


def json_reporter(stream: TextIO) -> Reporter:
    """Write each event as one JSON object a line (`event`, its fields, `time` in ISO 8601 UTC), flushed at once."""

    def report(event: Event) -> None:
        stream.write(json_line(event, stream))
        stream.flush()

    return report


def json_line(event: Event, stream: TextIO) -> str:
    """The line that json_reporter writes to `stream`."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return json_text({"event": event_name(event), **asdict(event), "time": now}, stream) + "\n"


def combine(*reporters: Reporter) -> Reporter:
    """One reporter that hands each event to all of them, in order."""

    def report(event: Event) -> None:
        for reporter in reporters:
            reporter(event)

    return report
