"""Packing accounts for every token, marks every document's beginning and shuffles by seed alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.tokens.packing import Packed, document_rows, pack_concat, shuffle_rows

PAD = 9_999_999

# xxh3-64 of b"42:mixed-00003".
SEED_OF_42_MIXED_00003 = 0x65C9F64466DCB2C9

documents_strategy = st.lists(st.lists(st.integers(0, 200_000), min_size=1, max_size=23), max_size=12)
row_lengths = st.integers(1, 11)


def flat(documents: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([token for document in documents for token in document], np.int32)
    return ids, np.array([0, *np.cumsum([len(document) for document in documents])], np.int64)


def pack(documents: list[list[int]], row_length: int) -> Packed:
    return pack_concat(*flat(documents), row_length, PAD)


def slow_rows(documents: list[list[int]], row_length: int) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Rows, starts per row and rows per document, laid down token by token."""
    rows: list[list[int]] = []
    starts: list[list[int]] = []
    places: list[list[int]] = []
    for document in documents:
        mine: list[int] = []
        for position, token in enumerate(document):
            if not rows or len(rows[-1]) == row_length:
                rows.append([])
                starts.append([])
            if position == 0 or not rows[-1]:
                starts[-1].append(len(rows[-1]))
            if not mine or mine[-1] != len(rows) - 1:
                mine.append(len(rows) - 1)
            rows[-1].append(token)
        places.append(mine)
    return rows, starts, places


def ragged(values: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    return [values[a:b].tolist() for a, b in pairwise(offsets)]


def read_back(packed: Packed, lengths: list[int]) -> list[list[int]]:
    """Each document's tokens, found by its rows and its offset in the first of them."""
    rows = ragged(*document_rows(packed))
    joined = [np.concatenate([packed.rows[row] for row in mine]).tolist() for mine in rows]
    begins = packed.doc_offset.tolist()
    return [tokens[at : at + length] for tokens, at, length in zip(joined, begins, lengths, strict=True)]


def test_three_documents_in_rows_of_four_worked_out_by_hand() -> None:
    packed = pack([[1, 2, 0], [3, 0], [4, 5, 6, 7, 0]], 4)
    assert packed.rows.tolist() == [[1, 2, 0, 3], [0, 4, 5, 6], [7, 0, PAD, PAD]]
    assert ragged(packed.doc_starts, packed.doc_start_offsets) == [[0, 3], [0, 1], [0]]
    assert packed.lengths.tolist() == [4, 4, 2]
    assert packed.padding == 2
    assert packed.first_row.tolist() == [0, 0, 1]
    assert packed.last_row.tolist() == [0, 1, 2]
    assert packed.doc_offset.tolist() == [0, 3, 1]
    assert ragged(*document_rows(packed)) == [[0], [0, 1], [1, 2]]


def test_no_documents_make_no_rows() -> None:
    packed = shuffle_rows(pack([], 8), 1, "shard")
    assert packed.rows.shape == (0, 8)
    assert packed.doc_start_offsets.tolist() == [0]
    assert packed.padding == 0
    assert ragged(*document_rows(packed)) == []


def test_columns_have_the_types_the_shard_writer_stores() -> None:
    packed = pack([[1, 2], [3]], 2)
    flat_rows, offsets = document_rows(packed)
    kinds = [
        packed.rows,
        packed.lengths,
        packed.doc_starts,
        packed.doc_start_offsets,
        packed.doc_offset,
        flat_rows,
        offsets,
    ]
    assert [array.dtype.name for array in kinds] == ["int32", "int32", "int32", "int64", "int32", "int32", "int64"]


def test_a_document_without_any_token_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token a document"):
        pack([[1], [], [2]], 4)


@given(documents_strategy, row_lengths)
def test_packing_equals_laying_tokens_down_one_by_one(documents: list[list[int]], row_length: int) -> None:
    packed = pack(documents, row_length)
    rows, starts, places = slow_rows(documents, row_length)
    padded = [row + [PAD] * (row_length - len(row)) for row in rows]
    assert packed.rows.tolist() == padded
    assert packed.lengths.tolist() == [len(row) for row in rows]
    assert ragged(packed.doc_starts, packed.doc_start_offsets) == starts
    assert ragged(*document_rows(packed)) == places


@given(documents_strategy, row_lengths, st.integers(0, 2**64), st.text(max_size=5))
def test_tokens_in_are_tokens_out_after_any_shuffle(
    documents: list[list[int]], row_length: int, seed: int, key: str
) -> None:
    packed = shuffle_rows(pack(documents, row_length), seed, key)
    lengths = [len(document) for document in documents]
    assert packed.rows.size - packed.padding == sum(lengths)
    assert int((packed.rows == PAD).sum()) == packed.padding < row_length
    assert (packed.rows != PAD).sum(axis=1).tolist() == packed.lengths.tolist()
    assert read_back(packed, lengths) == documents


@given(documents_strategy, row_lengths, st.integers(0, 99))
def test_every_row_keeps_its_own_document_starts_when_shuffled(
    documents: list[list[int]], row_length: int, seed: int
) -> None:
    before = pack(documents, row_length)
    after = shuffle_rows(before, seed, "shard")
    pairs = [
        sorted(zip(each.rows.tolist(), ragged(each.doc_starts, each.doc_start_offsets), strict=True))
        for each in (before, after)
    ]
    assert pairs[0] == pairs[1]


def splitmix64_order(state: int, count: int) -> list[int]:
    """The published generator on Python integers."""
    outputs = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        outputs.append(mixed ^ mixed >> 31)
    return sorted(range(count), key=outputs.__getitem__)


def test_the_row_order_is_the_documented_one() -> None:
    packed = shuffle_rows(pack([[row] for row in range(50)], 1), 42, "mixed-00003")
    assert packed.rows[:, 0].tolist() == splitmix64_order(SEED_OF_42_MIXED_00003, 50)


def test_another_seed_or_another_shard_gives_another_order() -> None:
    rows = pack([[row] for row in range(50)], 1)
    orders = [shuffle_rows(rows, seed, key).rows[:, 0].tolist() for seed, key in ((1, "a"), (2, "a"), (1, "b"))]
    assert len({tuple(order) for order in orders}) == 3
