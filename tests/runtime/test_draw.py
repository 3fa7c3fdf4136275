"""Drawing gives one global order, whatever the parts, and marks what deduplication removed."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from dataprep.batch import SCHEMA, doc_batch
from dataprep.dedup import exact
from dataprep.errors import DamageError
from dataprep.runtime import draw as drawing
from dataprep.runtime import parts as part_files
from dataprep.runtime.draw import Drawn, DrawnPart, draw
from dataprep.runtime.membership import Membership
from dataprep.runtime.parts import ORDER_END, Part, sort_part, write_part

SEED = 3
REASON = "exact_dedup.duplicate"


def order(doc_id: str) -> int:
    return xxhash.xxh3_64_intdigest(doc_id.encode(), SEED)


def made(path: Path, ids: list[str], source: str = "web") -> Part:
    """A part file of documents whose text tells their id and part."""
    docs = doc_batch(ids, [f"text of {doc_id} in {path.name}" for doc_id in ids], source, ids)
    part, _ = sort_part([docs], SEED)
    write_part(path, part)
    return Part(path.name, str(path), "", part.num_rows, 0, {source: 1})


def row_of(ids: list[str], doc_id: str) -> int:
    return sorted(ids, key=order).index(doc_id)


def removal_list(path: Path, removed: list[tuple[int, int, str, str]]) -> Path:
    """A removal list of (part, row, text, kept id)."""
    part, row, text, kept = zip(*sorted(removed), strict=True)
    columns = {
        "part": pa.array(part, pa.uint32()),
        "row": pa.array(row, pa.uint32()),
        "text_bytes": pa.array([len(t.encode()) for t in text], pa.uint32()),
        "content_hash": pa.array([xxhash.xxh3_128_digest(t.encode()) for t in text], pa.binary(16)),
        "kept_doc_id": pa.array(kept, pa.string()),
    }
    exact.write_removals(path, pa.table(columns, schema=exact.REMOVAL_SCHEMA))
    return path


def rows(drawn: list[Drawn]) -> list[tuple[str, str, str, str | None, str | None]]:
    """(id, text, source, reason, matched) of every row drawn."""
    found = []
    for one in drawn:
        assert one.documents.schema.names == SCHEMA.names
        assert one.documents.schema.types == SCHEMA.types
        columns = [one.documents.column(name).to_pylist() for name in ("doc_id", "text", "source", "reason")]
        found += list(zip(*columns, one.matched.to_pylist(), strict=True))
    return found


IDS = [f"doc-{number}" for number in range(60)]


def test_the_order_is_the_global_order_however_documents_lie_in_parts(tmp_path: Path) -> None:
    wanted = sorted(IDS, key=order)
    cuts = {"one": [IDS], "halves": [IDS[:30], IDS[30:]], "mixed": [IDS[1::3], IDS[::3], IDS[2::3]]}
    for name, split in cuts.items():
        parts = [DrawnPart(made(tmp_path / f"{name}{n}", ids), n) for n, ids in enumerate(split)]
        assert [row[0] for row in rows(list(draw(parts, [], 0, ORDER_END, REASON)))] == wanted


def test_neighbouring_ranges_together_are_the_whole(tmp_path: Path) -> None:
    parts = [DrawnPart(made(tmp_path / "0", IDS[:20]), 0), DrawnPart(made(tmp_path / "1", IDS[20:], "code"), 1)]
    whole = rows(list(draw(parts, [], 0, ORDER_END, REASON)))
    assert {row[2] for row in whole} == {"web", "code"}
    bounds = [ORDER_END * number // 7 for number in range(8)]
    pieces = [rows(list(draw(parts, [], low, high, REASON))) for low, high in itertools.pairwise(bounds)]
    assert list(itertools.chain(*pieces)) == whole
    assert list(draw(parts, [], 0, 1, REASON)) == []
    assert list(draw([], [], 0, ORDER_END, REASON)) == []


def test_neither_record_batches_nor_drawn_batches_change_what_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [DrawnPart(made(tmp_path / "0", IDS[::2]), 0), DrawnPart(made(tmp_path / "1", IDS[1::2]), 1)]
    removals = [removal_list(tmp_path / "r", [(1, 9, _text(parts[1], 9), "kept")])]
    whole = list(draw(parts, removals, 0, ORDER_END, REASON))
    monkeypatch.setattr(part_files, "_BATCH_ROWS", 4)
    monkeypatch.setattr(drawing, "_BATCH_BYTES", 70)
    parts = [DrawnPart(made(tmp_path / "2", IDS[::2]), 0), DrawnPart(made(tmp_path / "3", IDS[1::2]), 1)]
    removals = [removal_list(tmp_path / "r", [(1, 9, _text(parts[1], 9), "kept")])]
    small = list(draw(parts, removals, 0, ORDER_END, REASON))
    assert len(whole) == 1
    assert len(small) > 15
    assert [(row[0], *row[2:]) for row in rows(small)] == [(row[0], *row[2:]) for row in rows(whole)]


def _text(drawn: DrawnPart, row: int) -> str:
    batches = [batch for _, batch in part_files.read_stretch(drawn.part, 0, ORDER_END)]
    return str(pa.Table.from_batches(batches)["text"][row])


def test_ties_fall_to_the_part_that_comes_first(tmp_path: Path) -> None:
    parts = [DrawnPart(made(tmp_path / name, ["same", "other"]), n) for n, name in enumerate("zay")]
    texts = [row[1] for row in rows(list(draw(parts, [], 0, ORDER_END, REASON))) if row[0] == "same"]
    assert texts == ["text of same in z", "text of same in a", "text of same in y"]


def test_removed_rows_carry_the_reason_and_the_document_kept(tmp_path: Path) -> None:
    left, right = IDS[:25], IDS[25:]
    parts = [DrawnPart(made(tmp_path / "0", left), 4), DrawnPart(made(tmp_path / "1", right), 9)]
    gone = [(4, "0", left, "doc-3", "k1"), (4, "0", left, "doc-24", "k2"), (9, "1", right, "doc-40", "k3")]
    listed = [
        (number, row_of(ids, doc_id), f"text of {doc_id} in {file}", kept) for number, file, ids, doc_id, kept in gone
    ]
    lists = [removal_list(tmp_path / "a", listed[::2]), removal_list(tmp_path / "b", listed[1::2])]
    # A part that is not drawn from may have removals too.
    lists.append(removal_list(tmp_path / "c", [(5, 0, "elsewhere", "k4")]))
    found = {row[0]: row[3:] for row in rows(list(draw(parts, lists, 0, ORDER_END, REASON)))}
    matches = {doc_id: kept for _, _, _, doc_id, kept in gone}
    assert found == {i: (REASON, matches[i]) if i in matches else (None, None) for i in IDS}
    for low, high in itertools.pairwise([ORDER_END * n // 5 for n in range(6)]):
        for doc_id, _, _, *fate in rows(list(draw(parts, lists, low, high, REASON))):
            assert tuple(fate) == found[doc_id]


def test_removals_that_name_another_document_are_damage(tmp_path: Path) -> None:
    part = made(tmp_path / "0", IDS)
    beyond = len(IDS)
    for row, text in ((0, "some other text"), (1, _text(DrawnPart(part, 0), 0)), (beyond, "text of no row")):
        lists = [removal_list(tmp_path / "r", [(0, row, text, "kept")])]
        with pytest.raises(DamageError) as failure:
            list(draw([DrawnPart(part, 0)], lists, 0, ORDER_END, REASON))
        assert failure.value.where == part.path


def test_batches_are_a_few_megabytes_and_never_empty(tmp_path: Path) -> None:
    sizes = np.array([9 << 20, 10, 1 << 20, 3 << 20, 0, 5 << 20, 1])
    ids = [f"d{number}" for number in range(len(sizes))]
    part, _ = sort_part([doc_batch(ids, ["x" * int(size) for size in sizes], "web", ids)], SEED)
    write_part(tmp_path / "0", part)
    drawn = list(draw([DrawnPart(Part("k", str(tmp_path / "0"), "", 7, 0), 0)], [], 0, ORDER_END, REASON))
    assert [row[0] for row in rows(drawn)] == sorted(ids, key=order)
    for one in drawn:
        lengths = [len(text) for text in one.documents.column("text").to_pylist()]
        assert len(lengths) == 1 or sum(lengths) <= 4 << 20


BOUNDS = [0, 1, ORDER_END // 3, ORDER_END // 2 + 12345, ORDER_END - 1, ORDER_END]


@pytest.mark.parametrize("bounds", [[0, ORDER_END], BOUNDS])
def test_every_copy_is_drawn_once_over_all_ranges(bounds: list[int], tmp_path: Path) -> None:
    parts = [DrawnPart(made(tmp_path / "0", IDS[:20]), 0), DrawnPart(made(tmp_path / "1", IDS[20:], "code"), 1)]
    lists = [removal_list(tmp_path / "r", [(0, 3, _text(parts[0], 3), "kept")])]
    picks = Membership(1, epochs={"web": 3.0, "code": 0.5})
    found = []
    for low, high in itertools.pairwise(bounds):
        for one in draw(parts, lists, low, high, REASON, picks):
            found += list(zip(rows([one]), one.copy.tolist(), strict=True))
    web = [(row[0], copy) for row, copy in found if row[2] == "web" and row[3] is None]
    gone = sorted(IDS[:20], key=order)[3]
    assert sorted(web) == sorted((name, copy) for name in set(IDS[:20]) - {gone} for copy in range(3))
    assert [(row[0], copy) for row, copy in found if row[3] == REASON] == [(gone, 0)]
    code = [(row[0], row[3], copy) for row, copy in found if row[2] == "code"]
    assert sorted(name for name, _, _ in code) == sorted(IDS[20:])
    assert {copy for _, _, copy in code} == {0}
    assert {reason for _, reason, _ in code} == {None, "mix.left_out"}


def test_copies_of_a_document_lie_far_apart_and_places_are_in_order(tmp_path: Path) -> None:
    part = DrawnPart(made(tmp_path / "0", IDS), 0)
    picks = Membership(1, epochs={"web": 4.0})
    (one,) = draw([part], [], 0, ORDER_END, REASON, picks)
    drawn = list(zip(one.documents.column("doc_id").to_pylist(), one.copy.tolist(), strict=True))
    golden = 0x9E3779B97F4A7C15
    places = [(order(name) + copy * golden) % ORDER_END for name, copy in drawn]
    assert places == sorted(places)
    for name in IDS:
        mine = sorted((order(name) + copy * golden) % ORDER_END for copy in range(4))
        gaps = [(b - a) % ORDER_END for a, b in zip(mine, mine[1:] + mine[:1], strict=True)]
        assert min(gaps) > 0.1 * ORDER_END
