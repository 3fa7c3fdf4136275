"""Pipeline file → Pipeline, or every fault in it at once, each with its line and column."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from dataprep.config.messages import show, validation_faults
from dataprep.config.models import Pipeline
from dataprep.config.overrides import apply_override, name_steps
from dataprep.config.places import Fault, KeyPath, Place, Tree, file_place, sorted_errors
from dataprep.config.schema import keys_at
from dataprep.config.source import BadYaml, parse
from dataprep.errors import ConfigError, ConfigErrors


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    """A valid pipeline, the file it came from as the user named it, and the file's folder (absolute)."""

    pipeline: Pipeline
    path: Path
    base: Path
    places: Mapping[KeyPath, Place]

    def where(self, *path: str | int) -> str:
        """`file:line:col` of a key such as `where("steps", 3, "min_words")`, or of the nearest key above it.

        A value that came from the command line is named by its `--set`.
        """
        if path[:1] == ("steps",) and len(path) > 2 and path[2] != self._step_name(path):
            path = (*path[:2], self._step_name(path), *path[2:])
        while path not in self.places:
            path = path[:-1]
        return self.places[path].shown

    def _step_name(self, path: KeyPath) -> str:
        return self.pipeline.steps[int(path[1])].name


def load(path: Path, overrides: Sequence[str] = (), environ: Mapping[str, str] = os.environ) -> LoadedPipeline:
    """Read a pipeline file, apply `--set` overrides in order, and validate it.

    Relative paths, those in overrides too, are relative to the file's folder. Raises ConfigErrors with all faults.
    """
    base = path.absolute().parent
    tree = _read_tree(path, environ)
    name_steps(tree)
    for number, override in enumerate(overrides, 1):
        apply_override(tree, override, number, environ)
        name_steps(tree)
    tree.value.setdefault("name", path.stem)
    pipeline, invalid = _validate(tree, base)
    faults = [*tree.faults, *_not_yet_known(invalid, tree.faults)]
    if faults or pipeline is None:
        raise ConfigErrors(sorted_errors(faults))
    return LoadedPipeline(pipeline, path, base, tree.places)


def _read_tree(path: Path, environ: Mapping[str, str]) -> Tree:
    place_at = partial(file_place, str(path))
    try:
        tree = parse(_read_text(path), place_at, environ)
    except BadYaml as bad:
        raise ConfigErrors([bad.fault.error()]) from bad
    if tree.value is None and not tree.faults:
        raise ConfigErrors([_whole_file(path, "the file is empty", "write one with: dataprep init")])
    if not isinstance(tree.value, dict):
        message = f"must be a mapping (key: value), not {show(tree.value)}"
        raise ConfigErrors([*sorted_errors(tree.faults), tree.place(()).fault((), message).error()][:1])
    return tree


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigErrors([ConfigError("no such file", where=str(path), mend="check the path")]) from error
    except IsADirectoryError as error:
        raise ConfigErrors([ConfigError("is a folder", where=str(path), mend="name the YAML file in it")]) from error
    except OSError as error:
        raise ConfigErrors([ConfigError(f"cannot be read: {error.strerror}", where=str(path))]) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        where = f"{path}:{line}:{column}"
        fault = ConfigError(f"byte 0x{data[error.start]:02X} is not UTF-8", where=where, mend="save the file as UTF-8")
        raise ConfigErrors([fault]) from error


def _whole_file(path: Path, what: str, mend: str) -> ConfigError:
    return ConfigError(what, where=f"{path}:1:1", mend=mend)


def _validate(tree: Tree, base: Path) -> tuple[Pipeline | None, list[Fault]]:
    # Strict JSON is just what YAML values should obey: "5" is no number and 1 no bool, but 5 is a fine float,
    # and lists and text become tuples and paths.
    try:
        return Pipeline.model_validate_json(json.dumps(tree.value), strict=True, context={"base": base}), []
    except ValidationError as error:
        return None, validation_faults(tree, error.errors(include_url=False), keys_at)


def _not_yet_known(invalid: Sequence[Fault], known: Sequence[Fault]) -> list[Fault]:
    """Leave out complaints about values whose text is already at fault."""
    paths = [fault.path for fault in known if fault.path]
    return [fault for fault in invalid if not any(fault.path[: len(path)] == path for path in paths)]
