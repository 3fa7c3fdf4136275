from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.readers.values import Unreadable, doubled_fields, json_values, strangers

NS_DAY = 86_400 * 10**9
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def raw(values: list[int | None], kind: pa.DataType) -> pa.Array:
    """An array of times from the numbers that Arrow holds for them."""
    return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        (pa.timestamp("ns"), 1_704_164_645_123_456_789, "2024-01-02T03:04:05.123456789"),
        (pa.timestamp("us"), 1_704_164_645_123_456, "2024-01-02T03:04:05.123456"),
        (pa.timestamp("ms"), 1_704_164_645_120, "2024-01-02T03:04:05.120"),
        (pa.timestamp("s"), 1_704_164_645, "2024-01-02T03:04:05"),
        (pa.timestamp("ns", "Asia/Shanghai"), 1_704_164_645_000_000_001, "2024-01-02T03:04:05.000000001Z"),
        (pa.timestamp("s", "No/Such_Zone"), -1, "1969-12-31T23:59:59Z"),
        (pa.timestamp("ns"), LOWEST, "1677-09-21T00:12:43.145224192"),
        (pa.timestamp("ns"), HIGHEST, "2262-04-11T23:47:16.854775807"),
        (pa.timestamp("us"), 253_402_300_800_000_000, "10000-01-01T00:00:00.000000"),
        (pa.timestamp("s"), HIGHEST, "292277026596-12-04T15:30:07"),
        (pa.timestamp("s"), LOWEST, "-292277022657-01-27T08:29:52"),
        (pa.date32(), 19_724, "2024-01-02"),
        (pa.date32(), -1, "1969-12-31"),
        (pa.date64(), 19_724 * 86_400_000, "2024-01-02"),
        (pa.date64(), 19_724 * 86_400_000 + 1, "2024-01-02T00:00:00.001"),
        (pa.time32("s"), 11_045, "03:04:05"),
        (pa.time32("ms"), 86_399_999, "23:59:59.999"),
        (pa.time64("us"), 1, "00:00:00.000001"),
        (pa.time64("ns"), NS_DAY - 1, "23:59:59.999999999"),
        (pa.time64("ns"), NS_DAY, NS_DAY),
        (pa.time32("s"), -1, -1),
        (pa.duration("s"), 90_061, "PT90061S"),
        (pa.duration("ms"), -1_500, "PT-1.5S"),
        (pa.duration("us"), 1, "PT0.000001S"),
        (pa.duration("ns"), LOWEST, "PT-9223372036.854775808S"),
    ],
)
def test_times_are_iso_text_to_the_last_digit(kind: pa.DataType, number: int, text: str | int) -> None:
    assert json_values(raw([number, None, number], kind)) == [text, None, text]
    assert json_values(raw([None, number], kind)[1:]) == [text]


@given(ticks=st.lists(st.none() | st.integers(LOWEST, HIGHEST), max_size=5))
@settings(deadline=None)
def test_nanoseconds_are_those_of_the_calendar(ticks: list[int | None]) -> None:
    def moment(tick: int) -> str:
        day = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=tick // 10**9)
        return f"{day.isoformat()}.{tick % 10**9:09d}"

    expected = [None if tick is None else moment(tick) for tick in ticks]
    assert json_values(raw(ticks, pa.timestamp("ns"))) == expected


def test_intervals_keep_the_sign_of_each_part() -> None:
    values = [pa.MonthDayNano([1, -2, 3]), None, pa.MonthDayNano([0, 0, -1_500_000_000])]
    assert json_values(pa.array(values)) == ["P1M-2DT0.000000003S", None, "P0M0DT-1.5S"]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_numbers_json_does_not_know_are_strings(kind: pa.DataType) -> None:
    values = np.array([1.5, np.nan, np.inf, -np.inf, -0.0], kind.to_pandas_dtype())
    assert json_values(pa.array(values, kind)) == [1.5, "NaN", "Infinity", "-Infinity", -0.0]
    assert json_values(pa.array([None, values[0]], kind)) == [None, 1.5]


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(9, 2), pa.decimal128(38, 2), pa.decimal256(76, 2)])
def test_decimals_are_exact(kind: pa.DataType) -> None:
    assert json_values(pa.array([Decimal("1234567.50"), None], kind)) == [Decimal("1234567.50"), None]


def test_a_union_is_the_value_it_holds() -> None:
    codes = pa.array([5, 7, 5, 7], pa.int8())
    dense = pa.UnionArray.from_dense(
        codes,
        pa.array([0, 0, 1, 1], pa.int32()),
        [pa.array([1, None]), raw([0, 1], pa.timestamp("ns"))],
        type_codes=[5, 7],
    )
    sparse = pa.UnionArray.from_sparse(
        codes, [pa.array([1, 9, None, 9]), raw([9, 0, 9, 1], pa.timestamp("ns"))], type_codes=[5, 7]
    )
    expected = [1, "1970-01-01T00:00:00.000000000", None, "1970-01-01T00:00:00.000000001"]
    for array in (dense, sparse):
        assert json_values(array) == expected
        assert json_values(array[1:3]) == expected[1:3]


def test_run_ends_and_dictionaries_are_seen_through() -> None:
    moments = raw([0, None], pa.timestamp("ns"))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5], pa.int16()), pa.array(["a", None, "b"]))
    assert json_values(runs) == ["a", "a", None, "b", "b"]
    assert json_values(runs[1:4]) == ["a", None, "b"]
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 0]), moments)
    assert json_values(coded[1:]) == ["1970-01-01T00:00:00.000000000", None, "1970-01-01T00:00:00.000000000"]
    pairs = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array([[1], [2, None]]))
    assert json_values(pairs) == [[2, None], [2, None]]


class Celsius(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.list_(pa.duration("ns")), "test.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Celsius:
        return cls()


def test_extension_types_are_what_they_store_but_ids_and_booleans_are_themselves() -> None:
    stored = pa.array([[1], None], pa.list_(pa.duration("ns")))
    assert json_values(pa.ExtensionArray.from_storage(Celsius(), stored)) == [["PT0.000000001S"], None]
    one = uuid.UUID("12345678-1234-5678-1234-567812345678")
    assert json_values(pa.array([one.bytes, None], pa.uuid())) == [str(one), None]
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    assert json_values(flags) == [True, False, None]


def test_strings_that_are_not_utf8_are_marked_where_they_stand() -> None:
    texts = pa.array([b"one", b"\xff", None], pa.binary()).view(pa.string())
    nested = pa.StructArray.from_arrays([texts], ["text"])
    first, second, third = json_values(nested)
    assert (first, third) == ({"text": "one"}, {"text": None})
    assert isinstance(second["text"], Unreadable)


Kind = tuple[pa.DataType, st.SearchStrategy[Any], Callable[[Any], Any]]
LEAVES: list[Kind] = [
    (pa.null(), st.none(), lambda value: value),
    (pa.bool_(), st.booleans(), lambda value: value),
    (pa.int8(), st.integers(-128, 127), lambda value: value),
    (pa.uint64(), st.integers(0, 2**64 - 1), lambda value: value),
    (pa.string(), st.text(max_size=3), lambda value: value),
    (pa.string_view(), st.text(max_size=20), lambda value: value),
    (pa.large_binary(), st.binary(max_size=3), lambda value: value),
    (pa.binary_view(), st.binary(max_size=20), lambda value: value),
    (pa.binary(2), st.binary(min_size=2, max_size=2), lambda value: value),
    (pa.duration("ns"), st.integers(-999_999_999, -1), lambda value: f"PT-0.{-value:09d}".rstrip("0") + "S"),
    (pa.time64("ns"), st.integers(0, 10**9 - 1), lambda value: f"00:00:00.{value:09d}"),
    (pa.date32(), st.dates(), lambda value: value.isoformat()),
]


def lists(kind: Kind) -> st.SearchStrategy[Kind]:
    value_type, values, expected = kind

    def rows(make: pa.DataType, **size: int) -> Kind:
        return make, st.lists(st.none() | values, **size), lambda row: [none_or(expected, value) for value in row]

    makers = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
    fixed = [rows(pa.list_(value_type, size), min_size=size, max_size=size) for size in (0, 2)]
    return st.sampled_from([rows(make(value_type), max_size=3) for make in makers] + fixed)


def maps(kind: Kind) -> Kind:
    value_type, values, expected = kind
    pairs = st.lists(st.tuples(st.text(max_size=2), st.none() | values), max_size=3)
    return (
        pa.map_(pa.string(), value_type),
        pairs,
        lambda row: [(key, none_or(expected, value)) for key, value in row],
    )


def structs(kinds: list[Kind]) -> Kind:
    names = [f"f{index}" for index in range(len(kinds))]
    fields = dict(zip(names, kinds, strict=True))
    return (
        pa.struct([(name, kind[0]) for name, kind in fields.items()]),
        st.fixed_dictionaries({name: st.none() | kind[1] for name, kind in fields.items()}),
        lambda row: {name: none_or(kind[2], row[name]) for name, kind in fields.items()},
    )


def none_or(expected: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else expected(value)


KINDS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: inner.flatmap(lists) | inner.map(maps) | st.lists(inner, max_size=3).map(structs),
    max_leaves=4,
)


@given(kind=KINDS, data=st.data())
@settings(max_examples=300, deadline=None)
def test_any_nest_of_types_comes_out_value_by_value(kind: Kind, data: st.DataObject) -> None:
    arrow_type, values, expected = kind
    rows = data.draw(st.lists(st.none() | values, max_size=6))
    start = data.draw(st.integers(0, len(rows)))
    array = pa.array(rows, arrow_type)
    found = json_values(array[start:])
    assert list(found) == [none_or(expected, row) for row in rows[start:]]
    msgspec.json.encode(found)


def test_fields_of_one_name_are_found_at_any_depth() -> None:
    twice = pa.struct([("a", pa.int8()), ("a", pa.int8()), ("b", pa.int8())])
    assert list(doubled_fields("x", pa.list_(twice))) == ["x.item.a"]
    assert list(doubled_fields("x", pa.dictionary(pa.int8(), twice))) == ["x.values.a"]
    assert list(strangers("x", pa.map_(pa.string(), pa.run_end_encoded(pa.int16(), pa.float16())))) == []
