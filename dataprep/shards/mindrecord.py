"""Write one MindRecord shard: the only module of dataprep that imports mindspore."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dataprep.errors import ConfigError, EnvironmentFailure, PipelineError
from dataprep.shards.layout import Layout, largest_row
from dataprep.shards.layouts import ANY, DTYPE, Columns, LayoutName, Rows, column_lengths, lay_out
from dataprep.shards.pages import Schema, as_bytes, declare, encode_rows
from dataprep.shards.records import check_framing, index_path, read_rows
from dataprep.storage import commit, disk_errors, hash_file, sync_directory

# 3 = errors only; mindspore reads it once, at import.
os.environ.setdefault("GLOG_v", "3")
# With its check of free space switched off mindspore 2.9 dies of a segmentation fault on a full disk.
os.environ["MS_FREE_DISK_CHECK"] = "true"
_IMPORT_FAULT: ImportError | None = None
# At import, so that a preloaded module shares mindspore's 400 MB with every forked worker; a fault waits for a writer.
try:
    from mindspore.mindrecord import SUCCESS, FileWriter
except ImportError as _error:
    _IMPORT_FAULT = _error

_FORBIDDEN = frozenset("\\/:*?\"<>|`&';")
# The writer holds a block in memory twice; below 100 rows a call costs more than its rows.
_BLOCK_VALUES = 4 << 20
_MIN_BLOCK = 100
# The smallest page mindspore takes, and a header for some tens of pages.
_MIN_PAGE = 32 << 10
_PROBE_HEADER = 64 << 10
# Ids of every stored width, and of both signs; see `_direct_fault`.
_EDGES = (0, 1, -1, 127, 128, -129, 32767, -32768, 32768, 65536, 2**31 - 1, -(2**31))
_NO_SPACE = "free space on this disk or choose another path, then run again to resume"


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """A written pair: sizes in bytes and xxh3-128 (hex) of the .mindrecord and its .db, and the rows in it.

    `writer` says how: "direct", or "public: " and why not directly. The bytes are the same.
    """

    path: Path
    bytes: int
    xxh3: str
    db_bytes: int
    db_xxh3: str
    rows: int
    writer: str


_Write = Callable[[Path, Rows, Layout, LayoutName, int], None]


def write_shard(
    final: Path,
    rows: npt.NDArray[np.int32],
    doc_starts: npt.NDArray[np.int32],
    doc_start_offsets: npt.NDArray[np.int64],
    *,
    scratch: Path,
    layout: Layout,
    columns: LayoutName = "compact",
    lengths: npt.NDArray[np.int32] | None = None,
) -> ShardFiles:
    """Write rows int32 [n, row_length] as the pair `final`, `final`.db (mode 0644), both durable before they appear.

    Row i's document pieces begin at `doc_starts[doc_start_offsets[i]:doc_start_offsets[i + 1]]` (rising, the first is
    0), and its first `lengths[i]` tokens are text (None: all are). `scratch` is a directory on the same disk; `layout`
    comes from `page_and_header`, one for the whole set; `columns` names the column layout. Equal rows give equal bytes.
    Raises EnvironmentFailure (disk, missing mindspore), ConfigError (unusable name), ValueError.
    """
    _check_rows(rows, doc_starts, doc_start_offsets)
    _check_name(final.name)
    texts = np.full(len(rows), rows.shape[1], np.int32) if lengths is None else lengths
    _check_lengths(texts, rows.shape, doc_starts, doc_start_offsets)
    packed = Rows(rows, texts, doc_starts, doc_start_offsets)
    with _private_directory(final, scratch) as directory:
        draft = directory / final.name
        with _writer_errors(final, directory):
            fault = _direct_fault(scratch, columns, rows.shape[1])
            write = _write_public if fault else _write_direct
            write(draft, packed, layout, columns, _block_rows(_schema(columns, rows.shape[1])))
        _check_written(draft, packed, columns)
        return _move_into_place(draft, final, len(rows), f"public: {fault}" if fault else "direct")


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


def _check_lengths(
    lengths: npt.NDArray[np.int32],
    shape: tuple[int, ...],
    doc_starts: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
) -> None:
    if lengths.dtype != np.int32 or lengths.shape != shape[:1] or lengths.max() > shape[1]:
        raise ValueError(f"lengths must be int32 [{shape[0]}], none above {shape[1]}")
    if (doc_starts[offsets[1:] - 1] >= lengths).any():
        raise ValueError("doc_starts of a row must stay within its text")


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


def _schema(columns: LayoutName, row_length: int) -> Schema:
    lengths = column_lengths(columns, row_length)
    return {name: {"type": DTYPE, "shape": [length]} for name, length in lengths.items()}


def _file_writer(path: Path, layout: Layout, columns: LayoutName, schema: Schema) -> Any:
    if _IMPORT_FAULT is not None:
        raise EnvironmentFailure(
            f"cannot import mindspore: {_IMPORT_FAULT}", mend="pip install 'mindspore==2.9.0' 'numpy<2'"
        )
    writer = FileWriter(str(path), shard_num=1)
    writer.set_header_size(layout.header_size)
    writer.set_page_size(layout.page_size)
    writer.add_schema(dict(schema), f"{columns} rows: {', '.join(schema)}")
    return writer


def _block_rows(schema: Schema) -> int:
    lengths: list[int] = [column["shape"][0] for column in schema.values() if column["shape"][0] != ANY]
    return max(_MIN_BLOCK // len(lengths), _BLOCK_VALUES // sum(lengths))


def _blocks(rows: Rows, columns: LayoutName, block: int) -> Iterator[Columns]:
    for first in range(0, len(rows.tokens), block):
        yield lay_out(columns, rows.block(first, min(first + block, len(rows.tokens))))


def _write_public(draft: Path, rows: Rows, layout: Layout, columns: LayoutName, block: int) -> None:
    writer = _file_writer(draft, layout, columns, _schema(columns, rows.tokens.shape[1]))
    for made in _blocks(rows, columns, block):
        writer.write_raw_data([dict(zip(made, row, strict=True)) for row in zip(*made.values(), strict=True)])
    writer.commit()


def _write_direct(draft: Path, rows: Rows, layout: Layout, columns: LayoutName, block: int) -> None:
    """What the public way comes to, without a look at each row, and with the rows encoded already."""
    schema = _schema(columns, rows.tokens.shape[1])
    writer = _file_writer(draft, layout, columns, as_bytes(schema))
    inner = writer._writer
    inner.open(writer._paths, False)
    inner.set_shard_header(writer._header)
    saved = 0
    for made in _blocks(rows, columns, block):
        encoded, less = encode_rows(made, writer._header.blob_fields)
        saved += less
        if inner._writer.write_raw_data({}, encoded, False, False) != SUCCESS:
            raise RuntimeError("mindspore refused the rows")
    writer.commit()
    declare(draft, schema, layout.header_size, saved)


@lru_cache(maxsize=4)
def _direct_fault(scratch: Path, columns: LayoutName, row_length: int) -> str | None:
    """Why this process must not write rows of this schema directly, None if it may.

    The direct way leans on attributes and a format that mindspore does not promise to keep, so it has to prove itself:
    some rows in two blocks and, if they are not very short, several pages must give the same two files both ways.
    """
    page = max(_MIN_PAGE, 1 << largest_row(row_length, columns).bit_length())
    count = min(_MIN_BLOCK, 8 + 3 * page // row_length)
    tokens = np.resize(np.array(_EDGES, np.int32), (count, row_length))
    # Two documents in every row but the last, and padding behind every third.
    starts = np.tile(np.array([0, row_length // 2], np.int32), count)[:-1]
    lengths = np.where(np.arange(count) % 3, row_length, row_length // 2 + 1).astype(np.int32)
    rows = Rows(tokens, lengths, starts, np.append(np.arange(count) * 2, 2 * count - 1))

    def write(draft: Path, how: _Write) -> Path:
        draft.parent.mkdir()
        how(draft, rows, Layout(page, _PROBE_HEADER), columns, count // 2 + 1)
        return draft

    with tempfile.TemporaryDirectory(prefix="probe-", dir=scratch) as folder:
        public = write(Path(folder) / "public" / "probe.mindrecord", _write_public)
        # Whatever goes wrong here, the public way has just worked.
        try:
            direct = write(Path(folder) / "direct" / "probe.mindrecord", _write_direct)
        except Exception as error:
            return f"the direct way failed: {type(error).__name__} {error}"
        pairs = ((public, direct), (index_path(public), index_path(direct)))
        same = all(filecmp.cmp(*pair, shallow=False) for pair in pairs)
    return None if same else "the direct way wrote other bytes"


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


def _check_written(draft: Path, rows: Rows, columns: LayoutName) -> None:
    # mindspore drops rows it dislikes with only a warning, and does not look at short writes.
    count = len(rows.tokens)
    probes = sorted({0, count // 2, count - 1})
    try:
        written = check_framing(draft)
        found = read_rows(draft, probes) if written == count else []
    except PipelineError as error:
        raise _failure(draft, draft.parent, f"the shard was not written whole: {error.what}") from error
    if written != count:
        raise _failure(draft, draft.parent, f"the shard holds {written} of {count} rows")
    for probe, row in zip(probes, found, strict=True):
        wanted = lay_out(columns, rows.block(probe, probe + 1))
        if set(row) != set(wanted) or not all(np.array_equal(row[name], wanted[name][0]) for name in wanted):
            raise _failure(draft, draft.parent, f"row {probe} reads back differently")


def _move_into_place(draft: Path, final: Path, rows: int, writer: str) -> ShardFiles:
    database, final_database = index_path(draft), index_path(final)
    with disk_errors(final):
        draft.chmod(0o644)
        database.chmod(0o644)
        sizes = draft.stat().st_size, database.stat().st_size
        files = ShardFiles(final, sizes[0], hash_file(draft), sizes[1], hash_file(database), rows, writer)
        # Whatever stops us between the renames leaves a file without its index, which nothing takes for a shard.
        final_database.unlink(missing_ok=True)
        sync_directory(final.parent)
        commit(draft, final)
        commit(database, final_database)
    return files
