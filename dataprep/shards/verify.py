"""Verify a shard set against its manifest: sums, files, counts, rows and round trips; every fault is a finding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import RenderableType
from rich.text import Text

from dataprep.errors import DamageError, EnvironmentFailure
from dataprep.shards.contents import Finding, Sample, check_contents
from dataprep.shards.documents import PARQUET_FAULTS
from dataprep.shards.lost import check_lost
from dataprep.shards.manifest import FILE_NAME, Manifest, imbalances, load_manifest
from dataprep.shards.records import db_row_count, row_count
from dataprep.storage import hash_file
from dataprep.tables import Column, FittedTable
from dataprep.wording import counted

_THREADS = 4


@dataclass(frozen=True, slots=True)
class _Listed:
    path: str
    bytes: int
    xxh3: str


def verify(
    directory: Path, *, rows: int = 100, documents: int = 100, quick: bool = False, seed: int = 0
) -> list[Finding]:
    """Check a finished shard set and return all faults found; an empty list means that it is as its manifest says.

    Always: the manifest's hash and sums, every file's size, rows by .mindrecord, .db and manifest, stray shards. Unless
    `quick`: every file's hash, the tables of what was lost against the ledger, the document indexes, `rows` sampled
    rows and the round trip of `documents` sampled documents to the hash of their text; `unproved` says for which that
    cannot be done. Raises ConfigError if the set is unfinished; damage is never raised.
    """
    try:
        manifest = load_manifest(directory)
    except (DamageError, EnvironmentFailure) as error:
        return [Finding(FILE_NAME, error.what)]
    findings = [Finding(FILE_NAME, what) for what in imbalances(manifest)]
    bad_files = list(_check_files(directory, manifest, quick))
    findings += bad_files
    damaged = {finding.file for finding in bad_files}
    findings += _check_counts(directory, manifest, damaged)
    unusable = {finding.file for finding in findings}
    findings += _stray_shards(directory, manifest)
    if not quick:
        findings += [Finding(file, what) for file, what in check_lost(directory, manifest, unusable)]
        findings += check_contents(directory, manifest, damaged, Sample(rows, documents, seed))
    return findings


def unproved(directory: Path) -> list[str]:
    """What `verify` cannot prove of a set with a sound manifest, and why."""
    try:
        manifest = load_manifest(directory)
    except (DamageError, EnvironmentFailure):
        return []
    notes = []
    if manifest.tokenizer.inexact:
        notes.append(
            f"texts of {counted(manifest.tokenizer.inexact, 'document')} are not compared: "
            "the tokenizer changes what it reads"
        )
    if manifest.totals.truncated:
        notes.append(
            f"texts of documents cut down to a row are not compared: {manifest.totals.truncated:,} tokens are missing"
        )
    return notes


def checked_text(directory: Path, *, rows: int = 100, documents: int = 100, quick: bool = False) -> str:
    """What `verify` with these arguments has checked in a set without faults: `4 shards, all hashes, …`."""
    manifest = load_manifest(directory)
    totals = manifest.totals
    shards = counted(len(manifest.shards), "shard") if manifest.shards else "the set holds no rows"
    if quick:
        return f"{shards}, all sizes and row counts; no hashes, nothing decoded"
    samples = ((rows, totals.rows, "row"), (documents, totals.documents, "document"))
    decoded = [f"{min(wanted, total):,} of {counted(total, thing)}" for wanted, total, thing in samples if total]
    return f"{shards}, all hashes" + (f", {' and '.join(decoded)} decoded" if decoded else "")


def render_findings(findings: Sequence[Finding], checked: Callable[[], str]) -> RenderableType:
    """A table of findings, or one line saying that there are none and what was `checked`."""
    if not findings:
        return Text(f"No damage found: {checked()}.")
    rows = [(finding.file, finding.what) for finding in findings]
    return FittedTable((Column("file"), Column("damage")), rows)


def _listed_files(manifest: Manifest) -> Iterator[_Listed]:
    for shard in manifest.shards:
        yield _Listed(shard.file, shard.bytes, shard.xxh3)
        yield _Listed(shard.db, shard.db_bytes, shard.db_xxh3)
        yield _Listed(shard.documents_file, shard.documents_bytes, shard.documents_xxh3)
    for file in manifest.files:
        yield _Listed(file.path, file.bytes, file.xxh3)


def _check_files(directory: Path, manifest: Manifest, quick: bool) -> Iterator[Finding]:
    def check(listed: _Listed) -> Finding | None:
        what = _file_fault(directory / listed.path, listed, quick)
        return Finding(listed.path, what) if what else None

    # Hashing lets go of the interpreter's lock, so threads overlap disk and processor.
    with ThreadPoolExecutor(_THREADS) as threads:
        yield from (finding for finding in threads.map(check, _listed_files(manifest)) if finding)


def _file_fault(path: Path, listed: _Listed, quick: bool) -> str | None:
    try:
        size = path.stat().st_size
        if size != listed.bytes:
            return f"is {size} bytes, the manifest says {listed.bytes}"
        if not quick and hash_file(path) != listed.xxh3:
            return "content does not match the hash in the manifest"
    except FileNotFoundError:
        return "missing"
    except (OSError, EnvironmentFailure) as error:
        return f"cannot be read: {error}"
    return None


def _check_counts(directory: Path, manifest: Manifest, damaged: set[str]) -> Iterator[Finding]:
    counters: list[tuple[str, int, Callable[[], int]]] = []
    for shard in manifest.shards:
        path = directory / shard.file
        counters.append((shard.file, shard.rows, partial(row_count, path)))
        counters.append((shard.db, shard.rows, partial(db_row_count, path)))
        counters.append(
            (shard.documents_file, shard.documents, partial(_parquet_rows, directory / shard.documents_file))
        )
    for file in manifest.files:
        if file.rows is not None:
            counters.append((file.path, file.rows, partial(_parquet_rows, directory / file.path)))
    for name, expected, count in counters:
        what = None if name in damaged else _count_fault(expected, count)
        if what:
            yield Finding(name, what)


def _count_fault(expected: int, count: Callable[[], int]) -> str | None:
    try:
        found = count()
    except (DamageError, EnvironmentFailure) as error:
        return error.what
    return None if found == expected else f"holds {found} rows, the manifest says {expected}"


def _parquet_rows(path: Path) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except PARQUET_FAULTS as error:
        raise DamageError(f"cannot be read as Parquet: {error}", where=str(path)) from error


def _stray_shards(directory: Path, manifest: Manifest) -> Iterator[Finding]:
    listed = {listed.path for listed in _listed_files(manifest)}
    pattern = re.compile(re.escape(manifest.name) + r"-\d+-of-\d+\.(mindrecord(\.db)?|parquet)")
    folders = sorted({str(Path(path).parent) for path in listed} | {"."})
    for folder in folders:
        for path in sorted((directory / folder).glob("*")):
            name = path.relative_to(directory).as_posix()
            if pattern.fullmatch(path.name) and name not in listed:
                yield Finding(name, "not in the manifest: a stale shard of another run")
