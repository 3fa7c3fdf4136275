"""Write one MindRecord shard: the only module of dataprep that imports mindspore."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dataprep.errors import ConfigError, EnvironmentFailure, PipelineError
from dataprep.shards.layout import Layout
from dataprep.shards.records import check_framing, index_path, read_rows
from dataprep.storage import commit, disk_errors, hash_file, sync_directory

# 3 = errors only; mindspore reads it once, at import.
os.environ.setdefault("GLOG_v", "3")
# With its check of free space switched off mindspore 2.9 dies of a segmentation fault on a full disk.
os.environ["MS_FREE_DISK_CHECK"] = "true"
_IMPORT_FAULT: ImportError | None = None
# At import, so that a preloaded module shares mindspore's 400 MB with every forked worker; a fault waits for a writer.
try:
    from mindspore.mindrecord import FileWriter
except ImportError as _error:
    _IMPORT_FAULT = _error

DESCRIPTION = "compact rows: input_ids, doc_starts"

_FORBIDDEN = frozenset("\\/:*?\"<>|`&';")
# The writer holds a block in memory twice; below 100 rows a call costs more than its rows.
_BLOCK_TOKENS = 4 << 20
_MIN_BLOCK = 100
_NO_SPACE = "free space on this disk or choose another path, then run again to resume"


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """A written pair: sizes in bytes and xxh3-128 (hex) of the .mindrecord and its .db, and the rows in it."""

    path: Path
    bytes: int
    xxh3: str
    db_bytes: int
    db_xxh3: str
    rows: int


def write_shard(
    final: Path,
    rows: npt.NDArray[np.int32],
    doc_starts: npt.NDArray[np.int32],
    doc_start_offsets: npt.NDArray[np.int64],
    *,
    scratch: Path,
    layout: Layout,
) -> ShardFiles:
    """Write rows int32 [n, row_length] as the pair `final`, `final`.db (mode 0644), both durable before they appear.

    Row i's document pieces begin at `doc_starts[doc_start_offsets[i]:doc_start_offsets[i + 1]]` (rising, the first is
    0). `scratch` is a directory on the same disk; `layout` comes from `page_and_header`, one for the whole set. Equal
    rows give equal bytes. Raises EnvironmentFailure (disk, missing mindspore), ConfigError (unusable name), ValueError.
    """
    _check_rows(rows, doc_starts, doc_start_offsets)
    _check_name(final.name)
    with _private_directory(final, scratch) as directory:
        draft = directory / final.name
        with _writer_errors(final, directory):
            _write_blocks(draft, rows, doc_starts, doc_start_offsets, layout)
        _check_written(draft, rows, doc_starts, doc_start_offsets)
        return _move_into_place(draft, final, len(rows))


def _check_rows(rows: npt.NDArray[np.int32], doc_starts: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]) -> None:
    if rows.ndim != 2 or rows.dtype != np.int32 or not rows.size:
        raise ValueError(f"rows must be int32 [n, row_length] with n > 0, not {rows.dtype} {rows.shape}")
    if doc_starts.dtype != np.int32 or offsets.shape != (len(rows) + 1,):
        raise ValueError(f"doc_starts must be int32 with {len(rows) + 1} offsets")
    counts = np.diff(offsets)
    if offsets[0] != 0 or offsets[-1] != len(doc_starts) or (counts < 0).any():
        raise ValueError("doc_start_offsets must rise from 0 to the number of doc_starts")
    # MindRecord stores an empty array of a ragged column as garbage.
    if (counts == 0).any():
        raise ValueError(f"row {int(np.argmin(counts))} has no doc_starts: every row begins with a piece at 0")
    rising = np.diff(doc_starts.astype(np.int64), prepend=-1) > 0
    rising[offsets[:-1]] = doc_starts[offsets[:-1]] == 0
    if not rising.all() or doc_starts.max() >= rows.shape[1]:
        raise ValueError("doc_starts of a row must rise from 0 and stay below the row's length")


def _check_name(name: str) -> None:
    if set(name) & _FORBIDDEN or name != name.strip(" ") or not name.endswith(".mindrecord"):
        forbidden = " ".join(sorted(_FORBIDDEN))
        raise ConfigError(f"{name!r} cannot name a MindRecord file", mend=f"use a name without {forbidden}")


@contextmanager
def _private_directory(final: Path, scratch: Path) -> Iterator[Path]:
    # Under its final basename, for the file and its index store it and cannot be renamed.
    with disk_errors(scratch):
        scratch.mkdir(parents=True, exist_ok=True)
        final.parent.mkdir(parents=True, exist_ok=True)
        if scratch.stat().st_dev != final.parent.stat().st_dev:
            raise EnvironmentFailure(
                f"is on another disk than {final.parent}", where=str(scratch), mend="choose paths on the same disk"
            )
        directory = Path(tempfile.mkdtemp(prefix="shard-", dir=scratch))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _file_writer(path: Path) -> Any:
    if _IMPORT_FAULT is not None:
        raise EnvironmentFailure(
            f"cannot import mindspore: {_IMPORT_FAULT}", mend="pip install 'mindspore==2.9.0' 'numpy<2'"
        )
    return FileWriter(str(path), shard_num=1)


def _write_blocks(
    draft: Path,
    rows: npt.NDArray[np.int32],
    doc_starts: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    layout: Layout,
) -> None:
    writer = _file_writer(draft)
    writer.set_header_size(layout.header_size)
    writer.set_page_size(layout.page_size)
    writer.add_schema(
        {
            "input_ids": {"type": "int32", "shape": [rows.shape[1]]},
            "doc_starts": {"type": "int32", "shape": [-1]},
        },
        DESCRIPTION,
    )
    block = max(_MIN_BLOCK, _BLOCK_TOKENS // rows.shape[1])
    for first in range(0, len(rows), block):
        last = min(first + block, len(rows))
        pieces = np.split(doc_starts[offsets[first] : offsets[last]], offsets[first + 1 : last] - offsets[first])
        writer.write_raw_data(
            [{"input_ids": row, "doc_starts": starts} for row, starts in zip(rows[first:last], pieces, strict=True)]
        )
    writer.commit()


@contextmanager
def _writer_errors(final: Path, directory: Path) -> Iterator[None]:
    try:
        yield
    except PipelineError:
        raise
    # mindspore raises RuntimeError, its own MRM… kinds and OSError alike for whatever the disk or C++ refuses.
    except Exception as error:
        raise _failure(final, directory, _summary(error)) from error


def _summary(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    marked = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
    return f"writing the shard failed: {(marked or lines or [type(error).__name__])[0]}"


def _failure(final: Path, directory: Path, what: str) -> EnvironmentFailure:
    # mindspore stops by itself below 10 MB of free space.
    full = "free disk" in what or shutil.disk_usage(directory).free < 16 << 20
    return EnvironmentFailure(
        what, where=str(final), mend=_NO_SPACE if full else "check the disk, then run again to resume"
    )


def _check_written(
    draft: Path, rows: npt.NDArray[np.int32], doc_starts: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]
) -> None:
    # mindspore drops rows it dislikes with only a warning, and does not look at short writes.
    probes = sorted({0, len(rows) // 2, len(rows) - 1})
    try:
        written = check_framing(draft)
        found = read_rows(draft, probes) if written == len(rows) else []
    except PipelineError as error:
        raise _failure(draft, draft.parent, f"the shard was not written whole: {error.what}") from error
    if written != len(rows):
        raise _failure(draft, draft.parent, f"the shard holds {written} of {len(rows)} rows")
    for probe, row in zip(probes, found, strict=True):
        starts = doc_starts[offsets[probe] : offsets[probe + 1]]
        if not (np.array_equal(row["input_ids"], rows[probe]) and np.array_equal(row["doc_starts"], starts)):
            raise _failure(draft, draft.parent, f"row {probe} reads back differently")


def _move_into_place(draft: Path, final: Path, rows: int) -> ShardFiles:
    database, final_database = index_path(draft), index_path(final)
    with disk_errors(final):
        draft.chmod(0o644)
        database.chmod(0o644)
        files = ShardFiles(
            final, draft.stat().st_size, hash_file(draft), database.stat().st_size, hash_file(database), rows
        )
        # Whatever stops us between the renames leaves a file without its index, which nothing takes for a shard.
        final_database.unlink(missing_ok=True)
        sync_directory(final.parent)
        commit(draft, final)
        commit(database, final_database)
    return files
