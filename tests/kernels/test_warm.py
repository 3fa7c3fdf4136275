"""Compiled kernels: where they are cached, and that warming leaves nothing to compile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import dataprep
from dataprep import kernels
from dataprep.batch import doc_batch
from dataprep.dedup.keys import content_keys
from dataprep.filters.registry import STEPS
from dataprep.kernels import clean, counts, fold, pack
from dataprep.tokens import packing

CODE = "from dataprep import kernels; kernels.warm(); import numba; print(numba.config.CACHE_DIR)"


def run_python(code: str, **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    path = str(Path(dataprep.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "PYTHONPATH": path, **environment},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_after_warming_real_batches_compile_nothing_more() -> None:
    kernels.warm()
    compiled = (clean._clean, counts._count, fold._fold, pack._best_fit, pack._copy, pack._fill_ends)
    before = [list(kernel.signatures) for kernel in compiled]
    batch = doc_batch(["a", "b"], ["one  two\r\n", "三\u200b"], "s", ["", ""])
    for step in (STEPS["normalize"](), STEPS["normalize"](keep_indentation=True), STEPS["length"](min_words=1)):
        step.run(batch)
        step.run(batch.slice(1))
    content_keys(batch.column("text"), "whitespace")
    content_keys(batch.column("text"), "casefold_no_punct")
    ids, offsets = np.arange(12, dtype=np.int32), np.array([0, 2, 9, 12])
    packing.pack_best_fit(*packing.truncate(ids, offsets, 5, 0)[:2], 5, 0, 2)
    packing.pack_none(ids, offsets, 5, 0)
    assert [list(kernel.signatures) for kernel in compiled] == before
    assert all(len(signatures) == 1 for signatures in before)


def test_a_cache_folder_given_in_the_environment_is_used(tmp_path: Path) -> None:
    assert run_python(CODE, NUMBA_CACHE_DIR=str(tmp_path)) == str(tmp_path)
    assert list(tmp_path.rglob("clean._clean-*.nbc"))


def test_an_unwritable_package_and_no_home_leave_a_private_temporary_folder_for_the_cache(tmp_path: Path) -> None:
    package = Path(dataprep.__file__).parent
    installed = tmp_path / "installed"
    for folder in (".", "kernels"):
        (installed / "dataprep" / folder).mkdir(parents=True, exist_ok=True)
        for source in (package / folder).glob("*.py"):
            shutil.copy(source, installed / "dataprep" / folder)
    (installed / "dataprep" / "kernels" / "__pycache__").touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    folder = Path(run_python(CODE, PYTHONPATH=str(installed), TMPDIR=str(temporary), HOME="/proc"))
    assert folder.parent == temporary / f"dataprep-{os.getuid()}"
    assert folder.parent.stat().st_mode & 0o077 == 0
    assert list(folder.rglob("clean._clean-*.nbc"))


def test_a_temporary_folder_that_is_a_link_planted_by_others_is_not_trusted(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    assert kernels._usable(target)
    assert not kernels._usable(link)
