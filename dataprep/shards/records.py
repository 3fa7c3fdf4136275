"""Read MindRecord files (version 3.0) with numpy and sqlite alone: counts from the header, rows decoded, damage named.

A file is a header (8-byte little-endian length, JSON) padded to `header_size`, then pages of `page_size`. The `.db`
beside it is a sqlite table of each row's page and byte range. A row is an 8-byte little-endian length, then, for each
column in the header's order, an 8-byte big-endian length and the column. An integer column is a 4-byte big-endian
count, two bits a value for its width (1, 2, 4, 8 bytes; first value in the high bits), then the little-endian values.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dataprep.errors import DamageError
from dataprep.storage import disk_errors

Bytes = npt.NDArray[np.uint8]

_LENGTH = 8
_COUNT = 4
# FileWriter.set_header_size allows no more; a longer claim is damage, and must not be believed and read.
_MAX_HEADER = 128 << 20
_INTEGERS: dict[str, np.dtype[Any]] = {"int32": np.dtype(np.int32), "int64": np.dtype(np.int64)}
_RANGES = (
    "SELECT ROW_ID, PAGE_ID_BLOB, PAGE_OFFSET_BLOB, PAGE_OFFSET_BLOB_END FROM INDEXES WHERE ROW_ID BETWEEN ? AND ?"
)
_MEND = "the file is damaged: restore it or run the pipeline again"


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Column(_Part):
    """Type and shape of one column; -1 stands for any length."""

    type: Literal["int32", "int64"]
    shape: tuple[int, ...] = Field(min_length=1, max_length=1)


class _Page(_Part):
    page_id: int = Field(ge=0, lt=1 << 32)
    page_type: Literal["BLOB_DATA", "RAW_DATA"]
    page_size: int = Field(ge=0, lt=1 << 32)
    start_row_id: int = Field(ge=0, lt=1 << 48)
    end_row_id: int = Field(ge=0, lt=1 << 48)


class _Schema(_Part):
    blob_fields: tuple[str, ...] = Field(min_length=1)
    columns: dict[str, Column] = Field(alias="schema")


class _Header(_Part):
    header_size: int = Field(ge=16 << 10, le=_MAX_HEADER)
    page_size: int = Field(ge=32 << 10, le=256 << 20)
    page: tuple[_Page, ...]
    content: tuple[_Schema, ...] = Field(alias="schema", min_length=1, max_length=1)
    shard_addresses: tuple[str, ...] = Field(min_length=1, max_length=1)
    version: Literal["3.0"]

    @property
    def rows(self) -> int:
        return sum(page.end_row_id - page.start_row_id for page in self.page if page.page_type == "BLOB_DATA")

    @property
    def columns(self) -> dict[str, Column]:
        schema = self.content[0]
        return {name: schema.columns[name] for name in schema.blob_fields}


def damage(path: Path, what: str) -> DamageError:
    """Build the DamageError of a file that does not hold what it should."""
    return DamageError(what, where=str(path), mend=_MEND)


def index_path(path: Path) -> Path:
    """The sqlite index that belongs to a MindRecord file."""
    return path.with_name(path.name + ".db")


def row_count(path: Path) -> int:
    """Rows of a MindRecord file by its header alone (about 0.1 ms). Raises DamageError."""
    return _read_header(path).rows


def columns(path: Path) -> dict[str, Column]:
    """Columns of a MindRecord file in stored order, by its header alone. Raises DamageError."""
    return _read_header(path).columns


def db_row_count(path: Path) -> int:
    """Rows that the `.db` of the MindRecord file `path` knows. Raises DamageError, also when they are not 0 … n - 1."""
    with _index(path) as index:
        count, first, last = index.execute("SELECT COUNT(*), MIN(ROW_ID), MAX(ROW_ID) FROM INDEXES").fetchone()
    if count and (first, last) != (0, count - 1):
        raise damage(index_path(path), f"its {count} rows are numbered {first!r} to {last!r}, not 0 to {count - 1}")
    return int(count)


def read_rows(path: Path, rows: Sequence[int]) -> list[dict[str, npt.NDArray[Any]]]:
    """Decode the given rows: a list of column name → int32 or int64 array [length], in the order asked.

    Raises IndexError for a row number outside the file and DamageError for a file that is not whole.
    """
    header = _read_header(path)
    for row in rows:
        if not 0 <= row < header.rows:
            raise IndexError(f"{path}: row {row} of {header.rows}")
    with _index(path) as index:
        ranges = [_row_range(path, index, row) for row in rows]
    with _mapped(path) as data:
        return [_decode_row(path, header, _slice_row(path, header, data, *place)) for place in ranges]


def check_framing(path: Path) -> int:
    """Check where every row and column of a file begins and ends, without decoding values; return the rows.

    Finds files cut short, holes left by failed writes, rows lost from the header or the index. Raises DamageError.
    """
    header = _read_header(path)
    with _index(path) as index:
        table = index.execute(_RANGES + " ORDER BY ROW_ID", (0, header.rows)).fetchall()
    if len(table) != header.rows or db_row_count(path) != header.rows:
        raise damage(index_path(path), f"holds {len(table)} rows where the header says {header.rows}")
    with _mapped(path) as data:
        # All rows at once; only where that finds a fault, one by one, which names it.
        if not _framing_holds(header, data, np.array(table)):
            for _, *place in table:
                _split_columns(path, header, _slice_row(path, header, data, *place))
    return header.rows


def _framing_holds(header: _Header, data: Bytes, table: npt.NDArray[Any]) -> bool:
    """Whether every row ends where the index (row, page, start, end) says, and so do its columns; False if in doubt."""
    # Anything in the index that is no integer makes it an array of another type.
    if table.dtype != np.int64 or len(header.columns) < 2:
        return False
    _, page, start, end = table.T
    if not ((page >= 0) & (page < 1 << 32) & (start >= 0) & (start + _LENGTH <= end) & (end <= header.page_size)).all():
        return False
    base = header.header_size + page * header.page_size
    place, end = base + start, base + end
    if end.max() > len(data) or (_lengths(data, place, "<i8") != end - place - _LENGTH).any():
        return False
    place = place + _LENGTH
    for _ in header.columns:
        if (place + _LENGTH > end).any():
            return False
        length = _lengths(data, place, ">i8")
        place = place + _LENGTH + length
        if (length < 0).any() or (place > end).any():
            return False
    return bool((place == end).all())


def _lengths(data: Bytes, places: npt.NDArray[np.int64], kind: str) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = data[places[:, None] + np.arange(_LENGTH)].view(kind)[:, 0]
    return lengths


def _read_header(path: Path) -> _Header:
    with disk_errors(path), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(_LENGTH), "little")
        if not 0 < length <= min(size - _LENGTH, _MAX_HEADER):
            raise damage(path, f"no MindRecord header in its {size} bytes")
        text = file.read(length)
    try:
        header = _Header.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise damage(path, f"broken MindRecord header: {place} {fault['msg']}") from error
    _check_header(path, header, size)
    return header


def _check_header(path: Path, header: _Header, size: int) -> None:
    schema = header.content[0]
    if set(schema.blob_fields) != set(schema.columns) or len(schema.blob_fields) != len(schema.columns):
        raise damage(path, "broken MindRecord header: columns and blob_fields differ")
    if header.shard_addresses[0] != path.name:
        raise damage(path, f"was written as {header.shard_addresses[0]!r}; a MindRecord file cannot be renamed")
    row = 0
    for page in header.page:
        end = header.header_size + page.page_id * header.page_size + page.page_size
        if page.page_size > header.page_size or end > size:
            raise damage(path, f"cut short: page {page.page_id} ends at byte {end}, the file at {size}")
        if page.page_type == "RAW_DATA":
            continue
        if page.start_row_id != row or page.end_row_id < row:
            raise damage(path, f"broken MindRecord header: page {page.page_id} does not begin with row {row}")
        row = page.end_row_id


@contextmanager
def _index(path: Path) -> Iterator[sqlite3.Connection]:
    database = index_path(path)
    if not database.is_file():
        raise damage(database, "missing")
    # immutable: no lock files, so a read-only directory will do and a reader leaves no trace.
    address = database.absolute().as_uri() + "?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            names = connection.execute("SELECT NAME FROM SHARD_NAME").fetchall()
            if names != [(path.name,)]:
                raise damage(database, f"belongs to {names!r}, not to {path.name!r}")
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise damage(database, f"broken index: {error}") from error


def _row_range(path: Path, index: sqlite3.Connection, row: int) -> tuple[int, int, int]:
    found = index.execute(_RANGES, (row, row)).fetchall()
    if len(found) != 1:
        raise damage(index_path(path), f"has {len(found)} entries for row {row}")
    _, page, start, end = found[0]
    return page, start, end


@contextmanager
def _mapped(path: Path) -> Iterator[Bytes]:
    with disk_errors(path), path.open("rb") as file:
        # numpy's view keeps the map alive; closing it here would fail while rows are still referred to.
        yield np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def _slice_row(path: Path, header: _Header, data: Bytes, page: object, start: object, end: object) -> Bytes:
    if not (isinstance(page, int) and isinstance(start, int) and isinstance(end, int)):
        raise damage(index_path(path), f"broken index: {page!r}, {start!r}, {end!r} is no place")
    if not (start >= 0 and start + _LENGTH <= end <= header.page_size and 0 <= page < 1 << 32):
        raise damage(index_path(path), f"broken index: bytes {start} to {end} of page {page} hold no row")
    base = header.header_size + page * header.page_size
    if base + end > len(data):
        raise damage(path, f"cut short: a row ends at byte {base + end}, the file at {len(data)}")
    row = data[base + start : base + end]
    if int.from_bytes(row[:_LENGTH].tobytes(), "little") != len(row) - _LENGTH:
        raise damage(path, f"no row at byte {base + start}")
    return row[_LENGTH:]


def _split_columns(path: Path, header: _Header, row: Bytes) -> list[Bytes]:
    if len(header.columns) == 1:
        return [row]
    parts = []
    position = 0
    for name in header.columns:
        length = int.from_bytes(row[position : position + _LENGTH].tobytes(), "big")
        position += _LENGTH
        if position + length > len(row):
            raise damage(path, f"column {name} is longer than its row")
        parts.append(row[position : position + length])
        position += length
    if position != len(row):
        raise damage(path, f"{len(row) - position} bytes behind the last column of a row")
    return parts


def _decode_row(path: Path, header: _Header, row: Bytes) -> dict[str, npt.NDArray[Any]]:
    parts = _split_columns(path, header, row)
    return {
        name: _decode_column(path, name, column, part)
        for (name, column), part in zip(header.columns.items(), parts, strict=True)
    }


def _decode_column(path: Path, name: str, column: Column, part: Bytes) -> npt.NDArray[Any]:
    values = _decode_integers(part)
    if values is None:
        raise damage(path, f"column {name} of a row cannot be decoded")
    if column.shape[0] not in (-1, len(values)):
        raise damage(path, f"column {name} of a row has {len(values)} values, not {column.shape[0]}")
    narrow: npt.NDArray[Any] = values.astype(_INTEGERS[column.type])
    if not np.array_equal(narrow, values):
        raise damage(path, f"column {name} of a row holds a value too large for {column.type}")
    return narrow


def _decode_integers(part: Bytes) -> npt.NDArray[np.int64] | None:
    count = int.from_bytes(part[:_COUNT].tobytes(), "big")
    body = _COUNT + (count + 3) // 4
    if len(part) < _COUNT or body > len(part):
        return None
    pairs = np.unpackbits(part[_COUNT:body])[: 2 * count].reshape(-1, 2)
    exponents = 2 * pairs[:, 0] + pairs[:, 1]
    ends = np.cumsum(np.left_shift(1, exponents.astype(np.int64)))
    if body + (int(ends[-1]) if count else 0) != len(part):
        return None
    values = np.empty(count, np.int64)
    for exponent in range(4):
        chosen = np.flatnonzero(exponents == exponent)
        width = 1 << exponent
        places = body + ends[chosen][:, None] - width + np.arange(width)
        values[chosen] = part[places].view(np.dtype(f"<i{width}")).reshape(-1)
    return values
