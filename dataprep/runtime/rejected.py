"""Where the documents that do not go on are kept: dropped/*.parquet and quarantine/*.parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataprep.batch import LABEL
from dataprep.readers.inputs import BadRecord
from dataprep.storage import atomic_path

KeepText = Literal["excerpt", "full", "none"]
_EXCERPT_CHARACTERS = 200

DROPPED_SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.string()),
        pa.field("source", LABEL),
        pa.field("origin", pa.string()),
        pa.field("stage", pa.string()),
        pa.field("reason", LABEL),
        pa.field("matched_doc", pa.string()),
        pa.field("text", pa.large_string()),
    ]
)

QUARANTINE_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("source", "origin", "reason", "detail", "excerpt")],
)


class Table:
    """A Parquet file that comes into being with its first row."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.schema = schema
        self.rows = 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if batch.num_rows == 0:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(str(self.path), self.schema, compression="zstd")
        self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> None:
        """Finish the file, if there is one."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def rejected_table(final: Path, schema: pa.Schema) -> Iterator[Table]:
    """A table that is moved to `final` on success; without rows, `final` does not exist afterwards."""
    with atomic_path(final) as temporary:
        table = Table(temporary, schema)
        try:
            yield table
        finally:
            table.close()
        if table.rows == 0:
            temporary.touch()
    if table.rows == 0:
        final.unlink()


def dropped_rows(
    batch: pa.RecordBatch, stage: str, keep_text: KeepText, matched: Sequence[str] | pa.Array | None = None
) -> pa.RecordBatch:
    """The dropped documents of a batch (all its rows have a reason) as rows of DROPPED_SCHEMA."""
    rows = batch.num_rows
    return pa.RecordBatch.from_arrays(
        [
            batch.column("doc_id"),
            batch.column("source"),
            batch.column("origin"),
            pa.repeat(stage, rows),
            batch.column("reason"),
            pa.nulls(rows, pa.string()) if matched is None else pa.array(matched, pa.string()),
            _kept_text(batch.column("text"), keep_text),
        ],
        schema=DROPPED_SCHEMA,
    )


def _kept_text(text: pa.LargeStringArray, keep: KeepText) -> Any:
    if keep == "full":
        return text
    if keep == "none":
        return pa.nulls(len(text), pa.large_string())
    return pc.utf8_slice_codeunits(text, 0, _EXCERPT_CHARACTERS)


def quarantine_rows(bad: Sequence[BadRecord]) -> pa.RecordBatch:
    """Bad records as rows of QUARANTINE_SCHEMA."""
    columns = [[getattr(record, name) for record in bad] for name in QUARANTINE_SCHEMA.names]
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=QUARANTINE_SCHEMA)
