"""Judging a batch accounts for every document and every byte, source by source."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.batch import doc_batch, with_column
from dataprep.runtime.ledger import Tally
from dataprep.runtime.steps import judge
from dataprep.step import Applied, Selector, Step, with_verdicts


class NoLetter(Step):
    """Drops texts that contain a letter."""

    name: ClassVar[str] = "no_letter"

    letter: str

    def apply(self, batch: pa.RecordBatch) -> Applied:
        found = [0 if self.letter in text else -1 for text in batch.column("text").to_pylist()]
        return Applied(with_verdicts(batch, np.array(found, np.int32), (f"no_letter.{self.letter}",)))


class Widen(Step):
    """Replaces every a by é: an edit that changes the size in bytes."""

    name: ClassVar[str] = "widen"

    def apply(self, batch: pa.RecordBatch) -> Applied:
        edited = sum("a" in text for text in batch.column("text").to_pylist())
        return Applied(with_column(batch, "text", pc.replace_substring(batch.column("text"), "a", "é")), {"a": edited})


STEPS = (
    NoLetter(letter="x"),
    Widen(except_=Selector(source=("code",))),
    NoLetter(letter="é", only=Selector(source=("web",))),
)


def test_two_filters_and_an_edit_add_up_by_source() -> None:
    texts = ["ax", "ab", "bb", "aa", "a", "中", "xé", ""]
    sources = ["web", "web", "web", "code", "books", "books", "code", "web"]
    batch = doc_batch([str(row) for row in range(8)], texts, sources, ["o"] * 8)
    judged = judge(batch, STEPS)
    assert judged.tallies == {
        # "aa" and "xé" of code: 2 + 3 bytes in, the second dropped.
        "code": Tally(2, {"no_letter.x": 1}, {}, 5, 2),
        # "a" grows from 1 byte to 2; "中" is 3.
        "books": Tally(2, {}, {}, 4, 5),
        # "ax" has an x; "ab" gets an é; "bb" and "" stay.
        "web": Tally(4, {"no_letter.x": 1, "no_letter.é": 1}, {}, 6, 2),
    }
    assert list(judged.tallies) == ["books", "code", "web"]
    assert judged.edits == {"a": 2}
    assert judged.kept.column("text").to_pylist() == ["bb", "aa", "é", "中", ""]
    assert judged.dropped.column("doc_id").to_pylist() == ["0", "1", "6"]
    assert judged.dropped.column("text").to_pylist() == ["ax", "éb", "xé"]
    assert judged.dropped.column("reason").to_pylist() == ["no_letter.x", "no_letter.é", "no_letter.x"]


def test_all_kept_all_dropped_and_nothing_at_all() -> None:
    kept = judge(doc_batch(["1"], ["b"], "web", ["o"]), STEPS)
    assert (kept.kept.num_rows, kept.dropped.num_rows) == (1, 0)
    assert kept.dropped.schema == kept.kept.schema
    gone = judge(doc_batch(["1", "2"], ["x", "x"], "web", ["o", "o"]), STEPS)
    assert (gone.kept.num_rows, gone.dropped.num_rows) == (0, 2)
    assert gone.tallies == {"web": Tally(2, {"no_letter.x": 2}, {}, 2, 0)}
    nothing = judge(doc_batch([], [], "web", []), STEPS)
    assert (nothing.kept.num_rows, nothing.dropped.num_rows, nothing.tallies) == (0, 0, {})


ROWS = st.lists(st.tuples(st.text("axé中", max_size=4), st.sampled_from(["web", "code", "books"])), max_size=12)


@settings(deadline=None)
@given(ROWS, st.integers(0, 12))
def test_every_document_is_kept_or_dropped_once_also_in_a_slice(rows: list[tuple[str, str]], start: int) -> None:
    whole = doc_batch([str(n) for n in range(len(rows))], [t for t, _ in rows], [s for _, s in rows], ["o"] * len(rows))
    judged = judge(whole.slice(min(start, len(rows))), STEPS)
    rows = rows[start:]
    ids = [int(doc_id) for part in (judged.kept, judged.dropped) for doc_id in part.column("doc_id").to_pylist()]
    assert sorted(ids) == list(range(start, start + len(rows)))
    sources = judged.kept.column("source").to_pylist()
    kept_texts = judged.kept.column("text").to_pylist()
    assert set(judged.tallies) == {source for _, source in rows}
    for source, tally in judged.tallies.items():
        assert tally.records == sum(s == source for _, s in rows)
        assert tally.bytes_in == sum(len(text.encode()) for text, s in rows if s == source)
        assert tally.kept == sources.count(source)
        kept = [text for text, s in zip(kept_texts, sources, strict=True) if s == source]
        assert tally.bytes_kept == sum(len(text.encode()) for text in kept)
    dropped = sum((Counter(tally.dropped) for tally in judged.tallies.values()), Counter[str]())
    assert dropped == Counter(judged.dropped.column("reason").to_pylist())
