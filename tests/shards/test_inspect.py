"""Inspect shows rows and documents as text with the borders in it, and lists what was lost."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from dataprep.errors import ConfigError, DamageError
from dataprep.shards.inspect import (
    DocumentView,
    LostRecord,
    Piece,
    as_json_lines,
    dropped,
    inspect_document,
    inspect_row,
    render_documents,
    render_dropped,
    render_lost,
    render_row,
)
from dataprep.shards.layouts import LayoutName
from dataprep.shards.lost import lost_tables


def shown(renderable: RenderableType, *, terminal: bool = False) -> str:
    console = Console(
        file=io.StringIO(), width=200, force_terminal=terminal, color_system="standard" if terminal else None
    )
    console.print(renderable, soft_wrap=True)
    return console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above


def test_a_row_shows_its_pieces_in_order_with_their_borders(pristine: Path) -> None:
    view = inspect_row(pristine, 1)
    assert [(piece.doc_id, piece.start, piece.tokens, piece.begins, piece.ends) for piece in view.pieces] == [
        ("a", 0, 6, True, True),
        ("b", 6, 3, True, False),
    ]
    assert [piece.text for piece in view.pieces] == ["hello<eos>", "你"]
    assert (view.shard, view.row_in_shard, view.padding) == ("tiny-00000-of-00002.mindrecord", 1, 0)
    assert "row 1, tokens 6 to 8 begins" in shown(render_row(view))


def test_a_row_of_a_later_shard_is_numbered_over_the_whole_set(pristine: Path) -> None:
    view = inspect_row(pristine, 4)
    assert (view.shard, view.row_in_shard) == ("tiny-00001-of-00002.mindrecord", 1)
    assert [(piece.doc_id, piece.text, piece.begins) for piece in view.pieces] == [("d", "one line\n", True)]


def test_padding_is_told_and_not_decoded(pristine: Path) -> None:
    view = inspect_row(pristine, 0)
    assert view.padding == 3
    assert "3 tokens of padding" in shown(render_row(view))
    assert "<pad>" not in shown(render_row(view))


def test_a_document_is_shown_whole_across_its_rows(pristine: Path) -> None:
    (view,) = inspect_document(pristine, "b")
    assert [piece.row for piece in view.pieces] == [1, 2, 0]
    assert "".join(piece.text for piece in view.pieces) == "你好，世界<eos>"
    assert (view.source, view.origin) == ("zh", "zh.jsonl#6")
    assert "document b: 16 tokens in 3 rows" in shown(render_documents([view]))


@pytest.mark.parametrize("columns", ["mcore", "padded"])
def test_rows_and_documents_show_the_same_in_every_layout(
    pristine: Path, laid_out: Callable[[LayoutName], Path], columns: LayoutName
) -> None:
    for row in range(6):
        assert inspect_row(laid_out(columns), row) == inspect_row(pristine, row)
    for doc_id in "abcde":
        assert inspect_document(laid_out(columns), doc_id) == inspect_document(pristine, doc_id)


NASTY = "  a\tb\r\n\x07\x08\x0c\x1b[31m\x9b1m\x7f\u200b\u202e   \n\n\ttab [bold]x[/bold] " + "y" * 500
PLAIN = "  a\tb\\r\n\\x07\\x08\\x0c\\x1b[31m\\x9b1m\\x7f\\u200b\\u202e   \n\n\ttab [bold]x[/bold] " + "y" * 500


def test_text_is_shown_to_the_last_space_with_its_hidden_characters_as_escapes() -> None:
    piece = Piece("id\x1b]0;", "web\u202e", "a.jsonl#0\n", 3, 0, 9, True, True, NASTY)
    view = DocumentView("id\x1b]0;", "web\u202e", "a.jsonl#0\n", "s-00000.mindrecord", 0, (piece,), 0, None, None)
    assert shown(render_documents([view])) == (
        "document id\\x1b]0;: 9 tokens in 1 row of s-00000.mindrecord\n"
        "── id\\x1b]0; [web\\u202e] a.jsonl#0\\n: row 3, tokens 0 to 8 begins ends\n"
        f"{PLAIN}\n"
    )


def test_escapes_stand_out_on_a_terminal_from_text_that_looks_like_them() -> None:
    piece = Piece("i", "s", "o", 0, 0, 1, True, True, "\x1b and \\x1b")
    view = DocumentView("i", "s", "o", "s", 2, (piece,), 0, None, None)
    lines = shown(render_documents([view]), terminal=True).splitlines()
    assert lines[-1] == "\x1b[7m\\x1b\x1b[0m and \\x1b"


def test_a_repetition_is_shown_as_such() -> None:
    view = DocumentView("i", "s", "o", "s", 2, (), 0, None, None)
    assert shown(render_documents([view])) == "document i, copy 2: 0 tokens in 0 rows of s\n"


def test_lost_records_hide_nothing_either() -> None:
    record = LostRecord(
        "dropped", "we\x1bb", "o\x07#1", "length.chars", "a\tb\x1b[2J\r\nc", "i\u200bd", "prepare", "m\x9b"
    )
    table = shown(render_dropped([record]))
    cells = [cell.strip() for line in table.splitlines() if line.startswith("│") for cell in line.split("│")[1:-1]]
    assert cells == [
        *("dropped", "length.chars", r"we\x1bb", r"i\u200bd", r"a\tb\x1b[2J\r"),
        *("", r"equals m\x9b", "", r"o\x07#1", "c"),
    ]


def test_no_cell_of_lost_records_is_cut_short_on_a_narrow_terminal() -> None:
    record = LostRecord("dropped", "a-long-source", "folder/file.jsonl#123456", "exact_dedup.duplicate", "text", "id-1")
    console = Console(file=io.StringIO(), width=40)
    console.print(render_dropped([record]))
    table = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    # Too narrow for a table: one line a cell.
    assert table.split() == [
        *("fate:", "dropped", "reason:", "exact_dedup.duplicate", "source:", "a-long-source"),
        *("id,", "origin:", "id-1", "folder/file.jsonl#123456", "text:", "text"),
    ]


@pytest.mark.parametrize("row", [-1, 6])
def test_a_row_that_is_not_there_tells_which_are(pristine: Path, row: int) -> None:
    with pytest.raises(ConfigError, match=f"no row {row}; rows are 0 to 5"):
        inspect_row(pristine, row)


def test_a_document_that_is_not_there_points_to_the_dropped(pristine: Path) -> None:
    with pytest.raises(ConfigError, match="no document 'nope'; see `dataprep dropped`"):
        inspect_document(pristine, "nope")


def test_all_lost_records_are_listed_with_their_reasons(pristine: Path) -> None:
    records = dropped(pristine)
    assert [(record.fate, record.reason, record.doc_id, record.matched_doc) for record in records] == [
        ("dropped", "length.chars", "p", None),
        ("dropped", "exact_dedup", "q", "a"),
        ("quarantined", "invalid_json", None, None),
    ]
    assert records[2].detail == "at 3"
    assert "[bold]too short" in shown(render_dropped(records))
    assert "equals a" in shown(render_dropped(records))


@pytest.mark.parametrize(
    ("reason", "ids"), [("length", ["p"]), ("length.chars", ["p"]), ("leng", []), ("exact_dedup", ["q"])]
)
def test_a_reason_picks_itself_and_its_family(pristine: Path, reason: str, ids: list[str]) -> None:
    assert [record.doc_id for record in dropped(pristine, reason)] == ids


def test_a_reason_that_no_record_has_is_refused_with_those_there_are(pristine: Path) -> None:
    known = "reasons are: exact_dedup, invalid_json, length.chars"
    with pytest.raises(ConfigError, match=f"'nope'; {known}"):
        render_lost(lost_tables(pristine), "nope", 20)
    with pytest.raises(ConfigError, match=rf"did you mean length\? {known}"):
        render_lost(lost_tables(pristine), "lenght", 20)
    with pytest.raises(ConfigError, match=r"did you mean length"):
        list(as_json_lines(lost_tables(pristine), "leng", None))


def test_a_table_that_is_cut_says_of_how_many_and_how_to_see_all(pristine: Path) -> None:
    assert "2 of 3 shown, --limit 3 shows all" in shown(render_lost(lost_tables(pristine), None, 2))
    assert "shows all" not in shown(render_lost(lost_tables(pristine), None, 3))
    assert "shows all" not in shown(render_lost(lost_tables(pristine), "length", 1))


def test_lost_records_are_one_json_object_a_line(pristine: Path) -> None:
    lines = [json.loads(line) for line in as_json_lines(lost_tables(pristine), None, None)]
    assert [(line["fate"], line["reason"], line["matched_doc"]) for line in lines] == [
        ("dropped", "length.chars", None),
        ("dropped", "exact_dedup", "a"),
        ("quarantined", "invalid_json", None),
    ]
    assert len(list(as_json_lines(lost_tables(pristine), None, 2))) == 2


def test_an_unfinished_set_lists_what_its_tables_hold(shard_set: Path) -> None:
    (shard_set / "manifest.json").unlink()
    (shard_set / "dropped" / ".1.parquet.77.tmp").write_bytes(b"half")
    tables = lost_tables(shard_set)
    assert not tables.finished
    assert [(path.name, fate) for path, fate in tables.tables] == [
        ("0.parquet", "dropped"),
        ("0.parquet", "quarantined"),
    ]
    assert [record.doc_id for record in dropped(shard_set)] == ["p", "q", None]


def test_a_set_that_lost_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    assert shown(render_lost(lost_tables(tmp_path), None, 20)).strip() == "nothing was dropped or quarantined"
    with pytest.raises(ConfigError, match="nothing was dropped or quarantined; leave out --reason"):
        render_lost(lost_tables(tmp_path), "length", 20)


def test_a_row_of_an_empty_set_is_no_range_of_minus_one(
    shard_set: Path, change_manifest: Callable[[Callable[[dict[str, Any]], object]], None]
) -> None:
    change_manifest(lambda content: content["totals"].update(rows=0))
    with pytest.raises(ConfigError, match="the set holds no rows"):
        inspect_row(shard_set, 0)


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (2, 2), (None, 3)])
def test_the_limit_holds(pristine: Path, limit: int | None, count: int) -> None:
    assert len(dropped(pristine, limit=limit)) == count


def test_a_missing_list_of_dropped_documents_is_damage(shard_set: Path) -> None:
    (shard_set / "dropped" / "0.parquet").unlink()
    with pytest.raises(DamageError, match="missing"):
        dropped(shard_set)
