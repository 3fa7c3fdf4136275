"""Arrow columns as JSON values: every type, no digit lost, the same on any machine.

pyarrow's own way to Python values needs pandas for nanoseconds, the machine's time zones for moments, and knows no
intervals as text; JSON itself knows no NaN and no infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataprep.readers.moments import clock_texts, date64_texts, date_texts, duration_texts, interval_texts, moment_texts
from dataprep.readers.strings import as_bytes, is_text, run_places, uuid_texts

# Row by row: None, bool, int, float, Decimal, str, bytes, list, tuple, dict or Unreadable.
Values = Sequence[Any]
Ints = npt.NDArray[np.int64]


class Unreadable:
    """Stands where a string is not UTF-8."""

    def __init__(self, why: str) -> None:
        self.why = why


def json_values(array: pa.Array) -> Values:
    """One JSON value a row, null as None.

    Moments, dates, times, durations and intervals are ISO 8601 text (moments of a time zone in UTC), binary stays
    bytes, maps are lists of (key, value), a union is the value it holds, and NaN and the infinities are the strings
    "NaN", "Infinity" and "-Infinity". Raises KeyError for a type that `strangers` names.
    """
    way = _way(array.type)
    if way is None:
        raise KeyError(str(array.type))
    return way(array) if len(array) else []


def strangers(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield (path, type) of each field in a type, itself included, that pyarrow cannot read and JSON not hold."""
    if _way(kind) is None:
        yield path, kind
    for name, inner in _inner(kind):
        yield from strangers(f"{path}.{name}", inner)


def doubled_fields(path: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the path of each name that stands more than once in a struct inside a type."""
    inner = _inner(kind)
    names = [name for name, _ in inner] if pa.types.is_struct(kind) else []
    yield from (f"{path}.{name}" for name in sorted({name for name in names if names.count(name) > 1}))
    for name, inner_kind in inner:
        yield from doubled_fields(f"{path}.{name}", inner_kind)


def _inner(kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    if isinstance(kind, pa.BaseExtensionType):
        return [("storage", kind.storage_type)]
    if pa.types.is_dictionary(kind):
        return [("values", kind.value_type)]
    return [(kind.field(index).name, kind.field(index).type) for index in range(kind.num_fields)]


def _way(kind: pa.DataType) -> Callable[[pa.Array], Values] | None:
    if isinstance(kind, pa.BaseExtensionType):
        way: Callable[[pa.Array], Values] = _EXTENSIONS.get(kind.extension_name, _storage)
        return way
    return next((way for fits, way in _WAYS if fits(kind)), None)


def _as_they_are(array: pa.Array) -> Values:
    values: list[Any] = array.to_pylist()
    return values


def _storage(array: pa.ExtensionArray) -> Values:
    return json_values(array.storage)


def _uuids(array: pa.ExtensionArray) -> Values:
    return _as_they_are(uuid_texts(array))


def _bools(array: pa.Array) -> Values:
    return [None if value is None else value != 0 for value in array.storage.to_pylist()]


def _floats(array: pa.Array) -> Values:
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    values = _as_they_are(array)
    if all(value is None or math.isfinite(value) for value in values):
        return values
    return [value if value is None or math.isfinite(value) else _not_finite(value) for value in values]


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _strings(array: pa.Array) -> Values:
    try:
        return _as_they_are(array)
    except UnicodeDecodeError:
        return [None if raw is None else _decoded(raw) for raw in as_bytes(array).to_pylist()]


def _decoded(raw: bytes) -> str | Unreadable:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        return Unreadable(error.reason)


def _structs(array: pa.StructArray) -> Values:
    names = [array.type.field(index).name for index in range(array.type.num_fields)]
    columns = [json_values(array.field(index)) for index in range(len(names))]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] if names else [{}] * len(array)
    return [row if valid else None for row, valid in zip(rows, _valid(array).tolist(), strict=True)]


def _lists(array: pa.ListArray) -> Values:
    offsets = _ints(array.offsets)
    return _cut(array, array.values, offsets[:-1], np.diff(offsets))


def _maps(array: pa.MapArray) -> Values:
    offsets = _ints(array.offsets)
    pairs = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    rows = _cut(array, pairs, offsets[:-1], np.diff(offsets))
    return [None if row is None else [tuple(pair.values()) for pair in row] for row in rows]


def _list_views(array: pa.ListViewArray) -> Values:
    return _cut(array, array.values, _ints(array.offsets), _ints(array.sizes))


def _fixed_lists(array: pa.FixedSizeListArray) -> Values:
    size = array.type.list_size
    starts = (array.offset + np.arange(len(array))) * size
    return _cut(array, array.values, starts, np.full(len(array), size))


def _cut(array: pa.Array, values: pa.Array, starts: Ints, sizes: Ints) -> Values:
    """Lists of `sizes` values from `starts` on, None where `array` is null; only the part in use is converted."""
    valid = _valid(array)
    if not valid.any():
        return [None] * len(array)
    first = int(starts[valid].min())
    used = json_values(values.slice(first, int((starts + sizes)[valid].max()) - first))
    rows = zip((starts - first).tolist(), sizes.tolist(), valid.tolist(), strict=True)
    return [list(used[start : start + size]) if there else None for start, size, there in rows]


def _unions(array: pa.UnionArray) -> Values:
    child_of = np.zeros(128, np.int64)
    child_of[array.type.type_codes] = np.arange(array.type.num_fields)
    # pyarrow's own `type_codes` and `offsets` are those of the array that this one is a slice of.
    buffers = array.buffers()
    children = child_of[np.frombuffer(buffers[1], np.int8, len(array), array.offset)]
    places = np.arange(len(array))
    if array.type.mode == "dense":
        places = np.frombuffer(buffers[2], np.int32, len(array), 4 * array.offset).astype(np.int64)
    values: list[Any] = [None] * len(array)
    for child in np.unique(children).tolist():
        rows = np.flatnonzero(children == child)
        first, last = int(places[rows].min()), int(places[rows].max())
        used = json_values(array.field(child).slice(first, last + 1 - first))
        for row, place in zip(rows.tolist(), (places[rows] - first).tolist(), strict=True):
            values[row] = used[place]
    return values


def _dictionaries(array: pa.DictionaryArray) -> Values:
    if is_text(array.type):
        return _strings(array.dictionary.take(array.indices))
    indices = array.indices.to_pylist()
    # Batches are slices that share one dictionary: a large one is not turned over anew for each.
    used = {index: json_values(array.dictionary.slice(index, 1))[0] for index in set(indices) if index is not None}
    return [None if index is None else used[index] for index in indices]


def _runs(array: pa.RunEndEncodedArray) -> Values:
    places = run_places(array)
    first = int(places[0])
    used = json_values(array.values.slice(first, int(places[-1]) + 1 - first))
    return [used[place] for place in (places - first).tolist()]


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _ints(array: pa.Array) -> Ints:
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


_EXTENSIONS: dict[str, Callable[[pa.Array], Values]] = {"arrow.uuid": _uuids, "arrow.bool8": _bools}
_WAYS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Values]], ...] = (
    (pa.types.is_null, _as_they_are),
    (pa.types.is_boolean, _as_they_are),
    (pa.types.is_integer, _as_they_are),
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal, _as_they_are),
    (pa.types.is_dictionary, _dictionaries),
    (is_text, _strings),
    (pa.types.is_binary, _as_they_are),
    (pa.types.is_large_binary, _as_they_are),
    (pa.types.is_binary_view, _as_they_are),
    (pa.types.is_fixed_size_binary, _as_they_are),
    (pa.types.is_timestamp, moment_texts),
    (pa.types.is_date32, date_texts),
    (pa.types.is_date64, date64_texts),
    (pa.types.is_time, clock_texts),
    (pa.types.is_duration, duration_texts),
    (pa.types.is_interval, interval_texts),
    (pa.types.is_map, _maps),
    (pa.types.is_list, _lists),
    (pa.types.is_large_list, _lists),
    (pa.types.is_fixed_size_list, _fixed_lists),
    (pa.types.is_list_view, _list_views),
    (pa.types.is_large_list_view, _list_views),
    (pa.types.is_struct, _structs),
    (pa.types.is_union, _unions),
    (pa.types.is_run_end_encoded, _runs),
)
