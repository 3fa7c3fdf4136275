from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.readers.lines import EscapeCount, LineBlock, LineLimit, LongLine, line_events, records_of


def cut(data: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in pairwise(borders) if start < end]


def described(events: object) -> list[tuple[int, object]]:
    found: list[tuple[int, object]] = []
    for event in events:  # type: ignore[attr-defined]  an iterator of events
        if isinstance(event, LineBlock):
            found += records_of(event)
        elif isinstance(event, LongLine):
            found.append((event.offset, ("long", event.length, event.quotes)))
    return found


@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b'"', b"\\", b"\\u4e00", b"xyz" * 5]), max_size=60).map(b"".join),
    places=st.lists(st.integers(0, 400), max_size=8),
    raw=st.integers(8, 40),
    plain=st.integers(8, 40),
)
def test_long_lines_do_not_depend_on_the_chunks_they_came_in(
    data: bytes, places: list[int], raw: int, plain: int
) -> None:
    limit = LineLimit(raw, plain)
    # Limits hold for lines that span chunks, as real ones are longer than a chunk: bytes one by one span all.
    one_by_one = [data[index : index + 1] for index in range(len(data))]
    expected = described(line_events(one_by_one, limit))
    small = [part[index : index + 4] for part in cut(data, places) for index in range(0, len(part), 4)]
    assert described(line_events(small, limit)) == expected
    assert [offset for offset, _ in expected] == [
        sum(len(line) + 1 for line in data.split(b"\n")[:index])
        for index in range(len(data.split(b"\n")))
        if index < data.count(b"\n") or data.split(b"\n")[-1]
    ]


@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"bcd", b"\r\n", b"\xe2\x80\xa8"]), max_size=80).map(b"".join),
    end=st.integers(0, 120),
    places=st.lists(st.integers(0, 400), max_size=8),
)
@settings(max_examples=300)
def test_a_range_holds_the_lines_that_begin_in_it(data: bytes, end: int, places: list[int]) -> None:
    limit = LineLimit(1 << 20, 1 << 20)
    every = described(line_events([data] if data else [], limit))
    in_range = described(line_events(cut(data, places), limit, 0, end))
    assert in_range == [(offset, line) for offset, line in every if offset < end]


@given(st.lists(st.sampled_from([b"a", b"\\", b"\\n", b"\\u00e9", b"bcdefgh"]), max_size=50), st.integers(1, 9))
def test_escape_count_is_the_union_of_six_bytes_from_each_backslash(parts: list[bytes], step: int) -> None:
    data = b"".join(parts)
    covered = {
        index
        for place, byte in enumerate(data)
        if byte == ord("\\")
        for index in range(place, min(place + 6, len(data)))
    }
    count = EscapeCount()
    for start in range(0, len(data), step):
        count.add(data[start : start + step])
    assert count.covered == len(covered)
