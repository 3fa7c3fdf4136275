"""Opening planned files: they must be as they were when the run was planned."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dataprep.errors import EnvironmentFailure
from dataprep.readers.inputs import FileRange
from dataprep.readers.streams import CHUNK_BYTES
from dataprep.storage import disk_errors


@contextmanager
def opened(planned: FileRange) -> Iterator[BinaryIO]:
    """Open a planned file for reading and check, before and after, that it is still the same.

    Raises EnvironmentFailure if the file is missing, unreadable or changed.
    """
    path = Path(planned.path)
    with disk_errors(path):
        # Unbuffered, as every read here is a large one; closed by the with statement below.
        file = path.open("rb", buffering=0)
    with file:
        _check(planned, os.fstat(file.fileno()))
        yield file
        with disk_errors(path):
            after = path.stat()
        _check(planned, after)


def _check(planned: FileRange, now: os.stat_result) -> None:
    if (now.st_size, now.st_mtime_ns) == (planned.size, planned.mtime_ns):
        return
    mend = "run again when nothing writes to it any more"
    raise EnvironmentFailure("the file changed while the run was reading it", where=planned.path, mend=mend)


def seek_line(file: BinaryIO, start: int, end: int | None) -> int:
    """Move to the first line that begins at or behind `start`, and return its offset.

    Where there is none before `end`, the offset is `end` or more.
    """
    if start == 0:
        return 0
    with disk_errors(str(file.name)):
        file.seek(start - 1)
        position = start - 1
        while (end is None or position < end) and (chunk := file.read(CHUNK_BYTES)):
            feed = chunk.find(b"\n")
            if feed >= 0:
                return file.seek(position + feed + 1)
            position += len(chunk)
    return position
