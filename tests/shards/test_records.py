"""The reader names damage of any kind in a DamageError; it never crashes and never returns wrong counts in silence."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dataprep.errors import DamageError, PipelineError
from dataprep.shards.layout import Layout
from dataprep.shards.mindrecord import write_shard
from dataprep.shards.records import check_framing, columns, db_row_count, read_rows, row_count

ROWS = 40
HEADER, PAGE = 1 << 14, 1 << 15


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    rows = np.random.default_rng(0).integers(-70_000, 70_000, (ROWS, 33)).astype(np.int32)
    path = directory / "x.mindrecord"
    offsets = np.arange(ROWS + 1)
    layout = Layout(page_size=PAGE, header_size=HEADER)
    write_shard(path, rows, np.zeros(ROWS, np.int32), offsets, scratch=directory, layout=layout)
    return path


@pytest.fixture
def pair(whole: Path, tmp_path: Path) -> Path:
    for name in (whole.name, f"{whole.name}.db"):
        shutil.copy(whole.with_name(name), tmp_path / name)
    return tmp_path / whole.name


def read_everything(path: Path) -> None:
    row_count(path)
    db_row_count(path)
    check_framing(path)
    read_rows(path, range(row_count(path)))


def outcome(path: Path) -> str:
    """'read', or 'damage' that names the file; any other exception is a failure of the test."""
    try:
        read_everything(path)
    except DamageError as error:
        return "damage" if error.where in (str(path), f"{path}.db") else f"damage of {error.where}"
    return "read"


def test_the_header_tells_columns_and_rows(whole: Path) -> None:
    assert {name: column.shape for name, column in columns(whole).items()} == {"doc_starts": (-1,), "input_ids": (33,)}
    assert row_count(whole) == db_row_count(whole) == check_framing(whole) == ROWS


@pytest.mark.parametrize("part", ["header", "page", "db"])
def test_flipped_bytes_anywhere_are_damage_or_only_change_values(pair: Path, part: str) -> None:
    target = pair.with_name("x.mindrecord.db") if part == "db" else pair
    first, last = {"header": (0, 700), "page": (HEADER, HEADER + 6000), "db": (0, 12_288)}[part]
    original = target.read_bytes()
    random = np.random.default_rng(1)
    seen = set()
    for place in random.integers(first, min(last, len(original)), 250):
        damaged = bytearray(original)
        damaged[place] ^= int(random.integers(1, 256))
        target.write_bytes(damaged)
        seen.add(outcome(pair))
    assert "damage" in seen
    assert seen <= {"damage", "read"}


def test_a_file_cut_short_anywhere_is_damage(pair: Path) -> None:
    for target in (pair, pair.with_name("x.mindrecord.db")):
        original = target.read_bytes()
        used = HEADER + 4000 if target == pair else len(original)
        for size in [0, 1, 7, 8, 9, *np.linspace(10, used - 1, 60).astype(int)]:
            target.write_bytes(original[:size])
            assert outcome(pair) == "damage", f"{target.name} cut at {size}"
        target.write_bytes(original)
    assert outcome(pair) == "read"


def test_garbage_of_any_size_is_damage(pair: Path) -> None:
    random = np.random.default_rng(2)
    for target in (pair, pair.with_name("x.mindrecord.db")):
        original = target.read_bytes()
        for size in (1, 100, 20_000):
            target.write_bytes(random.bytes(size))
            assert outcome(pair) == "damage"
        target.write_bytes(original)


@pytest.mark.parametrize(
    "content", [b"[" * 5000, b"{}", b"null", b'{"header_size": 1e999}', b"\xff\xfe", b'{"page": [{}]}']
)
def test_headers_that_are_no_header_are_damage(pair: Path, content: bytes) -> None:
    pair.write_bytes(len(content).to_bytes(8, "little") + content + bytes(50_000))
    with pytest.raises(DamageError, match="MindRecord header"):
        row_count(pair)


def test_a_missing_index_is_damage(pair: Path) -> None:
    pair.with_name("x.mindrecord.db").unlink()
    assert row_count(pair) == ROWS
    with pytest.raises(DamageError, match=r"x\.mindrecord\.db: missing"):
        db_row_count(pair)


def test_a_missing_file_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"gone\.mindrecord"):
        row_count(tmp_path / "gone.mindrecord")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM INDEXES WHERE ROW_ID = 7", "numbered|holds 39 rows|entries for row"),
        ("DELETE FROM INDEXES WHERE ROW_ID >= 30", "holds 30 rows"),
        ("UPDATE INDEXES SET PAGE_OFFSET_BLOB = 'x' WHERE ROW_ID = 3", "is no place"),
        ("UPDATE INDEXES SET PAGE_OFFSET_BLOB_END = PAGE_OFFSET_BLOB WHERE ROW_ID = 3", "hold no row"),
        ("UPDATE INDEXES SET PAGE_OFFSET_BLOB = -9 WHERE ROW_ID = 3", "hold no row"),
        ("UPDATE INDEXES SET PAGE_ID_BLOB = 9223372036854775807 WHERE ROW_ID = 3", "hold no row"),
        ("UPDATE INDEXES SET PAGE_ID_BLOB = 99 WHERE ROW_ID = 3", "cut short"),
        ("UPDATE SHARD_NAME SET NAME = 'y.mindrecord'", "belongs to"),
        ("DROP TABLE INDEXES", "no such table"),
    ],
)
def test_an_index_that_lies_is_damage(pair: Path, statement: str, words: str) -> None:
    with sqlite3.connect(f"{pair}.db") as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(DamageError, match=words):
        read_everything(pair)


def test_a_renamed_pair_is_damage_because_mindspore_cannot_read_it(pair: Path) -> None:
    pair.rename(pair.with_name("y.mindrecord"))
    with pytest.raises(DamageError, match="cannot be renamed"):
        row_count(pair.with_name("y.mindrecord"))


def test_a_hole_where_a_row_should_begin_is_damage(pair: Path) -> None:
    data = bytearray(pair.read_bytes())
    data[HEADER : HEADER + 1000] = bytes(1000)
    pair.write_bytes(data)
    with pytest.raises(DamageError, match="no row at byte"):
        check_framing(pair)


@pytest.mark.parametrize(
    ("change", "words"),
    [(-1, "1 bytes behind the last column of a row"), (1, "input_ids is longer than its row"), (1 << 63, "is longer")],
)
def test_a_column_that_does_not_end_with_its_row_is_damage(pair: Path, change: int, words: str) -> None:
    data = bytearray(pair.read_bytes())
    # The first row: its own length, then each column behind its length; input_ids is the last.
    first = HEADER + 8
    last = first + 8 + int.from_bytes(data[first : first + 8], "big")
    length = int.from_bytes(data[last : last + 8], "big") + change
    data[last : last + 8] = length.to_bytes(8, "big")
    pair.write_bytes(data)
    with pytest.raises(DamageError, match=words):
        check_framing(pair)


@pytest.mark.parametrize("row", [-1, ROWS])
def test_a_row_outside_the_file_is_an_index_error(whole: Path, row: int) -> None:
    with pytest.raises(IndexError, match=f"row {row} of {ROWS}"):
        read_rows(whole, [row])


@pytest.mark.parametrize("name", ["a b", "100%", "häß#1", "q?x=1"])
def test_odd_directory_names_are_read(whole: Path, tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    directory.mkdir()
    copy: Callable[[Path, Path], object] = shutil.copy
    for part in (whole.name, f"{whole.name}.db"):
        copy(whole.with_name(part), directory / part)
    read_everything(directory / whole.name)
