"""Readers: files of many formats to DocBatches, with every record accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby

from dataprep.readers import arrow, delimited, jsonl, parquet, text
from dataprep.readers.files import opened, seek_line
from dataprep.readers.formats import file_kind
from dataprep.readers.inputs import BadRecord, Compression, FileRange, Format, ReadBatch, Split
from dataprep.readers.lines import LineEvent, LineLimit, line_events
from dataprep.readers.place import Place
from dataprep.readers.records import Document, Piece, gathered, limited
from dataprep.readers.streams import chunks

__all__ = ["read_split"]

_COLUMNAR: tuple[Format, ...] = ("parquet", "arrow")


def read_split(split: Split, *, batch_bytes: int = 8 << 20) -> Iterator[ReadBatch]:
    """Read a split's records in order, in batches of about `batch_bytes` of text.

    Memory is bounded by `batch_bytes` and one record, whatever the files' sizes. Raises EnvironmentFailure for a file
    that is missing, unreadable or not as planned, and ConfigError for one whose columns cannot be told apart; bad
    records are yielded, never raised.
    """
    for piece in limited(_pieces(split, batch_bytes), split.limit):
        if piece.records:
            yield ReadBatch(piece.batch, piece.bad)


def _pieces(split: Split, batch_bytes: int) -> Iterator[Piece]:
    label = split.input.source or split.key.rpartition("/")[0]

    def is_columnar(planned: FileRange) -> bool:
        return file_kind(planned.name, split.input)[0] in _COLUMNAR

    for columnar, ranges in groupby(split.ranges, is_columnar):
        if columnar:
            for planned in ranges:
                yield from _columnar_pieces(planned, Place(split.input, planned.name, label), batch_bytes)
            continue
        # Small files share a batch.
        records = (_records(planned, Place(split.input, planned.name, label)) for planned in ranges)
        yield from gathered(chain.from_iterable(records), batch_bytes)


def _columnar_pieces(planned: FileRange, place: Place, batch_bytes: int) -> Iterator[Piece]:
    read = parquet.read if file_kind(planned.name, place.entry)[0] == "parquet" else arrow.read
    with opened(planned):
        yield from read(planned, place, batch_bytes)


def _records(planned: FileRange, place: Place) -> Iterator[Document | BadRecord]:
    format_, compression = file_kind(planned.name, place.entry)
    max_bytes = int(place.entry.max_doc_bytes)
    if format_ == "jsonl":
        yield from jsonl.read(_lines(planned, compression, jsonl.line_limit(max_bytes)), place)
    elif format_ != "text":
        lines = _lines(planned, compression, delimited.line_limit(max_bytes))
        yield from delimited.read(lines, place, "," if format_ == "csv" else "\t")
    elif place.entry.unit == "file":
        with opened(planned) as file:
            yield from text.read_file(chunks(file, planned.path, compression), place)
    else:
        read = text.read_lines if place.entry.unit == "line" else text.read_paragraphs
        yield from read(_lines(planned, compression, text.line_limit(max_bytes)), place)


def _lines(planned: FileRange, compression: Compression, limit: LineLimit) -> Iterator[LineEvent]:
    with opened(planned) as file:
        offset = seek_line(file, planned.start, planned.end)
        yield from line_events(chunks(file, planned.path, compression), limit, offset, planned.end)
