"""A run's directories are its own: names do not collide, strangers' files stay, a second process waits outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataprep.errors import EnvironmentFailure
from dataprep.runtime.directories import RunPaths, clear_leftovers, clear_stale, clear_work, file_stem, locked

KEYS = st.text(st.sampled_from("ab01/-_.~ 中é\n"), max_size=8) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=8
)


@example({"a-b/1", "a/b-1"})
@example({"a-/1", "a/-1"})
@example({"a/b/1", "a-b/1", "a_b/1", "a b/1"})
@example({"x" * 300 + "/1", "x" * 300 + "/2"})
@given(st.sets(KEYS, max_size=12))
def test_unlike_keys_have_unlike_stems_that_are_plain_file_names(keys: set[str]) -> None:
    stems = {file_stem(key) for key in keys}
    assert len(stems) == len(keys)
    for stem in stems:
        assert not set("/\0\n ") & set(stem)
        assert 0 < len(f".prepare-{stem}.parquet.4194304.tmp".encode()) <= 255


def test_a_changed_key_cannot_take_the_place_of_a_plain_one() -> None:
    changed = file_stem("a b/1")
    assert all(file_stem(key) != changed for key in (changed, changed.replace("-", "/"), changed.replace("~", "/")))


def test_an_ordinary_key_stays_readable() -> None:
    assert file_stem("web/000012") == "web-000012"
    assert file_stem("中文.v1_x-y/000000") == "中文.v1_x-y-000000"


def tree(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def fill(root: Path, names: set[str]) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def test_clearing_stale_files_takes_only_names_a_run_writes_and_the_manifest_does_not_list(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "work", tmp_path / "out", "web+1")
    listed = {
        "web+1-00000-of-00001.mindrecord",
        "web+1-00000-of-00001.mindrecord.db",
        "documents/web+1-00000-of-00001.parquet",
        "dropped/prepare-web-000000.parquet",
    }
    foreign = {
        "web1-00000-of-00002.mindrecord",
        "webb1-00000-of-00002.mindrecord",
        "other-00000-of-00002.mindrecord",
        "old-web+1-00000-of-00002.mindrecord",
        "web+1-0-of-2.mindrecord",
        "web+1-00000-of-00002.mindrecord.bak",
        "web+1-notes.txt",
        "documents/notes.txt",
        "documents/mine.parquet",
        "dropped/emit-00001.parquet",
        "documents/mine/kept.parquet",
        "elsewhere/web+1-00000-of-00002.mindrecord",
        "table.parquet",
    }
    stale = {
        "web+1-00000-of-00002.mindrecord",
        "web+1-00001-of-00002.mindrecord.db",
        "web+1-100000-of-123456.mindrecord",
        "documents/web+1-00000-of-00002.parquet",
        "dropped/emit-00001-of-00002.parquet",
        "quarantine/prepare-web-000000.parquet",
        ".scratch/half/written",
    }
    fill(paths.output, listed | foreign | stale)
    clear_stale(paths, listed)
    assert tree(paths.output) == listed | foreign
    clear_stale(paths, listed)
    assert tree(paths.output) == listed | foreign


def test_leftovers_are_temporaries_and_scratch_only(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "work", tmp_path / "out", "web")
    kept = {"work/ledger/prepare/a.json", "out/a.tmp", "out/.hidden", "work/parts/x.arrow"}
    fill(tmp_path, kept | {"work/parts/.x.arrow.12.tmp", "out/dropped/.y.parquet.7.tmp", "out/.scratch/s/z"})
    clear_leftovers(paths)
    assert tree(tmp_path) == kept


def test_starting_afresh_forgets_what_was_finished_and_nothing_else(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "work", tmp_path / "out", "web")
    finished = [paths.ledger / "prepare/a.json", paths.removals("r"), paths.tokenizer("t"), paths.part_stem("p")]
    fill(tmp_path, {path.relative_to(tmp_path).as_posix() for path in finished} | {"work/mine", "out/shard"})
    clear_work(paths)
    assert tree(tmp_path) == {"work/mine", "out/shard"}
    clear_work(paths)


SECOND = """
import sys
from pathlib import Path
from dataprep.runtime.directories import RunPaths, locked
with locked(RunPaths(Path(sys.argv[1]), Path(sys.argv[2]), "web")):
    print("in", flush=True)
    sys.stdin.read()
"""


def second(work: Path, output: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", SECOND, str(work), str(output)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_one_process_at_a_time_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "work", tmp_path / "out", "web")
    with locked(paths):
        for work, output, where in (("work", "out", "work"), ("work", "b", "work"), ("c", "out", "out")):
            shut_out = second(tmp_path / work, tmp_path / output)
            said, errors = shut_out.communicate()
            assert (said, shut_out.returncode) == ("", 1)
            assert f"EnvironmentFailure: {tmp_path / where}: another run is using this directory" in errors

    holder = second(paths.work, paths.output)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "in\n"
    with pytest.raises(EnvironmentFailure, match="another run"), locked(paths):
        pass
    holder.kill()
    holder.communicate()
    with locked(paths):
        pass


def test_one_directory_for_both_is_locked_once(tmp_path: Path) -> None:
    with locked(RunPaths(tmp_path / "a", tmp_path / "a", "web")):
        assert (tmp_path / "a").is_dir()


def test_a_refused_lock_lets_go_of_what_it_held(tmp_path: Path) -> None:
    holder = RunPaths(tmp_path / "a", tmp_path / "shared", "web")
    refused = RunPaths(tmp_path / "b", tmp_path / "shared", "web")
    with locked(holder), pytest.raises(EnvironmentFailure), locked(refused):
        pass
    with locked(RunPaths(tmp_path / "b", tmp_path / "c", "web")):
        pass


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFailure) as failure, locked(RunPaths(tmp_path / "file/x", tmp_path / "o", "web")):
        pass
    assert str(tmp_path / "file") in str(failure.value.where)
