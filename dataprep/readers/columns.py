"""From Arrow columns to documents, whole columns at a time; single rows are looked at only where one is bad."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataprep.batch import LABEL, SCHEMA
from dataprep.readers.place import Place
from dataprep.readers.records import Piece, those_there

Mask = npt.NDArray[np.bool_]


class BadRows:
    """The rows of a batch found bad so far; the first reason found counts."""

    def __init__(self, rows: int) -> None:
        self.mask: Mask = np.zeros(rows, np.bool_)
        self.found: dict[int, tuple[str, str]] = {}

    def add(self, rows: Mask, reason: str, detail: Callable[[int], str]) -> None:
        """Mark rows as bad."""
        for row in np.flatnonzero(rows & ~self.mask).tolist():
            self.found[row] = (reason, detail(row))
        self.mask |= rows


def piece_of(table: pa.RecordBatch, first_row: int, place: Place) -> Piece:
    """Make documents of a batch whose first row is row `first_row` of its file."""
    entry = place.entry
    bad = BadRows(table.num_rows)
    origins = _origins(place.name, first_row, table.num_rows)
    text = _texts(column(table, entry.text), entry.text, table.schema.names, bad)
    _mark_long(text, int(entry.max_doc_bytes), bad)
    doc_ids = _doc_ids(column(table, entry.id), origins, bad)
    sources = _sources(column(table, entry.source_field) if entry.source_field else None, place.source, bad)
    metas = _metas(table, place, bad) if entry.keep_meta else pa.nulls(table.num_rows, pa.string())
    alive = pa.array(~bad.mask)
    columns = [
        doc_ids.filter(alive),
        as_valid_text(text.filter(alive)),
        sources.filter(alive).dictionary_encode().cast(LABEL),
        origins.filter(alive),
        metas.filter(alive),
    ]
    batch = pa.RecordBatch.from_arrays([*columns, pa.nulls(len(columns[0]), LABEL)], schema=SCHEMA)
    places = tuple(sorted(bad.found))
    records = (place.bad(first_row + row, *bad.found[row], _raw(text, row)) for row in places)
    return Piece(batch, tuple(records), places)


def column(table: pa.RecordBatch, name: str) -> pa.Array | None:
    """The column called `name`, or else the one a.b reaches inside structs; None if there is none."""
    if name in table.schema.names:
        return table.column(table.schema.names.index(name))
    head, *rest = name.split(".")
    if head not in table.schema.names:
        return None
    array = table.column(table.schema.names.index(head))
    for key in rest:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(key) < 0:
            return None
        array = pc.struct_field(array, array.type.get_field_index(key))
    return array


def _origins(name: str, first_row: int, rows: int) -> pa.StringArray:
    numbers = pa.array(np.arange(first_row, first_row + rows)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(f"{name}#"), numbers, "")


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column's values are strings, however they are stored."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def as_bytes(array: pa.Array) -> pa.LargeBinaryArray:
    """Strings of any storage as large_binary: not checked, so that bad UTF-8 can be found row by row."""
    if pa.types.is_dictionary(array.type):
        # Arrow takes strings by index without looking at their bytes.
        array = array.dictionary.take(array.indices)
    if pa.types.is_string_view(array.type):
        array = array.view(pa.binary_view())
    elif pa.types.is_string(array.type):
        array = array.view(pa.binary())
    elif pa.types.is_large_string(array.type):
        array = array.view(pa.large_binary())
    return array.cast(pa.large_binary())


def as_valid_text(array: pa.LargeBinaryArray) -> pa.LargeStringArray:
    """Bytes as large_string; raises ArrowInvalid where they are not UTF-8."""
    return array.cast(pa.large_string())


def _valid_text(array: pa.Array, name: str, bad: BadRows) -> pa.LargeBinaryArray:
    """The column's bytes; rows that are not UTF-8 are marked bad."""
    raw = as_bytes(array)
    try:
        as_valid_text(raw)
    except pa.ArrowInvalid:
        broken = [value is not None and not _is_utf8(value) for value in raw.to_pylist()]
        bad.add(np.array(broken, np.bool_), "invalid_utf8", lambda _: f"column {name} is not valid UTF-8")
    return raw


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _texts(array: pa.Array | None, name: str, columns: list[str], bad: BadRows) -> pa.LargeBinaryArray:
    rows = len(bad.mask)
    if array is None:
        detail = f"there is no column {name}; the columns are {those_there(columns)}"
        bad.add(np.ones(rows, np.bool_), "text_missing", lambda _: detail)
        return pa.nulls(rows, pa.large_binary())
    nulls = pc.is_null(array)
    if pa.types.is_dictionary(array.type):
        nulls = pc.is_null(array.dictionary.take(array.indices))
    bad.add(_mask(nulls), "text_null", lambda _: f"column {name} is null")
    if not is_text(array.type):
        bad.add(np.ones(rows, np.bool_), "text_not_string", lambda _: f"column {name} is {array.type}")
        return pa.nulls(rows, pa.large_binary())
    return _valid_text(array, name, bad)


def _mark_long(text: pa.LargeBinaryArray, limit: int, bad: BadRows) -> None:
    lengths = pc.fill_null(pc.binary_length(text), 0)
    detail = "{} bytes; max_doc_bytes is {}".format
    bad.add(_mask(pc.greater(lengths, limit)), "too_long", lambda row: detail(lengths[row].as_py(), limit))


def _doc_ids(array: pa.Array | None, origins: pa.StringArray, bad: BadRows) -> pa.StringArray:
    if array is None or pa.types.is_null(array.type):
        return origins
    if is_text(array.type):
        ids = _valid_text(array, "of the id", bad)
        ids = pc.if_else(pa.array(bad.mask), None, ids).cast(pa.string())
    elif _is_scalar(array.type):
        ids = array.cast(pa.string())
    else:
        bad.add(_mask(pc.is_valid(array)), "id_not_scalar", lambda _: f"the id is {array.type}")
        return origins
    named = pc.fill_null(pc.not_equal(ids, ""), False)
    return pc.if_else(named, ids, origins)


def _is_scalar(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_temporal(kind)
    )


def _sources(array: pa.Array | None, default: str, bad: BadRows) -> pa.StringArray:
    if array is None or not is_text(array.type):
        return pa.array([default], pa.string()).take(pa.array(np.zeros(len(bad.mask), np.int32)))
    raw = _valid_text(array, "of the source", bad)
    labels = pc.if_else(pa.array(bad.mask), None, raw).cast(pa.string())
    return pc.if_else(pc.fill_null(pc.not_equal(labels, ""), False), labels, default)


def _mask(booleans: pa.BooleanArray) -> Mask:
    return np.asarray(booleans.to_numpy(zero_copy_only=False), np.bool_)


def _raw(text: pa.LargeBinaryArray, row: int) -> bytes:
    # A slice copies only what an excerpt needs of a text that may be huge.
    value = pc.binary_slice(text.slice(row, 1), 0, 1024)[0].as_py()
    return value if value is not None else b""


def _metas(table: pa.RecordBatch, place: Place, bad: BadRows) -> pa.StringArray:
    entry = place.entry
    used = {entry.text, entry.id, entry.source_field}
    names = [name for name in table.schema.names if name not in used]
    encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=str)
    columns = [_plain(table.column(name)) for name in names]
    metas: list[str | None] = []
    for row in range(table.num_rows):
        try:
            values = {name: values[row].as_py() for name, values in zip(names, columns, strict=True)}
        except UnicodeDecodeError as error:
            mask = np.zeros(table.num_rows, np.bool_)
            mask[row] = True
            bad.add(mask, "invalid_utf8", partial(_bad_field, str(error.reason)))
            metas.append(None)
            continue
        metas.append(encoder.encode(_without(values, used)).decode())
    return pa.array(metas, pa.string())


def _bad_field(why: str, _: int) -> str:
    return f"a field beside the text: {why}"


def _plain(array: pa.Array) -> pa.Array:
    # Python's datetime has no nanoseconds.
    return array.cast(pa.string()) if pa.types.is_temporal(array.type) else array


def _without(values: dict[str, object], used: set[str | None]) -> dict[str, object]:
    """Leave out the fields inside structs that were used as text, id or label."""
    for path in filter(None, used):
        *heads, last = path.split(".")
        inner: object = values
        for key in heads:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            inner.pop(last, None)
    return {key: value for key, value in values.items() if value != {}}
