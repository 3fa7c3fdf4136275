from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataprep.errors import ConfigError
from dataprep.readers import read_split
from dataprep.readers.inputs import Input
from dataprep.readers.split import plan_splits

Reader = Callable[..., Any]
Writer = Callable[[pa.Table, Path], None]


def write_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Writer] = {
    "x.parquet": pq.write_table,
    "x.arrow": write_file,
    "x.arrows": write_stream,
}
anyformat = pytest.mark.parametrize("name", sorted(WRITERS))


def invalid(values: list[bytes | None], kind: pa.DataType) -> pa.Array:
    """A string array whose bytes nobody checked."""
    storage = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}[kind]
    return pa.array(values, storage).view(kind)


@anyformat
@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_strings_of_any_storage_are_text(tmp_path: Path, read_all: Reader, name: str, kind: str) -> None:
    if kind == "string_view" and name == "x.parquet":
        kind = "large_string"  # pyarrow writes no string views to Parquet
    types = {"string": pa.string(), "large_string": pa.large_string(), "string_view": pa.string_view()}
    column = pa.array(["一", "", None, "一"], types.get(kind, pa.string()))
    if kind == "dictionary":
        column = column.dictionary_encode()
    WRITERS[name](pa.table({"id": ["a", "b", "c", None], "text": column}), tmp_path / name)
    found = read_all(tmp_path, Input(path=name))
    assert found.texts == ["一", "", "一"]
    assert found.column("doc_id") == ["a", "b", f"{name}#3"]
    assert found.column("origin") == [f"{name}#0", f"{name}#1", f"{name}#3"]
    assert found.reasons == [(f"{name}#2", "text_null")]


@anyformat
def test_invalid_utf8_is_found_row_by_row(tmp_path: Path, read_all: Reader, name: str) -> None:
    table = pa.table(
        {
            "id": invalid([b"a", b"b", b"\xff", b"d"], pa.string()),
            "text": invalid([b"one", b"\xed\xa0\x80", b"three", None], pa.large_string()),
        }
    )
    WRITERS[name](table, tmp_path / name)
    found = read_all(tmp_path, Input(path=name))
    assert found.texts == ["one"]
    assert found.reasons == [(f"{name}#1", "invalid_utf8"), (f"{name}#2", "invalid_utf8"), (f"{name}#3", "text_null")]
    assert found.bad[0].excerpt == r"\xed\xa0\x80"


@anyformat
def test_invalid_utf8_in_a_dictionary_is_found(tmp_path: Path, read_all: Reader, name: str) -> None:
    values = invalid([b"fine", b"\xff"], pa.string())
    text = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None], pa.int32()), values)
    WRITERS[name](pa.table({"text": text}), tmp_path / name)
    found = read_all(tmp_path, Input(path=name))
    assert found.texts == ["fine", "fine"]
    assert found.reasons == [(f"{name}#1", "invalid_utf8"), (f"{name}#3", "text_null")]


@anyformat
@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.nulls(2), "text_null"),
        (pa.array([None, None], pa.string()), "text_null"),
        (pa.array([1, 2]), "text_not_string"),
        (pa.array([b"a", b"b"], pa.binary()), "text_not_string"),
        (pa.array([["a"], []]), "text_not_string"),
        (None, "text_missing"),
    ],
)
def test_a_column_that_holds_no_text_is_told_for_each_row(
    tmp_path: Path, read_all: Reader, name: str, column: pa.Array | None, reason: str
) -> None:
    columns = {"other": pa.array([1, 2])} | ({} if column is None else {"text": column})
    WRITERS[name](pa.table(columns), tmp_path / name)
    found = read_all(tmp_path, Input(path=name))
    assert found.documents == []
    assert found.reasons == [(f"{name}#0", reason), (f"{name}#1", reason)]


@anyformat
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([1234567890123456789, None]), "1234567890123456789"),
        (pa.array([2**64 - 1, None], pa.uint64()), "18446744073709551615"),
        (pa.array([Decimal("123456789012345678901234567890"), None]), "123456789012345678901234567890"),
        (pa.array(["00123", ""]), "00123"),
        (pa.array(["00123", None]).dictionary_encode(), "00123"),
        (pa.array([True, None]), "true"),
    ],
)
def test_ids_are_exact(tmp_path: Path, read_all: Reader, name: str, ids: pa.Array, expected: str) -> None:
    WRITERS[name](pa.table({"id": ids, "text": ["a", "b"]}), tmp_path / name)
    assert read_all(tmp_path, Input(path=name)).column("doc_id") == [expected, f"{name}#1"]


@anyformat
def test_an_id_that_is_no_scalar_is_bad(tmp_path: Path, read_all: Reader, name: str) -> None:
    WRITERS[name](pa.table({"id": pa.array([[1], None]), "text": ["a", "b"]}), tmp_path / name)
    found = read_all(tmp_path, Input(path=name))
    assert (found.texts, found.reasons) == (["b"], [(f"{name}#0", "id_not_scalar")])


@anyformat
def test_fields_reach_into_structs_and_rows_name_their_source(tmp_path: Path, read_all: Reader, name: str) -> None:
    rows = [
        {"doc": {"text": "one", "id": 7, "n": 1}, "from": "web", "day": datetime.date(2024, 1, 2)},
        {"doc": None, "from": "web", "day": None},
        {"doc": {"text": "three", "id": None, "n": 3}, "from": None, "day": None},
    ]
    WRITERS[name](pa.Table.from_pylist(rows), tmp_path / name)
    entry = Input(path=name, text="doc.text", id="doc.id", source_field="from", source="rest")
    plain = read_all(tmp_path, entry)
    assert plain.texts == ["one", "three"]
    assert plain.column("doc_id") == ["7", f"{name}#2"]
    assert plain.column("source") == ["web", "rest"]
    assert plain.reasons == [(f"{name}#1", "text_null")]
    with_meta = read_all(tmp_path, entry.model_copy(update={"keep_meta": True}))
    assert with_meta.column("meta") == ['{"doc":{"n":1},"day":"2024-01-02"}', '{"doc":{"n":3},"day":null}']


@anyformat
def test_texts_over_the_limit_are_bad(tmp_path: Path, read_all: Reader, name: str) -> None:
    WRITERS[name](pa.table({"text": ["12345", "一二", "1"]}), tmp_path / name)
    found = read_all(tmp_path, Input(path=name, max_doc_bytes=5))
    assert found.texts == ["12345", "1"]
    assert [(bad.reason, bad.detail) for bad in found.bad] == [("too_long", "6 bytes; max_doc_bytes is 5")]


@anyformat
@pytest.mark.parametrize("batch_bytes", [1, 100, 8 << 20])
def test_batches_of_any_size_and_limits_read_the_same(
    tmp_path: Path, read_all: Reader, name: str, batch_bytes: int
) -> None:
    texts = [None if number % 7 == 3 else f"text {number}" for number in range(50)]
    numbers = [number for number in range(50) if number % 7 != 3]
    columns = {
        "text": texts,
        "id": [f"id {number}" for number in range(50)],
        "from": [f"source {number}" for number in range(50)],
        "n": list(range(50)),
    }
    WRITERS[name](pa.table(columns), tmp_path / name)
    found = read_all(tmp_path, Input(path=name, source_field="from", keep_meta=True), batch_bytes=batch_bytes)
    assert found.texts == [f"text {number}" for number in numbers]
    assert found.column("doc_id") == [f"id {number}" for number in numbers]
    assert found.column("source") == [f"source {number}" for number in numbers]
    assert found.column("origin") == [f"{name}#{number}" for number in numbers]
    assert found.column("meta") == [f'{{"n":{number}}}' for number in numbers]
    assert len(found.bad) == 7
    head = read_all(tmp_path, Input(path=name), batch_bytes=batch_bytes, limit=11)
    assert (head.texts, len(head.bad)) == ([text for text in texts[:11] if text], 2)


def grouped(path: Path, sizes: list[int]) -> list[str]:
    texts = [f"text {number}" for number in range(sum(sizes))]
    table = pa.table({"text": texts})
    with pq.ParquetWriter(path, table.schema, compression="none") as writer:
        start = 0
        for size in sizes:
            writer.write_table(table.slice(start, size), row_group_size=max(1, size))
            start += size
    return texts


@pytest.mark.parametrize("split_bytes", [1, 5_000, 1 << 30])
def test_row_groups_of_0_1_and_999_rows_read_whole_from_any_splits(
    tmp_path: Path, read_all: Reader, split_bytes: int
) -> None:
    texts = grouped(tmp_path / "x.parquet", [1, 999, 0, 1, 2, 999])
    found = read_all(tmp_path, Input(path="x.parquet"), split_bytes=split_bytes)
    assert found.texts == texts
    assert found.column("origin") == [f"x.parquet#{row}" for row in range(len(texts))]


def test_a_large_parquet_file_is_cut_at_row_groups(tmp_path: Path) -> None:
    grouped(tmp_path / "x.parquet", [999, 999, 999])
    splits = plan_splits([Input(path="x.parquet")], tmp_path, split_bytes=1000, limit=None)
    assert [(split.ranges[0].start, split.ranges[0].end) for split in splits] == [(0, 1), (1, 2), (2, None)]


@anyformat
def test_a_table_without_rows_is_fine(tmp_path: Path, read_all: Reader, name: str) -> None:
    WRITERS[name](pa.table({"text": pa.array([], pa.string())}), tmp_path / name)
    found = read_all(tmp_path, Input(path=name))
    assert (found.documents, found.bad) == ([], [])


@anyformat
@pytest.mark.parametrize("split_bytes", [1, 1 << 30])
def test_a_file_that_is_something_else_is_one_bad_record(
    tmp_path: Path, read_all: Reader, name: str, split_bytes: int
) -> None:
    (tmp_path / name).write_bytes(b"not what the name says" * 10)
    assert read_all(tmp_path, Input(path=name), split_bytes=split_bytes).reasons == [(name, "broken_file")]


def test_each_row_of_a_damaged_row_group_is_a_bad_record_and_the_others_survive(
    tmp_path: Path, read_all: Reader
) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"text": [f"text {number}" for number in range(300)]})
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="zstd", write_page_checksum=True)
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(content)
    found = read_all(tmp_path, Input(path="x.parquet"))
    assert found.texts == [f"text {number}" for number in [*range(100), *range(200, 300)]]
    assert found.reasons == [(f"x.parquet#{row}", "broken_row_group") for row in range(100, 200)]
    assert "100 rows" in found.bad[0].detail
    head = read_all(tmp_path, Input(path="x.parquet"), limit=150)
    assert (len(head.texts), len(head.bad)) == (100, 50)


def test_a_row_group_of_many_rows_is_lost_in_bounded_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["a"] * 20_000}), path, compression="none", write_page_checksum=True)
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    content = bytearray(path.read_bytes())
    content[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 0xFF
    path.write_bytes(content)
    (split,) = plan_splits([Input(path="x.parquet")], tmp_path, split_bytes=1 << 20, limit=None)
    sizes = [len(batch.bad) for batch in read_split(split)]
    assert sum(sizes) == 20_000
    assert max(sizes) < 5_000


def test_a_footer_whose_counts_disagree_is_not_believed(tmp_path: Path, read_all: Reader) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["a"] * 50}), path, compression="none")
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # Field 3 of the footer is the file's rows, a zigzag varint: 50 becomes 48.
    place = content.index(b"\x16\x64", footer)
    broken = bytearray(content)
    broken[place + 1] = 0x60
    broken[pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset] ^= 0xFF
    path.write_bytes(broken)
    found = read_all(tmp_path, Input(path="x.parquet"))
    assert found.reasons == [("x.parquet#0", "broken_row_group")]


def test_an_arrow_stream_cut_short_keeps_the_batches_before(tmp_path: Path, read_all: Reader) -> None:
    path = tmp_path / "x.arrows"
    table = pa.table({"text": [f"text {number}" for number in range(300)]})
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 8 // 10])
    found = read_all(tmp_path, Input(path="x.arrows"))
    assert found.texts == [f"text {number}" for number in range(200)]
    assert found.reasons == [("x.arrows#200", "truncated_stream")]


def test_an_arrow_file_with_broken_offsets_is_told(tmp_path: Path, read_all: Reader) -> None:
    path = tmp_path / "x.arrow"
    write_file(pa.table({"text": ["first text", "second text"]}), path)
    content = path.read_bytes()
    offsets = b"\x00\x00\x00\x00\x0a\x00\x00\x00\x15\x00\x00\x00"
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, b"\x00\x00\x00\x00\x0a\xff\xff\x00\x15\x00\x00\x00"))
    assert read_all(tmp_path, Input(path="x.arrow")).reasons == [
        ("x.arrow#0", "broken_record_batch"),
        ("x.arrow#1", "broken_record_batch"),
    ]


@pytest.mark.parametrize("name", ["x.arrow", "x.arrows"])
def test_a_record_batch_that_decodes_to_nonsense_costs_its_own_rows(
    tmp_path: Path, read_all: Reader, name: str
) -> None:
    texts = pa.chunked_array([["one", "two"], ["three", "four"], ["five"]])
    WRITERS[name](pa.table({"text": texts}), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    offsets = b"\x00\x00\x00\x00\x05\x00\x00\x00\x09\x00\x00\x00"
    assert content.count(offsets) == 1
    (tmp_path / name).write_bytes(content.replace(offsets, b"\x00\x00\x00\x00\x05\xff\x00\x00\x09\x00\x00\x00"))
    found = read_all(tmp_path, Input(path=name))
    assert found.texts == ["one", "two", "five"]
    assert found.column("origin") == [f"{name}#0", f"{name}#1", f"{name}#4"]
    assert found.reasons == [(f"{name}#2", "broken_record_batch"), (f"{name}#3", "broken_record_batch")]


def test_an_arrow_file_with_an_unreadable_batch_tells_the_rows_it_lost(tmp_path: Path, read_all: Reader) -> None:
    path = tmp_path / "x.arrow"
    table = pa.table({"text": [f"text {number}" for number in range(300)]})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=100)
    content = path.read_bytes()
    frames = [match.start() for match in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), content)]
    second = frames[len(frames) // 3]
    path.write_bytes(content[:second] + b"\0\0\0\0" + content[second + 4 :])
    found = read_all(tmp_path, Input(path="x.arrow"))
    assert found.texts == [f"text {number}" for number in range(100)]
    assert found.reasons == [(f"x.arrow#{row}", "broken_record_batch") for row in range(100, 300)]


def moments(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.int64()).view(pa.timestamp("ns"))


@anyformat
def test_meta_keeps_times_in_structs_and_numbers_that_json_has_not(
    tmp_path: Path, read_all: Reader, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [NoPandas(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    table = pa.table(
        {
            "text": ["a", "b", "c"],
            "seen": pa.StructArray.from_arrays([moments([1, None, 0])], ["at"]),
            "score": [float("nan"), float("inf"), -float("inf")],
        }
    )
    WRITERS[name](table, tmp_path / name)
    found = read_all(tmp_path, Input(path=name, keep_meta=True))
    assert found.bad == []
    assert found.column("meta") == [
        '{"seen":{"at":"1970-01-01T00:00:00.000000001"},"score":"NaN"}',
        '{"seen":{"at":null},"score":"Infinity"}',
        '{"seen":{"at":"1970-01-01T00:00:00.000000000"},"score":"-Infinity"}',
    ]


class NoPandas:
    """An import system that has no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ImportError(name)


@anyformat
def test_a_nested_string_that_is_not_utf8_costs_its_row(tmp_path: Path, read_all: Reader, name: str) -> None:
    tags = pa.ListArray.from_arrays(pa.array([0, 1, 2]), invalid([b"fine", b"\xff"], pa.string()))
    WRITERS[name](pa.table({"text": ["a", "b"], "tags": tags}), tmp_path / name)
    found = read_all(tmp_path, Input(path=name, keep_meta=True))
    assert (found.texts, found.column("meta")) == (["a"], ['{"tags":["fine"]}'])
    assert found.reasons == [(f"{name}#1", "invalid_utf8")]
    assert read_all(tmp_path, Input(path=name)).texts == ["a", "b"]


@anyformat
def test_meta_loses_the_fields_in_use_alone(tmp_path: Path, read_all: Reader, name: str) -> None:
    rows = [{"doc": {"text": "struct", "n": 1}, "doc.text": "column", "empty": {"a": {}}}]
    kind = pa.schema(
        [
            ("doc", pa.struct([("text", pa.string()), ("n", pa.int64())])),
            ("doc.text", pa.string()),
            ("tags", pa.map_(pa.string(), pa.int64())),
        ]
    )
    WRITERS[name](pa.Table.from_pylist([row | {"tags": [("a", 1)]} for row in rows], kind), tmp_path / name)
    found = read_all(tmp_path, Input(path=name, text="doc.text", keep_meta=True))
    assert found.texts == ["column"]
    assert found.column("meta") == ['{"doc":{"text":"struct","n":1},"tags":[["a",1]]}']


def twice(name: str, **others: list[Any]) -> pa.Table:
    columns = [pa.array(["a"]), pa.array(["b"]), *(pa.array(values) for values in others.values())]
    return pa.table(columns, names=[name, name, *others])


@anyformat
@pytest.mark.parametrize("column", ["text", "id", "from"])
def test_two_columns_for_one_field_are_refused(tmp_path: Path, read_all: Reader, name: str, column: str) -> None:
    others = {} if column == "text" else {"text": ["c"]}
    WRITERS[name](twice(column, **others), tmp_path / name)
    with pytest.raises(ConfigError) as caught:
        read_all(tmp_path, Input(path=name, source_field="from"))
    assert caught.value.where == name
    assert caught.value.what == f"2 columns are called '{column}'"
    assert caught.value.mend == "rename all but one"


@anyformat
def test_two_other_columns_of_one_name_are_refused_where_both_would_be_kept(
    tmp_path: Path, read_all: Reader, name: str
) -> None:
    WRITERS[name](twice("x", text=["c"]), tmp_path / name)
    assert read_all(tmp_path, Input(path=name)).texts == ["c"]
    with pytest.raises(ConfigError, match=f"{name}: 2 columns are called 'x'; .*keep_meta: false"):
        read_all(tmp_path, Input(path=name, keep_meta=True))
    # None of the wanted columns is there: the rows count all the same.
    found = read_all(tmp_path, Input(path=name, text="content"))
    assert found.reasons == [(f"{name}#0", "text_missing")]


@anyformat
def test_two_fields_of_one_name_in_a_struct_are_refused(tmp_path: Path, read_all: Reader, name: str) -> None:
    doc = pa.StructArray.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"])
    WRITERS[name](pa.table({"doc": doc, "text": ["c"]}), tmp_path / name)
    with pytest.raises(ConfigError, match=f"{name}: two fields are called 'doc.text'"):
        read_all(tmp_path, Input(path=name, text="doc.text"))
    assert read_all(tmp_path, Input(path=name)).texts == ["c"]
    with pytest.raises(ConfigError, match=r"two fields are called 'doc\.text'; .*keep_meta: false"):
        read_all(tmp_path, Input(path=name, keep_meta=True))


def test_a_column_that_has_no_form_in_json_is_refused_by_name(tmp_path: Path, read_all: Reader) -> None:
    path = tmp_path / "x.arrow"
    write_file(pa.table({"text": ["a"], "span": pa.array([pa.MonthDayNano([1, 2, 3])])}), path)
    # pyarrow makes no intervals of months, but others do; the unit stands twice, in the schema and in the footer.
    content = path.read_bytes()
    for place in (match.start() for match in re.finditer(b"\x02\x00", content)):
        changed = content[:place] + b"\x00" + content[place + 1 :]
        path.write_bytes(changed)
        try:
            found = str(pa.ipc.open_file(path).schema.field("span").type)
        except (pa.ArrowException, KeyError):
            continue
        if found == "month_interval":
            break
    assert read_all(tmp_path, Input(path="x.arrow")).texts == ["a"]
    with pytest.raises(ConfigError, match=r"x\.arrow: column 'span' is month_interval, .*keep_meta: false"):
        read_all(tmp_path, Input(path="x.arrow", keep_meta=True))
    with pytest.raises(ConfigError, match=r"x\.arrow: column 'span' is month_interval, .*; convert it$"):
        read_all(tmp_path, Input(path="x.arrow", id="span"))


ONE_UUID = "12345678-1234-5678-1234-567812345678"


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([pa.MonthDayNano([1, 2, 3]), None]), "P1M2DT0.000000003S"),
        (moments([1, None]), "1970-01-01T00:00:00.000000001"),
        (pa.array([7, None]).dictionary_encode(), "7"),
        (pa.array([datetime.date(2024, 1, 2), None]).dictionary_encode(), "2024-01-02"),
        (pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([7, None])), "7"),
        (pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["x", None])), "x"),
        (pa.array([bytes.fromhex(ONE_UUID.replace("-", "")), None], pa.uuid()), ONE_UUID),
    ],
)
def test_an_id_is_the_scalar_however_it_is_stored(
    tmp_path: Path, read_all: Reader, ids: pa.Array, expected: str
) -> None:
    write_file(pa.table({"id": ids, "text": ["a", "b"]}), tmp_path / "x.arrow")
    found = read_all(tmp_path, Input(path="x.arrow"))
    assert (found.bad, found.column("doc_id")) == ([], [expected, "x.arrow#1"])


def test_an_id_of_coded_numbers_reads_alike_from_arrow_and_parquet(tmp_path: Path, read_all: Reader) -> None:
    table = pa.table({"id": pa.array([7, None, 7]).dictionary_encode(), "text": ["a", "b", "c"]})
    for name, write in WRITERS.items():
        write(table, tmp_path / name)
        assert read_all(tmp_path, Input(path=name)).column("doc_id") == ["7", f"{name}#1", "7"]
