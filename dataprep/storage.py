"""Files: durable atomic writes, hashes, and disk errors turned into one clear line."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import xxhash

from dataprep.errors import EnvironmentFailure

_MENDS = {
    errno.ENOSPC: "free space on this disk or choose another path, then run again to resume",
    errno.EDQUOT: "free quota on this disk or choose another path, then run again to resume",
    errno.EACCES: "grant permission or choose another path",
    errno.EPERM: "grant permission or choose another path",
    errno.EROFS: "choose a path on a writable disk",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path: a parent of it is a file",
    errno.EMFILE: "raise the open-file limit (ulimit -n)",
}


@contextmanager
def disk_errors(path: Path | str) -> Iterator[None]:
    """Turn an OSError on `path` into an EnvironmentFailure that names the file and the mend."""
    try:
        yield
    except OSError as error:
        where = str(error.filename or path)
        what = error.strerror or str(error)
        raise EnvironmentFailure(what, where=where, mend=_MENDS.get(error.errno or 0)) from error


@contextmanager
def atomic_path(final: Path) -> Iterator[Path]:
    """Yield a temporary path beside `final`; on success it is synced and renamed to `final`, on failure removed."""
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    with disk_errors(final):
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            commit(temporary, final)
        finally:
            temporary.unlink(missing_ok=True)


def commit(temporary: Path, final: Path) -> None:
    """Make `temporary` durable and rename it to `final` (same file system)."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.rename(final)
    sync_directory(final.parent)


def sync_directory(directory: Path) -> None:
    """Make renames inside `directory` durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(final: Path, data: bytes) -> None:
    """Write a small file atomically."""
    with atomic_path(final) as temporary:
        temporary.write_bytes(data)


def write_json(final: Path, value: object) -> None:
    """Write indented JSON atomically, keys in the order given."""
    write_bytes(final, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())


def canonical_json(value: object) -> bytes:
    """The one serialisation that hashes are taken over: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def hash_value(value: object) -> str:
    """xxh3-128 (hex) of a JSON value's canonical form."""
    return xxhash.xxh3_128_hexdigest(canonical_json(value))


def hash_file(path: Path) -> str:
    """xxh3-128 (hex) of a file's bytes."""
    digest = xxhash.xxh3_128()
    with disk_errors(path), path.open("rb", buffering=0) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
