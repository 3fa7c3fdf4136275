"""Validation errors in plain words: what stands there, what must stand there, and the key that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from pydantic_core import ErrorDetails

from dataprep.config.places import Fault, KeyPath, Tree

# Names the keys known at a path; empty where there are none.
KeysAt = Callable[[KeyPath], Sequence[str]]

_SHOWN = 40
_KIND = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "path_type": "a path",
    "tuple_type": "a list",
    "list_type": "a list",
    "model_type": "a mapping (key: value)",
    "dict_type": "a mapping (key: value)",
    "byte_size": "a size such as 64MB, 1GiB or a number of bytes",
    "byte_size_unit": "a size such as 64MB, 1GiB or a number of bytes",
}
_BOUND = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
    "multiple_of": ("a multiple of", "multiple_of"),
}
_LENGTH = {
    "string_too_short": ("at least", "min_length", "character"),
    "string_too_long": ("at most", "max_length", "character"),
    "too_short": ("at least", "min_length", "entry"),
    "too_long": ("at most", "max_length", "entry"),
}


def validation_faults(tree: Tree, errors: Iterable[ErrorDetails], keys_at: KeysAt) -> list[Fault]:
    """Turn the errors of a failed validation of `tree.value` into faults, one for each key at fault."""
    found = [(*_locate(tree.value, error), error) for error in errors if not _is_echo(error)]
    unions = {union for _, union, _ in found if union is not None}
    deeper = {union for path, union, _ in found if union is not None and path != union}
    found = [entry for entry in found if entry[0] not in unions & deeper or entry[1] is None]
    faults = []
    for path, group in groupby(sorted(found, key=lambda entry: _order(entry[0])), key=lambda entry: entry[0]):
        message = _message(tree, path, [error for _, _, error in group], keys_at)
        faults.append(tree.place(path).fault(_shown_path(path, keys_at), message))
    return faults


def _is_echo(error: ErrorDetails) -> bool:
    """Whether another error caused this one: a default left uncomputed, or a list short of its invalid entries."""
    if error["type"] == "too_short":
        return len(error["input"]) >= int(error["ctx"]["min_length"])
    return error["type"] == "default_factory_not_called"


def _order(path: KeyPath) -> tuple[tuple[bool, str, int], ...]:
    return tuple((isinstance(p, int), str(p), p if isinstance(p, int) else 0) for p in path)


def _shown_path(path: KeyPath, keys_at: KeysAt) -> KeyPath:
    unknown_step = len(path) == 3 and path[0] == "steps" and path[2] not in keys_at(path[:2])
    return path[:2] if unknown_step else path


def _locate(value: Any, error: ErrorDetails) -> tuple[KeyPath, KeyPath | None]:
    """The path of an error through the values, and where on it a choice of types began (None: nowhere)."""
    path: KeyPath = ()
    union: KeyPath | None = None
    location = error["loc"]
    for at, part in enumerate(location):
        missing_key = error["type"] == "missing" and at == len(location) - 1
        inside = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
        if not inside and not missing_key:
            union = path
            continue
        path = (*path, part)
        value = None if missing_key else value[part]
    return path, union


def _message(tree: Tree, path: KeyPath, errors: Sequence[ErrorDetails], keys_at: KeysAt) -> str:
    kind = errors[0]["type"]
    if kind == "missing":
        return "missing"
    if kind == "extra_forbidden":
        return _shallow(tree, path, keys_at) or _unknown(path, keys_at)
    if kind == "model_type" and (shallow := _shallow(tree, path, keys_at)):
        return shallow
    own = [str(error["ctx"]["error"]) for error in errors if error["type"] in ("value_error", "assertion_error")]
    if own:
        return own[0]
    wanted = list(dict.fromkeys(_wanted(error) for error in errors))
    return f"must be {' or '.join(wanted)}, not {show(tree.at(path))}"


def _shallow(tree: Tree, path: KeyPath, keys_at: KeysAt) -> str | None:
    """What to say of a step that is a setting of another in the same mapping: it is not indented deeply enough."""
    if len(path) != 3 or path[0] != "steps":
        return None
    owner = next((step for step in tree.at(path[:2]) if path[2] in keys_at((*path[:2], step))), None)
    return owner and f"{path[2]} is a setting of {owner}: indent it deeper, under {owner}"


def _unknown(path: KeyPath, keys_at: KeysAt) -> str:
    known = keys_at(path[:-1])
    close = difflib.get_close_matches(str(path[-1]), known, n=1)
    is_step = len(path) == 3 and path[0] == "steps"
    what = f"unknown step {path[-1]}" if is_step else "unknown key"
    if close:
        return f"{what}, did you mean {close[0]}?"
    return f"{what}, known are: {', '.join(known)}"


def _wanted(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _KIND:
        return _KIND[kind]
    if kind == "literal_error":
        return str(context["expected"])
    if kind in _BOUND:
        words, key = _BOUND[kind]
        return f"{words} {_number(context[key])}"
    if kind in _LENGTH:
        words, key, unit = _LENGTH[kind]
        return _of_length(words, int(context[key]), unit)
    return f"valid ({error['msg']})"


def _of_length(words: str, count: int, unit: str) -> str:
    if count == 1:
        return f"{words} one {unit} long"
    plural = "entries" if unit == "entry" else f"{unit}s"
    return f"{words} {count} {plural} long"


def _number(bound: Any) -> str:
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def show(value: Any) -> str:
    """A value as a message names it: short, and spelled as YAML spells it."""
    names: Mapping[Any, str] = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return names[value]
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
