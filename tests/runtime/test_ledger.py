"""The ledger remembers a task for as long as its files are what they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import DamageError
from dataprep.runtime.ledger import Ledger, Output, Tally, TaskRecord, add_tallies
from dataprep.storage import hash_file


def output(path: Path, data: bytes, rows: int | None = None) -> Output:
    path.write_bytes(data)
    return Output(str(path), len(data), hash_file(path), rows)


def record(*outputs: Output) -> TaskRecord:
    return TaskRecord(
        id="0f",
        stage="prepare",
        key="网页/000000",
        outputs=outputs,
        tallies={"web": Tally(5, {"length.short": 1}, {"not_json": 2}, 100, 70)},
        edits={"normalize.nfc": 3},
        facts={"parts": [{"path": "p", "rows": 2}], "none": None},
        run={"seconds": 0.25},
    )


def test_a_committed_record_comes_back_as_it_was(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.find("prepare", "0f") is None
    done = record(output(tmp_path / "a", b"abc", 2), output(tmp_path / "b", b""))
    ledger.commit(done)
    assert Ledger(tmp_path / "ledger").find("prepare", "0f") == done
    assert ledger.find("emit", "0f") is None
    assert ledger.find("prepare", "0e") is None
    assert [path.name for path in (tmp_path / "ledger/prepare").iterdir()] == ["0f.json"]
    ledger.commit(replace(done, edits={}))
    assert ledger.find("prepare", "0f") == replace(done, edits={})


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"abd"),
        lambda path: path.write_bytes(b"ab"),
        lambda path: path.write_bytes(b"abcc"),
        lambda path: path.write_bytes(b""),
        Path.unlink,
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["changed", "truncated", "longer", "emptied", "missing", "a directory"],
)
def test_a_task_whose_file_is_no_longer_what_it_was_is_not_finished(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    done = record(output(tmp_path / "a", b"abc"), output(tmp_path / "b", b"abc"))
    ledger.commit(done)
    change(tmp_path / "b")
    assert ledger.find("prepare", "0f") is None


def truncated(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


def without(name: str) -> Callable[[bytes], bytes]:
    return lambda raw: json.dumps({k: v for k, v in json.loads(raw).items() if k != name}).encode()


def with_value(name: str, value: object) -> Callable[[bytes], bytes]:
    return lambda raw: json.dumps(json.loads(raw) | {name: value}).encode()


@pytest.mark.parametrize(
    "damage",
    [
        truncated,
        lambda raw: b"",
        lambda raw: b"[]",
        lambda raw: b"null",
        lambda raw: raw.replace(b"prepare", b"\xff\xff"),
        *(without(name) for name in ("outputs", "tallies", "edits", "id")),
        with_value("more", 1),
        with_value("outputs", [{"path": "a"}]),
        with_value("outputs", 3),
        with_value("tallies", {"web": {"lost": 1}}),
    ],
)
def test_a_damaged_record_says_where_it_is_and_how_to_mend_it(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    ledger = Ledger(tmp_path)
    ledger.commit(record())
    path = tmp_path / "prepare/0f.json"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamageError) as failure:
        ledger.find("prepare", "0f")
    assert failure.value.where == str(path)
    assert "delete it" in (failure.value.mend or "")


def test_what_is_neither_dropped_nor_quarantined_is_kept() -> None:
    assert Tally(10, {"a": 2, "b": 3}, {"c": 1}).kept == 4
    assert Tally().kept == 0


def test_tallies_add_up_source_by_source() -> None:
    total = add_tallies(
        [
            {"web": Tally(5, {"b.x": 1}, {}, 50, 40), "code": Tally(1, {}, {}, 9, 9)},
            {},
            {"web": Tally(3, {"a.y": 2, "b.x": 1}, {"not_json": 1}, 30, 0)},
            {"books": Tally(2, {}, {"not_utf8": 2}, 0, 0)},
        ]
    )
    assert total == {
        "books": Tally(2, {}, {"not_utf8": 2}, 0, 0),
        "code": Tally(1, {}, {}, 9, 9),
        "web": Tally(8, {"a.y": 2, "b.x": 2}, {"not_json": 1}, 80, 40),
    }
    assert list(total) == ["books", "code", "web"]
    assert list(total["web"].dropped) == ["a.y", "b.x"]
    assert add_tallies([]) == {}


COUNTS = st.dictionaries(st.sampled_from("pqr"), st.integers(0, 9), max_size=3)
TALLIES = st.dictionaries(
    st.sampled_from("uvw"), st.builds(Tally, st.integers(50, 99), COUNTS, COUNTS, st.integers(0, 99), st.integers(0, 9))
)


@given(st.lists(TALLIES, max_size=6), st.integers(0, 6))
def test_sums_do_not_depend_on_how_tasks_are_grouped_or_ordered(parts: list[dict[str, Tally]], cut: int) -> None:
    total = add_tallies(parts)
    assert add_tallies(reversed(parts)) == total
    assert add_tallies([add_tallies(parts[:cut]), add_tallies(parts[cut:])]) == total
    assert sum(tally.kept for tally in total.values()) == sum(t.kept for part in parts for t in part.values())
