"""How counts and paths are worded in lines for people."""

from __future__ import annotations

import os
from pathlib import Path

_IRREGULAR = {"entry": "entries"}


def counted(count: int, thing: str) -> str:
    """`1 task`, `2,000 tasks`; of several words the last one bends: `2 bad records`."""
    return f"{count:,} {thing if count == 1 else _IRREGULAR.get(thing, f'{thing}s')}"


def shown_path(path: Path | str) -> str:
    """The path without `..` on the way, where that is the same place; links can make it another."""
    written = str(path)
    if "/../" not in written:
        return written
    short = os.path.normpath(written)
    return short if os.path.realpath(short) == os.path.realpath(written) else written
