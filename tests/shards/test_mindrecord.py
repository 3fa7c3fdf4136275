"""Shards are written whole or not at all, byte for byte the same, and mindspore reads every row once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mindspore.mindrecord import FileWriter

from dataprep.errors import ConfigError, EnvironmentFailure
from dataprep.shards import mindrecord
from dataprep.shards.layout import Layout, page_and_header
from dataprep.shards.layouts import LayoutName, Rows, column_lengths, lay_out
from dataprep.shards.mindrecord import ShardFiles, write_shard
from dataprep.shards.records import db_row_count, read_rows, row_count
from dataprep.storage import hash_file

SMALL = Layout(page_size=1 << 15, header_size=1 << 16)


def write(final: Path, rows: np.ndarray[Any, Any], starts: list[list[int]], layout: Layout = SMALL) -> ShardFiles:
    flat = np.array([start for row in starts for start in row], np.int32)
    offsets = np.cumsum([0, *map(len, starts)])
    return write_shard(final, rows, flat, offsets, scratch=final.parent / "scratch", layout=layout)


def some_rows(count: int, length: int, first: int = 0) -> np.ndarray[Any, Any]:
    return np.arange(first, first + count * length, dtype=np.int32).reshape(count, length)


def test_a_written_pair_is_complete_readable_by_all_and_leaves_no_scratch(tmp_path: Path) -> None:
    final = tmp_path / "out" / "x-00000-of-00001.mindrecord"
    written = write(final, some_rows(3, 5), [[0, 2], [0], [0, 4]])
    assert written == ShardFiles(
        final,
        final.stat().st_size,
        hash_file(final),
        Path(f"{final}.db").stat().st_size,
        hash_file(Path(f"{final}.db")),
        3,
        "direct",
    )
    assert [stat.S_IMODE(Path(name).stat().st_mode) for name in (final, f"{final}.db")] == [0o644, 0o644]
    assert sorted(path.name for path in final.parent.iterdir()) == ["scratch", final.name, f"{final.name}.db"]
    assert list((final.parent / "scratch").iterdir()) == []


def test_writing_the_same_rows_again_gives_the_same_bytes_and_replaces_the_old_pair(tmp_path: Path) -> None:
    final = tmp_path / "x.mindrecord"
    rows, starts = some_rows(500, 33), [[0]] * 500
    first = write(final, rows, starts)
    write(final, some_rows(2, 33), [[0], [0]])
    assert write(final, rows, starts) == first


def test_many_pages_and_blocks_come_back_row_by_row(tmp_path: Path) -> None:
    rows = some_rows(700, 129, first=-5000)
    starts = [[0, 1 + k % 128] for k in range(700)]
    write(tmp_path / "x.mindrecord", rows, starts)
    found = read_rows(tmp_path / "x.mindrecord", [699, 0, 350])
    for row, number in zip(found, (699, 0, 350), strict=True):
        assert row["input_ids"].tolist() == rows[number].tolist()
        assert row["doc_starts"].tolist() == starts[number]
    assert (row_count(tmp_path / "x.mindrecord"), db_row_count(tmp_path / "x.mindrecord")) == (700, 700)


def test_mindspore_reads_every_row_exactly_once_over_two_ranks(tmp_path: Path) -> None:
    import mindspore.dataset as ds

    names = [tmp_path / f"x-{k:05d}-of-00002.mindrecord" for k in range(2)]
    write(names[0], some_rows(5, 4), [[0, k % 3 + 1] for k in range(5)])
    write(names[1], some_rows(3, 4, first=20), [[0]] * 3)
    ds.config.set_seed(3)
    seen = []
    for rank in range(2):
        dataset = ds.MindDataset(
            [str(name) for name in names],
            num_shards=2,
            shard_id=rank,
            shuffle=ds.Shuffle.GLOBAL,
            num_parallel_workers=1,
        )
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
            assert row["doc_starts"][0] == 0
            seen.append(row["input_ids"].tolist())
    assert sorted(seen) == some_rows(8, 4).tolist()


def packed_rows(count: int, length: int) -> tuple[np.ndarray[Any, Any], list[list[int]], np.ndarray[Any, Any]]:
    """Rows with one to three pieces and, in some, padding; ids of every stored width."""
    random = np.random.default_rng(length)
    rows = (2 ** random.uniform(0, 31, (count, length))).astype(np.int64).clip(2, 2**31 - 1).astype(np.int32)
    starts = [sorted({0, *random.integers(0, length // 2, 2).tolist()}) for _ in range(count)]
    lengths = np.where(np.arange(count) % 4, length, random.integers(length // 2, length, count)).astype(np.int32)
    for row, text in zip(rows, lengths, strict=True):
        row[text:] = 1
    return rows, starts, lengths


@pytest.mark.parametrize("columns", get_args(LayoutName))
def test_mindspore_reads_every_layout_as_it_was_laid_out(tmp_path: Path, columns: LayoutName) -> None:
    import mindspore.dataset as ds

    names = [tmp_path / f"x-{k:05d}-of-00002.mindrecord" for k in range(2)]
    rows, starts, lengths = packed_rows(23, 40)
    expected = []
    for name, part in zip(names, (slice(0, 14), slice(14, 23)), strict=True):
        flat = np.array([start for row in starts[part] for start in row], np.int32)
        offsets = np.cumsum([0, *map(len, starts[part])])
        written = {"scratch": tmp_path / "scratch", "layout": SMALL, "columns": columns, "lengths": lengths[part]}
        write_shard(name, rows[part], flat, offsets, **written)
        made = lay_out(columns, Rows(rows[part], lengths[part], flat, offsets))
        for row in zip(*made.values(), strict=True):
            expected.append({key: values.tolist() for key, values in zip(made, row, strict=True)})
    for ranks in (1, 2):
        seen = []
        for rank in range(ranks):
            dataset = ds.MindDataset(
                [str(name) for name in names],
                list(column_lengths(columns, 40)),
                num_shards=ranks,
                shard_id=rank,
                shuffle=False,
                num_parallel_workers=1,
            )
            for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
                assert all(values.dtype == np.int32 for values in row.values())
                seen.append({key: values.tolist() for key, values in row.items()})
        # 23 rows over 2 ranks: one is read twice.
        assert len(seen) == -(-23 // ranks) * ranks
        assert sorted(map(str, expected)) == sorted(set(map(str, seen)))


def both_ways(
    folder: Path, columns: LayoutName, packed: tuple[np.ndarray[Any, Any], list[list[int]], np.ndarray[Any, Any]]
) -> list[bytes]:
    rows, starts, lengths = packed
    flat = np.array([start for row in starts for start in row], np.int32)
    layout = Layout(page_size=1 << 15, header_size=1 << 17)
    taken = Rows(rows, lengths, flat, np.cumsum([0, *map(len, starts)]))
    written = []
    for way in (mindrecord._write_public, mindrecord._write_direct):
        draft = folder / way.__name__ / "x.mindrecord"
        draft.parent.mkdir()
        way(draft, taken, layout, columns, 100)
        written.append(draft.read_bytes() + Path(f"{draft}.db").read_bytes())
    return written


@pytest.mark.parametrize("columns", get_args(LayoutName))
@pytest.mark.parametrize(("count", "length"), [(1, 2), (350, 33), (250, 700)])
def test_the_direct_way_writes_the_bytes_of_the_public_one(
    tmp_path: Path, columns: LayoutName, count: int, length: int
) -> None:
    public, direct = both_ways(tmp_path, columns, packed_rows(count, length))
    assert public == direct
    # Many pages, or the test says little about where one ends and the next begins.
    assert count < 250 or len(public) > 4 << 15


def test_rows_that_only_grow_by_encoding_are_written_alike_both_ways(tmp_path: Path) -> None:
    rows = np.full((150, 60), 2**31 - 1, np.int32)
    public, direct = both_ways(tmp_path, "compact", (rows, [[0]] * 150, np.full(150, 60, np.int32)))
    assert b'"compression_size":0,' in public
    assert public == direct


@pytest.fixture
def change_mindspore(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[type], None]]:
    """Puts another class in the place of mindspore's FileWriter, as another release of it would."""
    mindrecord._direct_fault.cache_clear()
    yield lambda writer: monkeypatch.setattr(mindrecord, "FileWriter", writer)
    mindrecord._direct_fault.cache_clear()


def test_a_mindspore_that_does_not_allow_the_direct_way_is_written_to_by_its_public_one(
    tmp_path: Path, change_mindspore: Callable[[type], None]
) -> None:
    class NoBytes(FileWriter):
        def add_schema(self, content: dict[str, Any], desc: str | None = None) -> None:
            if any(column["type"] == "bytes" for column in content.values()):
                raise RuntimeError("no bytes here")
            super().add_schema(content, desc)

    direct = write(tmp_path / "x.mindrecord", some_rows(3, 5), [[0]] * 3)
    mindrecord._direct_fault.cache_clear()
    change_mindspore(NoBytes)
    public = write(tmp_path / "x.mindrecord", some_rows(3, 5), [[0]] * 3)
    assert direct.writer == "direct"
    assert public.writer == "public: the direct way failed: RuntimeError no bytes here"
    assert (public.xxh3, public.db_xxh3) == (direct.xxh3, direct.db_xxh3)


def test_a_mindspore_that_would_make_other_bytes_of_it_is_written_to_by_its_public_one(
    tmp_path: Path, change_mindspore: Callable[[type], None]
) -> None:
    class Changed(FileWriter):
        def add_schema(self, content: dict[str, Any], desc: str | None = None) -> None:
            encoded = any(column["type"] == "bytes" for column in content.values())
            super().add_schema(content, "another" if encoded else desc)

    change_mindspore(Changed)
    written = write(tmp_path / "x.mindrecord", some_rows(3, 5), [[0]] * 3)
    assert written.writer == "public: the direct way wrote other bytes"
    assert [row["input_ids"].tolist() for row in read_rows(tmp_path / "x.mindrecord", range(3))] == some_rows(
        3, 5
    ).tolist()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=hnp.arrays(np.int32, st.tuples(st.integers(1, 6), st.integers(1, 21))),
    data=st.data(),
)
def test_any_int32_rows_read_back_as_written(tmp_path: Path, rows: np.ndarray[Any, Any], data: st.DataObject) -> None:
    places = st.sets(st.integers(0, rows.shape[1] - 1)).map(lambda chosen: sorted({0, *chosen}))
    starts = [data.draw(places) for _ in rows]
    write(tmp_path / "x.mindrecord", rows, starts)
    found = read_rows(tmp_path / "x.mindrecord", range(len(rows)))
    assert [row["input_ids"].tolist() for row in found] == rows.tolist()
    assert [row["doc_starts"].tolist() for row in found] == starts


def test_our_reader_and_mindspore_agree_on_values_of_every_width(tmp_path: Path) -> None:
    import mindspore.dataset as ds

    edges = [0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 2**31 - 1, -(2**31)]
    path = tmp_path / "x.mindrecord"
    write(path, np.array([edges, edges[::-1]], np.int32), [[0, 12], [0, 1, 2]])
    dataset = ds.MindDataset([str(path)], shuffle=False, num_parallel_workers=1)
    theirs = [
        {name: values.tolist() for name, values in row.items()}
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)
    ]
    ours = [{name: values.tolist() for name, values in row.items()} for row in read_rows(path, [0, 1])]
    assert ours == theirs
    assert ours[0]["input_ids"] == edges


@pytest.mark.parametrize("lengths", [[5, 6], [5, 1], [5]])
def test_lengths_that_do_not_fit_the_rows_are_refused(tmp_path: Path, lengths: list[int]) -> None:
    flat, offsets = np.array([0, 0, 3], np.int32), np.array([0, 1, 3])
    with pytest.raises(ValueError, match=r"lengths must be|within its text"):
        write_shard(
            tmp_path / "x.mindrecord",
            some_rows(2, 5),
            flat,
            offsets,
            scratch=tmp_path,
            layout=SMALL,
            lengths=np.array(lengths, np.int32),
        )


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        ([[0], []], "row 1 has no doc_starts"),
        ([[0], [1]], "rise from 0"),
        ([[0, 2, 2], [0]], "rise from 0"),
        ([[0, 5], [0]], "stay below"),
    ],
)
def test_doc_starts_that_mindrecord_would_spoil_are_refused(
    tmp_path: Path, starts: list[list[int]], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        write(tmp_path / "x.mindrecord", some_rows(2, 5), starts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a:b.mindrecord", "a&b.mindrecord", " a.mindrecord", "a.txt"])
def test_names_mindrecord_forbids_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a MindRecord file"):
        write(tmp_path / name, some_rows(1, 5), [[0]])


@pytest.mark.parametrize("columns", get_args(LayoutName))
def test_a_page_holds_the_largest_row_and_the_header_lists_all_pages(tmp_path: Path, columns: LayoutName) -> None:
    # 100,000 values of 4 bytes in every column that can hold them: 4 rows a page.
    length = 100_000
    rows = np.full((5, length), 2**31 - 1, np.int32)
    flat, offsets = np.tile(np.arange(length, dtype=np.int32), 5), np.arange(6) * length
    layout = page_and_header(length, 5, columns)
    path = tmp_path / "x.mindrecord"
    write_shard(path, rows, flat, offsets, scratch=tmp_path, layout=layout, columns=columns)
    assert row_count(path) == 5


def test_the_header_has_room_for_more_pages_than_a_megabyte_lists(tmp_path: Path) -> None:
    # 4 million short rows of 1 MB headers' worth of 4 MB pages need no more than the default…
    assert page_and_header(4097, 20_000) == Layout(4 << 20, 1 << 20)
    # …and 191 to 234 bytes a page are needed, so 10,000 pages need more than 2 MB.
    assert page_and_header(4097, 10_000 * (4 << 20) // 34_900).header_size >= 234 * 10_000
    with pytest.raises(ConfigError, match=r"lower pack\.seq_length"):
        page_and_header(40_000_000, 1)
    with pytest.raises(ConfigError, match=r"lower output\.shard_tokens"):
        page_and_header(4097, 10**9)


def test_a_header_too_small_is_one_clear_failure_and_leaves_nothing(tmp_path: Path) -> None:
    layout = Layout(page_size=1 << 15, header_size=1 << 14)
    with pytest.raises(EnvironmentFailure, match="writing the shard failed"):
        write(tmp_path / "x.mindrecord", some_rows(20_000, 50), [[0]] * 20_000, layout)
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]


@pytest.mark.parametrize("checked", ["true", "false"])
def test_a_full_disk_fails_with_the_mend_and_leaves_nothing(tmp_path: Path, checked: str) -> None:
    # With its check of free space switched off by the environment mindspore would die of a segmentation fault.
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=14m", "tmpfs", str(tmp_path)], capture_output=True
    ).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    script = Path(__file__).with_name("full_disk.py")
    environment = {**os.environ, "MS_FREE_DISK_CHECK": checked, "PYTHONPATH": str(Path(__file__).parents[2])}
    try:
        done = subprocess.run(
            [sys.executable, str(script), str(tmp_path)], env=environment, capture_output=True, text=True, check=False
        )
        left = [path.name for path in tmp_path.iterdir()]
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)
    assert "EnvironmentFailure" in done.stdout, done.stdout + done.stderr
    assert "free space on this disk" in done.stdout
    assert "Traceback" not in done.stderr
    assert left == ["scratch"]


def test_a_scratch_directory_on_another_disk_is_refused(tmp_path: Path) -> None:
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system")
    scratch = other / f"dataprep-test-{os.getpid()}"
    with pytest.raises(EnvironmentFailure, match="same disk"):
        write_shard(
            tmp_path / "x.mindrecord",
            some_rows(1, 4),
            np.zeros(1, np.int32),
            np.array([0, 1]),
            scratch=scratch,
            layout=SMALL,
        )
    scratch.rmdir()


def test_without_mindspore_writing_fails_with_the_install_command(tmp_path: Path) -> None:
    (tmp_path / "mindspore.py").write_text("raise ImportError('no such library here')\n")
    code = (
        "import numpy as np, pathlib, sys\n"
        "from dataprep.errors import EnvironmentFailure\n"
        "from dataprep.shards.layout import page_and_header\n"
        "from dataprep.shards.mindrecord import write_shard\n"
        "try:\n"
        "    where = pathlib.Path(sys.argv[1])\n"
        "    rows, starts, offsets = np.zeros((1, 4), np.int32), np.zeros(1, np.int32), np.array([0, 1])\n"
        "    write_shard(where / 'x.mindrecord', rows, starts, offsets, scratch=where, layout=page_and_header(4, 1))\n"
        "except EnvironmentFailure as error:\n"
        "    print(error)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot import mindspore: no such library here" in done.stdout
    assert "pip install 'mindspore==2.9.0'" in done.stdout
