"""Parquet: row groups, read in batches of bounded size, only the columns that are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.readers.columns import piece_of
from dataprep.readers.inputs import FileRange, Input
from dataprep.readers.place import Place
from dataprep.readers.records import Piece, empty_batch
from dataprep.storage import disk_errors

_MOST_ROWS = 1 << 16
_BUFFER_BYTES = 1 << 20
# What Arrow raises for a file that breaks the format; OSError with no errno is "cannot decode", not "cannot read".
BROKEN = (pa.ArrowException, OSError, ValueError)


def row_group_bytes(path: str) -> tuple[int, ...] | None:
    """Compressed bytes of each row group, or None for a file that is not Parquet."""
    try:
        with pq.ParquetFile(path) as file:
            return tuple(_compressed_bytes(file, group) for group in range(file.num_row_groups))
    except BROKEN as error:
        reraise_disk_error(error, path)
        return None


def _compressed_bytes(file: pq.ParquetFile, group: int) -> int:
    metadata = file.metadata.row_group(group)
    return sum(metadata.column(index).total_compressed_size for index in range(metadata.num_columns))


def reraise_disk_error(error: Exception, path: str) -> None:
    """Raise EnvironmentFailure if an error is the disk's and not the file content's."""
    if isinstance(error, OSError) and error.errno is not None:
        with disk_errors(Path(path)):
            raise error


def read(planned: FileRange, place: Place, batch_bytes: int) -> Iterator[Piece]:
    """Yield the records of a range of row groups; a record's position is its row in the file.

    What cannot be decoded is one bad record: the file, or the rest of a row group.
    """
    try:
        file = pq.ParquetFile(planned.path, buffer_size=_BUFFER_BYTES, page_checksum_verification=True)
    except BROKEN as error:
        reraise_disk_error(error, planned.path)
        yield broken(place, None, "broken_file", f"cannot be opened as Parquet: {error}")
        return
    with file:
        end = file.num_row_groups if planned.end is None else planned.end
        first_row = sum(file.metadata.row_group(group).num_rows for group in range(planned.start))
        for group in range(planned.start, end):
            yield from _row_group(file, group, first_row, place, batch_bytes)
            first_row += file.metadata.row_group(group).num_rows


def _row_group(file: pq.ParquetFile, group: int, first_row: int, place: Place, batch_bytes: int) -> Iterator[Piece]:
    metadata = file.metadata.row_group(group)
    row, end = first_row, first_row + metadata.num_rows
    if row == end:
        return
    rows = max(1, min(_MOST_ROWS, batch_bytes * metadata.num_rows // max(1, metadata.total_byte_size)))
    columns = wanted_columns(file.schema_arrow, place.entry)
    try:
        for batch in file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
            piece = piece_of(batch, row, place)
            row += batch.num_rows
            yield piece
    except BROKEN as error:
        reraise_disk_error(error, place.name)
        detail = f"row group {group} cannot be decoded, {end - row} rows from row {row} are lost: {error}"
        yield broken(place, row, "broken_row_group", detail)


def wanted_columns(schema: pa.Schema, entry: Input) -> list[str] | None:
    """Names of the columns to read; None for all of them."""
    if entry.keep_meta:
        return None
    fields = filter(None, (entry.text, entry.id, entry.source_field))
    present = {name if name in schema.names else name.split(".")[0] for name in fields} & set(schema.names)
    # A file without any wanted column still has rows to account for; its first column counts them.
    return sorted(present) or schema.names[:1]


def broken(place: Place, row: int | None, reason: str, detail: str) -> Piece:
    """A piece of nothing but the damage."""
    return Piece(empty_batch(), (place.bad(row, reason, detail),), (0,))
