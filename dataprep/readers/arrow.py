"""Arrow IPC files and streams, one record batch after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pyarrow as pa

from dataprep.readers.columns import piece_of
from dataprep.readers.inputs import FileRange
from dataprep.readers.names import refuse_schema
from dataprep.readers.parquet import BROKEN, MOST_ROWS, broken, lost, reraise_disk_error, wanted_columns
from dataprep.readers.place import Place
from dataprep.readers.records import Piece
from dataprep.readers.strings import as_binary

_FILE_MAGIC = b"ARROW1"


def read(planned: FileRange, place: Place, batch_bytes: int) -> Iterator[Piece]:
    """Yield the records of an Arrow file or stream; a record's position is its row in the file.

    Of what cannot be decoded each row is one bad record where the file tells how many rows there were: a file that
    cannot be opened and the rest of a stream that is cut short are one. Raises ConfigError for columns that cannot be
    told apart or have no form in JSON.
    """
    # Not memory-mapped: a file cut short while it is read would kill the process.
    with pa.OSFile(planned.path) as source:
        is_file = source.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        source.seek(0)
        if planned.size == 0:
            return
        try:
            reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
            refuse_schema(reader.schema, place)
        except BROKEN as error:
            reraise_disk_error(error, planned.path)
            yield broken(place, None, "broken_file", f"cannot be opened as Arrow: {error}")
            return
        rows = _Rows(planned, place, batch_bytes)
        yield from rows.of_file(reader) if is_file else rows.of_stream(reader)


class _Rows:
    """The records of one file's batches, numbered on from batch to batch."""

    def __init__(self, planned: FileRange, place: Place, batch_bytes: int) -> None:
        self._planned = planned
        self._place = place
        self._batch_bytes = batch_bytes
        self._row = 0

    def of_file(self, reader: pa.RecordBatchFileReader) -> Iterator[Piece]:
        """Yield the records of a file; behind a batch that cannot be decoded rows have no numbers, so all are lost."""
        for index in range(reader.num_record_batches):
            try:
                batch = reader.get_batch(index)
            except BROKEN as error:
                reraise_disk_error(error, self._place.name)
                behind = reader.num_record_batches - index - 1
                detail = f"record batch {index} cannot be decoded, nor the {behind} behind: {error}"
                yield from self._lost(_rows_in_all(self._planned.path) - self._row, detail)
                return
            yield from self._batch(index, batch)

    def of_stream(self, reader: pa.RecordBatchStreamReader) -> Iterator[Piece]:
        """Yield the records of a stream."""
        for index in count():
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except BROKEN as error:
                reraise_disk_error(error, self._place.name)
                detail = f"the Arrow stream cannot be read from row {self._row} on: {error}"
                yield broken(self._place, self._row, "truncated_stream", detail)
                return
            yield from self._batch(index, batch)

    def _batch(self, index: int, batch: pa.RecordBatch) -> Iterator[Piece]:
        columns = wanted_columns(batch.schema, self._place.entry)
        wanted = batch if columns is None else batch.select([batch.schema.names.index(name) for name in columns])
        try:
            for array in wanted.columns:
                # Lengths, offsets and dictionary indices; whether strings are UTF-8 is told row by row.
                as_binary(array).validate(full=True)
        except BROKEN as error:
            yield from self._lost(batch.num_rows, f"record batch {index} cannot be decoded: {error}")
        else:
            yield from self._pieces(wanted)
        self._row += batch.num_rows

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[Piece]:
        rows = self._batch_bytes * batch.num_rows // max(1, batch.get_total_buffer_size())
        rows = max(1, min(MOST_ROWS, rows))
        for start in range(0, batch.num_rows, rows):
            yield piece_of(batch.slice(start, rows), self._row + start, self._place)

    def _lost(self, rows: int, detail: str) -> Iterator[Piece]:
        # A damaged batch may claim any number of rows; more than a bit each are not believed.
        believed = rows if 0 < rows <= 8 * self._planned.size else 1
        yield from lost(self._place, self._row, believed, "broken_record_batch", detail)


def _rows_in_all(path: str) -> int:
    """Rows that a file's batches say they have, without their content; 0 where they do not tell."""
    # It takes as long to import as the rest of Arrow together, and few files need it.
    from pyarrow import dataset

    try:
        return int(dataset.dataset(path, format="ipc").count_rows())
    except BROKEN as error:
        reraise_disk_error(error, path)
        return 0
