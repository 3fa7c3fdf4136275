"""Measure every stage and whole runs: MB of text a CPU-second, and peak memory.

Each stage runs over each corpus in a fresh process of one thread (see `measure`), whole runs by the real command (see
`whole`). MB are 10^6 bytes of UTF-8 text. Stages that need tokens take `--mb` megabytes of each corpus, the others and
five times as much; whole runs repeat that to 200 MB. Three corpora at the default take about 6 minutes; `all` adds the
corpora up. `--long` adds the peak of the real prepare task on one file of 100 MB and on one of 1 GB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console

from tests.bench.corpus import Corpus, cut, find_corpora, multiplied
from tests.bench.figures import Figures, added_up, as_table, ratios, write_json
from tests.bench.measure import PASSES, measured
from tests.bench.stages import ENCODE_FAST, ENCODE_REFERENCE, ONCE, PREPARE, STAGES, TRAIN
from tests.bench.whole import whole_run

_DEFAULT = Path("..", "shared", "corpus")
_TIMES_THE_ENCODED = 5
_GROWTH = (100 * 10**6, 1000 * 10**6)
# Learning merges is slow, and how good the vocabulary is matters little here.
_TRAINED_SHARE = 2
_FILE_WIDTH = 120


@dataclass(slots=True)
class _Bench:
    """The figures taken so far, and what they are taken on."""

    folder: Path
    encoded_bytes: int
    tokenizer: Path
    results: dict[str, dict[str, Figures]] = field(default_factory=dict)
    console: Console = field(default_factory=lambda: Console(stderr=True))

    def stage(self, stage: str, label: str, corpus: Corpus, *, encoded_bytes: int, passes: int = PASSES) -> None:
        """Measure a stage on a corpus and note it under `label`."""
        with self.scratch() as scratch:
            figures = measured(stage, corpus.path, self.tokenizer, scratch, encoded_bytes, passes)
        self.note(label, corpus.name, figures)

    def note(self, label: str, corpus: str, figures: Figures) -> None:
        """Keep figures and tell them."""
        self.results.setdefault(label, {})[corpus] = figures
        told = figures.as_json()
        self.console.print(f"{label}, {corpus}: {told['mb_per_cpu_s']:,} MB/s, {told['peak_rss_mb']:,} MB", style="dim")

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty folder, gone afterwards."""
        with TemporaryDirectory(dir=self.folder) as name:
            yield Path(name)


@click.command()
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--mb", default=8, show_default=True, type=click.IntRange(1), help="Text of each corpus to encode.")
@click.option("--tokenizer", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A tokenizer.json.")
@click.option("--long", is_flag=True, help="Also measure how memory grows from 100 MB to 1 GB of input.")
def bench(folder: Path | None, mb: int, tokenizer: Path | None, long: bool) -> None:
    """Measure the JSONL files (plain, gz or zst) of FOLDER, print a table and write bench.json."""
    corpora = _corpora(folder)
    with TemporaryDirectory() as name:
        room = Path(name)
        cuts = [cut(corpus, room, mb * _TIMES_THE_ENCODED * 10**6) for corpus in corpora]
        ready = None if tokenizer is None else tokenizer.absolute()
        run = _Bench(room, mb * 10**6, ready or room / "tokenizer.json")
        if ready is None:
            _train(run, cuts)
        _all_stages(run, cuts)
        if long:
            _growth(run, cuts)
    write_json(Path("bench.json"), run.results)
    told = Console() if sys.stdout.isatty() else Console(width=_FILE_WIDTH)
    told.print(as_table(run.results))
    for corpus, ratio in ratios(run.results[ENCODE_FAST], run.results[ENCODE_REFERENCE]).items():
        told.print(f"{corpus}: {ENCODE_FAST} is {ratio:.1f} times as fast as {ENCODE_REFERENCE}, ids equal")


def _corpora(folder: Path | None) -> list[Corpus]:
    if folder is None and not _DEFAULT.is_dir():
        raise click.UsageError("name a folder of .jsonl, .jsonl.gz or .jsonl.zst files (make bench BENCH_ARGS=folder)")
    where = folder or _DEFAULT
    found = find_corpora(where.resolve())
    if not found:
        raise click.UsageError(f"{where} holds no .jsonl, .jsonl.gz or .jsonl.zst file")
    return found


def _train(run: _Bench, corpora: list[Corpus]) -> None:
    """Make the tokenizer from as much of every corpus."""
    size = run.encoded_bytes // _TRAINED_SHARE
    with run.scratch() as scratch:
        shares = [cut(corpus, scratch, size // len(corpora)) for corpus in corpora]
        mixed = Corpus("all", multiplied(shares, scratch, size).path)
        run.stage(TRAIN, TRAIN, mixed, encoded_bytes=run.encoded_bytes, passes=1)


def _all_stages(run: _Bench, corpora: list[Corpus]) -> None:
    for stage in STAGES:
        for corpus in corpora:
            passes = 1 if stage in ONCE else PASSES
            run.stage(stage, stage, corpus, encoded_bytes=run.encoded_bytes, passes=passes)
    for corpus in corpora:
        with run.scratch() as scratch:
            for label, figures in whole_run(corpus, run.tokenizer, scratch).items():
                run.note(label, corpus.name, figures)
    for figures_by_corpus in run.results.values():
        if len(figures_by_corpus) > 1:
            figures_by_corpus["all"] = added_up(figures_by_corpus)


def _growth(run: _Bench, corpora: list[Corpus]) -> None:
    """Peak memory of one prepare task on ever larger files; no text in them is a duplicate it could be spared."""
    for size in _GROWTH:
        with run.scratch() as scratch:
            grown = multiplied(corpora, scratch, size)
            run.stage(PREPARE, "rss growth", grown, encoded_bytes=0, passes=1)


if __name__ == "__main__":
    bench(prog_name="python -m tests.bench")
