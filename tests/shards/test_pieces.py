"""Where documents lie: what packing laid down is read back from the index, and any other story is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.errors import DamageError
from dataprep.shards.documents import SCHEMA
from dataprep.shards.manifest import PackFacts
from dataprep.shards.pieces import PLACE_COLUMNS, misplaced, pieces_of
from dataprep.tokens.config import PackConfig
from dataprep.tokens.packing import document_rows, pack, shuffle_rows, truncate

METHODS = [
    ("concat", "split"),
    ("best_fit", "split"),
    ("none", "split"),
    ("best_fit", "truncate"),
    ("none", "truncate"),
]
PLACES = pa.schema([SCHEMA.field(name) for name in PLACE_COLUMNS])
Document = tuple[int, int, list[int], list[int]]


def facts(method: str, overlong: str, row_length: int = 9) -> PackFacts:
    return PackFacts(
        seq_length=row_length - 1,
        row_length=row_length,
        method=method,
        overlong=overlong,
        layout="compact",
        columns=(),
        fim=None,
    )


def table(documents: list[Document]) -> pa.Table:
    """An index of (tokens, truncated, rows, offsets) a document."""
    return pa.Table.from_pylist([dict(zip(PLACE_COLUMNS, one, strict=True)) for one in documents], schema=PLACES)


def fault(documents: list[Document], rows: int, padding: int, method: str = "best_fit", overlong: str = "split") -> Any:
    index, pack_facts = table(documents), facts(method, overlong)
    return misplaced(index, pieces_of(index, 9), rows, padding, pack_facts)


# Three rows of 9: a document of 13 (a full row and 4), one of 5 behind its rest, one of 7 alone with 2 of padding.
GOOD: list[Document] = [(13, 0, [2, 0], [0, 0]), (5, 0, [0], [4]), (7, 0, [1], [0])]


def changed(number: int, document: Document) -> list[Document]:
    return [*GOOD[:number], document, *GOOD[number + 1 :]]


def test_pieces_are_laid_out_by_the_rule_that_all_but_the_last_reach_a_rows_end() -> None:
    pieces = pieces_of(table(GOOD), 9)
    assert pieces.document.tolist() == [0, 0, 1, 2]
    assert pieces.row.tolist() == [2, 0, 0, 1]
    assert pieces.start.tolist() == [0, 0, 4, 0]
    assert pieces.length.tolist() == [9, 4, 5, 7]
    assert fault(GOOD, 3, 2) is None


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (changed(1, (5, 0, [0], [-1])), "document 1 does not fit"),
        (changed(1, (5, 0, [0], [5])), "document 1 does not fit"),
        (changed(0, (13, 0, [2], [0])), "document 0 does not fit"),
        (changed(0, (9, 0, [2, 0], [0, 0])), "document 0 does not fit"),
        (changed(2, (7, 0, [], [])), "document 2 does not fit"),
        (changed(2, (0, 0, [1], [0])), "document 2 does not fit"),
        (changed(2, (6, -1, [1], [0])), "document 2 cannot have had -1 tokens cut away"),
        (changed(2, (7, 0, [1], [1])), "padding inside row 1"),
        (changed(1, (4, 0, [0], [5])), "padding inside row 0"),
        (changed(1, (5, 0, [0], [3])), "do not fill its rows (row 0)"),
        (changed(1, (5, 0, [1], [4])), "do not fill its rows (row 1)"),
        (changed(2, (7, 0, [3], [0])), "do not fill its rows (row 1)"),
        (changed(2, (7, 0, [-1], [0])), "do not fill its rows (row 1)"),
        ([*GOOD, (9, 0, [3], [0])], "do not fill its rows (row 3)"),
        (changed(2, (6, 0, [1], [0])), "documents and 2 tokens of padding do not fill its rows (row 1)"),
    ],
)
def test_documents_that_do_not_fill_the_rows_are_told(documents: list[Document], words: str) -> None:
    assert words in fault(documents, 3, 2)


def test_a_document_cut_down_fills_a_row_by_itself_where_the_configuration_cuts() -> None:
    whole: list[Document] = [(20, 11, [1], [0]), (5, 0, [0], [0])]
    assert fault(whole, 2, 4, overlong="truncate") is None
    assert fault(whole, 2, 4) == "document 0 cannot have had 11 tokens cut away"
    short: list[Document] = [(20, 12, [1], [0]), (5, 0, [0], [0])]
    assert fault(short, 2, 5, overlong="truncate") == "document 0 cannot have had 12 tokens cut away"
    two_rows: list[Document] = [(20, 6, [1, 0], [0, 0])]
    assert fault(two_rows, 2, 4, overlong="truncate") == "document 0 cannot have had 6 tokens cut away"


def test_joined_documents_leave_padding_in_one_row_alone() -> None:
    documents: list[Document] = [(8, 0, [0], [0]), (7, 0, [1], [0])]
    assert fault(documents, 2, 3, "none") is None
    assert fault(documents, 2, 3, "concat") == "padding inside row 0"


def test_rows_and_offsets_that_differ_in_number_are_damage() -> None:
    with pytest.raises(DamageError, match="document 1 has 1 rows and 2 offsets"):
        pieces_of(table(changed(1, (5, 0, [0], [4, 0]))), 9)


@given(
    st.lists(st.integers(1, 30), max_size=12),
    st.integers(2, 11),
    st.sampled_from(METHODS),
    st.integers(0, 99),
)
@settings(deadline=None)
def test_what_any_packing_lays_down_is_read_back_whole(
    lengths: list[int], row_length: int, method: tuple[str, str], seed: int
) -> None:
    config = PackConfig.model_validate(
        {"seq_length": row_length - 1, "method": method[0], "overlong": method[1], "window": 5}
    )
    ids = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    offsets = np.array([0, *np.cumsum(lengths)], np.int64)
    cut = np.zeros(len(lengths), np.int32)
    if config.overlong == "truncate":
        ids, offsets, cut = truncate(ids, offsets, row_length, 77)
    packed = shuffle_rows(pack(ids, offsets, config, -1), seed, "s")
    rows, bounds = document_rows(packed)
    documents = [
        (length, int(gone), rows[a:b].tolist(), packed.piece_starts[a:b].tolist())
        for length, gone, a, b in zip(lengths, cut, bounds[:-1], bounds[1:], strict=True)
    ]
    index = table(documents)
    pieces = pieces_of(index, row_length)
    assert misplaced(index, pieces, len(packed.rows), packed.padding, facts(*method, row_length)) is None
    for document, row, start, length in zip(pieces.document, pieces.row, pieces.start, pieces.length, strict=True):
        assert set(packed.rows[row, start : start + length].tolist()) <= {document, 77}
