"""Reading files of a folder the way a run does: planned first, then split by split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dataprep.readers import read_split
from dataprep.readers.inputs import BadRecord, Input
from dataprep.readers.split import plan_splits


@dataclass
class Read:
    """All that came out of reading."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    bad: list[BadRecord] = field(default_factory=list)

    def column(self, name: str) -> list[Any]:
        return [document[name] for document in self.documents]

    @property
    def texts(self) -> list[str]:
        return self.column("text")

    @property
    def reasons(self) -> list[tuple[str, str]]:
        return [(record.origin, record.reason) for record in self.bad]


def read_inputs(
    base: Path, *inputs: Input, split_bytes: int = 1 << 30, batch_bytes: int = 8 << 20, limit: int | None = None
) -> Read:
    """Plan and read everything."""
    result = Read()
    for split in plan_splits(inputs, base, split_bytes=split_bytes, limit=limit):
        for batch in read_split(split, batch_bytes=batch_bytes):
            batch.batch.validate(full=True)
            result.documents += batch.batch.to_pylist()
            result.bad += batch.bad
    return result


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Read]:
    """read(name, content, **input fields): write one file and read it."""

    def write_and_read(name: str, content: bytes, **fields: Any) -> Read:
        (tmp_path / name).write_bytes(content)
        return read_inputs(tmp_path, Input(path=name, **fields))

    return write_and_read


@pytest.fixture
def read_all() -> Callable[..., Read]:
    """read_all(base, *inputs, split_bytes=, batch_bytes=, limit=): plan and read."""
    return read_inputs
