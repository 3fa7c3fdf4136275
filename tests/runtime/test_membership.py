"""Sides and repetitions: every document on one side, and as often as its epochs say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dataprep.batch import LABEL, doc_batch
from dataprep.runtime.membership import DRAW_END, Membership
from dataprep.runtime.parts import sort_part
from dataprep.shards.manifest import LEFT_OUT

COUNT = 4000


def batch(texts: list[str], sources: str | list[str] = "web", removed: int | None = None) -> pa.RecordBatch:
    """Documents as they are drawn, one of them a duplicate."""
    ids = [f"d{number}" for number in range(len(texts))]
    part, _ = sort_part([doc_batch(ids, texts, sources, ids)], 1)
    codes = pa.array(np.zeros(len(texts), np.int32), mask=np.arange(len(texts)) != (-1 if removed is None else removed))
    reasons = pa.DictionaryArray.from_arrays(codes, pa.array(["exact_dedup.duplicate"])).cast(LABEL)
    return part.append_column("reason", reasons)


TEXTS = [f"text {number}" for number in range(COUNT)]
WHOLE = batch(TEXTS)


def ids(rows: pa.RecordBatch) -> set[str]:
    alive = rows.filter(pa.compute.is_null(rows.column("reason")))
    return set(alive.column("doc_id").to_pylist())


def test_without_sides_and_epochs_every_row_is_taken_as_it_is() -> None:
    assert Membership(seed=5).of(WHOLE, 0).equals(WHOLE)
    assert Membership(seed=5).copies == 1


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1])
def test_sides_part_the_documents_in_the_shares_asked_for(seed: int) -> None:
    bounds = [0, DRAW_END // 10, DRAW_END // 2, DRAW_END]
    sides = [ids(Membership(seed, side).of(WHOLE, 0)) for side in pairwise(bounds)]
    assert sum(map(len, sides)) == len(set.union(*sides)) == COUNT
    for side, share in zip(sides, (0.1, 0.4, 0.5), strict=True):
        # Five times the standard deviation of a binomial.
        assert abs(len(side) - share * COUNT) < 5 * (COUNT * share * (1 - share)) ** 0.5


def test_a_side_stays_the_same_whatever_else_there_is_and_changes_with_the_seed() -> None:
    first = Membership(3, (0, DRAW_END // 5))
    assert ids(first.of(WHOLE.slice(100, 50), 0)) <= ids(first.of(WHOLE, 0))
    assert ids(first.of(WHOLE, 0)) != ids(Membership(4, (0, DRAW_END // 5)).of(WHOLE, 0))


@pytest.mark.parametrize(
    ("normalize", "one", "other"),
    [
        ("none", "same {}", "same {}"),
        ("whitespace", "a  b {}", "a\nb {} "),
        ("casefold_no_punct", "Ab-c {}!", "aBC {}"),
    ],
)
def test_texts_that_count_as_equal_are_never_on_two_sides(normalize: str, one: str, other: str) -> None:
    both = batch([text.format(number) for number in range(300) for text in (one, other)])
    side = ids(Membership(9, (0, DRAW_END // 2), normalize=normalize).of(both, 0))  # type: ignore[arg-type]  # one of the three
    assert 0 < len(side) < 600
    for number in range(300):
        assert (f"d{2 * number}" in side) == (f"d{2 * number + 1}" in side)


@pytest.mark.parametrize(("epochs", "copies"), [(0.0, 1), (0.3, 1), (1.0, 1), (1.5, 2), (3.0, 3), (3.01, 4)])
def test_whole_epochs_take_every_document_and_the_rest_is_a_share_of_them(epochs: float, copies: int) -> None:
    member = Membership(2, epochs={"web": epochs})
    assert member.copies == copies
    taken = [ids(member.of(WHOLE, copy)) for copy in range(copies)]
    whole = int(epochs)
    assert all(len(copy) == COUNT for copy in taken[:whole])
    if whole < copies:
        share = epochs - whole
        assert abs(len(taken[whole]) - share * COUNT) <= 5 * (COUNT * share * (1 - share)) ** 0.5
    assert ids(member.of(WHOLE, copies)) == set()


def test_more_epochs_take_the_same_documents_and_more() -> None:
    few, more = (ids(Membership(2, epochs={"web": 1 + share}).of(WHOLE, 1)) for share in (0.2, 0.5))
    assert few < more
    # What is drawn for a mix says nothing about the side a document is on.
    side = ids(Membership(2, (0, DRAW_END // 2)).of(WHOLE, 0))
    assert abs(len(side & more) - COUNT / 4) < 5 * (COUNT * 3 / 16) ** 0.5


def test_documents_a_mix_leaves_out_are_there_once_with_their_reason() -> None:
    member = Membership(2, epochs={"web": 0.25})
    rows = member.of(WHOLE, 0)
    reasons = rows.column("reason").to_pylist()
    assert rows.num_rows == COUNT
    assert set(reasons) == {None, LEFT_OUT}
    assert reasons.count(None) == len(ids(rows))


def test_each_source_has_its_own_epochs() -> None:
    mixed = batch(TEXTS[:300], ["web", "code", "book"] * 100)
    member = Membership(2, epochs={"web": 0.0, "code": 2.0})
    assert member.copies == 2
    by_copy = [ids(member.of(mixed, copy)) for copy in range(2)]
    assert by_copy[0] == {f"d{n}" for n in range(300) if n % 3}
    assert by_copy[1] == {f"d{n}" for n in range(300) if n % 3 == 1}
    assert member.may_take(["web"], 0)
    assert not member.may_take(["web", "book"], 1)
    assert member.may_take(["web", "code"], 1)


def test_removed_duplicates_are_accounted_for_by_one_set_and_never_repeated() -> None:
    rows = batch(TEXTS[:50], removed=7)
    low, high = (0, DRAW_END // 2), (DRAW_END // 2, DRAW_END)
    first, second = Membership(1, low, epochs={"web": 2.0}), Membership(1, high, takes_removed=False)
    counts = [sum(r is not None for r in each.of(rows, 0).column("reason").to_pylist()) for each in (first, second)]
    assert counts == [1, 0]
    assert first.of(rows, 0).num_rows + second.of(rows, 0).num_rows == 50
    assert all(reason is None for reason in first.of(rows, 1).column("reason").to_pylist())
