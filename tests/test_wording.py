"""Counts and paths as people read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from dataprep.wording import counted, shown_path


@pytest.mark.parametrize(
    ("count", "thing", "words"),
    [
        (0, "shard", "0 shards"),
        (1, "shard", "1 shard"),
        (2000, "bad record", "2,000 bad records"),
        (2, "entry", "2 entries"),
    ],
)
def test_one_thing_is_not_many(count: int, thing: str, words: str) -> None:
    assert counted(count, thing) == words


def test_a_path_is_shown_without_steps_back(tmp_path: Path) -> None:
    assert shown_path(tmp_path / "pipelines" / ".." / "shards" / "x") == str(tmp_path / "shards" / "x")
    assert shown_path("../shards") == "../shards"
    assert shown_path(f"{tmp_path}/a/../p.yaml:3:4") == f"{tmp_path}/p.yaml:3:4"


def test_a_step_back_out_of_a_link_stays_for_it_leads_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    assert shown_path(f"{tmp_path}/link/../x") == f"{tmp_path}/link/../x"


def test_errors_show_their_place_that_way(tmp_path: Path) -> None:
    assert str(ConfigError("gone", where=f"{tmp_path}/a/../b")) == f"{tmp_path}/b: gone"
