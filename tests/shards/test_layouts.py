"""Each column layout against plain Python that follows its definition, and all of them against each other."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.shards.layouts import (
    IGNORED,
    LayoutName,
    Rows,
    column_lengths,
    derived_faults,
    ends_room,
    lay_out,
    restore,
    row_tokens,
)

EOS, PAD = 0, 1
LAYOUTS: tuple[LayoutName, ...] = get_args(LayoutName)
# One row: its tokens less the padding, and where its pieces begin.
Row = tuple[list[int], list[int]]


def rows_of(plain: list[Row], width: int) -> Rows:
    tokens = np.array([text + [PAD] * (width - len(text)) for text, _ in plain], np.int32)
    starts = np.array([start for _, starts in plain for start in starts], np.int32)
    lengths = np.array([len(text) for text, _ in plain], np.int32)
    return Rows(tokens, lengths, starts, np.cumsum([0, *(len(starts) for _, starts in plain)]))


def decoded(name: LayoutName, rows: Rows, row: int) -> dict[str, np.ndarray[Any, Any]]:
    return {column: np.array(values[row]) for column, values in lay_out(name, rows).items()}


@st.composite
def some_rows(draw: st.DrawFn) -> tuple[list[Row], int]:
    """Rows of pieces that end in EOS, all but one that fills its row; what is left is padding."""
    width = draw(st.integers(2, 30))
    plain: list[Row] = []
    for _ in range(draw(st.integers(1, 5))):
        text: list[int] = []
        starts: list[int] = []
        for size in draw(st.lists(st.integers(1, 12), min_size=1, max_size=15)):
            if len(text) == width:
                break
            starts.append(len(text))
            words = draw(st.lists(st.integers(2, 99), min_size=size - 1, max_size=size - 1))
            text = (text + words + [EOS])[:width]
        plain.append((text, starts))
    return plain, width


def slow_mcore(text: list[int], starts: list[int], width: int) -> dict[str, list[int]]:
    """What a row of `width` tokens must be, token by token."""
    row = text + [PAD] * (width - len(text))
    seen = width - 1
    segments = [*starts, *([len(text)] if len(text) < width else [])]
    positions = [place - max(begin for begin in segments if begin <= place) for place in range(seen)]
    ends = [begin for begin in segments if 0 < begin < seen]
    room = max(128, seen // 32)
    return {
        "input_ids": row[:seen],
        "labels": row[1:],
        "loss_mask": [1 if label < len(text) else 0 for label in range(1, width)],
        "position_ids": positions,
        "actual_seq_len": ends[: room - 1] + [seen] * (room - min(len(ends), room - 1)),
    }


def slow_padded(text: list[int], width: int) -> dict[str, list[int]]:
    row = text + [PAD] * (width - len(text))
    return {
        "input_ids": row[:-1],
        "attention_mask": [1 if place < len(text) else 0 for place in range(width - 1)],
        "labels": [row[place] if place < len(text) else -100 for place in range(1, width)],
    }


def test_a_row_in_all_three_layouts_worked_out_by_hand() -> None:
    # Ends one document, holds a whole one, and is filled up.
    rows = rows_of([([52, 17, EOS, 88, 23, EOS], [0, 3])], 8)
    shown = {name: {column: values.tolist() for column, values in decoded(name, rows, 0).items()} for name in LAYOUTS}
    assert shown["compact"] == {"input_ids": [52, 17, 0, 88, 23, 0, 1, 1], "doc_starts": [0, 3]}
    assert shown["mcore"] == {
        "input_ids": [52, 17, 0, 88, 23, 0, 1],
        "labels": [17, 0, 88, 23, 0, 1, 1],
        "loss_mask": [1, 1, 1, 1, 1, 0, 0],
        "position_ids": [0, 1, 2, 0, 1, 2, 0],
        "actual_seq_len": [3, 6] + [7] * 126,
    }
    assert shown["padded"] == {
        "input_ids": [52, 17, 0, 88, 23, 0, 1],
        "attention_mask": [1, 1, 1, 1, 1, 1, 0],
        "labels": [17, 0, 88, 23, 0, -100, -100],
    }


@given(some_rows())
def test_the_derived_columns_equal_the_plain_reference(drawn: tuple[list[Row], int]) -> None:
    plain, width = drawn
    rows = rows_of(plain, width)
    for number, (text, starts) in enumerate(plain):
        mcore = {column: values.tolist() for column, values in decoded("mcore", rows, number).items()}
        padded = {column: values.tolist() for column, values in decoded("padded", rows, number).items()}
        assert mcore == slow_mcore(text, starts, width)
        assert padded == slow_padded(text, width)


@given(some_rows())
def test_every_layout_gives_the_same_tokens_and_document_starts_back(drawn: tuple[list[Row], int]) -> None:
    plain, width = drawn
    rows = rows_of(plain, width)
    for name in LAYOUTS:
        for number, (text, starts) in enumerate(plain):
            columns = decoded(name, rows, number)
            tokens, found = restore(columns, EOS, PAD)
            assert tokens.tolist() == text + [PAD] * (width - len(text))
            assert found.tolist() == starts
            assert row_tokens(columns)[: len(text)].tolist() == text
            assert derived_faults(name, columns, tokens, found, len(text)) == []


@given(some_rows())
def test_columns_have_the_lengths_and_the_type_the_layout_tells(drawn: tuple[list[Row], int]) -> None:
    plain, width = drawn
    rows = rows_of(plain, width)
    for name in LAYOUTS:
        lengths = column_lengths(name, width)
        made = lay_out(name, rows)
        assert list(made) == list(lengths)
        for column, length in lengths.items():
            assert all(values.dtype == np.int32 for values in made[column])
            assert length == -1 or all(values.shape == (length,) for values in made[column])


@given(some_rows(), st.data())
def test_a_block_of_rows_is_laid_out_as_in_the_whole(drawn: tuple[list[Row], int], data: st.DataObject) -> None:
    plain, width = drawn
    rows = rows_of(plain, width)
    first = data.draw(st.integers(0, len(plain) - 1))
    last = data.draw(st.integers(first + 1, len(plain)))
    for name in LAYOUTS:
        part, whole = lay_out(name, rows.block(first, last)), lay_out(name, rows)
        for column in whole:
            assert [v.tolist() for v in part[column]] == [v.tolist() for v in whole[column][first:last]]


# Tokens 0 to 5 are text; the first input and what padding holds are left to other checks of a row.
@pytest.mark.parametrize(
    ("name", "column", "places", "told"),
    [
        ("mcore", "input_ids", range(1, 6), "labels"),
        ("mcore", "labels", range(6), "labels"),
        ("mcore", "loss_mask", range(7), "loss_mask"),
        ("mcore", "position_ids", range(7), "position_ids"),
        ("mcore", "actual_seq_len", range(128), "actual_seq_len"),
        ("padded", "input_ids", range(1, 6), "labels"),
        ("padded", "labels", range(6), "labels"),
        ("padded", "attention_mask", range(7), "attention_mask"),
    ],
)
def test_a_changed_value_of_a_derived_column_is_told(name: LayoutName, column: str, places: range, told: str) -> None:
    rows = rows_of([([52, 17, EOS, 88, 23, EOS], [0, 3])], 8)
    for place in places:
        changed = decoded(name, rows, 0)
        changed[column][place] += 5
        tokens, _ = restore(changed, EOS, PAD)
        assert derived_faults(name, changed, tokens, np.array([0, 3]), 6) == [told]


def test_more_documents_than_there_is_room_for_share_the_last_end() -> None:
    # 300 documents of two tokens: 127 ends of their own, the other 173 documents share one.
    text = [7, EOS] * 300
    rows = rows_of([(text, list(range(0, 600, 2)))], 600)
    made = decoded("mcore", rows, 0)
    assert made["actual_seq_len"].tolist() == [*range(2, 256, 2), 599]
    assert made["position_ids"].tolist() == ([0, 1] * 300)[:599]
    assert restore(made, EOS, PAD)[1].tolist() == list(range(0, 600, 2))


def test_longer_rows_have_room_for_more_ends() -> None:
    assert [ends_room(length) for length in (1, 4096, 8192, 32768)] == [128, 128, 256, 1024]


def test_padding_that_shows_as_ignored_label_comes_back_as_padding() -> None:
    rows = rows_of([([5, EOS], [0])], 4)
    columns = decoded("padded", rows, 0)
    assert row_tokens(columns).tolist() == [5, EOS, PAD, IGNORED]
    assert restore(columns, EOS, PAD)[0].tolist() == [5, EOS, PAD, PAD]
