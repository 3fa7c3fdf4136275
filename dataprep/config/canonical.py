"""The part of a pipeline that decides the output's bytes, in one canonical form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dataprep.config.models import Pipeline
from dataprep.readers.inputs import Input
from dataprep.storage import canonical_json


def hashed_config(pipeline: Pipeline, base: Path) -> dict[str, Any]:
    """The effective configuration, defaults spelled out, of all that can change output bytes; JSON-able.

    Inputs are ordered by their JSON, and paths under `base` (the pipeline file's folder, absolute) are relative to it,
    so neither the order of inputs nor a move of the folder shows. Left out: how the run goes (workers, memory, folders,
    tolerance of bad records) the
    tokenizer's path, whose content is fingerprinted where it is read, and the engine, which must not change ids.
    """
    return {
        "name": pipeline.name,
        "inputs": sorted((_input(entry, base) for entry in pipeline.inputs), key=canonical_json),
        "steps": [{step.name: _plain(step.model_dump(by_alias=True), base)} for step in pipeline.steps],
        "dedup": pipeline.dedup.model_dump(mode="json"),
        "mix": pipeline.mix.model_dump(mode="json"),
        "tokenizer": pipeline.tokenizer.shaping,
        "pack": pipeline.pack.model_dump(mode="json", by_alias=True),
        "output": pipeline.output.model_dump(mode="json", exclude={"path"}),
        "run": pipeline.run.model_dump(mode="json", include={"seed", "split_bytes", "part_bytes"}),
    }


def _input(entry: Input, base: Path) -> dict[str, Any]:
    paths = (entry.path,) if isinstance(entry.path, str) else entry.path
    relative = sorted(_relative(Path(path), base) if Path(path).is_absolute() else path for path in paths)
    return {**entry.model_dump(mode="json"), "path": relative}


def _plain(value: Any, base: Path) -> Any:
    if isinstance(value, Path):
        return _relative(value, base)
    if isinstance(value, dict):
        return {key: _plain(inner, base) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, base) for inner in value]
    return value


def _relative(path: Path, base: Path) -> str:
    # A written "../x" was joined to the base as it stands, so this gives "../x" back.
    return (path.relative_to(base) if path.is_relative_to(base) else path).as_posix()
