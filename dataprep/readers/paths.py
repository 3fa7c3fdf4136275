"""Files behind the `path:`, `include:` and `exclude:` of an input."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from glob import escape
from pathlib import Path

from dataprep.errors import ConfigError
from dataprep.storage import disk_errors

_MAGIC = re.compile(r"[*?[]")
_Ids = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A path of an input, taken apart: the fixed folder, the segments to match below it, and its default label."""

    root: str
    segments: tuple[str, ...]
    label: str


def literal_path(path: str, base: Path) -> Path:
    """The path as if it held no glob, from the root; it is relative to `base` and may begin with ~.

    Raises ConfigError for a home that is nobody's and for NUL, which no path holds.
    """
    start, rest = _start(path, base)
    return absolute(start / rest)


def pattern_of(path: str, base: Path) -> Pattern:
    """Take a path apart; it is relative to `base`, may begin with ~, and may be a file, a folder or a glob.

    Only what the path itself says is a glob: `base` and the home folder are the folders of those names.
    """
    full = literal_path(path, base)
    if full.is_dir():
        return Pattern(str(full), ("**", "*"), full.name or "root")
    start, rest = _start(path, base)
    # Part by part the same path, with the folders it starts at escaped.
    parts = absolute(Path(escape(str(start))) / rest).parts
    globs = [glob == part and _MAGIC.search(part) is not None for glob, part in zip(parts, full.parts, strict=True)]
    if full.exists() or not any(globs):
        return Pattern(str(full.parent), (full.name,), full.name.split(".")[0] or full.name)
    first = globs.index(True)
    root = Path(*full.parts[:first])
    segments = full.parts[first:]
    return Pattern(str(root), (*segments, "*") if segments[-1] == "**" else segments, root.name or "root")


def _start(path: str, base: Path) -> tuple[Path, str]:
    """The folder a path starts at, and the rest of it."""
    if "\0" in path:
        raise ConfigError(f"{path!r} holds a NUL character, which no path can", mend="remove it")
    if not path.startswith("~"):
        return base, path
    home, _, rest = path.partition("/")
    try:
        return Path(home).expanduser(), rest.lstrip("/")
    except RuntimeError as error:
        mend = f"check the name, or begin with ./ for a folder called {home}"
        raise ConfigError(f"{path}: {home} is no user's home folder", mend=mend) from error


def absolute(path: Path) -> Path:
    """The path from the root, without `..`; links stay, as a file's name is the one the user gave it."""
    return Path(os.path.abspath(path))


def matched(pattern: Pattern) -> Iterator[str]:
    """Yield the relative paths of the files a pattern matches; one may come twice.

    Links to folders are followed, but not back into a folder the walk is in. Hidden files are files.
    """
    root = Path(pattern.root)
    if not root.is_dir():
        return
    literal = not _MAGIC.search(pattern.segments[0]) or (root / pattern.segments[0]).exists()
    if len(pattern.segments) == 1 and literal:
        if os.path.lexists(root / pattern.segments[0]):
            yield pattern.segments[0]
        return
    yield from _below(str(root), "", pattern.segments, (_identity(str(root)),))


def _below(folder: str, prefix: str, segments: Sequence[str], above: _Ids) -> Iterator[str]:
    head, rest = segments[0], segments[1:]
    folders, files = _entries(folder)
    if head == "**":
        yield from _below(folder, prefix, rest, above)
        rest = segments
    fits = re.compile(translate("*" if head == "**" else head)).match
    if not rest:
        yield from (prefix + name for name in files if fits(name))
        return
    for name in filter(fits, folders):
        inside = f"{folder}/{name}"
        identity = _identity(inside)
        if identity not in above:
            yield from _below(inside, f"{prefix}{name}/", rest, (*above, identity))


def _entries(folder: str) -> tuple[list[str], list[str]]:
    folders: list[str] = []
    files: list[str] = []
    with disk_errors(folder), os.scandir(folder) as entries:
        for entry in entries:
            (folders if entry.is_dir() else files).append(entry.name)
    return folders, files


def _identity(folder: str) -> tuple[int, int]:
    with disk_errors(folder):
        status = Path(folder).stat()
    return status.st_dev, status.st_ino


def shown(path: str) -> str:
    """A path for a message: bytes that are not UTF-8 are escaped."""
    return re.sub("[\udc80-\udcff]", _escaped, path).encode("utf-8", "backslashreplace").decode()


def _escaped(byte: re.Match[str]) -> str:
    return f"\\x{ord(byte[0]) - 0xDC00:02x}"


def chosen(relative: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Tell whether the globs keep a file; a glob without a slash is about the name, whatever the folder."""
    if include and not any(_fits(relative, glob) for glob in include):
        return False
    return not any(_fits(relative, glob) for glob in exclude)


def _fits(relative: str, glob: str) -> bool:
    if "/" not in glob:
        return re.match(translate(glob), relative.rsplit("/", 1)[-1]) is not None
    return _segments_fit(relative.split("/"), glob.rstrip("/").split("/"))


def _segments_fit(names: list[str], globs: list[str]) -> bool:
    if not globs:
        return not names
    if globs[0] == "**":
        if len(globs) == 1:
            return bool(names)
        return any(_segments_fit(names[index:], globs[1:]) for index in range(len(names)))
    if not names or not re.match(translate(globs[0]), names[0]):
        return False
    return _segments_fit(names[1:], globs[1:])
