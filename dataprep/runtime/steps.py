"""Run a list of steps over a batch, count what became of its documents, and part the living from the dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataprep.batch import utf8_buffers
from dataprep.runtime.ledger import Tally
from dataprep.step import Step


@dataclass(frozen=True, slots=True)
class Judged:
    """A batch after its steps: the living and the dropped documents, counts per source, and edits per kind."""

    kept: pa.RecordBatch
    dropped: pa.RecordBatch
    tallies: Mapping[str, Tally]
    edits: Mapping[str, int]


def judge(batch: pa.RecordBatch, steps: Sequence[Step]) -> Judged:
    """Apply the steps in order to a batch of live documents."""
    before = _sizes(batch)
    edits: Counter[str] = Counter()
    for step in steps:
        applied = step.run(batch)
        batch = applied.batch
        edits.update(applied.edits)
    alive = pc.is_null(batch.column("reason"))
    tallies = _tallies(batch, before)
    if pc.all(alive).as_py() is not False:
        return Judged(batch, batch.slice(0, 0), tallies, edits)
    return Judged(batch.filter(alive), batch.filter(pc.invert(alive)), tallies, edits)


def _sizes(batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    _, offsets = utf8_buffers(batch.column("text"))
    return np.diff(offsets)


def _tallies(batch: pa.RecordBatch, before: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[str, Tally]:
    table = pa.table(
        {
            "source": batch.column("source").cast(pa.string()),
            "reason": batch.column("reason").cast(pa.string()),
            "before": before,
            "after": _sizes(batch),
        }
    )
    wanted = [("before", "sum"), ("after", "sum"), ("before", "count")]
    rows = table.group_by(["source", "reason"], use_threads=False).aggregate(wanted).to_pylist()
    sources = sorted({row["source"] for row in rows})
    return {source: _tally([row for row in rows if row["source"] == source]) for source in sources}


def _tally(rows: Sequence[Mapping[str, object]]) -> Tally:
    numbers = [(row["reason"], int(str(row["before_count"]))) for row in rows]
    return Tally(
        records=sum(count for _, count in numbers),
        dropped={str(reason): count for reason, count in numbers if reason is not None},
        bytes_in=sum(int(str(row["before_sum"])) for row in rows),
        bytes_kept=sum(int(str(row["after_sum"])) for row in rows if row["reason"] is None),
    )
