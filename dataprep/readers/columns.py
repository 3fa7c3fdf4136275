"""From Arrow columns to documents, whole columns at a time; single rows are looked at only where one is bad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataprep.batch import LABEL, SCHEMA
from dataprep.readers.fields import BadField, Path
from dataprep.readers.names import paths_of
from dataprep.readers.place import Place
from dataprep.readers.records import Piece, those_there
from dataprep.readers.strings import as_bytes, as_valid_text, is_text, stored, stored_type
from dataprep.readers.values import Unreadable, json_values

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
    text_path, id_path, source_path = paths_of(table.schema.names, entry)
    text = _texts(column(table, text_path), entry.text, table.schema.names, bad)
    _mark_long(text, int(entry.max_doc_bytes), bad)
    doc_ids = _doc_ids(column(table, id_path), origins, bad)
    sources = _sources(column(table, source_path), place.source, bad)
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


def column(table: pa.RecordBatch, path: Path | None) -> pa.Array | None:
    """The column, or the field inside structs, at a path of `paths_of`; None if there is none."""
    if not path or path[0] not in table.schema.names:
        return None
    array = table.column(path[0])
    for key in path[1:]:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(key) < 0:
            return None
        array = pc.struct_field(array, array.type.get_field_index(key))
    kind = stored_type(array.type)
    return stored(array) if is_text(kind) or _is_scalar(kind) else array


def _origins(name: str, first_row: int, rows: int) -> pa.StringArray:
    numbers = pa.array(np.arange(first_row, first_row + rows)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(f"{name}#"), numbers, "")


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
        ids = _without_bad(ids, bad)
    elif pa.types.is_temporal(array.type):
        ids = pa.array([None if value is None else str(value) for value in json_values(array)], pa.string())
    elif _is_scalar(array.type):
        ids = array.cast(pa.string())
    else:
        bad.add(_mask(pc.is_valid(array)), "id_not_scalar", lambda _: f"the id is {array.type}")
        return origins
    named = pc.fill_null(pc.not_equal(ids, ""), False)
    return pc.if_else(named, ids, origins)


def _without_bad(raw: pa.LargeBinaryArray, bad: BadRows) -> pa.StringArray:
    # if_else with a null gives wrong bytes for an array that is a slice (Arrow 19).
    return pc.replace_with_mask(raw, pa.array(bad.mask), pa.scalar(None, raw.type)).cast(pa.string())


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
    labels = _without_bad(raw, bad)
    return pc.if_else(pc.fill_null(pc.not_equal(labels, ""), False), labels, default)


def _mask(booleans: pa.BooleanArray) -> Mask:
    return np.asarray(booleans.to_numpy(zero_copy_only=False), np.bool_)


def _raw(text: pa.LargeBinaryArray, row: int) -> bytes:
    # A slice copies only what an excerpt needs of a text that may be huge.
    value = pc.binary_slice(text.slice(row, 1), 0, 1024)[0].as_py()
    return value if value is not None else b""


def _metas(table: pa.RecordBatch, place: Place, bad: BadRows) -> pa.StringArray:
    used = [path for path in paths_of(table.schema.names, place.entry) if path]
    names = [name for name in table.schema.names if (name,) not in used]
    columns = [json_values(table.column(name)) for name in names]
    encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=_refuse)
    metas: list[str | None] = []
    for row, values in enumerate(zip(*columns, strict=True) if names else repeat((), table.num_rows)):
        try:
            metas.append(encoder.encode(_without(dict(zip(names, values, strict=True)), used)).decode())
        except BadField as field:
            mask = np.zeros(table.num_rows, np.bool_)
            mask[row] = True
            bad.add(mask, field.reason, partial(_detail, field.detail))
            metas.append(None)
    return pa.array(metas, pa.string())


def _refuse(value: Unreadable) -> NoReturn:
    raise BadField("invalid_utf8", f"a field beside the text: {value.why}")


def _detail(detail: str, _: int) -> str:
    return detail


def _without(values: dict[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    """Leave out the fields at `paths`; a struct that lost all its fields goes with them."""
    kept = {}
    for name, value in values.items():
        inner = [path[1:] for path in paths if path[0] == name]
        if () in inner:
            continue
        left = _without(value, inner) if inner and isinstance(value, dict) else value
        if not (inner and left == {}):
            kept[name] = left
    return kept
