from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import ConfigError, EnvironmentFailure
from dataprep.readers.inputs import Input, Split
from dataprep.readers.split import plan_splits

Reader = Callable[..., Any]


def tree(base: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def plan(base: Path, *inputs: Input, split_bytes: int = 1 << 20, limit: int | None = None) -> tuple[Split, ...]:
    return plan_splits(inputs, base, split_bytes=split_bytes, limit=limit)


def names(splits: tuple[Split, ...]) -> list[str]:
    return [planned.name for split in splits for planned in split.ranges]


def test_a_path_is_a_file_a_folder_a_glob_or_a_list(tmp_path: Path) -> None:
    tree(tmp_path, {"raw/a.txt": "", "raw/deep/er/b.txt": "", "raw/.hidden/c.txt": "", "raw/[x].txt": "", "d.txt": ""})
    below = ["raw/.hidden/c.txt", "raw/[x].txt", "raw/a.txt", "raw/deep/er/b.txt"]
    assert names(plan(tmp_path, Input(path="d.txt"))) == ["d.txt"]
    for folder in ("raw", "raw/", "raw/**", "raw/**/*.txt", str(tmp_path / "raw")):
        assert names(plan(tmp_path, Input(path=folder))) == below
    assert names(plan(tmp_path, Input(path="raw/*.txt"))) == ["raw/[x].txt", "raw/a.txt"]
    assert names(plan(tmp_path, Input(path="raw/*/er/?.txt"))) == ["raw/deep/er/b.txt"]
    assert names(plan(tmp_path, Input(path="raw/[x].txt"))) == ["raw/[x].txt"]
    assert names(plan(tmp_path, Input(path=("d.txt", "raw/*.txt", "raw/a.txt"), source="s"))) == [
        "d.txt",
        "raw/[x].txt",
        "raw/a.txt",
    ]


def test_a_file_outside_the_base_has_its_whole_path_as_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, {"out/a.txt": "", "base/b.txt": ""})
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("../out/a.txt", "~/out/a.txt", str(tmp_path / "out/*.txt")):
        assert names(plan(tmp_path / "base", Input(path=path))) == [(tmp_path / "out/a.txt").as_posix()]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("web.v1.jsonl", "web"),
        ("raw/zh/*.jsonl", "zh"),
        ("raw/*/x.jsonl", "raw"),
        ("raw/zh", "zh"),
        ("raw/**/*.jsonl", "raw"),
    ],
)
def test_the_default_source_is_the_file_or_the_last_fixed_folder(tmp_path: Path, path: str, source: str) -> None:
    tree(tmp_path, {"web.v1.jsonl": "", "raw/zh/x.jsonl": ""})
    (split,) = plan(tmp_path, Input(path=path))
    assert (split.key, split.input.source) == (f"{source}/000000", source)


def test_folders_a_path_starts_at_are_no_globs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, dict.fromkeys(["pr[1]/raw/a.txt", "pr[1]/raw/t/b.txt", "pr1/raw/c.txt", "pr1/d.txt"], ""))
    base = tmp_path / "pr[1]"
    for path in ("raw/*.txt", "../pr[[]1]/raw/*.txt", "raw/../raw/?.txt"):
        assert names(plan(base, Input(path=path))) == ["raw/a.txt"]
    assert names(plan(base, Input(path="raw/**/*.txt"))) == ["raw/a.txt", "raw/t/b.txt"]
    assert names(plan(base, Input(path="**", include=("raw/*.txt",)))) == ["raw/a.txt"]
    assert names(plan(base, Input(path="raw", include=("*/*",), exclude=("a*",)))) == ["raw/t/b.txt"]
    assert names(plan(base, Input(path="../pr[1]/*.txt"))) == [str(tmp_path / "pr1/d.txt")]
    (split,) = plan(base / "raw", Input(path="*.txt"))
    assert split.key == "raw/000000"
    monkeypatch.setenv("HOME", str(base))
    for path in ("~/raw/*.txt", "~/raw/a.txt"):
        assert names(plan(tmp_path, Input(path=path))) == ["pr[1]/raw/a.txt"]


@pytest.mark.parametrize(
    ("path", "what"), [("~nosuchuser/x.txt", "no user's home folder"), ("a\0.txt", "NUL"), ("a\0*", "NUL")]
)
def test_a_path_that_cannot_be_is_an_error_that_names_it(tmp_path: Path, path: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        plan(tmp_path, Input(path=path))
    assert caught.value.where == "inputs[0].path"
    assert caught.value.mend


@pytest.mark.parametrize("path", ["raw", "raw/*", "raw/a\udcff.jsonl"])
def test_a_file_name_that_is_not_utf8_is_an_error_that_spells_it(tmp_path: Path, path: str) -> None:
    tree(tmp_path, {"raw/a\udcff.jsonl": "", "raw/b.jsonl": ""})
    with pytest.raises(ConfigError) as caught:
        plan(tmp_path, Input(path=path))
    assert caught.value.where == f"{tmp_path}/raw/a\\xff.jsonl"
    assert caught.value.mend == "rename it"
    assert names(plan(tmp_path, Input(path="raw", exclude=("a*",)))) == ["raw/b.jsonl"]


def test_a_folder_name_that_is_not_utf8_is_an_error_too(tmp_path: Path) -> None:
    tree(tmp_path, {"\udcff/a.jsonl": ""})
    for base, path in ((tmp_path, "**"), (tmp_path / "\udcff", "*.jsonl")):
        with pytest.raises(ConfigError, match=r"\\xff/a\.jsonl: .*UTF-8; rename it"):
            plan(base, Input(path=path))
    with pytest.raises(ConfigError, match=r"\\xff/b\* matches no file"):
        plan(tmp_path, Input(path="\udcff/b*"))


def test_include_and_exclude_are_about_names_or_paths_below(tmp_path: Path) -> None:
    tree(tmp_path, dict.fromkeys(["src/a.py", "src/a.c", "src/t/b.py", "src/t/t/c.py", "src/u/d.py"], ""))

    def left(**globs: Any) -> list[str]:
        return names(plan(tmp_path, Input(path="src", format="text", **globs)))

    assert left(include=["*.py"]) == ["src/a.py", "src/t/b.py", "src/t/t/c.py", "src/u/d.py"]
    assert left(include=["*.py"], exclude=["t/**"]) == ["src/a.py", "src/u/d.py"]
    assert left(include=["*/*.py"]) == ["src/t/b.py", "src/u/d.py"]
    assert left(include=["**/t/*.py"]) == ["src/t/b.py", "src/t/t/c.py"]
    assert left(exclude=["*.py"]) == ["src/a.c"]


@pytest.mark.parametrize("path", ["nothing.jsonl", "no/*.jsonl", "empty", "empty/**", "empty/*.txt"])
def test_a_path_without_files_is_an_error_that_names_it(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    tree(tmp_path, {"a.txt": ""})
    with pytest.raises(ConfigError) as caught:
        plan(tmp_path, Input(path="a.txt"), Input(path=path))
    assert caught.value.where == "inputs[1].path"
    assert path in caught.value.what
    assert caught.value.mend


def test_globs_that_leave_nothing_are_an_error(tmp_path: Path) -> None:
    tree(tmp_path, {"raw/a.txt": ""})
    with pytest.raises(ConfigError, match="leave none of the 1 files"):
        plan(tmp_path, Input(path="raw", exclude=("*.txt",)))


@pytest.mark.parametrize("name", ["a.docx", "README", "a.json", "a.gz"])
def test_a_name_that_tells_no_format_is_an_error_that_asks_for_it(tmp_path: Path, name: str) -> None:
    tree(tmp_path, {name: ""})
    with pytest.raises(ConfigError) as caught:
        plan(tmp_path, Input(path=name))
    assert caught.value.where == name
    assert "`format:`" in str(caught.value)
    assert names(plan(tmp_path, Input(path=name, format="jsonl"))) == [name]


@pytest.mark.parametrize("name", ["a.jsonl.lz4", "a.txt.zip", "a.csv.7z", "a.parquet.gz"])
def test_an_unsupported_codec_is_an_error_that_names_the_file(tmp_path: Path, name: str) -> None:
    tree(tmp_path, {name: ""})
    with pytest.raises(ConfigError) as caught:
        plan(tmp_path, Input(path=name))
    assert caught.value.where == name


def test_two_inputs_may_not_read_a_file_as_the_same_source(tmp_path: Path) -> None:
    tree(tmp_path, {"raw/a.txt": "", "raw/b.txt": ""})
    with pytest.raises(ConfigError) as caught:
        plan(tmp_path, Input(path="raw/*.txt"), Input(path="raw"))
    assert caught.value.where == "raw/a.txt"
    assert "inputs[0] and inputs[1]" in caught.value.what
    both = plan(tmp_path, Input(path="raw/*.txt"), Input(path="raw", source="again"))
    assert names(both) == ["raw/a.txt", "raw/b.txt"] * 2


def test_links_are_followed_but_not_in_circles_and_a_file_is_read_once(tmp_path: Path) -> None:
    tree(tmp_path, {"raw/a.txt": "", "other/b.txt": ""})
    (tmp_path / "raw/0").symlink_to(tmp_path / "raw")
    (tmp_path / "raw/link").symlink_to(tmp_path / "other")
    (tmp_path / "raw/z.txt").symlink_to(tmp_path / "raw/a.txt")
    assert names(plan(tmp_path, Input(path="raw"))) == ["raw/a.txt", "raw/link/b.txt"]


def test_a_dangling_link_and_a_pipe_are_errors(tmp_path: Path) -> None:
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(EnvironmentFailure, match=r"gone\.txt"):
        plan(tmp_path, Input(path="gone.txt"))
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(ConfigError, match="not a regular file"):
        plan(tmp_path, Input(path="pipe.txt"))


def test_no_order_of_inputs_or_paths_matters(tmp_path: Path) -> None:
    rng = random.Random(0)
    files = [f"raw/{folder}/{number}.jsonl" for folder in "abc" for number in range(9)]
    tree(tmp_path, {name: '{"text": "x"}\n' * rng.randrange(50) for name in files})
    inputs = [
        Input(path=("raw/a/[0-4].jsonl", "raw/b/*.jsonl"), source="web"),
        Input(path="raw/a/[5-9].jsonl", source="web", text="content"),
        Input(path="raw/c", exclude=("1.*", "2.*")),
    ]
    for limit in (None, 3):
        expected = plan(tmp_path, *inputs, split_bytes=700, limit=limit)
        for _ in range(5):
            rng.shuffle(inputs)
            turned = [
                entry.model_copy(update={"exclude": entry.exclude[::-1], "path": entry.path[::-1]})
                if isinstance(entry.path, tuple)
                else entry
                for entry in inputs
            ]
            assert plan(tmp_path, *turned, split_bytes=700, limit=limit) == expected
        keys = [split.key for split in expected]
        assert len(set(keys)) == len(keys)


def test_plain_lines_are_cut_into_ranges_that_tile_the_file(tmp_path: Path) -> None:
    tree(tmp_path, {"a.jsonl": "x" * 1000, "b.txt": "x" * 1000})
    for entry in (Input(path="a.jsonl"), Input(path="b.txt", unit="line")):
        splits = plan(tmp_path, entry, split_bytes=300)
        ranges = [(split.ranges[0].start, split.ranges[0].end, split.size) for split in splits]
        assert ranges == [(0, 250, 250), (250, 500, 250), (500, 750, 250), (750, None, 250)]
    assert len(plan(tmp_path, Input(path="b.txt"), split_bytes=300)) == 1


def test_compressed_files_stay_whole(tmp_path: Path) -> None:
    tree(tmp_path, {"a.jsonl.gz": "x" * 1000, "b.jsonl.gz": "x" * 1000})
    splits = plan(tmp_path, Input(path="*.gz"), split_bytes=300)
    assert [[planned.end for planned in split.ranges] for split in splits] == [[None], [None]]


def test_ten_thousand_tiny_files_are_few_splits_and_few_batches(tmp_path: Path, read_all: Reader) -> None:
    (tmp_path / "raw").mkdir()
    for number in range(10_000):
        (tmp_path / f"raw/{number:05d}.txt").write_bytes(b"text %d" % number)
    splits = plan(tmp_path, Input(path="raw"), split_bytes=64 << 10)
    assert len(splits) == 2
    found = read_all(tmp_path, Input(path="raw"))
    assert found.texts == [f"text {number}" for number in range(10_000)]
    assert found.column("origin")[17] == "raw/00017.txt"


def test_limit_makes_one_split_an_input(tmp_path: Path) -> None:
    tree(tmp_path, {"raw/a.jsonl": "x" * 1000, "raw/b.jsonl": "x" * 1000, "c.jsonl": "x"})
    splits = plan(tmp_path, Input(path="raw"), Input(path="c.jsonl"), split_bytes=100, limit=7)
    assert [(split.key, split.limit, [planned.name for planned in split.ranges]) for split in splits] == [
        ("c/000000", 7, ["c.jsonl"]),
        ("raw/000000", 7, ["raw/a.jsonl", "raw/b.jsonl"]),
    ]
