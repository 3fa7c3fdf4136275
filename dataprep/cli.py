"""The `dataprep` command: one short function a subcommand, no logic of its own."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console

from dataprep import __version__
from dataprep.errors import ConfigError, DamageError, PipelineError

INTERRUPTED = 130
_PIPE_WIDTH = 160

_pipeline = click.argument("pipeline", type=click.Path(path_type=Path))
_directory = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
_settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY.PATH=VALUE",
    help="Override a key of the pipeline file; repeatable.",
)
_limit = click.option("--limit", type=click.IntRange(min=1), help="Read at most this many records of each input.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


class _Command(click.Group):
    """Turns the errors a user can mend into one line and their exit code."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except PipelineError as error:
            if context.params.get("debug"):
                raise
            click.echo(f"error: {error}" if "\n" not in str(error) else str(error), err=True)
            context.exit(error.exit_code)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dataprep")
@click.option("--debug", is_flag=True, help="Show the full traceback of an error.")
def main(debug: bool) -> None:
    """Turn raw text into sharded MindRecord for pretraining, and prove what is in there.

    Exit codes: 0 done, 2 configuration, 3 too many bad records, 4 environment (disk, memory, files), 5 damaged shards,
    130 interrupted.
    """


@main.command()
@_pipeline
@_settings
@_limit
@click.option("--force", is_flag=True, help="Start afresh: forget finished work and replace a finished shard set.")
@click.option("--dry-run", is_flag=True, help="Check everything and show the plan; write nothing.")
@click.option("--log-json", is_flag=True, help="Report events as JSON lines on standard error.")
@click.pass_context
def run(
    context: click.Context,
    pipeline: Path,
    settings: tuple[str, ...],
    limit: int | None,
    force: bool,
    dry_run: bool,
    log_json: bool,
) -> None:
    """Run PIPELINE, or resume it where it stopped."""
    from dataprep.config.load import load
    from dataprep.runtime.run import run_pipeline

    if dry_run:
        with _errors_as_events(context, log_json):
            _print_plan(pipeline, settings, limit, as_json=False, replace=force)
        return
    with _errors_as_events(context, log_json), _reporter(log_json) as report, _stopped_by_signals(report):
        loaded = load(pipeline, settings)
        try:
            manifest = run_pipeline(loaded, report, force=force, limit=limit)
        except KeyboardInterrupt:
            message = "interrupted: what is finished is kept; run the same command again to resume"
            _report_failure(report, message, INTERRUPTED)
            context.exit(INTERRUPTED)
    click.echo(f"{os.path.normpath(loaded.pipeline.output.path)}: manifest {manifest.hash}")


@main.command()
@_pipeline
@_settings
@_limit
@_json
def plan(pipeline: Path, settings: tuple[str, ...], limit: int | None, as_json: bool) -> None:
    """Show PIPELINE's tasks, their sizes, and estimates from a sample; writes nothing."""
    _print_plan(pipeline, settings, limit, as_json=as_json, replace=True)


@main.command()
@_directory
@_json
def stats(directory: Path, as_json: bool) -> None:
    """Count documents, tokens, rows, bytes, fertility and lengths of the shards in DIR, per source."""
    from dataprep.shards import stats as shard_stats

    collected = shard_stats.collect(directory)
    _show(shard_stats.as_json(collected), lambda: shard_stats.render_stats(collected), as_json)


@main.command()
@_directory
@click.option("--rows", default=100, show_default=True, type=click.IntRange(min=0), help="Rows to decode and check.")
@click.option(
    "--documents", default=100, show_default=True, type=click.IntRange(min=0), help="Documents to decode to their text."
)
@click.option("--quick", is_flag=True, help="Sizes only, no hashes of whole files.")
@click.option("--seed", default=0, show_default=True, help="Which rows and documents are drawn.")
def verify(directory: Path, rows: int, documents: int, quick: bool, seed: int) -> None:
    """Check the shards in DIR against their manifest: sizes, hashes, counts, rows, texts. Exit 5 on any damage."""
    from dataprep.shards.verify import checked_text, render_findings
    from dataprep.shards.verify import verify as verify_shards

    findings = verify_shards(directory, rows=rows, documents=documents, quick=quick, seed=seed)
    checked = partial(checked_text, directory, rows=rows, documents=documents, quick=quick)
    _console().print(render_findings(findings, checked))
    if findings:
        sys.exit(DamageError.exit_code)


@main.command()
@_directory
@click.option("--row", type=click.IntRange(min=0), help="Row number, counted over all shards; default 0.")
@click.option("--doc", help="Document id.")
def inspect(directory: Path, row: int | None, doc: str | None) -> None:
    """Show the decoded text of a row of DIR with its document borders, or one document across its rows."""
    from dataprep.shards.inspect import inspect_document, inspect_row, render_documents, render_row

    if row is not None and doc is not None:
        raise ConfigError("--row and --doc exclude each other", mend="give one of them")
    if doc is None:
        _console().print(render_row(inspect_row(directory, row or 0)), soft_wrap=True)
        return
    _console().print(render_documents(inspect_document(directory, doc)), soft_wrap=True)


@main.command()
@_directory
@click.option("--reason", help="Only this reason, such as broken_json, or all rules of a step, such as length.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Show at most this many.  [default: 20, with --json all of them]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line instead of a table.")
def dropped(directory: Path, reason: str | None, limit: int | None, as_json: bool) -> None:
    """List documents that were dropped or quarantined on the way to DIR, and why.

    Works before the run is finished, too: then with what there is.
    """
    from dataprep.shards.inspect import as_json_lines, render_lost
    from dataprep.shards.lost import UNFINISHED, lost_tables

    tables = lost_tables(directory)
    if not tables.finished:
        click.echo(f"note: {UNFINISHED}", err=True)
    if as_json:
        for line in as_json_lines(tables, reason, limit):
            click.echo(line)
        return
    _console().print(render_lost(tables, reason, limit or 20))


@main.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("pipeline.yaml"))
def init(path: Path) -> None:
    """Write a commented starter pipeline to PATH (default pipeline.yaml); never overwrites."""
    from dataprep.config.starter import starter_text
    from dataprep.storage import write_bytes

    if path.exists():
        raise ConfigError("this file exists already", where=str(path), mend="give another path")
    write_bytes(path, starter_text().encode())
    click.echo(f"wrote {path}: name your inputs in it, then run: dataprep plan {path}")


@main.command()
def schema() -> None:
    """Print the JSON schema of pipeline files, for editors to complete and check them."""
    from dataprep.config.schema import pipeline_schema

    click.echo(json.dumps(pipeline_schema(), ensure_ascii=False, indent=1))


def _print_plan(pipeline: Path, settings: tuple[str, ...], limit: int | None, *, as_json: bool, replace: bool) -> None:
    from dataprep.config.load import load
    from dataprep.runtime.estimate import as_json as estimate_json
    from dataprep.runtime.estimate import estimate, render_estimate

    estimated = estimate(load(pipeline, settings), limit, replace=replace)
    _show(estimate_json(estimated), lambda: render_estimate(estimated), as_json)


def _console() -> Console:
    """Standard output; a file or a pipe has no width of its own, and tables should not be squeezed into 80 columns."""
    return Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)


def _show(value: object, table: Callable[[], Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(value, ensure_ascii=False, indent=1))
        return
    _console().print(table())


@contextmanager
def _reporter(log_json: bool) -> Iterator[Callable[[Any], None]]:
    from dataprep.runtime.events import json_reporter
    from dataprep.runtime.progress import plain_reporter, rich_reporter

    with ExitStack() as stack:
        if log_json:
            yield json_reporter(sys.stderr)
        elif sys.stderr.isatty():
            yield stack.enter_context(rich_reporter(Console(stderr=True)))
        else:
            yield stack.enter_context(plain_reporter(sys.stderr))


@contextmanager
def _errors_as_events(context: click.Context, log_json: bool) -> Iterator[None]:
    """With --log-json an error is one more event and no plain line, so that standard error holds JSON lines alone."""
    try:
        yield
    except PipelineError as error:
        if not log_json or context.find_root().params["debug"]:
            raise
        with _reporter(log_json) as report:
            _report_failure(report, str(error), error.exit_code)
        context.exit(error.exit_code)


def _report_failure(report: Callable[[Any], None], message: str, exit_code: int) -> None:
    from dataprep.runtime.events import RunFailed

    report(RunFailed(message, exit_code))


@contextmanager
def _stopped_by_signals(report: Callable[[Any], None]) -> Iterator[None]:
    """Treat SIGTERM, which batch systems send, like Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
