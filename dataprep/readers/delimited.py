"""CSV and TSV with a header line: quoted fields may hold line feeds."""

from __future__ import annotations

import csv
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from dataprep.errors import ConfigError
from dataprep.readers.encodings import BadEncoding, field_decoder
from dataprep.readers.inputs import BadRecord
from dataprep.readers.lines import Damage, LineBlock, LineEvent, LongLine, records_of, without_bom
from dataprep.readers.names import refuse_doubles
from dataprep.readers.place import Place
from dataprep.readers.records import Document, those_there
from dataprep.readers.text import line_limit, raw_limit

Decode = Callable[[bytes], str]

__all__ = ["line_limit", "read"]

# Python's csv would end a row at a lone carriage return, and 3.10 refuses NUL; raw bytes travel as Latin-1, so any
# character above U+00FF can stand in for them.
_STAND_INS = (("\r", "\ue000"), ("\0", "\ue001"))


# A line with nothing between its ends is no row; one of blanks or of empty fields is.
_NOTHING = ([b"\n"], [b"\r\n"])
_QUOTED = re.compile(rb'"[^"]*("|$)')


@dataclass(frozen=True, slots=True)
class _Row:
    """A row's fields as Latin-1 with stand-ins, and its raw bytes."""

    fields: list[str]
    raw: bytes


@dataclass(frozen=True, slots=True)
class _Broken:
    reason: str
    detail: str
    raw: bytes


class _TooLong(Exception):
    """The row's lines are too long to hold."""


class _Stopped(Exception):
    """A line too long to hold, or damage, stands where the row should go on."""

    def __init__(self, event: LongLine | Damage) -> None:
        super().__init__(event)
        self.event = event


def read(events: Iterable[LineEvent], place: Place, delimiter: str) -> Iterator[Document | BadRecord]:
    """Yield the rows under the header; a row's position is its number, from 0.

    Raises ConfigError for columns that cannot be told apart, and for a file whose lines end in carriage returns: it
    would be all header.
    """
    # The default of 128 KiB a field is for untrusted input; ours is bounded by the rows.
    csv.field_size_limit(sys.maxsize)
    rows = _Rows(events, delimiter, raw_limit(int(place.entry.max_doc_bytes))).rows()
    header = next((row for row in rows if not _is_blank(row)), None)
    if header is None:
        return
    if _has_lone_return(header.raw):
        what = "the header line holds a carriage return without a line feed: its lines may end in CR"
        mend = "convert its line ends to LF (tr '\\r' '\\n'), quote the name that holds one, or `exclude:` the file"
        raise ConfigError(what, where=place.name, mend=mend)
    if isinstance(header, _Broken):
        yield place.bad(0, header.reason, f"the header line: {header.detail}", header.raw)
        return
    try:
        columns = _Columns(header, place)
    except BadEncoding as bad:
        yield place.bad(0, bad.reason, f"the header line: {bad.detail}", header.raw)
        return
    for number, row in enumerate(rows):
        yield columns.record(number, row)


def _is_blank(row: _Row | _Broken) -> bool:
    """Tell whether a row above the header is white space alone, which names no columns."""
    return isinstance(row, _Row) and len(row.fields) == 1 and row.raw.isspace()


def _has_lone_return(header: bytes) -> bool:
    """Tell whether a line holds a carriage return that is neither quoted nor part of its end."""
    return b"\r" in _QUOTED.sub(b"", header.removesuffix(b"\n").removesuffix(b"\r"))


class _Rows:
    """Rows of a stream of lines; a broken row costs its own first line, the lines behind it are read again."""

    def __init__(self, events: Iterable[LineEvent], delimiter: str, limit: int) -> None:
        self._source = _physical_lines(events)
        self._again: deque[bytes | LongLine | Damage] = deque()
        self._delimiter = delimiter
        self._limit = limit
        self._held: list[bytes] = []  # the lines of the row being read
        self._size = 0

    def rows(self) -> Iterator[_Row | _Broken]:
        reader = self._reader()
        while True:
            self._held, self._size = [], 0
            try:
                fields = next(reader, None)
            except csv.Error as error:
                self._again.extendleft(reversed(self._held[1:]))
                yield _Broken("broken_row", str(error), self._held[0])
            except _TooLong:
                yield self._too_long(self._held, self._held[-1].count(b'"') % 2 == 0)
            except _Stopped as stopped:
                yield from self._stopped(stopped.event)
            else:
                if fields is None:
                    return
                if self._held not in _NOTHING:
                    yield _Row(fields, b"".join(self._held))
                continue
            reader = self._reader()

    def _reader(self) -> Iterator[list[str]]:
        return csv.reader(self._feed(), delimiter=self._delimiter, strict=True)

    def _feed(self) -> Iterator[str]:
        while (line := self._next()) is not None:
            if not isinstance(line, bytes):
                raise _Stopped(line)
            self._held.append(line)
            self._size += len(line)
            if self._size > self._limit:
                raise _TooLong
            yield _stood_in(line)

    def _next(self) -> bytes | LongLine | Damage | None:
        return self._again.popleft() if self._again else next(self._source, None)

    def _stopped(self, event: LongLine | Damage) -> Iterator[_Broken]:
        if isinstance(event, Damage):
            yield _Broken(event.reason, event.detail, b"".join([*self._held[:1], event.head]))
            return
        open_before = bool(self._held)
        yield self._too_long([*self._held, event.head], open_before != (event.quotes % 2 == 1))

    def _too_long(self, lines: list[bytes], quote_open: bool) -> _Broken:
        """Report the row and skip what is left of it: the lines up to the one that closes the quoted field."""
        while quote_open and (line := self._next()) is not None:
            if isinstance(line, Damage):
                self._again.appendleft(line)
                break
            quotes = line.quotes if isinstance(line, LongLine) else line.count(b'"')
            quote_open = quotes % 2 == 0
        return _Broken("too_long", f"the row has more than {self._limit} bytes", lines[0])


def _physical_lines(events: Iterable[LineEvent]) -> Iterator[bytes | LongLine | Damage]:
    for event in events:
        if not isinstance(event, LineBlock):
            yield event
            continue
        for offset, line in records_of(event):
            yield without_bom(offset, line) + b"\n"


def _stood_in(line: bytes) -> str:
    text = line.decode("latin-1")
    body, end = (text[:-2], "\r\n") if text.endswith("\r\n") else (text[:-1], "\n")
    for character, stand_in in _STAND_INS:
        body = body.replace(character, stand_in)
    return body + end


def _raw(field: str) -> bytes:
    for character, stand_in in _STAND_INS:
        field = field.replace(stand_in, character)
    return field.encode("latin-1")


class _Columns:
    """The header, and the documents of rows under it."""

    def __init__(self, header: _Row, place: Place) -> None:
        self._place = place
        decode = field_decoder(place.entry.encoding, header.raw)
        self._names = [decode(_raw(name)) for name in header.fields]
        refuse_doubles(self._names, place)
        self._text = self._index(place.entry.text)
        self._id = self._index(place.entry.id)
        self._source = self._index(place.entry.source_field)

    def _index(self, name: str | None) -> int | None:
        return self._names.index(name) if name in self._names else None

    def record(self, number: int, row: _Row | _Broken) -> Document | BadRecord:
        """Make a document of a row."""
        place = self._place
        if isinstance(row, _Broken):
            return place.bad(number, row.reason, row.detail, row.raw)
        if len(row.fields) != len(self._names):
            detail = f"{len(row.fields)} fields, the header has {len(self._names)}"
            return place.bad(number, "broken_row", detail, row.raw)
        if self._text is None:
            detail = f"there is no column {place.entry.text}; the columns are {those_there(self._names)}"
            return place.bad(number, "text_missing", detail, row.raw)
        try:
            return self._document(number, row, self._text)
        except BadEncoding as bad:
            return place.bad(number, bad.reason, bad.detail, row.raw)

    def _document(self, number: int, row: _Row, text_column: int) -> Document | BadRecord:
        place = self._place
        decode = field_decoder(place.entry.encoding, row.raw)
        text = decode(_raw(row.fields[text_column]))
        if place.exceeds(text, 2 * len(row.raw)):
            return place.too_long(number, len(text.encode()), text)
        origin = place.origin(number)
        label = _field(row, self._source, decode) or place.source
        return Document(_field(row, self._id, decode) or origin, text, label, origin, self._meta(row, decode))

    def _meta(self, row: _Row, decode: Decode) -> str | None:
        if not self._place.entry.keep_meta:
            return None
        used = (self._text, self._id, self._source)
        others = {name: _field(row, index, decode) for index, name in enumerate(self._names) if index not in used}
        return msgspec.json.encode(others).decode()


def _field(row: _Row, column: int | None, decode: Decode) -> str:
    return "" if column is None else decode(_raw(row.fields[column]))
