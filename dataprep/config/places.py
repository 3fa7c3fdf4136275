"""Where each key of a pipeline file stands, for messages a reader can jump to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dataprep.errors import ConfigError

# Keys and list indices from the top of the file: ("steps", 3, "length", "min_words").
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong: `place` is `file:line:col` or a `--set`, `path` the keys leading there."""

    place: str
    path: KeyPath
    message: str
    order: tuple[int, int, int]

    def error(self) -> ConfigError:
        """The fault as the one line a user reads."""
        shown = dotted(self.path)
        return ConfigError(f"{shown}: {self.message}" if shown else self.message, where=self.place)


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the file (`line`, `column` from 1), or the `--set` a value came from (`override` from 1)."""

    shown: str
    line: int = 0
    column: int = 0
    override: int = 0

    def fault(self, path: KeyPath, message: str) -> Fault:
        """A fault at this place; those of the file sort before those of overrides."""
        return Fault(self.shown, path, message, (self.override, self.line, self.column))


def file_place(name: str, line: int, column: int) -> Place:
    """A position in the pipeline file called `name`."""
    return Place(f"{name}:{line}:{column}", line, column)


@dataclass(slots=True)
class Tree:
    """The plain values of a pipeline file (dict, list, str, int, float, bool, None) and the place of every key."""

    value: Any
    places: dict[KeyPath, Place]
    faults: list[Fault] = field(default_factory=list)

    def place(self, path: KeyPath) -> Place:
        """The place of the deepest key on `path` that is written somewhere."""
        while path not in self.places:
            path = path[:-1]
        return self.places[path]

    def replace(self, path: KeyPath, value: Any, place: Place) -> None:
        """Forget what was known below `path`: its new value came from `place`."""
        for old in [known for known in self.places if known[: len(path)] == path]:
            del self.places[old]
        self.faults = [fault for fault in self.faults if fault.path[: len(path)] != path]
        self.places[path] = place
        parent = self.at(path[:-1])
        parent[path[-1]] = value

    def at(self, path: KeyPath) -> Any:
        """The value at `path`, which exists."""
        value = self.value
        for part in path:
            value = value[part]
        return value


def dotted(path: KeyPath) -> str:
    """The path as people write it: `steps[3].min_words`, the step's own name left out."""
    if len(path) > 2 and path[0] == "steps":
        path = path[:2] + path[3:]
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def sorted_errors(faults: Sequence[Fault]) -> list[ConfigError]:
    """All faults as errors, in the order of the file, then of the overrides."""
    return [fault.error() for fault in sorted(faults, key=lambda fault: fault.order)]
