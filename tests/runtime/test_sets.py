"""The sets of a run: whole, in one order, and their sides side by side."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from dataprep.config.load import load
from dataprep.runtime.directories import RunPaths
from dataprep.runtime.membership import DRAW_END
from dataprep.runtime.sets import ShardSet, shard_sets

TEXT = "inputs: [{path: a.jsonl}]\ntokenizer: {train: {}}\noutput: {path: out}\n"


def sets(folder: Path, splits: str) -> tuple[ShardSet, ...]:
    path = folder / "p.yaml"
    path.write_text(TEXT)
    pipeline = load(path, [f"output.splits={splits}"], {}).pipeline
    return shard_sets(pipeline, RunPaths(folder / "work", folder / "out", "p", tuple(pipeline.output.splits)))


def test_without_splits_one_set_takes_everything(tmp_path: Path) -> None:
    (only,) = sets(tmp_path, "{}")
    assert (only.split, only.share, only.side, only.first) == (None, 1.0, (0, DRAW_END), True)
    assert only.paths.output == tmp_path / "out"


@pytest.mark.parametrize("splits", ["{b: 0.25, a: 0.25, main: 0.5}", "{main: 0.5, a: 0.25, b: 0.25}"])
def test_the_largest_comes_first_and_sides_are_as_long_as_shares(splits: str, tmp_path: Path) -> None:
    made = sets(tmp_path, splits)
    assert [(each.split, each.first) for each in made] == [("main", True), ("a", False), ("b", False)]
    half, quarter = DRAW_END // 2, DRAW_END // 4
    assert [each.side for each in made] == [(0, half), (half, half + quarter), (half + quarter, DRAW_END)]
    assert made[1].paths.output == tmp_path / "out" / "a"
    assert made[1].paths.work == tmp_path / "work"


def test_shares_without_an_exact_form_leave_no_gap(tmp_path: Path) -> None:
    made = sets(tmp_path, "{a: 0.1, b: 0.2, c: 0.3, d: 0.1, e: 0.3}")
    assert made[0].side[0] == 0
    assert made[-1].side[1] == DRAW_END
    assert all(one.side[1] == other.side[0] for one, other in pairwise(made))
