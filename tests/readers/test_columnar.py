from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
    WRITERS[name](pa.table({"text": texts}), tmp_path / name)
    found = read_all(tmp_path, Input(path=name), batch_bytes=batch_bytes)
    assert found.texts == [text for text in texts if text]
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


def test_a_damaged_row_group_is_one_bad_record_and_the_others_survive(tmp_path: Path, read_all: Reader) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"text": [f"text {number}" for number in range(300)]})
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="zstd", write_page_checksum=True)
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(content)
    found = read_all(tmp_path, Input(path="x.parquet"))
    assert found.texts == [f"text {number}" for number in [*range(100), *range(200, 300)]]
    assert found.reasons == [("x.parquet#100", "broken_row_group")]
    assert "100 rows" in found.bad[0].detail


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
    assert read_all(tmp_path, Input(path="x.arrow")).reasons == [("x.arrow#0", "broken_record_batch")]
