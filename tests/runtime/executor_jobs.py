"""Jobs small enough to watch an executor by. Workers import this module by name."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from dataprep.errors import BadDataError
from dataprep.runtime.ledger import Tally
from dataprep.runtime.task import Outcome


@dataclass(frozen=True)
class Write:
    """Writes a file and counts it."""

    path: Path
    text: str

    def run(self) -> Outcome:
        self.path.write_text(self.text)
        return Outcome({self.path: 1}, {"web": Tally(records=1)}, {"edit": 2}, {"pid": os.getpid()})


@dataclass(frozen=True)
class DieUntil:
    """Kills its own process until the marker exists, which it makes first if `once`."""

    marker: Path
    once: bool

    def run(self) -> Outcome:
        if self.marker.exists():
            return Outcome(facts={"pid": os.getpid()})
        if self.once:
            self.marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process goes on")


@dataclass(frozen=True)
class Leave:
    """Ends its process with an exit code."""

    code: int

    def run(self) -> Outcome:
        os._exit(self.code)


@dataclass(frozen=True)
class Refuse:
    """Finds bad data, once a word has come through the pipe if there is one."""

    after: Path | None = None

    def run(self) -> Outcome:
        if self.after is not None:
            with self.after.open("rb", buffering=0) as pipe:
                pipe.read(1)
        raise BadDataError("not JSON", where="a.jsonl:3", mend="mend the record")


@dataclass(frozen=True)
class Open:
    """Opens a file that is not there."""

    path: Path

    def run(self) -> Outcome:
        self.path.read_bytes()
        return Outcome()


@dataclass(frozen=True)
class Crash:
    """Has a defect."""

    def run(self) -> Outcome:
        raise ZeroDivisionError("a defect of the code")


@dataclass(frozen=True)
class Exhaust:
    """Runs out of memory."""

    def run(self) -> Outcome:
        raise MemoryError


@dataclass(frozen=True)
class Busy:
    """Works for a little while and notes from when to when."""

    note: Path

    def run(self) -> Outcome:
        start = time.monotonic_ns()
        while time.monotonic_ns() < start + 60_000_000:
            pass
        self.note.write_text(f"{start} {time.monotonic_ns()}")
        return Outcome()


@dataclass(frozen=True)
class Meet:
    """Goes on only when another job stands at the other end of the pipe: two that run at once, or none ends."""

    fifo: Path
    mode: str

    def run(self) -> Outcome:
        with self.fifo.open(self.mode):
            return Outcome()


@dataclass(frozen=True)
class HoldOpen:
    """Says a word into a pipe and keeps it open for as long as its process lives."""

    fifo: Path

    def run(self) -> Outcome:
        with self.fifo.open("wb", buffering=0) as pipe:
            pipe.write(b"!")
            signal.pause()
        return Outcome()
