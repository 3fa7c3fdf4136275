"""The ledger: one committed record a finished task, and the sums that prove nothing was lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dataprep import storage
from dataprep.errors import DamageError


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of one source's records in one stage; bytes are UTF-8 bytes of text before and after."""

    records: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_kept: int = 0

    @property
    def kept(self) -> int:
        """Records that go on to the next stage."""
        return self.records - sum(self.dropped.values()) - sum(self.quarantined.values())


Tallies = Mapping[str, Tally]


def add_tallies(parts: Iterable[Tallies]) -> dict[str, Tally]:
    """Sum tallies source by source; sources and reasons come out sorted."""
    per_source: dict[str, list[Tally]] = {}
    for tallies in parts:
        for source, tally in tallies.items():
            per_source.setdefault(source, []).append(tally)
    return {source: _sum(per_source[source]) for source in sorted(per_source)}


def _sum(tallies: list[Tally]) -> Tally:
    dropped: Counter[str] = Counter()
    quarantined: Counter[str] = Counter()
    for tally in tallies:
        dropped.update(tally.dropped)
        quarantined.update(tally.quarantined)
    return Tally(
        records=sum(tally.records for tally in tallies),
        dropped=dict(sorted(dropped.items())),
        quarantined=dict(sorted(quarantined.items())),
        bytes_in=sum(tally.bytes_in for tally in tallies),
        bytes_kept=sum(tally.bytes_kept for tally in tallies),
    )


@dataclass(frozen=True, slots=True)
class Output:
    """One file a task has finished: absolute path, bytes, xxh3-128 and, for tables, rows."""

    path: str
    bytes: int
    xxh3: str
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One ledger line. `facts` is what later stages need to know; `run` holds durations and other run-time facts."""

    id: str
    stage: str
    key: str
    outputs: tuple[Output, ...]
    tallies: Tallies
    edits: Mapping[str, int]
    facts: Mapping[str, Any]
    run: Mapping[str, float]


class Ledger:
    """The committed task records below one directory, one small JSON file a task."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def commit(self, record: TaskRecord) -> None:
        """Write a record; from this moment its task counts as finished."""
        storage.write_json(self._path(record.stage, record.id), asdict(record))

    def find(self, stage: str, task_id: str) -> TaskRecord | None:
        """Return the record of a finished task whose files are all still what they were, else None."""
        path = self._path(stage, task_id)
        if not path.exists():
            return None
        with storage.disk_errors(path):
            raw = path.read_bytes()
        record = _record(raw, path)
        return record if all(_intact(output) for output in record.outputs) else None

    def _path(self, stage: str, task_id: str) -> Path:
        return self.directory / stage / f"{task_id}.json"


def _record(raw: bytes, path: Path) -> TaskRecord:
    try:
        value = json.loads(raw)
        outputs = tuple(Output(**output) for output in value.pop("outputs"))
        tallies = {source: Tally(**tally) for source, tally in value.pop("tallies").items()}
        return TaskRecord(outputs=outputs, tallies=tallies, **value)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamageError(
            "this ledger record is damaged", where=str(path), mend="delete it and run again: its task is redone"
        ) from error


def _intact(output: Output) -> bool:
    path = Path(output.path)
    if not path.is_file() or path.stat().st_size != output.bytes:
        return False
    return storage.hash_file(path) == output.xxh3
