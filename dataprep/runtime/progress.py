"""A run's progress for people: bars on a terminal, sparse lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TaskID, TextColumn
from rich.text import Text

from dataprep.runtime.events import (
    Event,
    Note,
    Reporter,
    RunFailed,
    RunFinished,
    RunStarted,
    StageFinished,
    StageStarted,
    TaskFinished,
    TaskRetried,
    combine,
)
from dataprep.runtime.tally import Tally, bytes_text, duration_text
from dataprep.visible import visible
from dataprep.wording import counted

__all__ = ["combine", "plain_reporter", "rich_reporter"]

Clock = Callable[[], float]

# Often enough to see that a run lives, seldom enough for a log of many hours.
_LINE_EVERY_SECONDS = 10.0
# Columns of the terminal that a line takes with each part, in a run of some thousand tasks and million documents.
_WITH_RATES, _WITH_BAR, _WITH_FATES = 60, 72, 130


@contextmanager
def plain_reporter(stream: TextIO, clock: Clock = time.monotonic) -> Iterator[Reporter]:
    """Lines for logs: one at each stage's start and end, one in at least ten seconds between, retries and notes.

    `clock` gives monotonic seconds.
    """
    tallies: dict[str, Tally] = {}
    last_line: dict[str, float] = {}

    def line(event: Event) -> str | None:
        now = clock()
        if isinstance(event, StageStarted):
            tallies[event.stage] = Tally(event, now)
            last_line[event.stage] = now
            return _stage_start(event)
        if isinstance(event, StageFinished):
            return _stage_end(event, tallies[event.stage])
        if not isinstance(event, TaskFinished):
            return _plain_line(event)
        tally = tallies[event.stage]
        tally.add(event)
        if now - last_line[event.stage] < _LINE_EVERY_SECONDS or tally.done == tally.tasks:
            return None
        last_line[event.stage] = now
        done = f"{event.stage}: {tally.done}/{counted(tally.tasks, 'task')}"
        told = [done, tally.rates_text(now), f"{tally.left_text(now)} left", tally.fates_text()]
        return ", ".join(filter(None, told))

    def report(event: Event) -> None:
        text = line(event)
        if text is not None:
            stream.write(visible(text) + "\n")
            stream.flush()

    yield report


@contextmanager
def rich_reporter(console: Console, clock: Clock = time.monotonic) -> Iterator[Reporter]:
    """A live bar a stage with its speed, time left and documents' fates; `console` should write to stderr."""
    bars: dict[str, TaskID] = {}
    tallies: dict[str, Tally] = {}
    progress = Progress(*_columns(console.width), console=console)
    with ExitStack() as stack:

        def report(event: Event) -> None:
            now = clock()
            if isinstance(event, StageStarted):
                if not bars:  # bars of nothing would be a blank line above what ends a run before its first stage
                    stack.enter_context(progress)
                tallies[event.stage] = Tally(event, now)
                bars[event.stage] = progress.add_task(
                    event.stage, total=event.tasks, completed=event.finished_before, rates="", left="", fates=""
                )
            elif isinstance(event, TaskFinished):
                tally = tallies[event.stage]
                tally.add(event)
                _update(progress, bars[event.stage], tally, now, f"{tally.left_text(now)} left")
            elif isinstance(event, StageFinished):
                _update(progress, bars[event.stage], tallies[event.stage], now, duration_text(event.seconds))
            else:
                progress.console.print(Text(visible(_plain_line(event)), style=_style(event)), soft_wrap=True)

        yield report


def _columns(width: int) -> Iterator[ProgressColumn]:
    # Left alone rich would cut every column by the same share until none can be read.
    yield TextColumn("[bold]{task.description}", markup=True)
    if width >= _WITH_BAR:
        yield BarColumn(bar_width=24 if width >= _WITH_FATES else 10)
    yield MofNCompleteColumn()
    if width >= _WITH_RATES:
        yield TextColumn("{task.fields[rates]}", markup=False)
    yield TextColumn("{task.fields[left]}", markup=False)
    if width >= _WITH_FATES:
        yield TextColumn("{task.fields[fates]}", markup=False)


def _update(progress: Progress, bar: TaskID, tally: Tally, now: float, left: str) -> None:
    progress.update(bar, completed=tally.done, rates=tally.rates_text(now), left=left, fates=tally.fates_text())


def _stage_start(event: StageStarted) -> str:
    size = f" over {bytes_text(event.bytes)}" if event.bytes else ""
    before = f", {event.finished_before:,} finished before" if event.finished_before else ""
    return f"{event.stage}: {counted(event.tasks, 'task')}{size}{before}"


def _stage_end(event: StageFinished, tally: Tally) -> str:
    return ", ".join(filter(None, [f"{event.stage}: done in {duration_text(event.seconds)}", tally.fates_text()]))


def _plain_line(event: RunStarted | TaskRetried | RunFinished | RunFailed | Note) -> str:
    match event:
        case RunStarted():
            return f"{event.name}: {counted(event.tasks, 'piece')} of input for {counted(event.workers, 'worker')}"
        case TaskRetried():
            return f"{event.stage}: task {event.key} is tried again: {event.why}"
        case RunFinished():
            things = {"document": event.documents, "token": event.tokens, "row": event.rows, "shard": event.shards}
            made = ", ".join(counted(count, thing) for thing, count in things.items())
            return f"finished in {duration_text(event.seconds)}: {made}, manifest {', '.join(event.manifest_hashes)}"
        case RunFailed():
            return event.message
        case Note():
            return event.message


def _style(event: Event) -> str:
    match event:
        case RunFailed():
            return "bold red"
        case TaskRetried():
            return "yellow"
        case _:
            return ""
