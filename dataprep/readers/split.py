"""Cut the inputs of a run into splits, the same ones for any order of inputs, paths and directory entries."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from dataprep.errors import ConfigError, ConfigErrors
from dataprep.readers.formats import file_kind
from dataprep.readers.inputs import FileRange, Input, Split
from dataprep.readers.parquet import row_group_bytes
from dataprep.readers.paths import absolute, chosen, literal_path, matched, pattern_of, shown
from dataprep.storage import disk_errors


@dataclass(frozen=True, slots=True)
class _File:
    source: str
    planned: FileRange
    entry: Input  # with its source label filled in
    index: int  # of the input


@dataclass(frozen=True, slots=True)
class _Part:
    """A range of a file, and the bytes it stands for."""

    file: _File
    planned: FileRange
    size: int


def plan_splits(
    inputs: Sequence[Input],
    base: Path,
    *,
    split_bytes: int,
    limit: int | None,
    leave_out: Callable[[str], bool] | None = None,
) -> tuple[Split, ...]:
    """Find the files of all inputs and cut them into splits of about `split_bytes` of file.

    Plain JSONL and plain text by lines are cut into byte ranges, Parquet into row groups; small files of one input
    share a split; compressed files stay whole. With `limit`, each input (each default
    label of its paths) is one split of at most that many records.
    Files whose path without links `leave_out` is true of are passed over. Raises ConfigErrors for the paths that match
    nothing, ConfigError for a file nobody can read and a file two inputs read alike.
    """
    base = absolute(base)
    files: list[_File] = []
    faults: list[ConfigError] = []
    for index, entry in enumerate(inputs):
        try:
            files += _files(index, entry, base, leave_out)
        except ConfigError as error:
            faults.append(error)
    if faults:
        raise ConfigErrors(faults) if len(faults) > 1 else faults[0]
    files.sort(key=lambda file: (file.source, file.planned.name))
    _refuse_doubles(files)
    if limit is not None:
        files.sort(key=lambda file: file.source)
        groups: Iterable[list[_Part]] = _whole_inputs(files)
    else:
        parts = (part for file in files for part in _cut(file, split_bytes))
        groups = _bundles(parts, split_bytes)
    return tuple(_numbered(groups, limit))


def _files(index: int, entry: Input, base: Path, leave_out: Callable[[str], bool] | None) -> list[_File]:
    """The files of one input; one that several of its paths match, or several links lead to, comes once."""
    found: dict[str, tuple[str, str, str]] = {}
    for path in (entry.path,) if isinstance(entry.path, str) else entry.path:
        for candidate in _candidates(index, entry, path, base):
            real = os.path.realpath(candidate[2])
            if leave_out is not None and leave_out(real):
                continue
            found[real] = min(found.get(real, candidate), candidate)
    return [_File(label, _stat(path, name), _labelled(entry, label), index) for label, name, path in found.values()]


def _candidates(index: int, entry: Input, path: str, base: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (label, name, path) of each file a path of an input means."""
    where = f"inputs[{index}].path"
    try:
        pattern = pattern_of(path, base)
    except ConfigError as error:
        raise ConfigError(error.what, where=where, mend=error.mend) from error
    every = list(matched(pattern))
    if not every:
        what = "has no files in it" if literal_path(path, base).is_dir() else "matches no file"
        mend = f"check the path; it is relative to {shown(str(base))}"
        raise ConfigError(f"{shown(path)} {what}", where=where, mend=mend)
    kept = [relative for relative in every if chosen(relative, entry.include, entry.exclude)]
    if not kept:
        what = f"include and exclude leave none of the {len(every)} files of {shown(path)}"
        raise ConfigError(what, where=where, mend="check the globs; they are relative to path")
    for relative in kept:
        full = f"{pattern.root.rstrip('/')}/{relative}"
        _refuse_bytes(full)
        yield entry.source or pattern.label, _name(full, base), full


def _refuse_bytes(full: str) -> None:
    try:
        full.encode()
    except UnicodeEncodeError as error:
        # It could stand neither in an origin nor in the manifest, which are UTF-8.
        raise ConfigError("the path is not valid UTF-8", where=shown(full), mend="rename it") from error


def _name(full: str, base: Path) -> str:
    path = Path(full)
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else path.as_posix()


def _labelled(entry: Input, label: str) -> Input:
    """The input with its label, its lists in one order, for they have none that matters."""
    lists = {"include": tuple(sorted(entry.include)), "exclude": tuple(sorted(entry.exclude))}
    path = entry.path if isinstance(entry.path, str) else tuple(sorted(entry.path))
    return entry.model_copy(update={"source": label, "path": path, **lists})


def _stat(path: str, name: str) -> FileRange:
    with disk_errors(path):
        status = Path(path).stat()
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError("not a regular file", where=name, mend="`exclude:` it")
    return FileRange(path, name, status.st_size, status.st_mtime_ns)


def _refuse_doubles(files: Sequence[_File]) -> None:
    seen: dict[tuple[str, str], _File] = {}
    for file in files:
        file_kind(file.planned.name, file.entry)
        other = seen.setdefault((file.source, os.path.realpath(file.planned.path)), file)
        if other is file:
            continue
        first, second = sorted((other.index, file.index))
        what = f"inputs[{first}] and inputs[{second}] both read it as source {file.source}"
        raise ConfigError(what, where=file.planned.name, mend="exclude it from one, or give them different sources")


def _cut(file: _File, split_bytes: int) -> Iterator[_Part]:
    planned = file.planned
    format_, compression = file_kind(planned.name, file.entry)
    by_lines = format_ == "jsonl" or (format_ == "text" and file.entry.unit == "line")
    if planned.size <= split_bytes or not (format_ == "parquet" or (by_lines and compression == "none")):
        yield _Part(file, planned, planned.size)
    elif by_lines:
        yield from _byte_ranges(file, split_bytes)
    else:
        yield from _row_groups(file, split_bytes)


def _byte_ranges(file: _File, split_bytes: int) -> Iterator[_Part]:
    size = file.planned.size
    pieces = -(-size // split_bytes)
    borders = [size * piece // pieces for piece in range(pieces + 1)]
    for start, end in pairwise(borders):
        yield _Part(file, _range(file.planned, start, None if end == size else end), end - start)


def _row_groups(file: _File, split_bytes: int) -> Iterator[_Part]:
    sizes = row_group_bytes(file.planned.path)
    if not sizes:
        yield _Part(file, file.planned, file.planned.size)
        return
    start, total = 0, 0
    for group, size in enumerate(sizes):
        if group > start and total + size > split_bytes:
            yield _Part(file, _range(file.planned, start, group), total)
            start, total = group, 0
        total += size
    yield _Part(file, _range(file.planned, start, None), total)


def _range(planned: FileRange, start: int, end: int | None) -> FileRange:
    return FileRange(planned.path, planned.name, planned.size, planned.mtime_ns, start, end)


def _bundles(parts: Iterable[_Part], split_bytes: int) -> Iterator[list[_Part]]:
    bundle: list[_Part] = []
    size = 0
    for part in parts:
        fits = bundle and bundle[-1].file.entry == part.file.entry and size + part.size <= split_bytes
        if bundle and not fits:
            yield bundle
            bundle, size = [], 0
        bundle.append(part)
        size += part.size
    if bundle:
        yield bundle


def _whole_inputs(files: Sequence[_File]) -> Iterator[list[_Part]]:
    """One list a source of an input, in the order of their first files."""
    groups: dict[tuple[str, int], list[_Part]] = {}
    for file in files:
        groups.setdefault((file.source, file.index), []).append(_Part(file, file.planned, file.planned.size))
    yield from groups.values()


def _numbered(groups: Iterable[list[_Part]], limit: int | None) -> Iterator[Split]:
    for source, same_source in groupby(groups, lambda parts: parts[0].file.source):
        for number, parts in enumerate(same_source):
            ranges = tuple(part.planned for part in parts)
            size = sum(part.size for part in parts)
            yield Split(f"{source}/{number:06d}", parts[0].file.entry, ranges, size, limit)
