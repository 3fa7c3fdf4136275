"""A run's directories are its own: names do not collide, strangers' files stay, a second process waits outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataprep.errors import ConfigError, EnvironmentFailure
from dataprep.runtime.directories import (
    RunPaths,
    clear_former,
    clear_leftovers,
    clear_stale,
    clear_work,
    file_stem,
    locked,
    owned_by,
    refuse_strangers,
)

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


def begun(folder: Path, *splits: str, name: str = "web", names: Collection[str] = ()) -> RunPaths:
    """What a run of that name leaves that was killed when it had written these files."""
    paths = RunPaths(folder / "work", folder / "out", name, splits)
    with locked(paths):
        clear_former(paths)
        paths.take()
    fill(folder, set(names))
    return paths


def test_sets_of_other_splits_go_and_what_others_put_among_them_stays(tmp_path: Path) -> None:
    of_run = {f"out/{split}/{name}" for split in ("train", "test") for name in ("inputs.parquet", "tokenizer.json")}
    of_run |= {"out/train/web-00000-of-00001.mindrecord", "out/test/dropped/prepare-web-000000.parquet"}
    mine = {
        "out/tokenizer.json",
        "out/test/notes.txt",
        "out/own/tokenizer.json",
        "out/own/web-00000-of-00001.mindrecord",
    }
    begun(tmp_path, "train", "test", names=of_run | mine)
    again = RunPaths(tmp_path / "work", tmp_path / "out", "web", ("train", "held_out"))
    assert [former.output.name for former in again.former()] == ["test"]
    with locked(again):
        clear_former(again)
    kept = {name for name in of_run if "/train/" in name} | mine
    marks = {f"{folder}/.dataprep" for folder in ("work", "out", "out/train", "out/held_out")}
    assert tree(tmp_path) == kept | marks


def test_a_set_of_another_run_below_the_output_is_no_former_one(tmp_path: Path) -> None:
    begun(tmp_path, "train", "test")
    with locked(RunPaths(tmp_path / "other", tmp_path / "out" / "mine", "web")):
        pass
    whole = RunPaths(tmp_path / "work", tmp_path / "out", "web")
    assert [former.output.name for former in whole.former()] == ["test", "train"]


def test_a_folder_of_splits_is_no_set_of_its_own(tmp_path: Path) -> None:
    begun(tmp_path, "train", "test", names={"out/tokenizer.json"})
    refuse_strangers(RunPaths(tmp_path / "work", tmp_path / "out", "web", ("train", "test")))
    with pytest.raises(ConfigError, match=r"holds tokenizer\.json, which no run of this tool has put there"):
        refuse_strangers(RunPaths(tmp_path / "work", tmp_path / "out", "web"))


def test_shards_of_all_pipelines_that_wrote_the_folder_are_stale(tmp_path: Path) -> None:
    begun(tmp_path, name="first", names={"out/first-00000-of-00001.mindrecord", "out/third-00000-of-00001.mindrecord"})
    paths = begun(tmp_path, name="second", names={"out/second-00000-of-00002.mindrecord"})
    assert paths.names() == ["first", "second"]
    clear_stale(paths, {"second-00000-of-00002.mindrecord"})
    assert tree(paths.output) == {".dataprep", "second-00000-of-00002.mindrecord", "third-00000-of-00001.mindrecord"}


def test_taking_a_folder_again_keeps_its_mark(tmp_path: Path) -> None:
    paths = begun(tmp_path)
    mark = (paths.output / ".dataprep").read_bytes()
    assert mark == b"set\nweb\n"
    begun(tmp_path)
    assert (paths.output / ".dataprep").read_bytes() == mark


def test_only_folders_with_a_mark_hold_what_a_run_wrote(tmp_path: Path) -> None:
    strangers = {"out/train/web-00000-of-00001.mindrecord", "out/train/tokenizer.json"}
    paths = begun(tmp_path, "train", "test", names={"out/test/tokenizer.json"})
    fill(tmp_path, strangers)
    (paths.output / "train" / ".dataprep").unlink()
    owns, ever = owned_by(paths, marked=True), owned_by(paths)
    assert owns(str(paths.output / "test" / "tokenizer.json"))
    assert not any(owns(str(tmp_path / name)) for name in strangers)
    assert all(ever(str(tmp_path / name)) for name in strangers)
