"""Parts give back every row once, whatever stretches they are read in, and say so when they are damaged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataprep.batch import doc_batch
from dataprep.errors import DamageError, EnvironmentFailure
from dataprep.runtime.parts import (
    ORDER_END,
    PART_SCHEMA,
    Part,
    content_hashes,
    order_hashes,
    read_stretch,
    sort_part,
    write_part,
)

LAST = ORDER_END - 1


def part_batch(orders: list[int], texts: list[str]) -> pa.RecordBatch:
    """A part whose rows lie at the given orders, which must rise."""
    ids = [f"d{row}" for row in range(len(orders))]
    docs = doc_batch(ids, texts, ["ab"[row % 2] for row in range(len(ids))], ids)
    order = pa.array(np.array(orders, np.uint64))
    columns = [*docs.select(PART_SCHEMA.names[:5]).columns, order, content_hashes(docs.column("text"))]
    return pa.RecordBatch.from_arrays(columns, schema=PART_SCHEMA)


def written(path: Path, batch: pa.RecordBatch) -> Part:
    write_part(path, batch)
    return Part("web/000000", str(path), "", batch.num_rows, 0)


def read(part: Part, low: int = 0, high: int = ORDER_END) -> list[tuple[int, dict[str, object]]]:
    """(row number, row) of every row read."""
    found = []
    for first, batch in read_stretch(part, low, high):
        assert batch.num_rows > 0
        found += list(enumerate(batch.to_pylist(), first))
    return found


ORDERS = st.sampled_from([0, 1, 5, 1 << 63, LAST - 1, LAST]) | st.integers(0, LAST)
TEXTS = st.sampled_from(["", "x", "中文", "y" * 300_000])


@settings(deadline=None, max_examples=60)
@example([(0, ""), (0, "x"), (LAST, "x"), (LAST, "")], [1, LAST])
@example([(5, "y" * 300_000)] * 6, [5, 6])
@example([(5, "y" * 300_000)] * 6, [])
@given(st.lists(st.tuples(ORDERS, TEXTS), max_size=14), st.lists(ORDERS.filter(bool), max_size=5))
def test_any_partition_reads_every_row_once_with_its_number(rows: list[tuple[int, str]], cuts: list[int]) -> None:
    rows.sort()
    batch = part_batch([order for order, _ in rows], [text for _, text in rows])
    everything = batch.to_pylist()
    with tempfile.TemporaryDirectory() as directory:
        part = written(Path(directory) / "part.arrow", batch)
        found = []
        for low, high in pairwise(sorted({0, *cuts, ORDER_END})):
            stretch = read(part, low, high)
            wanted = [(row, value) for row, value in enumerate(everything) if low <= value["order"] < high]
            assert stretch == wanted
            found += stretch
        assert found == list(enumerate(everything))


def batch_rows(part: Part) -> list[int]:
    with pa.OSFile(part.path) as file:
        reader = pa.ipc.open_file(file)
        return [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]


def test_a_huge_document_has_a_record_batch_of_its_own(tmp_path: Path) -> None:
    texts = ["a", "x" * (3 << 20), "b", "c"]
    part = written(tmp_path / "part.arrow", part_batch([1, 2, 3, 4], texts))
    assert batch_rows(part) in ([1, 1, 2], [2, 2])
    assert [row["text"] for _, row in read(part)] == texts
    assert [(number, row["text"]) for number, row in read(part, 3, 4)] == [(2, "b")]


def test_many_tiny_documents_are_cut_into_batches_and_keep_their_numbers(tmp_path: Path) -> None:
    rows = 40_000
    part = written(tmp_path / "part.arrow", part_batch([row // 3 for row in range(rows)], [""] * rows))
    assert len(batch_rows(part)) > 1
    # 16,384 is no multiple of 3: these equal orders lie across a border between record batches.
    border = batch_rows(part)[0] // 3
    assert [number for number, _ in read(part, border, border + 1)] == [3 * border, 3 * border + 1, 3 * border + 2]
    numbers = [number for low in range(0, 14_000, 700) for number, _ in read(part, low, low + 700)]
    assert numbers == list(range(rows))


def test_a_part_without_rows_reads_as_nothing(tmp_path: Path) -> None:
    assert read(written(tmp_path / "part.arrow", part_batch([], []))) == []


def cut_short(data: bytearray) -> bytearray:
    return data[: len(data) // 2]


def scribbled(data: bytearray) -> bytearray:
    # The compressed text: the longest stretch of the file.
    middle = data.index(b"\x28\xb5\x2f\xfd") + 8
    data[middle : middle + 400] = bytes(400)
    return data


def replaced(data: bytearray) -> bytearray:
    return bytearray(b"not an Arrow file at all")


@pytest.mark.parametrize("damage", [cut_short, scribbled, replaced, lambda data: data[:0]])
def test_a_damaged_part_says_so_and_how_to_mend_it(tmp_path: Path, damage: Callable[[bytearray], bytearray]) -> None:
    texts = ["".join(chr(0x4E00 + row * i * i % 9973) for i in range(200)) for row in range(50)]
    part = written(tmp_path / "part.arrow", part_batch(list(range(50)), texts))
    path = Path(part.path)
    path.write_bytes(damage(bytearray(path.read_bytes())))
    with pytest.raises(DamageError) as failure:
        read(part)
    assert failure.value.where == part.path
    assert "run again" in (failure.value.mend or "")


def test_an_arrow_file_that_is_no_part_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "other.arrow"
    for metadata in (None, {b"other": b"1"}):
        table = pa.table({"a": [1]}).replace_schema_metadata(metadata)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(DamageError):
            read(Part("k", str(path), "", 1, 0))


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure) as failure:
        read(Part("k", str(tmp_path / "gone.arrow"), "", 1, 0))
    assert failure.value.where == str(tmp_path / "gone.arrow")


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=8), max_size=8), st.data())
def test_hashes_are_xxh3_of_the_utf8_bytes_also_of_slices(strings: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(strings)))
    length = data.draw(st.integers(0, len(strings) - start))
    seed = data.draw(st.sampled_from([0, 1, 42, LAST]))
    inside = [value.encode() for value in strings[start : start + length]]

    ids = pa.array(strings, pa.string()).slice(start, length)
    found = order_hashes(ids, seed)
    assert found.dtype == np.uint64
    assert found.tolist() == [xxhash.xxh3_64_intdigest(value, seed) for value in inside]

    hashes = content_hashes(pa.array(strings, pa.large_string()).slice(start, length))
    assert hashes.type == pa.binary(16)
    assert hashes.to_pylist() == [xxhash.xxh3_128(value).digest() for value in inside]


def test_known_hashes_stay_what_they_are() -> None:
    # The empty input's published XXH3 values under seed 0.
    assert order_hashes(pa.array([""], pa.string()), 0).tolist() == [0x2D06800538D394C2]
    assert content_hashes(pa.array([""], pa.large_string()))[0].as_py().hex() == "99aa06d3014798d86001c324468d497f"


def test_sorting_orders_rows_by_hash_and_ties_by_reading(tmp_path: Path) -> None:
    first = doc_batch(["a", "b", "a"], ["1", "2", "3"], "web", ["o1", "o2", "o3"])
    second = doc_batch(["c", "a"], ["4", "5"], ["code", "web"], ["o4", "o5"], ['{"k":1}', None])
    part, positions = sort_part([first, second], 7)
    ids = ["a", "b", "a", "c", "a"]
    wanted = sorted(range(5), key=lambda read_at: (xxhash.xxh3_64_intdigest(ids[read_at].encode(), 7), read_at))
    assert positions.tolist() == wanted
    assert part.schema.equals(PART_SCHEMA)
    assert part.column("doc_id").to_pylist() == [ids[read_at] for read_at in wanted]
    assert part.column("text").to_pylist() == [str(read_at + 1) for read_at in wanted]
    sources = ["web", "web", "web", "code", "web"]
    assert part.column("source").to_pylist() == [sources[read_at] for read_at in wanted]
    assert part.column("meta").to_pylist() == ['{"k":1}' if read_at == 3 else None for read_at in wanted]
    assert [row for _, row in read(written(tmp_path / "part.arrow", part))] == part.to_pylist()
