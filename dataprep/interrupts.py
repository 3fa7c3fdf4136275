"""Ctrl-C, SIGTERM and SIGHUP: every command ends with one line and exit code 130."""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

CODE = 130
# What a person, a batch system and a closed terminal send.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _plain() -> str:
    return "interrupted\n"


_words: Callable[[], str] = _plain


def last_words(words: Callable[[], str]) -> None:
    """Set what is written to standard error, line end included, when a signal ends the process at once."""
    global _words
    _words = words


def leave_on_signals() -> None:
    """From now on a signal ends this process at once; right while nothing is done that would have to be undone.

    An exception would get lost or come out as another one where it is raised inside an import.
    """
    for number in _heeded():
        signal.signal(number, _leave)
    # Registered first it runs last, right before Python puts back the handlers that end a process without a word.
    atexit.register(_ignore)


@contextmanager
def raised() -> Iterator[None]:
    """Inside, the first signal raises KeyboardInterrupt; a second one does what any did before."""
    before = {number: signal.getsignal(number) for number in _heeded()}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(number: int, frame: FrameType | None) -> None:
        restore()
        raise KeyboardInterrupt

    try:
        for number in before:
            signal.signal(number, stop)
        yield
    finally:
        restore()


@contextmanager
def held_back() -> Iterator[None]:
    """Signals wait until the end of the block; processes started inside hold them back for good."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _heeded() -> list[signal.Signals]:
    # What our parent had us ignore stays ignored: nohup does so with SIGHUP.
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _ignore() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _leave(number: int, frame: FrameType | None) -> None:
    # Not by sys.stderr, which the signal may have interrupted in the middle of a line.
    with suppress(OSError):
        os.write(2, _words().encode(errors="backslashreplace"))
    os._exit(CODE)
