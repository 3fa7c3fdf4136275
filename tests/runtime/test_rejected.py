"""Rejected documents go to a table of their own, which exists only if there are any."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataprep.batch import LABEL, doc_batch, with_column
from dataprep.readers.inputs import BadRecord
from dataprep.runtime.rejected import (
    DROPPED_SCHEMA,
    QUARANTINE_SCHEMA,
    KeepText,
    dropped_rows,
    quarantine_rows,
    rejected_table,
)

BAD = [
    BadRecord("web", "a.jsonl:3", "not_json", "line 3: expected a value", "{"),
    BadRecord("网页", "b.jsonl:1", "not_utf8", "byte 7", "�"),
]


def dropped(texts: list[str], reasons: list[str]) -> pa.RecordBatch:
    ids = [str(row) for row in range(len(texts))]
    batch = doc_batch(ids, texts, "web", [f"f:{row}" for row in ids])
    return with_column(batch, "reason", pa.array(reasons, pa.string()).cast(LABEL))


def test_rows_of_several_batches_come_back_from_one_file(tmp_path: Path) -> None:
    final = tmp_path / "dropped/emit-00000.parquet"
    with rejected_table(final, DROPPED_SCHEMA) as table:
        table.write(dropped_rows(dropped(["a"], ["length.short"]), "prepare", "full"))
        table.write(dropped_rows(dropped([], []), "prepare", "full"))
        table.write(dropped_rows(dropped(["b", "中"], ["x.y", "length.short"]), "emit", "full", ["k", "m"]))
        assert not final.exists()
    assert table.rows == 3
    names = ("doc_id", "source", "origin", "stage", "reason", "matched_doc", "text")
    rows = [
        ("0", "web", "f:0", "prepare", "length.short", None, "a"),
        ("0", "web", "f:0", "emit", "x.y", "k", "b"),
        ("1", "web", "f:1", "emit", "length.short", "m", "中"),
    ]
    assert pq.read_table(final).to_pylist() == [dict(zip(names, row, strict=True)) for row in rows]
    assert list(final.parent.iterdir()) == [final]


def test_bad_records_come_back_as_they_were(tmp_path: Path) -> None:
    final = tmp_path / "quarantine.parquet"
    with rejected_table(final, QUARANTINE_SCHEMA) as table:
        table.write(quarantine_rows(BAD))
    rows = pq.read_table(final).to_pylist()
    assert [BadRecord(**row) for row in rows] == BAD
    assert quarantine_rows([]).num_rows == 0


@pytest.mark.parametrize("before", [False, True])
def test_a_table_without_rows_leaves_no_file_not_even_an_older_one(tmp_path: Path, before: bool) -> None:
    final = tmp_path / "empty.parquet"
    if before:
        final.write_text("an earlier run's")
    with rejected_table(final, QUARANTINE_SCHEMA) as table:
        table.write(quarantine_rows([]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", [[], BAD])
def test_a_failure_leaves_neither_the_file_nor_a_temporary(tmp_path: Path, bad: list[BadRecord]) -> None:
    def fail() -> None:
        with rejected_table(tmp_path / "t.parquet", QUARANTINE_SCHEMA) as table:
            table.write(quarantine_rows(bad))
            raise RuntimeError("the job failed")

    with pytest.raises(RuntimeError, match="the job failed"):
        fail()
    assert list(tmp_path.iterdir()) == []


LONG = "中😀a" * 100


@pytest.mark.parametrize(("keep", "text"), [("full", LONG), ("excerpt", LONG[:200]), ("none", None)])
def test_as_much_text_is_kept_as_was_asked_for(keep: KeepText, text: str | None) -> None:
    rows = dropped_rows(dropped([LONG, ""], ["a.b", "a.b"]), "prepare", keep)
    assert rows.schema == DROPPED_SCHEMA
    assert rows.column("text").to_pylist() == [text, None if keep == "none" else ""]
