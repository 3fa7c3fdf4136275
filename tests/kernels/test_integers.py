"""Encoded integer columns against plain Python that follows the format value by value."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataprep.kernels import integers

EDGES = [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768, -32769, 65535, 65536, 2**31 - 1, -(2**31)]
VALUES = st.one_of(st.integers(-(2**31), 2**31 - 1), st.sampled_from(EDGES))


def slow_column(values: list[int]) -> bytes:
    widths, body = "", b""
    for value in values:
        width = next(size for size in (1, 2, 4) if -(2 ** (8 * size - 1)) <= value < 2 ** (8 * size - 1))
        widths += {1: "00", 2: "01", 4: "10"}[width]
        body += value.to_bytes(width, "little", signed=True)
    bits = widths + "0" * (-len(widths) % 8)
    coded = len(values).to_bytes(4, "big") + bytes(int(bits[k : k + 8], 2) for k in range(0, len(bits), 8)) + body
    return len(coded).to_bytes(8, "big") + coded


def encoded(columns: list[list[list[int]]]) -> list[bytes]:
    """Rows of several columns, each column given as its rows."""
    counts = [np.array([len(row) for row in column], np.int64) for column in columns]
    begins = np.concatenate([[0], np.cumsum(sum(integers.room(count) for count in counts))])
    out, ends = np.full(begins[-1], 0xAA, np.uint8), begins[:-1].copy()
    for column, count in zip(columns, counts, strict=True):
        flat = np.array([value for row in column for value in row], np.int32)
        integers.encode(flat, np.concatenate([[0], np.cumsum(count)]), out, ends)
    assert (ends <= begins[1:]).all()
    return [out[begin:end].tobytes() for begin, end in zip(begins[:-1], ends, strict=True)]


@given(st.lists(st.tuples(st.lists(VALUES, max_size=9), st.lists(VALUES, max_size=9)), min_size=1, max_size=5))
def test_rows_of_two_columns_equal_the_plain_reference(rows: list[tuple[list[int], list[int]]]) -> None:
    assert encoded([[a for a, _ in rows], [b for _, b in rows]]) == [slow_column(a) + slow_column(b) for a, b in rows]


def test_every_edge_of_a_width_is_stored_in_it() -> None:
    assert encoded([[[value] for value in EDGES]]) == [slow_column([value]) for value in EDGES]


def test_one_row_worked_out_by_hand() -> None:
    # 5 values of 1, 2, 4, 1 and 1 bytes: widths 00 01 10 00, 00; 4 + 2 + 9 bytes.
    (row,) = encoded([[[5, 300, 70000, -1, 0]]])
    assert row.hex(" ") == "00 00 00 00 00 00 00 0f 00 00 00 05 18 00 05 2c 01 70 11 01 00 ff 00"
