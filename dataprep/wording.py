"""How counts and paths are worded in lines for people."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_SHOWN, _LISTED = 60, 10
_IRREGULAR = {"entry": "entries"}


def counted(count: int, thing: str) -> str:
    """`1 task`, `2,000 tasks`; of several words the last one bends: `2 bad records`."""
    return f"{count:,} {thing if count == 1 else _IRREGULAR.get(thing, f'{thing}s')}"


def shortened(text: str) -> str:
    """A text of any length as a short one: `a very long na…`."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def some_of(things: Iterable[str]) -> str:
    """`a, b, c`; of more than a few the first ones and how many there are."""
    every = [shortened(thing) for thing in things]
    return ", ".join(every) if len(every) <= _LISTED else f"{', '.join(every[:_LISTED])}, … ({len(every):,} in all)"


def shown_path(path: Path | str) -> str:
    """The path without `..` on the way, where that is the same place; links can make it another."""
    written = str(path)
    if "/../" not in written:
        return written
    short = os.path.normpath(written)
    return short if os.path.realpath(short) == os.path.realpath(written) else written
