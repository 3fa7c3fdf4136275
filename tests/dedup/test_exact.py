"""Exact deduplication removes what a slow, obvious reference removes, however the keys are cut."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataprep.batch import LABEL
from dataprep.dedup.exact import (
    BYTES_PER_KEY,
    KEY_END,
    join_range,
    key_ranges,
    read_removals,
    removed_bytes,
    write_keys,
    write_removals,
)
from dataprep.errors import DamageError, EnvironmentFailure


@dataclass(frozen=True)
class Doc:
    """One document as read; its `key` is (high, low)."""

    doc_id: str
    text: str
    source: str
    key: tuple[int, int]


Parts = list[list[Doc]]


def doc(doc_id: str, text: str, source: str = "web", key: tuple[int, int] | None = None) -> Doc:
    digest = xxhash.xxh3_128_intdigest(text.encode())
    return Doc(doc_id, text, source, divmod(digest, 1 << 64) if key is None else key)


def rows_of(part: list[Doc]) -> list[int]:
    """Read positions in the order of the part's rows: anything but the order of reading."""
    return sorted(range(len(part)), key=lambda position: xxhash.xxh3_64_intdigest(b"%d" % position))


def write_part_keys(path: Path, part: list[Doc]) -> None:
    positions = rows_of(part)
    docs = [part[position] for position in positions]
    documents = pa.RecordBatch.from_pydict(
        {
            "row": pa.array(range(len(docs)), pa.uint32()),
            "position": pa.array(positions, pa.uint32()),
            "doc_id": pa.array([d.doc_id for d in docs], pa.string()),
            "text": pa.array([d.text for d in docs], pa.large_string()),
            "source": pa.array([d.source for d in docs], pa.string()).cast(LABEL),
            "content_hash": pa.array([xxhash.xxh3_128_digest(d.text.encode()) for d in docs], pa.binary(16)),
        }
    )
    write_keys(path, documents, np.array([d.key for d in docs], np.uint64).reshape(-1, 2))


def expected(parts: Parts) -> dict[tuple[int, int], tuple[str, bytes, int]]:
    """(part, row) of every removed document with the id kept, its content hash and its text bytes."""
    groups: dict[tuple[int, int], list[tuple[bytes, int, int]]] = defaultdict(list)
    for number, part in enumerate(parts):
        for position, d in enumerate(part):
            groups[d.key].append((d.doc_id.encode(), number, position))
    removed = {}
    for group in groups.values():
        kept, *others = sorted(group)
        for _, number, position in others:
            text = parts[number][position].text.encode()
            row = rows_of(parts[number]).index(position)
            removed[number, row] = (kept[0].decode(), xxhash.xxh3_128_digest(text), len(text))
    return removed


def per_source(docs: list[Doc]) -> dict[str, tuple[int, int]]:
    return {
        source: (
            sum(d.source == source for d in docs),
            sum(len(d.text.encode()) for d in docs if d.source == source),
        )
        for source in sorted({d.source for d in docs})
    }


def added(counts: list[dict[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    sources = sorted({source for count in counts for source in count})
    return {
        source: (sum(c.get(source, (0, 0))[0] for c in counts), sum(c.get(source, (0, 0))[1] for c in counts))
        for source in sources
    }


def check(parts: Parts, bounds: list[int]) -> None:
    """Join the parts range by range and compare everything with the reference."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        files = [directory / f"{number}.keys.arrow" for number in range(len(parts))]
        for path, part in zip(files, parts, strict=True):
            write_part_keys(path, part)
        joined = [join_range(files, low, high) for low, high in pairwise(bounds)]
        lists = [directory / f"{number}.removals.arrow" for number in range(len(joined))]
        for path, one in zip(lists, joined, strict=True):
            places = list(zip(one.removals["part"].to_pylist(), one.removals["row"].to_pylist(), strict=True))
            assert places == sorted(places)
            write_removals(path, one.removals)

        want = expected(parts)
        got = {}
        for number in range(len(parts)):
            removals = read_removals(lists, number)
            assert removals.rows.dtype == np.uint32
            assert removals.rows.tolist() == sorted(set(removals.rows.tolist())) == removals.table["row"].to_pylist()
            columns = [removals.table[name].to_pylist() for name in ("kept_doc_id", "content_hash", "text_bytes")]
            got.update({(number, row): rest for row, *rest in zip(removals.rows.tolist(), *columns, strict=True)})
        assert {place: tuple(rest) for place, rest in got.items()} == want

        sizes = [sum(size for (part, _), (_, _, size) in want.items() if part == n) for n in range(len(parts))]
        assert removed_bytes(lists, len(parts)).tolist() == sizes
        gone = [parts[number][rows_of(parts[number])[row]] for number, row in want]
        assert added([dict(one.seen) for one in joined]) == per_source([d for part in parts for d in part])
        assert added([dict(one.removed) for one in joined]) == per_source(gone)


WORDS = st.sampled_from([0, 1, 2, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1])
IDS = st.text(st.sampled_from("aB0é中😀\uffff"), max_size=3)
# Equal keys with unlike texts do not happen, but the join only sees keys: it lets chance meet its borders often.
DOCS = st.builds(Doc, IDS, st.sampled_from(["", "x", "中文", "a b"]), st.sampled_from("uvw"), st.tuples(WORDS, WORDS))
HASHED = st.builds(doc, IDS, st.text(st.sampled_from("ab中"), max_size=3), st.sampled_from("uvw"))
PARTS = st.lists(st.lists(DOCS | HASHED, max_size=12), max_size=5)
CUTS = st.lists(st.integers(1, KEY_END - 1) | WORDS.filter(bool), max_size=6)


@settings(deadline=None, max_examples=150)
@example([[], [doc("a", "x")], [], [doc("b", "x")]], [])
@example([[]], [1])
@example([], [])
@given(PARTS, CUTS)
def test_any_cut_of_the_keys_removes_what_the_reference_removes(parts: Parts, cuts: list[int]) -> None:
    check(parts, sorted({0, *cuts, KEY_END}))


def survivors(parts: Parts, directory: Path) -> set[tuple[str, int]]:
    """(doc_id, part) of what stays."""
    files = [directory / f"{number}.arrow" for number in range(len(parts))]
    for path, part in zip(files, parts, strict=True):
        write_part_keys(path, part)
    table = join_range(files, 0, KEY_END).removals
    gone = set(zip(table["part"].to_pylist(), table["row"].to_pylist(), strict=True))
    return {
        (parts[number][position].doc_id, number)
        for number in range(len(parts))
        for row, position in enumerate(rows_of(parts[number]))
        if (number, row) not in gone
    }


def test_the_smallest_id_by_utf8_bytes_survives_in_whatever_part_it_is(tmp_path: Path) -> None:
    # U+FFFF sorts before U+1F600 by UTF-8 bytes and after it by UTF-16 units; "Z" sorts before "a".
    assert survivors([[doc("😀", "t")], [doc("\uffff", "t")]], tmp_path) == {("\uffff", 1)}
    assert survivors([[doc("a", "t")], [doc("é", "t")], [doc("Z", "t")]], tmp_path) == {("Z", 2)}
    assert survivors([[doc("10", "t"), doc("9", "t")]], tmp_path) == {("10", 0)}


def test_among_equal_ids_the_first_part_and_then_the_first_read_survives(tmp_path: Path) -> None:
    same = [doc("a", "t") for _ in range(9)]
    paths = [tmp_path / "0", tmp_path / "1"]
    for path in paths:
        write_part_keys(path, same)
    table = join_range(paths, 0, KEY_END).removals
    first_read = rows_of(same).index(0)
    assert first_read != 0
    gone = list(zip(table["part"].to_pylist(), table["row"].to_pylist(), strict=True))
    assert gone == [(0, row) for row in range(9) if row != first_read] + [(1, row) for row in range(9)]


def test_keys_that_agree_in_one_word_only_are_no_duplicates(tmp_path: Path) -> None:
    high = [[doc("a", "s", key=(7, 1)), doc("b", "t", key=(7, 2))], [doc("c", "u", key=(7, 3))]]
    low = [[doc("a", "s", key=(1, 7)), doc("b", "t", key=(2, 7))], [doc("c", "u", key=(3, 7))]]
    for parts in (high, low):
        assert survivors(parts, tmp_path) == {("a", 0), ("b", 0), ("c", 1)}
    mixed = [[doc("a", "s", key=(7, 1)), doc("b", "t", key=(7, 2))], [doc("c", "t", key=(7, 2))]]
    assert survivors(mixed, tmp_path) == {("a", 0), ("b", 0)}


def test_counts_per_source_follow_each_document_and_not_its_survivor(tmp_path: Path) -> None:
    write_part_keys(tmp_path / "0", [doc("a", "中文", "web"), doc("b", "xyz", "code")])
    write_part_keys(tmp_path / "1", [doc("c", "中文", "books"), doc("d", "中文", "web")])
    joined = join_range([tmp_path / "0", tmp_path / "1"], 0, KEY_END)
    assert joined.seen == {"books": (1, 6), "code": (1, 3), "web": (2, 12)}
    assert joined.removed == {"books": (1, 6), "web": (1, 6)}


def test_a_missing_key_file_names_itself(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure) as failure:
        join_range([tmp_path / "gone.arrow"], 0, KEY_END)
    assert failure.value.where == str(tmp_path / "gone.arrow")


def test_a_key_file_or_removal_list_cut_short_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "keys.arrow"
    write_part_keys(path, [doc("a", "x"), doc("b", "x")])
    path.write_bytes(path.read_bytes()[:-20])
    for read in (lambda: join_range([path], 0, KEY_END), lambda: read_removals([path], 0)):
        with pytest.raises(DamageError) as failure:
            read()
        assert failure.value.where == str(path)


@given(st.integers(0, 10**13), st.integers(10**6, 10**12))
def test_ranges_cover_the_keys_without_gap_or_overlap_and_fit_the_memory(keys: int, memory: int) -> None:
    keys = min(keys, memory * 2000 // BYTES_PER_KEY)
    ranges = key_ranges(keys, memory)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == KEY_END
    assert all(before[1] == after[0] for before, after in pairwise(ranges))
    assert all(low < high for low, high in ranges)
    # Keys are hashes: a range holds its share of them.
    assert keys * BYTES_PER_KEY <= memory * len(ranges)
    assert len(ranges) == 1 or keys * BYTES_PER_KEY > memory * (len(ranges) - 1)
