"""What a measurement says, and where it was taken."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.table import Table

_PACKAGES = ("dataprep", "fastokens", "mindspore", "numba", "numpy", "pyarrow", "tokenizers", "xxhash", "zstandard")


@dataclass(frozen=True, slots=True)
class Figures:
    """One stage on one corpus: bytes of UTF-8 text, documents, seconds of CPU, peak RSS in MB (10^6 bytes)."""

    text_bytes: int
    documents: int
    cpu_seconds: float
    peak_rss_mb: float

    def as_json(self) -> dict[str, float]:
        """MB and documents a CPU-second, and the peak."""
        seconds = max(self.cpu_seconds, 1e-9)
        return {
            "mb_per_cpu_s": round(self.text_bytes / 1e6 / seconds, 2),
            "docs_per_cpu_s": round(self.documents / seconds, 1),
            "peak_rss_mb": round(self.peak_rss_mb, 1),
        }


Results = Mapping[str, Mapping[str, Figures]]


def added_up(figures: Mapping[str, Figures]) -> Figures:
    """Several corpora as one: sums, and the largest peak."""
    every = figures.values()
    return Figures(
        sum(one.text_bytes for one in every),
        sum(one.documents for one in every),
        sum(one.cpu_seconds for one in every),
        max(one.peak_rss_mb for one in every),
    )


def ratios(fast: Mapping[str, Figures], reference: Mapping[str, Figures]) -> dict[str, float]:
    """How many times the speed of `reference` each corpus had in `fast`, both over the same text."""
    return {corpus: reference[corpus].cpu_seconds / max(figures.cpu_seconds, 1e-9) for corpus, figures in fast.items()}


def peak_rss_mb() -> float:
    """This process's own high-water mark; getrusage would begin at the parent's."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise OSError("/proc/self/status tells no VmHWM")
    return int(found[1]) * 1024 / 1e6


def write_json(path: Path, results: Results) -> None:
    """Write {stage: {corpus: figures}}, plus `machine` and `versions`."""
    content: dict[str, object] = {
        stage: {corpus: figures.as_json() for corpus, figures in corpora.items()} for stage, corpora in results.items()
    }
    content["machine"] = {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
    }
    content["versions"] = {name: version(name) for name in _PACKAGES}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def as_table(results: Results) -> Table:
    """One line a stage and corpus."""
    table = Table(title=f"one core of {_cpu_model()}, Python {platform.python_version()}")
    table.add_column("stage", no_wrap=True)
    table.add_column("corpus")
    for heading in ("text MB", "MB / CPU-s", "docs / CPU-s", "peak RSS MB"):
        table.add_column(heading, justify="right")
    for stage, corpora in results.items():
        for number, (corpus, figures) in enumerate(corpora.items()):
            told = figures.as_json()
            table.add_row(
                "" if number else stage,
                corpus,
                f"{figures.text_bytes / 1e6:,.1f}",
                f"{told['mb_per_cpu_s']:,.1f}",
                f"{told['docs_per_cpu_s']:,.0f}",
                f"{told['peak_rss_mb']:,.0f}",
            )
        table.add_section()
    return table


def _cpu_model() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.processor() or platform.machine()
