"""Packing accounts for every token, marks every document's beginning and shuffles by seed alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.tokens.config import PackConfig
from dataprep.tokens.packing import (
    Packed,
    cells,
    document_rows,
    pack,
    pack_best_fit,
    pack_concat,
    pack_none,
    shuffle_rows,
    truncate,
)

PAD = 9_999_999

# xxh3-64 of b"42:mixed-00003".
SEED_OF_42_MIXED_00003 = 0x65C9F64466DCB2C9

documents_strategy = st.lists(st.lists(st.integers(0, 200_000), min_size=1, max_size=23), max_size=12)
row_lengths = st.integers(1, 11)


def flat(documents: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([token for document in documents for token in document], np.int32)
    return ids, np.array([0, *np.cumsum([len(document) for document in documents])], np.int64)


def concat(documents: list[list[int]], row_length: int) -> Packed:
    return pack_concat(*flat(documents), row_length, PAD)


def by_method(documents: list[list[int]], row_length: int, method: str, window: int = 10_000) -> Packed:
    config = PackConfig.model_validate({"seq_length": row_length - 1, "method": method, "window": window})
    return pack(*flat(documents), config, PAD)


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
    """Each document's tokens, found by its rows and its place in each: all pieces but the last reach a row's end."""
    rows, offsets = document_rows(packed)
    places = zip(ragged(rows, offsets), ragged(packed.piece_starts, offsets), strict=True)
    joined = [[t for row, at in zip(*each, strict=True) for t in packed.rows[row][at:].tolist()] for each in places]
    return [tokens[:length] for tokens, length in zip(joined, lengths, strict=True)]


def slow_best_fit(
    documents: list[list[int]], row_length: int, window: int
) -> tuple[list[list[int]], list[list[int]], list[list[tuple[int, int]]]]:
    """Rows, starts per row and (row, start) of each document's pieces, by looking at every open row for every piece."""
    rows: list[list[int]] = []
    starts: list[list[int]] = []
    # Rows in the order in which they were last added to.
    touched: list[int] = []
    places: list[list[tuple[int, int]]] = [[] for _ in documents]
    for first in range(0, len(documents), window):
        pieces = [
            (number, documents[number][at : at + row_length])
            for number in range(first, min(first + window, len(documents)))
            for at in range(0, len(documents[number]), row_length)
        ]
        at_place: dict[int, tuple[int, int]] = {}
        for piece in sorted(range(len(pieces)), key=lambda k: -len(pieces[k][1])):
            tokens = pieces[piece][1]
            fitting = [row for row in touched if row_length - len(rows[row]) >= len(tokens)]
            if fitting:
                fullest = max(len(rows[row]) for row in fitting)
                row = [row for row in fitting if len(rows[row]) == fullest][-1]
                touched.remove(row)
            else:
                row = len(rows)
                rows.append([])
                starts.append([])
            at_place[piece] = (row, len(rows[row]))
            starts[row].append(len(rows[row]))
            rows[row] += tokens
            touched.append(row)
        for piece, (number, _) in enumerate(pieces):
            places[number].append(at_place[piece])
    return rows, starts, places


def test_three_documents_in_rows_of_four_worked_out_by_hand() -> None:
    packed = concat([[1, 2, 0], [3, 0], [4, 5, 6, 7, 0]], 4)
    assert packed.rows.tolist() == [[1, 2, 0, 3], [0, 4, 5, 6], [7, 0, PAD, PAD]]
    assert ragged(packed.doc_starts, packed.doc_start_offsets) == [[0, 3], [0, 1], [0]]
    assert packed.lengths.tolist() == [4, 4, 2]
    assert packed.padding == 2
    assert packed.first_row.tolist() == [0, 0, 1]
    assert packed.last_row.tolist() == [0, 1, 2]
    assert ragged(packed.piece_starts, packed.doc_row_offsets) == [[0], [3, 0], [1, 0]]
    assert packed.documents == 3
    assert ragged(*document_rows(packed)) == [[0], [0, 1], [1, 2]]


@pytest.mark.parametrize("method", ["concat", "best_fit", "none"])
def test_no_documents_make_no_rows(method: str) -> None:
    packed = shuffle_rows(by_method([], 8, method), 1, "shard")
    assert packed.rows.shape == (0, 8)
    assert packed.doc_start_offsets.tolist() == [0]
    assert packed.padding == 0
    assert ragged(*document_rows(packed)) == []


def test_columns_have_the_types_the_shard_writer_stores() -> None:
    packed = concat([[1, 2], [3]], 2)
    flat_rows, offsets = document_rows(packed)
    kinds = [
        packed.rows,
        packed.lengths,
        packed.doc_starts,
        packed.doc_start_offsets,
        packed.piece_starts,
        flat_rows,
        offsets,
    ]
    assert [array.dtype.name for array in kinds] == ["int32", "int32", "int32", "int64", "int32", "int32", "int64"]


@pytest.mark.parametrize("method", ["concat", "best_fit", "none"])
def test_a_document_without_any_token_is_refused(method: str) -> None:
    with pytest.raises(ValueError, match="at least one token a document"):
        by_method([[1], [], [2]], 4, method)


@given(documents_strategy, row_lengths)
@settings(deadline=None)
def test_packing_equals_laying_tokens_down_one_by_one(documents: list[list[int]], row_length: int) -> None:
    packed = concat(documents, row_length)
    rows, starts, places = slow_rows(documents, row_length)
    padded = [row + [PAD] * (row_length - len(row)) for row in rows]
    assert packed.rows.tolist() == padded
    assert packed.lengths.tolist() == [len(row) for row in rows]
    assert ragged(packed.doc_starts, packed.doc_start_offsets) == starts
    assert ragged(*document_rows(packed)) == places


def test_documents_go_where_they_fit_best_worked_out_by_hand() -> None:
    # Rows of 6. From long to short: 8 = 6 + 2 first, then 5, 4, 3, the rest of 2, and 1.
    documents = [[1, 1, 0], [2] * 7 + [0], [3, 3, 3, 0], [0], [4, 4, 4, 4, 0]]
    packed = pack_best_fit(*flat(documents), 6, PAD, 100)
    assert packed.rows.tolist() == [
        [2, 2, 2, 2, 2, 2],
        [4, 4, 4, 4, 0, 0],
        [3, 3, 3, 0, 2, 0],
        [1, 1, 0, PAD, PAD, PAD],
    ]
    assert packed.lengths.tolist() == [6, 6, 6, 3]
    assert ragged(packed.doc_starts, packed.doc_start_offsets) == [[0], [0, 5], [0, 4], [0]]
    assert ragged(*document_rows(packed)) == [[3], [0, 2], [2], [1], [1]]
    assert ragged(packed.piece_starts, packed.doc_row_offsets) == [[0], [0, 4], [0], [5], [0]]


def test_rows_stay_open_for_the_documents_of_later_windows() -> None:
    packed = pack_best_fit(*flat([[1, 1, 0], [2, 0], [3, 0]]), 5, PAD, 1)
    assert packed.rows.tolist() == [[1, 1, 0, 2, 0], [3, 0, PAD, PAD, PAD]]


def test_of_rows_with_equal_space_the_one_that_came_to_it_last_is_taken() -> None:
    packed = pack_best_fit(*flat([[1, 1, 0], [2, 2, 0], [3, 0]]), 5, PAD, 100)
    assert packed.rows.tolist() == [[1, 1, 0, PAD, PAD], [2, 2, 0, 3, 0]]


def test_one_document_a_row_and_a_longer_one_over_several() -> None:
    packed = pack_none(*flat([[1, 0], [2, 2, 2, 2, 0], [0]]), 3, PAD)
    assert packed.rows.tolist() == [[1, 0, PAD], [2, 2, 2], [2, 0, PAD], [0, PAD, PAD]]
    assert ragged(*document_rows(packed)) == [[0], [1, 2], [3]]


def test_a_truncated_document_keeps_its_first_tokens_and_its_eos() -> None:
    ids, offsets, truncated = truncate(*flat([[1, 0], [2, 3, 4, 5, 0], [6, 7, 0], [8, 9, 8, 0]]), 3, 0)
    assert ragged(ids, offsets) == [[1, 0], [2, 3, 0], [6, 7, 0], [8, 9, 0]]
    assert truncated.tolist() == [0, 2, 0, 1]
    assert [ids.dtype.name, offsets.dtype.name, truncated.dtype.name] == ["int32", "int64", "int32"]


@given(documents_strategy, st.integers(2, 11))
@settings(deadline=None)
def test_truncating_loses_what_it_says_and_nothing_else(documents: list[list[int]], row_length: int) -> None:
    ended = [[*document, 7] for document in documents]
    ids, offsets, truncated = truncate(*flat(ended), row_length, 7)
    cut = [document if len(document) <= row_length else [*document[: row_length - 1], 7] for document in ended]
    assert ragged(ids, offsets) == cut
    assert sum(map(len, ended)) == len(ids) + int(truncated.sum())


def test_concat_takes_no_truncation() -> None:
    with pytest.raises(ValueError, match="needs method best_fit or none"):
        PackConfig.model_validate({"overlong": "truncate"})


@given(documents_strategy, row_lengths, st.integers(1, 13))
@settings(deadline=None)
def test_best_fit_equals_looking_at_every_open_row(documents: list[list[int]], row_length: int, window: int) -> None:
    packed = pack_best_fit(*flat(documents), row_length, PAD, window)
    rows, starts, places = slow_best_fit(documents, row_length, window)
    assert packed.rows.tolist() == [row + [PAD] * (row_length - len(row)) for row in rows]
    assert packed.lengths.tolist() == [len(row) for row in rows]
    assert ragged(packed.doc_starts, packed.doc_start_offsets) == starts
    flat_rows, offsets = document_rows(packed)
    found = zip(ragged(flat_rows, offsets), ragged(packed.piece_starts, offsets), strict=True)
    assert [list(zip(*each, strict=True)) for each in found] == places


@given(documents_strategy, row_lengths, st.integers(1, 13))
@settings(deadline=None)
def test_best_fit_cuts_no_document_that_fits_a_row(documents: list[list[int]], row_length: int, window: int) -> None:
    packed = pack_best_fit(*flat(documents), row_length, PAD, window)
    pieces = np.diff(packed.doc_row_offsets).tolist()
    assert pieces == [-(-len(document) // row_length) for document in documents]
    # Had two rows been at most half full, what opened the second would have gone into the first.
    assert sum(2 * length <= row_length for length in packed.lengths.tolist()) <= 1


@given(documents_strategy, row_lengths)
@settings(deadline=None)
def test_without_packing_every_row_holds_one_piece_of_one_document(documents: list[list[int]], row_length: int) -> None:
    packed = pack_none(*flat(documents), row_length, PAD)
    pieces = [document[at : at + row_length] for document in documents for at in range(0, len(document), row_length)]
    assert packed.rows.tolist() == [piece + [PAD] * (row_length - len(piece)) for piece in pieces]
    assert ragged(packed.doc_starts, packed.doc_start_offsets) == [[0]] * len(pieces)


@given(
    documents_strategy,
    st.integers(2, 11),
    st.sampled_from(["concat", "best_fit", "none"]),
    st.sampled_from(["split", "truncate"]),
)
@settings(deadline=None)
def test_the_cells_foretold_are_those_of_the_rows_but_for_padding_that_packing_leaves(
    documents: list[list[int]], row_length: int, method: str, overlong: str
) -> None:
    if method == "concat":
        overlong = "split"
    config = PackConfig.model_validate({"seq_length": row_length - 1, "method": method, "overlong": overlong})
    ids, offsets = flat(documents)
    lengths = np.diff(offsets)
    if overlong == "truncate":
        ids, offsets, _ = truncate(ids, offsets, row_length, 0)
    packed = pack(ids, offsets, config, PAD)
    assert cells(lengths, config) == packed.rows.size - (0 if method == "none" else packed.padding)


@given(
    documents_strategy,
    st.integers(2, 11),
    st.sampled_from(["concat", "best_fit", "none"]),
    st.integers(0, 2**64),
    st.text(max_size=5),
)
@settings(deadline=None)
def test_tokens_in_are_tokens_out_after_any_shuffle(
    documents: list[list[int]], row_length: int, method: str, seed: int, key: str
) -> None:
    packed = shuffle_rows(by_method(documents, row_length, method, 3), seed, key)
    lengths = [len(document) for document in documents]
    assert packed.rows.size - packed.padding == sum(lengths)
    assert int((packed.rows == PAD).sum()) == packed.padding
    assert method != "concat" or packed.padding < row_length
    assert (packed.rows != PAD).sum(axis=1).tolist() == packed.lengths.tolist()
    assert read_back(packed, lengths) == documents


@given(documents_strategy, st.integers(2, 11), st.sampled_from(["concat", "best_fit", "none"]))
@settings(deadline=None)
def test_no_row_holds_two_documents_without_a_border_between_them(
    documents: list[list[int]], row_length: int, method: str
) -> None:
    marked = [[number] * len(document) for number, document in enumerate(documents)]
    packed = by_method(marked, row_length, method, 3)
    for row, starts in zip(packed.rows.tolist(), ragged(packed.doc_starts, packed.doc_start_offsets), strict=True):
        borders = [at for at in range(row_length) if row[at] != PAD and (at == 0 or row[at] != row[at - 1])]
        assert starts == borders


@given(documents_strategy, st.integers(2, 11), st.sampled_from(["concat", "best_fit", "none"]), st.integers(0, 99))
@settings(deadline=None)
def test_every_row_keeps_its_own_document_starts_when_shuffled(
    documents: list[list[int]], row_length: int, method: str, seed: int
) -> None:
    before = by_method(documents, row_length, method)
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
    packed = shuffle_rows(concat([[row] for row in range(50)], 1), 42, "mixed-00003")
    assert packed.rows[:, 0].tolist() == splitmix64_order(SEED_OF_42_MIXED_00003, 50)


def test_another_seed_or_another_shard_gives_another_order() -> None:
    rows = concat([[row] for row in range(50)], 1)
    orders = [shuffle_rows(rows, seed, key).rows[:, 0].tolist() for seed, key in ((1, "a"), (2, "a"), (1, "b"))]
    assert len({tuple(order) for order in orders}) == 3
