"""What the machine refuses: one clear line, no manifest, and nothing finished is lost."""

from __future__ import annotations

import bz2
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dataprep.shards.manifest import load_manifest


@contextmanager
def small_disk(folder: Path, size: str, more: str = "") -> Iterator[None]:
    """A disk of its own at `folder`, or the test is skipped where disks may not be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}{more}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def outcomes(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "work" / "ledger").rglob("*.json"))


@pytest.mark.parametrize(("full", "size"), [("work", "64k"), ("work", "160k"), ("out", "4m"), ("out", "10420k")])
def test_a_full_disk_stops_the_run_and_room_lets_it_finish(
    reference: Path, tmp_path: Path, dataprep: Any, write_small: Any, full: str, size: str
) -> None:
    pipeline = write_small(tmp_path)
    with small_disk(tmp_path / full, size):
        code, message = dataprep.fail(pipeline)
        assert not (tmp_path / "out" / "manifest.json").exists()
        assert code == 4
        assert "free space on this disk" in message
        assert str(tmp_path / full) in message
        subprocess.run(["mount", "-o", "remount,size=200m", str(tmp_path / full)], check=True)
        before = outcomes(tmp_path)
        assert dataprep.run(pipeline)["hash"] == load_manifest(reference).hash
        assert set(before) <= set(outcomes(tmp_path))


@pytest.mark.parametrize("locked", ["work", "out"])
def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path, dataprep: Any, write_small: Any, locked: str) -> None:
    pipeline = write_small(tmp_path)
    # Permission bits do not stop root, a disk mounted for reading does.
    with small_disk(tmp_path / locked, "1m", ",ro"):
        code, message = dataprep.fail(pipeline)
        assert code == 4
        assert str(tmp_path / locked) in message
        assert "choose a path on a writable disk" in message
        assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_missing_tokenizer_is_named_before_anything_is_read(tmp_path: Path, dataprep: Any, write_small: Any) -> None:
    pipeline = write_small(tmp_path)
    pipeline.write_text(pipeline.read_text().replace("{train: {vocab_size: 400}}", "{path: nowhere.json}"))
    code, message = dataprep.fail(pipeline)
    assert code == 2
    assert "nowhere.json" in message
    assert "give a tokenizer.json, a Hugging Face tokenizer folder" in message
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "work").exists()


def test_a_codec_that_is_not_supported_is_named_with_those_that_are(
    tmp_path: Path, dataprep: Any, write_small: Any
) -> None:
    pipeline = write_small(tmp_path, "  - {path: en.jsonl.lz4, source: en}")
    (tmp_path / "en.jsonl.lz4").write_bytes(bz2.compress(b"{}"))
    code, message = dataprep.fail(pipeline)
    assert code == 2
    assert "en.jsonl.lz4" in message
    assert "zst" in message
    assert not (tmp_path / "out").exists()
