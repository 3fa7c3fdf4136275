"""What an estimate of a run holds, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.text import Text

from dataprep.tables import Column, FittedTable
from dataprep.visible import visible
from dataprep.wording import counted


@dataclass(frozen=True, slots=True)
class SourceEstimate:
    """One input (or one default label of it): `files`, `input_bytes`, `tasks` are exact, all else from the sample.

    `tokens` are those of the documents, `row_tokens` those of their rows, padding included. `kept` and `kept_text` are
    shares (0 to 1) of documents and of text bytes that the steps before deduplication keep; `prepare_speed` (read and
    steps) and `encode_speed` are text bytes a second of one core; a speed or ratio is None when the sample holds
    nothing to measure it on.
    """

    source: str
    files: int
    input_bytes: int
    tasks: int
    sample_documents: int
    sample_bytes: int
    documents: int
    text_bytes: int
    text_per_input_byte: float
    bad: float
    kept: float | None
    kept_text: float | None
    prepare_speed: float | None
    tokens_per_byte: float | None
    encode_speed: float | None
    tokens: int
    row_tokens: int
    prepare_seconds: float
    emit_seconds: float
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will do and take; sizes in bytes, `cpu_seconds` and `wall_seconds` in seconds."""

    name: str
    workers: int
    sources: tuple[SourceEstimate, ...]
    prepare_tasks: int
    tokens: int
    row_length: int
    rows: int
    shard_tokens: int
    shards: int
    output_bytes: int
    scratch_bytes: int
    cpu_seconds: float
    wall_seconds: float
    output: str
    work_dir: str
    notes: tuple[str, ...]


def as_json(estimated: Estimate) -> dict[str, Any]:
    """The estimate as a dictionary of plain numbers and strings."""
    return asdict(estimated)


def render_estimate(estimated: Estimate) -> RenderableType:
    """A table of the sources and a few lines for a person."""
    e = estimated
    lines = [
        f"{e.name}: {counted(e.prepare_tasks, 'task')} to prepare, {counted(e.workers, 'worker')}",
        f"about {counted(e.tokens, 'token')}: {counted(e.rows, 'row')} of {e.row_length:,}, "
        f"{counted(e.shards, 'shard')} of up to about {counted(e.shard_tokens, 'token')}",
        f"about {decimal(e.output_bytes)} into {e.output}, {decimal(e.scratch_bytes)} of scratch into {e.work_dir}",
        f"about {_duration(e.cpu_seconds)} of CPU, {_duration(e.wall_seconds)} on {counted(e.workers, 'worker')}",
        *(f"note: {note}" for note in e.notes),
    ]
    return Group(_table(e.sources), Text("\n".join(map(visible, lines)), no_wrap=True, overflow="ignore"))


def _table(sources: Sequence[SourceEstimate]) -> FittedTable:
    names = ("files", "size", "tasks", "docs", "text", "bad", "kept", "prepare/core", "B/token", "encode/core")
    # Where there is no room, speeds go first: the durations below say what they come to.
    spare = {"encode/core": 6, "prepare/core": 5, "B/token": 4, "tasks": 3, "text": 2, "files": 1}
    columns = (Column("source"), *(Column(name, number=True, spare=spare.get(name, 0)) for name in names))
    title = "estimated from a sample (files, size and tasks are exact)"
    return FittedTable(columns, [_cells(source) for source in sources], title)


def _cells(source: SourceEstimate) -> tuple[str, ...]:
    return (
        visible(source.source),
        f"{source.files:,}",
        decimal(source.input_bytes),
        f"{source.tasks:,}",
        f"{source.documents:,}",
        decimal(source.text_bytes),
        f"{source.bad:.1%}",
        "?" if source.kept is None else f"{source.kept:.1%}",
        _speed(source.prepare_speed),
        "?" if source.tokens_per_byte is None else f"{1 / source.tokens_per_byte:.2f}",
        _speed(source.encode_speed),
    )


def _speed(value: float | None) -> str:
    return "?" if value is None else f"{value / 1e6:,.1f} MB/s"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
