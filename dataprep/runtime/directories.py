"""Where a run keeps its files: the work directory, which may be deleted afterwards, and the output directory."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import xxhash

from dataprep.errors import ConfigError, EnvironmentFailure, PipelineError
from dataprep.shards.manifest import FILE_NAME, load_manifest
from dataprep.storage import disk_errors, write_bytes

# What a run may write into its output directory besides shards; stale files there belong to an earlier run of it.
_TABLES = ("documents", "dropped", "quarantine")
_WORK = ("ledger", "parts", "removals", "tokenizer", "distrusted")
_FILES = (FILE_NAME, "inputs.parquet", "tokenizer.json", "tokenizer.model")
_PLACE = r"\d{5,}-of-\d{5,}"
# Says that a run has taken the directory: what it is about to write or clear there is no stranger's.
_MARKER = ".dataprep"
# What lies in a marked folder: a shard set, that of a split, or sets in folders below. The first line of its mark; the
# others are the names of the pipelines that wrote it. An empty mark stands for a set.
_SET, _SPLIT, _SPLITS = "set", "split", "splits"
# As storage.atomic_path names them: the final name and the writer's process id.
_LEFTOVER = re.compile(r"\..+\.\d+\.tmp")


@dataclass(frozen=True, slots=True)
class RunPaths:
    """All paths of one run. With `splits`, shard sets lie in folders of these names below `output`, else in it."""

    work: Path
    output: Path
    name: str
    splits: tuple[str, ...] = ()

    @property
    def sets(self) -> tuple[RunPaths, ...]:
        """The paths of each shard set."""
        return tuple(self.of_split(split) for split in self.splits) or (self,)

    @property
    def ledger(self) -> Path:
        """Committed task records."""
        return self.work / "ledger"

    @property
    def distrusted(self) -> Path:
        """Findings against engines."""
        return self.work / "distrusted"

    @property
    def scratch(self) -> Path:
        """Half-written shards; on the output's disk, so that finishing one is a rename."""
        return self.output / ".scratch"

    @property
    def manifest(self) -> Path:
        """The file whose presence makes the shard set finished."""
        return self.output / FILE_NAME

    def of_split(self, split: str) -> RunPaths:
        """The paths of one split's shard set."""
        return replace(self, output=self.output / split, splits=())

    def taken(self) -> bool:
        """Whether a run has been here, so that what it owns is its own work."""
        return (self.output / _MARKER).exists() or self.manifest.exists()

    def former(self) -> list[RunPaths]:
        """Shard sets that runs with other splits, or with none, have begun or finished in `output` or right below."""
        marks = [path.parent for path in sorted(self.output.glob(f"*/{_MARKER}"))]
        folders = [folder.name for folder in marks if _mark_of(folder)[0] == _SPLIT]
        sets = [self.of_split(name) for name in folders if name not in self.splits]
        whole = self.splits and (self.output / _MARKER).exists() and _mark_of(self.output)[0] == _SET
        return [replace(self, splits=()), *sets] if whole else sets

    def take(self) -> None:
        """Mark the folders of the shard sets as written by this run from now on; clear former ones first."""
        for folder, kind in self._kinds().items():
            names = dict.fromkeys([*_mark_of(folder)[1], self.name])
            with disk_errors(folder):
                write_bytes(folder / _MARKER, "\n".join([kind, *names, ""]).encode())

    def _kinds(self) -> dict[Path, str]:
        """What this run makes of the folders it writes."""
        return {self.output: _SPLITS} | {each.output: _SPLIT if self.splits else _SET for each in self.sets}

    def names(self) -> list[str]:
        """Names of all pipelines that have written into the output folder."""
        return list(dict.fromkeys([*_mark_of(self.output)[1], self.name]))

    def part_stem(self, task_id: str) -> Path:
        """Stem of the part files of one prepare task."""
        return self.work / "parts" / task_id

    def removals(self, task_id: str) -> Path:
        """Removal list of one dedup task."""
        return self.work / "removals" / f"{task_id}.arrow"

    def tokenizer(self, task_id: str) -> Path:
        """The settled tokenizer.json."""
        return self.work / "tokenizer" / f"{task_id}.json"

    def dropped(self, stem: str) -> Path:
        """Dropped documents of one task."""
        return self.output / "dropped" / f"{stem}.parquet"

    def quarantine(self, stem: str) -> Path:
        """Quarantined records of one task."""
        return self.output / "quarantine" / f"{stem}.parquet"

    def shard(self, number: int, count: int) -> Path:
        """One shard file."""
        return self.output / f"{self.name}-{number:05d}-of-{count:05d}.mindrecord"

    def documents(self, number: int, count: int) -> Path:
        """The document index of one shard."""
        return self.output / "documents" / f"{self.name}-{number:05d}-of-{count:05d}.parquet"


def _mark_of(folder: Path) -> tuple[str, list[str]]:
    """What lies in a folder by its mark, and the names of the pipelines that wrote it; without one, a set by nobody."""
    path = folder / _MARKER
    if not path.exists():
        return _SET, []
    with disk_errors(path):
        kind, *names = path.read_bytes().decode(errors="replace").splitlines() or [_SET]
    return kind, names


def file_stem(key: str) -> str:
    """A key such as `web/000012` as part of a file name, unique also where it had to be changed or cut."""
    if re.fullmatch(r"[\w.-]{1,40}/[0-9]{1,16}", key):
        return key.replace("/", "-")
    # No plain key holds a tilde, so that a changed one never meets it.
    safe = re.sub(r"[^\w.-]", "_", key[:40])
    return f"{safe}~{xxhash.xxh3_64_hexdigest(key.encode())}"


@contextmanager
def locked(paths: RunPaths) -> Iterator[None]:
    """Create the directories and hold them for this process alone; the locks die with it."""
    kinds = paths._kinds()
    descriptors = []
    try:
        for directory in dict.fromkeys((paths.work, *kinds)):
            with disk_errors(directory):
                directory.mkdir(parents=True, exist_ok=True)
                descriptors.append(os.open(directory, os.O_RDONLY))
                _lock(descriptors[-1], directory)
                if not (directory / _MARKER).exists():
                    (directory / _MARKER).write_text(f"{kinds[directory]}\n" if directory in kinds else "")
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise EnvironmentFailure(
            "another run is using this directory", where=str(directory), mend="wait for it or choose another directory"
        ) from error


def owned_by(paths: RunPaths, *, marked: bool = False) -> Callable[[str], bool]:
    """A function that tells of a path without links (`os.path.realpath`) whether a run writes it, or clears it away.

    `marked`: only in folders that a run has taken, by their marks.
    """
    sets = [each for each in (*paths.sets, *paths.former()) if not marked or each.taken()]
    outputs = {os.path.realpath(each.output): each.names() for each in sets}
    work = os.path.realpath(paths.work)
    taken = [work] if not marked or (paths.work / _MARKER).exists() else []
    files = {f"{output}/{name}" for output in outputs for name in _FILES}
    files |= {f"{folder}/{_MARKER}" for folder in (os.path.realpath(paths.output), work, *outputs)}
    scratch = [f"{output}/{paths.scratch.name}/" for output in sorted(outputs)]
    folders = (*scratch, *(f"{folder}/{name}/" for folder in taken for name in _WORK))
    shards = {output: _any(map(_shard_name, names)) for output, names in outputs.items()}
    tables = {
        f"{output}/{name}": _any(map(_table_name, names)) for output, names in outputs.items() for name in _TABLES
    }

    def owns(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if path in files or path.startswith(folders):
            return True
        return any(folder in known and known[folder](name) for known in (shards, tables))

    return owns


def _any(patterns: Iterable[re.Pattern[str]]) -> Callable[[str], bool]:
    every = list(patterns)
    return lambda name: any(pattern.fullmatch(name) for pattern in every)


def refuse_strangers(paths: RunPaths) -> None:
    """Raise ConfigError if a run would write over, or clear away, what no run has put there."""
    outputs = [each.output for each in paths.sets]
    for directory, names in (*((output, _FILES) for output in outputs), (paths.work, _WORK)):
        marked = (directory / _MARKER).exists() and _mark_of(directory)[0] != _SPLITS
        if marked or (directory != paths.work and _is_manifest(directory)):
            continue
        found = [name for name in names if os.path.lexists(directory / name)]
        if found:
            what = f"holds {', '.join(found)}, which no run of this tool has put there and a run would replace"
            raise ConfigError(what, where=str(directory), mend="choose another folder, an empty one is best")


def _is_manifest(directory: Path) -> bool:
    try:
        return bool(load_manifest(directory))
    except PipelineError:
        return False


def clear_leftovers(paths: RunPaths) -> None:
    """Remove what killed tasks left half-written, where a run writes and nowhere else. Only under the lock."""
    outputs = [each.output for each in paths.sets]
    written = [*outputs, *(output / name for output in outputs for name in _TABLES)]
    written += [directory for name in _WORK for directory in (paths.work / name, *(paths.work / name).glob("*/"))]
    with disk_errors(paths.work):
        for leftover in (file for directory in written for file in sorted(directory.glob(".*.tmp"))):
            if _LEFTOVER.fullmatch(leftover.name):
                leftover.unlink()
        _clear_scratch(paths.sets)


def _clear_scratch(sets: Sequence[RunPaths]) -> None:
    for paths in sets:
        if paths.scratch.exists():
            shutil.rmtree(paths.scratch)


def clear_former(paths: RunPaths) -> None:
    """Remove the shard sets of earlier runs with other splits, manifest first, mark last."""
    for former in paths.former():
        with disk_errors(former.output):
            for name in _FILES:
                (former.output / name).unlink(missing_ok=True)
            clear_stale(former, set())
            if former.output != paths.output:
                (former.output / _MARKER).unlink(missing_ok=True)


def clear_work(paths: RunPaths) -> None:
    """Forget everything an earlier run has finished."""
    with disk_errors(paths.work):
        for name in _WORK:
            if (paths.work / name).exists():
                shutil.rmtree(paths.work / name)


def _shard_name(name: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(name)}-{_PLACE}\.mindrecord(\.db)?")


def _table_name(name: str) -> re.Pattern[str]:
    return re.compile(rf"({re.escape(name)}-{_PLACE}|prepare-.+|emit-{_PLACE})\.parquet")


def clear_stale(paths: RunPaths, listed: set[str]) -> None:
    """Remove the shards and tables that earlier runs left in this set's folder and the manifest does not list."""
    is_shard, is_table = (_any(map(pattern, paths.names())) for pattern in (_shard_name, _table_name))
    with disk_errors(paths.output):
        ours = [path for path in sorted(paths.output.glob("*")) if is_shard(path.name)]
        for name in _TABLES:
            ours += [path for path in sorted((paths.output / name).glob("*")) if is_table(path.name)]
        for path in ours:
            if path.relative_to(paths.output).as_posix() not in listed:
                path.unlink()
        _clear_scratch((paths,))
