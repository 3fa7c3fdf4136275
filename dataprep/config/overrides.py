"""`--set key.path=value`: change one value of a loaded pipeline file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dataprep.config.places import KeyPath, Place, Tree
from dataprep.config.source import BadYaml, parse

_PART = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]")
_SHOWN = 60


class _NoSuchKey(ValueError):
    pass


def apply_override(tree: Tree, text: str, number: int, environ: Mapping[str, str]) -> None:
    """Set one value in the tree from `key.path=value`, the `number`th (from 1) on the command line.

    List entries are named by index (`inputs.0.path`, `inputs[0].path`), steps also by name when it stands once
    (`steps.length.min_words`). The value is YAML. Faults are collected in the tree.
    """
    key, equals, written = text.partition("=")
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    place = Place(f"--set {shown}", override=number)
    try:
        if not equals:
            raise _NoSuchKey("write key.path=value")
        path = _locate(tree, _parts(key), place)
        value = parse(written, lambda line, column: place, environ, path)
    except _NoSuchKey as error:
        tree.faults.append(place.fault((), str(error)))
    except BadYaml as bad:
        tree.faults.append(bad.fault)
    else:
        tree.replace(path, value.value, place)
        tree.places.update(value.places)
        tree.faults.extend(value.faults)


def name_steps(tree: Tree) -> None:
    """Write every entry of `steps` as a one-key mapping: `- normalize` and `- normalize:` mean `normalize: {}`."""
    steps = tree.value.get("steps") if isinstance(tree.value, dict) else None
    if not isinstance(steps, list):
        return
    for at, entry in enumerate(steps):
        if isinstance(entry, str):
            steps[at] = {entry: {}}
        elif isinstance(entry, dict):
            steps[at] = {name: {} if params is None else params for name, params in entry.items()}


def _parts(key: str) -> list[str | int]:
    parts: list[str | int] = []
    at = 0
    while at < len(key):
        match = _PART.match(key, at)
        if match is None or (match["name"] is None and at == 0):
            break
        name = match["name"]
        parts.append(int(match["index"]) if name is None else int(name) if name.isdecimal() else name)
        at = match.end()
    if at < len(key) or not parts:
        raise _NoSuchKey(f"cannot read the key {key!r}; write it like run.workers or inputs[0].path")
    return parts


def _locate(tree: Tree, parts: list[str | int], place: Place) -> KeyPath:
    """The path the parts name; mappings missing on the way are created."""
    path: KeyPath = ()
    for part in parts:
        path = _enter(tree, path, place)
        path = (*path, _child(tree.at(path), path, part))
    by_name = path[:1] == ("steps",) and len(path) == 2 and isinstance(parts[-1], str)
    return (*path, parts[-1]) if by_name else path


def _enter(tree: Tree, path: KeyPath, place: Place) -> KeyPath:
    if not path:
        return path
    parent = tree.at(path[:-1])
    if isinstance(parent, dict) and parent.get(str(path[-1])) is None:
        tree.replace(path, {}, place)
    value = tree.at(path)
    is_step = len(path) == 2 and path[0] == "steps" and isinstance(value, dict) and len(value) == 1
    return (*path, next(iter(value))) if is_step else path


def _child(value: Any, path: KeyPath, part: str | int) -> str | int:
    shown = ".".join(map(str, path)) or "the pipeline"
    if isinstance(value, dict):
        return str(part)
    if not isinstance(value, list):
        raise _NoSuchKey(f"{shown} holds a single value, so nothing can be set inside it")
    if isinstance(part, int):
        if part < len(value):
            return part
        raise _NoSuchKey(f"{shown} has no entry {part}, it has {len(value)}, counted from 0")
    found = [at for at, entry in enumerate(value) if path == ("steps",) and isinstance(entry, dict) and part in entry]
    if len(found) == 1:
        return found[0]
    if found:
        places = " and ".join(f"steps[{at}]" for at in found)
        raise _NoSuchKey(f"{part} stands more than once ({places}), name it by its index")
    raise _NoSuchKey(f"{shown} has no entry {part!r}, name it by its index from 0")
