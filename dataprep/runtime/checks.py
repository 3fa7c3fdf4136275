"""What can be said against a pipeline before its first task: paths, labels and sizes that would stop it later."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from dataprep.config.load import LoadedPipeline
from dataprep.dedup.keys import ExactDedup
from dataprep.errors import ConfigError, ConfigErrors
from dataprep.readers.inputs import Split
from dataprep.runtime.directories import RunPaths, owned_by, refuse_strangers
from dataprep.runtime.mixing import check_sources
from dataprep.shards.layout import Layout
from dataprep.step import Step


def check_paths(loaded: LoadedPipeline, paths: RunPaths) -> None:
    """Raise ConfigErrors for folders that cannot be, and configured files that are missing or a run would replace."""
    faults = [
        *(
            fault
            for each in dict.fromkeys((paths.output, *(each.output for each in paths.sets)))
            for fault in _folder_faults(loaded.where("output", "path"), "output.path", each)
        ),
        *_folder_faults(loaded.where("run", "work_dir"), "run.work_dir", paths.work),
        *(fault for where, file in _configured_files(loaded) for fault in _file_faults(where, file, paths)),
    ]
    if faults:
        raise ConfigErrors(faults)
    refuse_strangers(paths)


def _folder_faults(where: str, key: str, folder: Path) -> Iterator[ConfigError]:
    standing = next(place for place in (folder, *folder.parents) if place.exists())
    if not standing.is_dir():
        yield ConfigError(f"{key}: {standing} is a file, not a folder", where=where, mend="choose another path")


def _configured_files(loaded: LoadedPipeline) -> Iterator[tuple[str, Path]]:
    for number, step in enumerate(loaded.pipeline.steps):
        if isinstance(step, Step):
            yield from (
                (f"{loaded.where('steps', number)}: steps[{number}].{step.name}", file) for file in step.files()
            )
    path = loaded.pipeline.tokenizer.path
    # A tokenizer may be a folder of files, and says more when it is read.
    if path is not None and not path.is_dir():
        yield f"{loaded.where('tokenizer', 'path')}: tokenizer.path", path


def _file_faults(where: str, file: Path, paths: RunPaths) -> Iterator[ConfigError]:
    if not file.exists():
        yield ConfigError(f"{file}: no such file", where=where, mend="mend the path")
    elif not file.is_file():
        yield ConfigError(f"{file} is not a regular file", where=where, mend="name a file")
    elif owned_by(paths)(os.path.realpath(file)):
        yield ConfigError(f"{file} lies where the run itself writes", where=where, mend="copy it to another folder")


def check_labels(loaded: LoadedPipeline, splits: Sequence[Split]) -> None:
    """Raise ConfigErrors for a source that `only` or `except` of a step or the mix names and no input has."""
    if any(split.input.source_field for split in splits):
        return  # then the records decide
    known = sorted({split.input.source or "" for split in splits})
    faults = []
    for number, step in enumerate(loaded.pipeline.steps):
        for key, selector in (("only", step.only), ("except", step.except_)):
            for label in () if selector is None else selector.source:
                if label not in known:
                    faults.append(_unknown(loaded, (number, step), key, label, known))
    try:
        check_sources(loaded.pipeline.mix, dict.fromkeys(known, 1.0), loaded.where("mix"))
    except ConfigError as fault:
        faults.append(fault)
    if faults:
        raise ConfigErrors(faults)


def _unknown(
    loaded: LoadedPipeline, place: tuple[int, Step | ExactDedup], key: str, label: str, known: Sequence[str]
) -> ConfigError:
    number, step = place
    close = get_close_matches(label, known, 1)
    mend = f"did you mean {close[0]}?" if close else f"they are {', '.join(known)}"
    what = f"steps[{number}].{step.name}.{key}.source: no input has the source {label!r}"
    return ConfigError(what, where=loaded.where("steps", number, step.name, key, "source"), mend=mend)


def check_layout(loaded: LoadedPipeline, layout: Callable[[], Layout]) -> None:
    """Raise ConfigError, with its place in the file, for rows or shards that no MindRecord file can hold."""
    try:
        layout()
    except ConfigError as error:
        raise ConfigError(error.what, where=loaded.where("pack", "seq_length"), mend=error.mend) from error
