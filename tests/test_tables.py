"""A table gives way where it can, and never in a number or a heading."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from dataprep.tables import Column, FittedTable

COLUMNS = (Column("source"), Column("tokens", number=True), Column("speed", number=True, spare=1))
ROWS = [("a text of several words", "1,234,567", "12.5 MB/s")]


def lines(table: FittedTable, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # the StringIO above


def test_with_room_enough_everything_stands_in_one_line() -> None:
    assert lines(FittedTable(COLUMNS, ROWS), 80)[3] == "│ a text of several words │ 1,234,567 │ 12.5 MB/s │"


def test_texts_fold_first() -> None:
    assert lines(FittedTable(COLUMNS, ROWS), 40)[3:5] == [
        "│ a text of    │ 1,234,567 │ 12.5 MB/s │",
        "│ several      │           │           │",
    ]


def test_then_spare_columns_go() -> None:
    assert lines(FittedTable(COLUMNS, ROWS), 30)[1:4] == [
        "┃ source         ┃    tokens ┃",
        "┡━━━━━━━━━━━━━━━━╇━━━━━━━━━━━┩",
        "│ a text of      │ 1,234,567 │",
    ]


def test_and_at_last_each_row_is_a_list_of_everything() -> None:
    assert [line.rstrip() for line in lines(FittedTable(COLUMNS, ROWS, "Sources"), 20)] == [
        "Sources",
        "",
        "source: a text of",
        "several words",
        "tokens: 1,234,567",
        "speed: 12.5 MB/s",
    ]


@given(
    st.lists(st.tuples(st.text("ab 中文", max_size=30), st.integers(0, 10**15), st.integers(0, 10**9)), max_size=4),
    st.integers(30, 120),
)
def test_no_line_is_too_long_and_no_number_is_cut(rows: list[tuple[str, int, int]], width: int) -> None:
    cells = [(text, f"{number:,}", f"{more:,}") for text, number, more in rows]
    shown = lines(FittedTable(COLUMNS, cells), width)
    assert all(cell_len(line) <= width for line in shown)
    assert all(any(number in line for line in shown) for _, number, _ in cells)
