"""Arrow IPC files and streams, one record batch after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from dataprep.readers.columns import is_text, piece_of
from dataprep.readers.inputs import FileRange
from dataprep.readers.parquet import BROKEN, broken, reraise_disk_error, wanted_columns
from dataprep.readers.place import Place
from dataprep.readers.records import Piece

_FILE_MAGIC = b"ARROW1"


def read(planned: FileRange, place: Place, batch_bytes: int) -> Iterator[Piece]:
    """Yield the records of an Arrow file or stream; a record's position is its row in the file.

    What cannot be decoded is one bad record: the file, a record batch, or the rest of a stream.
    """
    # Not memory-mapped: a file cut short while it is read would kill the process.
    with pa.OSFile(planned.path) as source:
        is_file = source.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        source.seek(0)
        if planned.size == 0:
            return
        try:
            reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        except BROKEN as error:
            reraise_disk_error(error, planned.path)
            yield broken(place, None, "broken_file", f"cannot be opened as Arrow: {error}")
            return
        yield from _file(reader, place, batch_bytes) if is_file else _stream(reader, place, batch_bytes)


def _file(reader: pa.RecordBatchFileReader, place: Place, batch_bytes: int) -> Iterator[Piece]:
    row = 0
    for index in range(reader.num_record_batches):
        try:
            batch = _sound(reader.get_batch(index))
        except BROKEN as error:
            reraise_disk_error(error, place.name)
            # Rows of a file have numbers only as far as the batches before can be counted.
            detail = f"record batch {index} cannot be decoded, nor the {reader.num_record_batches - index - 1} behind"
            yield broken(place, row, "broken_record_batch", f"{detail}: {error}")
            return
        yield from _pieces(batch, row, place, batch_bytes)
        row += batch.num_rows


def _stream(reader: pa.RecordBatchStreamReader, place: Place, batch_bytes: int) -> Iterator[Piece]:
    row = 0
    while True:
        try:
            batch = _sound(reader.read_next_batch())
        except StopIteration:
            return
        except BROKEN as error:
            reraise_disk_error(error, place.name)
            yield broken(place, row, "truncated_stream", f"the Arrow stream cannot be read from row {row} on: {error}")
            return
        yield from _pieces(batch, row, place, batch_bytes)
        row += batch.num_rows


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Check lengths, offsets and dictionary indices of a batch; whether strings are UTF-8 is told row by row."""
    for array in batch.columns:
        if not is_text(array.type):
            array.validate(full=True)
            continue
        if pa.types.is_dictionary(array.type):
            array.indices.validate(full=True)
            bounds = pc.min_max(array.indices)
            if bounds["min"].is_valid and not 0 <= bounds["min"].as_py() <= bounds["max"].as_py() < len(
                array.dictionary
            ):
                raise pa.ArrowInvalid("a dictionary index is out of bounds")
            array = array.dictionary
        _as_binary(array).validate(full=True)
    return batch


def _as_binary(array: pa.Array) -> pa.Array:
    kinds = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    return array.view(kinds[array.type])


def _pieces(batch: pa.RecordBatch, first_row: int, place: Place, batch_bytes: int) -> Iterator[Piece]:
    columns = wanted_columns(batch.schema, place.entry)
    wanted = batch if columns is None else batch.select(columns)
    rows = max(1, batch_bytes * batch.num_rows // max(1, wanted.get_total_buffer_size()))
    for start in range(0, batch.num_rows, rows):
        yield piece_of(wanted.slice(start, rows), first_row + start, place)
