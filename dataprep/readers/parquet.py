"""Parquet: row groups, read in batches of bounded size, only the columns that are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.readers.columns import piece_of
from dataprep.readers.inputs import FileRange, Input
from dataprep.readers.names import paths_of, refuse_schema
from dataprep.readers.place import Place
from dataprep.readers.records import Piece, empty_batch
from dataprep.storage import disk_errors

MOST_ROWS = 1 << 16
_BUFFER_BYTES = 1 << 20
# Lost rows reported at once, so that a row group of millions takes no more memory than one of thousands.
_LOST_ROWS = 1 << 12
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

    A file that cannot be opened is one bad record; of a row group that cannot be decoded, each row not read is one.
    Raises ConfigError for columns that cannot be told apart or have no form in JSON.
    """
    try:
        file = pq.ParquetFile(planned.path, buffer_size=_BUFFER_BYTES, page_checksum_verification=True)
        refuse_schema(file.schema_arrow, place)
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
    rows = max(1, min(MOST_ROWS, batch_bytes * metadata.num_rows // max(1, metadata.total_byte_size)))
    schema = file.schema_arrow
    columns = wanted_columns(schema, place.entry)
    if columns is not None:
        # A file without any wanted column still has rows to account for; its first column counts them.
        columns = columns or schema.names[:1]
    batches = file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)
    why: object = "its pages end early"
    while True:
        try:
            batch = next(batches, None)
        except BROKEN as error:
            reraise_disk_error(error, place.name)
            why, batch = error, None
        if batch is None:
            break
        yield piece_of(batch, row, place)
        row += batch.num_rows
    if row < end:
        detail = f"row group {group} cannot be decoded, {end - row} rows from row {row} are lost: {why}"
        yield from lost(place, row, end - row if _adds_up(file) else 1, "broken_row_group", detail)


def _adds_up(file: pq.ParquetFile) -> bool:
    """Tell whether the footer's counts of rows agree: a damaged one may promise any number of them."""
    groups = range(file.num_row_groups)
    return bool(file.metadata.num_rows == sum(file.metadata.row_group(group).num_rows for group in groups))


def wanted_columns(schema: pa.Schema, entry: Input) -> list[str] | None:
    """Names of the columns to read, maybe none; None for all of them."""
    if entry.keep_meta:
        return None
    return sorted({path[0] for path in paths_of(schema.names, entry) if path} & set(schema.names))


def broken(place: Place, row: int | None, reason: str, detail: str) -> Piece:
    """A piece of nothing but the damage."""
    return Piece(empty_batch(), (place.bad(row, reason, detail),), (0,))


def lost(place: Place, row: int, rows: int, reason: str, detail: str) -> Iterator[Piece]:
    """Yield `rows` bad records from row `row` on: each row is accounted for, though none could be read."""
    for start in range(row, row + rows, _LOST_ROWS):
        places = range(min(_LOST_ROWS, row + rows - start))
        bad = tuple(place.bad(start + index, reason, detail) for index in places)
        yield Piece(empty_batch(), bad, tuple(places))
