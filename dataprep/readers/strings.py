"""Strings of any Arrow storage, with bytes that nobody has checked."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_BINARY = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
_LISTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Field], pa.DataType]], ...] = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column's values are strings, however they are stored."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def as_binary(array: pa.Array) -> pa.Array:
    """The array, of any type, with binary in the place of its strings, without copying: nothing asks for UTF-8 then."""
    if isinstance(array.type, pa.BaseExtensionType):
        return as_binary(array.storage)
    kind = _binary_type(array.type)
    return array if kind == array.type else array.view(kind)


def _binary_type(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if kind in _BINARY:
        return _BINARY[kind]
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _binary_type(kind.value_type), kind.ordered)
    if types.is_run_end_encoded(kind):
        return pa.run_end_encoded(kind.run_end_type, _binary_type(kind.value_type))
    fields = [kind.field(index) for index in range(kind.num_fields)]
    inner = [field.with_type(_binary_type(field.type)) for field in fields]
    if types.is_struct(kind):
        return pa.struct(inner)
    if types.is_union(kind):
        return pa.union(inner, kind.mode, kind.type_codes)
    if types.is_map(kind):
        return pa.map_(_binary_type(kind.key_type), _binary_type(kind.item_type), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(inner[0], kind.list_size)
    return next((make(inner[0]) for fits, make in _LISTS if fits(kind)), kind)


def as_bytes(array: pa.Array) -> pa.LargeBinaryArray:
    """Strings or bytes of any storage as large_binary: not checked, so that bad UTF-8 can be found row by row."""
    if pa.types.is_dictionary(array.type):
        # Arrow takes strings by index without looking at their bytes.
        array = array.dictionary.take(array.indices)
    return as_binary(array).cast(pa.large_binary())


def as_valid_text(array: pa.LargeBinaryArray) -> pa.LargeStringArray:
    """Bytes as large_string; raises ArrowInvalid where they are not UTF-8."""
    return array.cast(pa.large_string())


def stored_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values behind dictionaries, run ends and extension types."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.string() if kind.extension_name == "arrow.uuid" else stored_type(kind.storage_type)
    packed = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    return stored_type(kind.value_type) if packed else kind


def stored(array: pa.Array) -> pa.Array:
    """Scalars without the dictionary, run ends or extension type around them; dictionaries of strings stay.

    UUIDs are their text.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return uuid_texts(array) if kind.extension_name == "arrow.uuid" else stored(array.storage)
    if pa.types.is_run_end_encoded(kind):
        return stored(array.values.take(pa.array(run_places(array))))
    if pa.types.is_dictionary(kind) and not is_text(kind):
        return stored(array.dictionary.take(array.indices))
    return array


def run_places(array: pa.RunEndEncodedArray) -> npt.NDArray[np.int64]:
    """For each row of a run-end encoded array, the place of its value in `array.values`."""
    rows = np.arange(array.offset, array.offset + len(array))
    return np.searchsorted(array.run_ends.to_numpy(), rows, side="right").astype(np.int64)


def uuid_texts(array: pa.ExtensionArray) -> pa.StringArray:
    """UUIDs as their usual text."""
    return pa.array([value and str(UUID(bytes=value)) for value in array.storage.to_pylist()], pa.string())
