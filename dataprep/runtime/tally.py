"""What a stage has done so far, added up for display."""

from __future__ import annotations

from dataclasses import dataclass

from dataprep.runtime.events import StageStarted, TaskFinished


@dataclass(slots=True)
class Tally:
    """Sums over the finished tasks of one stage; `started_at` is the clock's seconds at its start.

    Speed and time left come from this run's own tasks: those an earlier run finished took no time now.
    """

    started: StageStarted
    started_at: float
    reused: int = 0
    fresh: int = 0
    fresh_records: int = 0
    fresh_bytes: int = 0
    kept: int = 0
    dropped: int = 0
    quarantined: int = 0

    def add(self, task: TaskFinished) -> None:
        """Count one finished task."""
        self.kept += task.kept
        self.dropped += task.dropped
        self.quarantined += task.quarantined
        if task.reused:
            self.reused += 1
            return
        self.fresh += 1
        self.fresh_records += task.records_in
        self.fresh_bytes += task.text_bytes

    @property
    def tasks(self) -> int:
        """Tasks of the stage in all."""
        return self.started.tasks

    @property
    def done(self) -> int:
        """Tasks finished, by this run or before it."""
        return max(self.started.finished_before, self.reused) + self.fresh

    def rates_text(self, now: float) -> str:
        """Text and documents a second since the stage began."""
        seconds = max(now - self.started_at, 1e-9)
        if not self.fresh:
            return "- MB/s, - docs/s"
        return f"{self.fresh_bytes / 1e6 / seconds:,.1f} MB/s, {self.fresh_records / seconds:,.0f} docs/s"

    def left_text(self, now: float) -> str:
        """Time the tasks still to do will take at the pace of those this run has done."""
        if self.done >= self.tasks:
            return duration_text(0)
        if not self.fresh:
            return "-:--"
        return duration_text((now - self.started_at) / self.fresh * (self.tasks - self.done))

    def fates_text(self) -> str:
        """What became of the documents, where the stage is about documents."""
        if not (self.kept or self.dropped or self.quarantined):
            return ""
        return f"{self.kept:,} kept, {self.dropped:,} dropped, {self.quarantined:,} quarantined"


def duration_text(seconds: float) -> str:
    """`0:07`, `12:30`, `3:00:05`: minutes and seconds, hours when there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def bytes_text(count: int) -> str:
    """A size in decimal units: `512 B`, `3.4 MB`."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
