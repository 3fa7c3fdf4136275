"""prepare: read one split, run the steps before deduplication, write sorted parts and their key files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataprep.batch import LABEL, text_bytes, utf8_buffers
from dataprep.dedup.exact import write_keys
from dataprep.dedup.keys import ExactDedup, content_keys
from dataprep.errors import BadDataError
from dataprep.readers import read_split
from dataprep.readers.inputs import BadRecord, Split
from dataprep.runtime.ledger import Tally, add_tallies
from dataprep.runtime.parts import sort_part, write_part
from dataprep.runtime.rejected import (
    DROPPED_SCHEMA,
    QUARANTINE_SCHEMA,
    KeepText,
    Table,
    dropped_rows,
    quarantine_rows,
    rejected_table,
)
from dataprep.runtime.steps import judge
from dataprep.runtime.task import Outcome
from dataprep.step import Step

STAGE = "prepare"


@dataclass(frozen=True, slots=True)
class Prepare:
    """One split through the first pass. `parts` is the stem of the part files' paths."""

    split: Split
    steps: tuple[Step, ...]
    dedup: ExactDedup | None
    seed: int
    part_bytes: int
    keep_text: KeepText
    fail_on_bad: bool
    parts: Path
    dropped: Path
    quarantine: Path

    def run(self) -> Outcome:
        """Read, judge and write the split."""
        with (
            rejected_table(self.dropped, DROPPED_SCHEMA) as dropped,
            rejected_table(self.quarantine, QUARANTINE_SCHEMA) as quarantine,
        ):
            outcome = self._read(dropped, quarantine)
        tables = ((self.dropped, dropped.rows), (self.quarantine, quarantine.rows))
        written = {path: rows for path, rows in tables if rows}
        return replace(outcome, outputs={**outcome.outputs, **written})

    def _read(self, dropped: Table, quarantine: Table) -> Outcome:
        tallies = []
        edits: Counter[str] = Counter()
        texts = xxhash.xxh3_128()
        writer = _PartWriter(self)
        for read in read_split(self.split):
            self._refuse_bad(read.bad)
            data, offsets = utf8_buffers(read.batch.column("text"))
            texts.update(np.diff(offsets).tobytes())
            texts.update(data[offsets[0] : offsets[-1]].data)
            judged = judge(read.batch, self.steps)
            tallies += [judged.tallies, _quarantined(read.bad)]
            edits.update(judged.edits)
            dropped.write(dropped_rows(judged.dropped, STAGE, self.keep_text))
            quarantine.write(quarantine_rows(read.bad))
            writer.add(judged.kept)
        writer.flush()
        facts = {"parts": writer.parts, "texts_xxh3": texts.hexdigest(), "exempt": dict(writer.exempt)}
        return Outcome(writer.outputs, add_tallies(tallies), dict(sorted(edits.items())), facts)

    def _refuse_bad(self, bad: tuple[BadRecord, ...]) -> None:
        if bad and self.fail_on_bad:
            raise BadDataError(
                f"{bad[0].reason}: {bad[0].detail}",
                where=bad[0].origin,
                mend="mend the record, or set run.on_bad_record to quarantine",
            )


def _quarantined(bad: tuple[BadRecord, ...]) -> dict[str, Tally]:
    counts: dict[str, Counter[str]] = {}
    for record in bad:
        counts.setdefault(record.source, Counter())[record.reason] += 1
    return {source: Tally(records=sum(reasons.values()), quarantined=reasons) for source, reasons in counts.items()}


class _PartWriter:
    """Collects kept documents and writes a part whenever `part_bytes` of text have come together."""

    def __init__(self, job: Prepare) -> None:
        self.job = job
        self.parts: list[dict[str, Any]] = []
        self.outputs: dict[Path, int | None] = {}
        self.exempt: Counter[str] = Counter()
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        self._batches.append(batch)
        self._bytes += text_bytes(batch)
        if self._bytes >= self.job.part_bytes:
            self.flush()

    def flush(self) -> None:
        if not self._batches:
            return
        part, positions = sort_part(self._batches, self.job.seed)
        stem = f"{self.job.parts.name}-{len(self.parts):03d}"
        path = self.job.parts.with_name(f"{stem}.arrow")
        write_part(path, part)
        self.outputs[path] = part.num_rows
        fact: dict[str, Any] = {"path": str(path), "rows": part.num_rows, "text_bytes": self._bytes}
        fact["sources"] = _bytes_by_source(part)
        if self.job.dedup is None:
            self._exempt(part.column("source"))
        else:
            keys = self.job.parts.with_name(f"{stem}.keys.arrow")
            fact |= {"keys": str(keys), "keyed": self._write_keys(keys, self.job.dedup, part, positions)}
            self.outputs[keys] = fact["keyed"]
        self.parts.append(fact)
        self._batches, self._bytes = [], 0

    def _write_keys(
        self, path: Path, dedup: ExactDedup, part: pa.RecordBatch, positions: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> int:
        alive = part.append_column("reason", pa.nulls(part.num_rows, LABEL))
        chosen = dedup.selected(alive)
        rows = np.arange(part.num_rows, dtype=np.uint32)
        documents = part.append_column("row", pa.array(rows))
        documents = documents.append_column("position", pa.array(positions.astype(np.uint32)))
        if not chosen.all():
            self._exempt(part.column("source").filter(pa.array(~chosen)))
            documents = documents.filter(pa.array(chosen))
        write_keys(path, documents, content_keys(documents.column("text"), dedup.normalize))
        return int(documents.num_rows)

    def _exempt(self, source: pa.DictionaryArray) -> None:
        counts = pc.value_counts(source.cast(pa.string())).to_pylist()
        self.exempt.update({entry["values"]: entry["counts"] for entry in counts})


def _bytes_by_source(part: pa.RecordBatch) -> dict[str, int]:
    source, (_, offsets) = part.column("source"), utf8_buffers(part.column("text"))
    names = source.dictionary.to_pylist()
    sums = np.bincount(source.indices.to_numpy(), weights=np.diff(offsets), minlength=len(names))
    return {name: int(size) for name, size in zip(names, sums, strict=True) if size}
