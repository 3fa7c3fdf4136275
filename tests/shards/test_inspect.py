"""Inspect shows rows and documents as text with the borders in it, and lists what was lost."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from dataprep.errors import ConfigError, DamageError
from dataprep.shards.inspect import (
    dropped,
    inspect_document,
    inspect_row,
    render_documents,
    render_dropped,
    render_row,
)
from dataprep.shards.layouts import LayoutName


def shown(renderable: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(renderable)
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


@pytest.mark.parametrize(
    ("reason", "ids"), [("length", ["p"]), ("length.chars", ["p"]), ("leng", []), ("exact_dedup", ["q"])]
)
def test_a_reason_picks_itself_and_its_family(pristine: Path, reason: str, ids: list[str]) -> None:
    assert [record.doc_id for record in dropped(pristine, reason)] == ids


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (2, 2), (None, 3)])
def test_the_limit_holds(pristine: Path, limit: int | None, count: int) -> None:
    assert len(dropped(pristine, limit=limit)) == count


def test_a_missing_list_of_dropped_documents_is_damage(shard_set: Path) -> None:
    (shard_set / "dropped" / "0.parquet").unlink()
    with pytest.raises(DamageError, match="missing"):
        dropped(shard_set)
