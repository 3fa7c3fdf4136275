"""Standard output and error that may be closed, full, gone, or unable to spell a character."""

from __future__ import annotations

import codecs
import io
import json
import os
import select
import signal
import sys
from typing import Any, NoReturn, TextIO

from dataprep.errors import EnvironmentFailure

_ENDED_BY_SIGPIPE = 128 + signal.SIGPIPE


class _Descriptor(io.FileIO):
    """A file descriptor that others have opened: it stays open, and where it does not block it is waited for."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)

    def put(self, data: Any) -> int:
        """Write some of the bytes; how many."""
        while (written := super().write(data)) is None:
            select.select([], [self.fileno()], [])
        return written


class _Output(_Descriptor):
    """What a command is asked for: it fails if it cannot be written, and ends as usual when its reader has left."""

    _lost = False

    def write(self, data: Any) -> int:
        """Write; raises EnvironmentFailure once, then drops what the buffers still hold."""
        if self._lost:
            return memoryview(data).nbytes
        try:
            return self.put(data)
        except BrokenPipeError:
            _end_by_sigpipe()
        except OSError as error:
            self._lost = True
            what = f"cannot be written: {error.strerror}"
            raise EnvironmentFailure(what, where="standard output", mend="send it elsewhere") from error


class _Messages(_Descriptor):
    """What is told on the way: a run of days does not die of a log that is full or that nobody reads any more."""

    def write(self, data: Any) -> int:
        """Write, or drop what cannot be written."""
        try:
            return self.put(data)
        except OSError:
            return memoryview(data).nbytes


def take_over() -> None:
    """Give this process a standard output and error of the kinds above, whatever it was started with.

    A closed one is opened on the null device, so that no file of ours becomes what libraries print to.
    """
    if sys.stdin is None:
        _null(os.O_RDONLY)
    # Writing to what is open for reading fails, as it should for output that goes nowhere.
    output = _Output(_null(os.O_RDONLY) if sys.stdout is None else sys.stdout.fileno())
    messages = _Messages(_null(os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno())
    sys.stdout, sys.stderr = _text(output, sys.stdout), _text(messages, sys.stderr)


def json_text(value: object, stream: TextIO, indent: int | None = None) -> str:
    """JSON that `stream` can spell: beyond ASCII only where its encoding holds all of Unicode."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    whole = codecs.lookup(encoding).name.startswith("utf")
    return json.dumps(value, ensure_ascii=not whole, indent=indent)


def _null(flags: int) -> int:
    number = os.open(os.devnull, flags)
    os.set_inheritable(number, True)
    return number


def _text(descriptor: _Descriptor, before: TextIO | None) -> TextIO:
    # A character that the encoding lacks shows as an escape.
    return io.TextIOWrapper(
        io.BufferedWriter(descriptor),
        encoding=before.encoding if before else "utf-8",
        errors="backslashreplace",
        line_buffering=before is None or bool(getattr(before, "line_buffering", False)),
    )


def _end_by_sigpipe() -> NoReturn:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
    # The first process of a container does not die of its own signals.
    os._exit(_ENDED_BY_SIGPIPE)
