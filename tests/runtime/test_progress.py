"""Progress says what happened, sparingly, and never on stdout."""

from __future__ import annotations

import io
import json
from datetime import datetime

import pytest
from rich.console import Console

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
    json_reporter,
)
from dataprep.runtime.progress import plain_reporter, rich_reporter
from dataprep.runtime.tally import Tally, bytes_text, duration_text


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def task(key: int = 0, *, reused: bool = False) -> TaskFinished:
    return TaskFinished("prepare", f"k{key}", 1.5, 1000, 900, 90, 10, 4_000_000, reused)


def plain_lines(steps: list[tuple[float, Event]]) -> list[str]:
    stream, clock = io.StringIO(), Clock()
    with plain_reporter(stream, clock) as report:
        for seconds, event in steps:
            clock.now = 1000 + seconds
            report(event)
    return stream.getvalue().splitlines()


def test_a_whole_run_reads_as_a_few_plain_lines() -> None:
    assert plain_lines(
        [
            (0, RunStarted("mixed", 3, 2)),
            (0, StageStarted("prepare", 3, 1, 12_000_000)),
            (4, task(1)),
            (4, TaskRetried("prepare", "k2", "its worker was killed")),
            (8, task(2)),
            (8, StageFinished("prepare", 8)),
            (9, Note("2 documents had no id")),
            (9, RunFinished(1800, 70_000, 18, 2, 9.2, ("abc", "def"))),
        ]
    ) == [
        "mixed: 3 pieces of input for 2 workers",
        "prepare: 3 tasks over 12.0 MB, 1 finished before",
        "prepare: task k2 is tried again: its worker was killed",
        "prepare: done in 0:08, 1,800 kept, 180 dropped, 20 quarantined",
        "2 documents had no id",
        "finished in 0:09: 1,800 documents, 70,000 tokens, 18 rows, 2 shards, manifest abc, def",
    ]


def test_plain_progress_is_at_least_ten_seconds_apart() -> None:
    lines = plain_lines([(0, StageStarted("prepare", 100)), *((second, task(second)) for second in range(1, 26))])
    assert lines == [
        "prepare: 100 tasks",
        "prepare: 10/100 tasks, 4.0 MB/s, 1,000 docs/s, 1:30 left, 9,000 kept, 900 dropped, 100 quarantined",
        "prepare: 20/100 tasks, 4.0 MB/s, 1,000 docs/s, 1:20 left, 18,000 kept, 1,800 dropped, 200 quarantined",
    ]


def test_tasks_of_an_earlier_run_count_once_and_not_for_speed() -> None:
    tally = Tally(StageStarted("prepare", 10, finished_before=4), 0.0)
    assert tally.done == 4
    for key in range(4):
        tally.add(task(key, reused=True))
    assert (tally.done, tally.kept) == (4, 3600)
    assert tally.rates_text(0.0) == "- MB/s, - docs/s"
    assert tally.left_text(0.0) == "-:--"
    tally.add(task(5))
    assert tally.done == 5
    assert tally.rates_text(2.0) == "2.0 MB/s, 500 docs/s"
    assert tally.left_text(2.0) == "0:10"


def test_bars_show_speed_and_fates(capsys: pytest.CaptureFixture[str]) -> None:
    stream, clock = io.StringIO(), Clock()
    console = Console(file=stream, force_terminal=True, width=160, color_system=None)
    with rich_reporter(console, clock) as report:
        report(StageStarted("prepare", 2))
        clock.now += 2
        report(task(1))
        report(TaskRetried("prepare", "k2", "[red]killed[/red]"))
        report(task(2))
        report(StageFinished("prepare", 2))
        report(RunFailed("disk full", 4))
    shown = stream.getvalue()
    assert "prepare: task k2 is tried again: [red]killed[/red]" in shown
    assert "disk full" in shown
    last = [line for line in shown.splitlines() if "2/2" in line][-1]
    for part in ("prepare", "4.0 MB/s, 1,000 docs/s", "0:02", "1,800 kept, 180 dropped, 20 quarantined"):
        assert part in last
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("width", "parts"),
    [
        (40, ["prepare", "1/2", "0:02 left"]),
        (80, ["prepare", "━", "1/2", "2.0 MB/s, 500 docs/s", "0:02 left"]),
        (140, ["prepare", "━", "1/2", "2.0 MB/s, 500 docs/s", "0:02 left", "900 kept, 90 dropped, 10 quarantined"]),
    ],
)
def test_a_narrow_terminal_shows_fewer_things_whole(width: int, parts: list[str]) -> None:
    stream, clock = io.StringIO(), Clock()
    console = Console(file=stream, force_terminal=True, width=width, color_system=None)
    with rich_reporter(console, clock) as report:
        report(StageStarted("prepare", 2))
        clock.now += 2
        report(task(1))
    last = [line for line in stream.getvalue().splitlines() if "1/2" in line][-1]
    assert [part for part in parts if part not in last] == []
    assert "…" not in last


def test_what_ends_a_run_before_its_first_stage_has_no_empty_bars_above_it() -> None:
    stream = io.StringIO()
    with rich_reporter(Console(file=stream, force_terminal=True, color_system=None)) as report:
        report(RunFailed("interrupted", 130))
    assert stream.getvalue() == "interrupted\n"


def test_messages_cannot_steer_the_terminal() -> None:
    steering = Note("file \x1b[2J\u202e.jsonl")
    assert plain_lines([(0, steering)]) == [r"file \x1b[2J\u202e.jsonl"]
    stream = io.StringIO()
    with rich_reporter(Console(file=stream, force_terminal=True, color_system=None)) as report:
        report(steering)
    assert stream.getvalue() == "file \\x1b[2J\\u202e.jsonl\n"


def test_events_are_one_json_object_a_line() -> None:
    stream = io.StringIO()
    report = json_reporter(stream)
    report(task(7))
    report(Note("中文\nsecond line"))
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert datetime.fromisoformat(first.pop("time")).utcoffset() is not None
    assert first == {
        "event": "task_finished",
        "stage": "prepare",
        "key": "k7",
        "seconds": 1.5,
        "records_in": 1000,
        "kept": 900,
        "dropped": 90,
        "quarantined": 10,
        "text_bytes": 4_000_000,
        "reused": False,
    }
    assert (second["event"], second["message"]) == ("note", "中文\nsecond line")


def test_combined_reporters_each_hear_every_event_in_order() -> None:
    heard: list[tuple[str, Event]] = []

    def listener(name: str) -> Reporter:
        return lambda event: heard.append((name, event))

    report = combine(listener("a"), listener("b"))
    report(Note("1"))
    report(Note("2"))
    assert heard == [("a", Note("1")), ("b", Note("1")), ("a", Note("2")), ("b", Note("2"))]


def test_durations_and_sizes_read_well() -> None:
    assert [duration_text(s) for s in (0, 7.4, 59.6, 750, 10_805)] == ["0:00", "0:07", "1:00", "12:30", "3:00:05"]
    assert [bytes_text(n) for n in (0, 512, 3_400_000, 7 * 10**13)] == ["0 B", "512 B", "3.4 MB", "70.0 TB"]
