"""The `dataprep` command: one short function a subcommand, no logic of its own."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.measure import Measurement

from dataprep import __version__, interrupts
from dataprep.errors import ConfigError, DamageError, PipelineError
from dataprep.streams import json_text
from dataprep.visible import visible
from dataprep.wording import shown_path

_PIPE_WIDTH = 160
_SHOW_CURSOR = "\x1b[?25h"
_RESUME = "interrupted: what is finished is kept; run the same command again to resume"

_pipeline = click.argument("pipeline", type=click.Path(path_type=Path))
_directory = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
_settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY.PATH=VALUE",
    help="Override a key of the pipeline file; repeatable.",
)
_limit = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Read at most this many records of each input."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


class _Command(click.Group):
    """Turns the errors a user can mend, and interrupts, into one line and their exit code."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except PipelineError as error:
            if context.params.get("debug"):
                traceback.print_exc()
            else:
                _tell(error)
            context.exit(error.exit_code)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr, flush=True)
            context.exit(interrupts.CODE)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except PipelineError as error:  # help and version are printed while the arguments are read
            _tell(error)
            sys.exit(error.exit_code)


def _tell(error: PipelineError) -> None:
    text = str(error)
    print(visible(f"error: {text}" if "\n" not in text else text, keep="\n"), file=sys.stderr, flush=True)


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
    if dry_run:
        with _errors_as_events(context, log_json):
            _print_plan(pipeline, settings, limit, as_json=False, replace=force)
        return
    with _errors_as_events(context, log_json), _reporter(log_json) as report:
        from dataprep.config.load import load
        from dataprep.runtime.run import run_pipeline

        loaded = load(pipeline, settings)
        try:
            with interrupts.raised():
                manifests = run_pipeline(loaded, report, force=force, limit=limit)
        except KeyboardInterrupt:
            from dataprep.runtime.events import RunFailed

            interrupts.last_words(lambda: "")
            report(RunFailed(_RESUME, interrupts.CODE))
            context.exit(interrupts.CODE)
    for manifest in manifests:
        folder = loaded.pipeline.output.path / (manifest.split.name if manifest.split else "")
        print(f"{visible(shown_path(folder))}: manifest {manifest.hash}", flush=True)


@main.command()
@_pipeline
@_settings
@_limit
@_json
def plan(pipeline: Path, settings: tuple[str, ...], limit: int | None, as_json: bool) -> None:
    """Show PIPELINE's tasks, sizes and estimates.

    Estimates come from a sample that is read, judged and encoded in memory; nothing is written.
    """
    _print_plan(pipeline, settings, limit, as_json=as_json, replace=True)


@main.command()
@_directory
@_json
def stats(directory: Path, as_json: bool) -> None:
    """Count what is in the shards in DIR.

    Documents, tokens, rows, bytes, bytes a token and lengths of each source, and the ledger.
    """
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
    """Check the shards in DIR against their manifest.

    Sizes, hashes, counts, rows, texts. Exit 5 on any damage.
    """
    from dataprep.shards.verify import checked_text, render_findings, unproved
    from dataprep.shards.verify import verify as verify_shards

    findings = verify_shards(directory, rows=rows, documents=documents, quick=quick, seed=seed)
    checked = partial(checked_text, directory, rows=rows, documents=documents, quick=quick)
    _console().print(render_findings(findings, checked))
    for note in unproved(directory):
        print(visible(f"note: {note}"), flush=True)
    if findings:
        sys.exit(DamageError.exit_code)


@main.command()
@_directory
@click.option("--row", type=click.IntRange(min=0), metavar="N", help="Row number, counted over all shards; default 0.")
@click.option("--doc", metavar="ID", help="Document id.")
def inspect(directory: Path, row: int | None, doc: str | None) -> None:
    """Show the text of a row or a document of DIR.

    A row with its document borders, a document across its rows. Line ends and tabs are shown as they are; other control
    characters and invisible ones as escapes such as \\x1b.
    """
    from dataprep.shards.inspect import inspect_document, inspect_row, render_documents, render_row

    if row is not None and doc is not None:
        raise ConfigError("--row and --doc exclude each other", mend="give one of them")
    if doc is None:
        _console().print(render_row(inspect_row(directory, row or 0)), soft_wrap=True)
        return
    _console().print(render_documents(inspect_document(directory, doc)), soft_wrap=True)


@main.command()
@_directory
@click.option(
    "--reason",
    metavar="REASON",
    help="Only this reason, such as broken_json, or all rules of a step, such as length.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="Show at most this many.  [default: 20, with --json all of them]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line instead of a table.")
def dropped(directory: Path, reason: str | None, limit: int | None, as_json: bool) -> None:
    """List what was dropped or quarantined, and why.

    Documents that did not make it into the shards in DIR, with the beginning of their text.

    Works before the run is finished, too: then with what there is.
    """
    from dataprep.shards.inspect import as_json_lines, render_lost
    from dataprep.shards.lost import UNFINISHED, lost_tables

    tables = lost_tables(directory)
    if not tables.finished:
        print(f"note: {UNFINISHED}", file=sys.stderr, flush=True)
    if as_json:
        for line in as_json_lines(tables, reason, limit):
            print(line)
        sys.stdout.flush()
        return
    _console().print(render_lost(tables, reason, limit or 20))


@main.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("pipeline.yaml"))
def init(path: Path) -> None:
    """Write a commented starter pipeline to PATH.

    PATH is pipeline.yaml unless given; a file that exists is never overwritten.
    """
    from dataprep.config.starter import starter_text
    from dataprep.storage import write_bytes

    if path.exists():
        raise ConfigError("this file exists already", where=str(path), mend="give another path")
    with interrupts.raised():
        write_bytes(path, starter_text().encode())
    shown = visible(str(path))
    print(f"wrote {shown}: name your inputs in it, then run: dataprep plan {shown}", flush=True)


@main.group()
def tokenizer() -> None:
    """Train, inspect or compare tokenizers.

    A tokenizer is named by its PATH: a tokenizer.json, a Hugging Face folder, a SentencePiece .model, or a tiktoken
    file with its split pattern behind it, PATH:PATTERN.
    """


@tokenizer.command("train")
@_pipeline
@_settings
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("tokenizer.json"),
    show_default=True,
    help="File to write.",
)
def tokenizer_train(pipeline: Path, settings: tuple[str, ...], output: Path) -> None:
    """Train PIPELINE's tokenizer on a seeded sample of its inputs after its steps; never overwrites."""
    from dataprep.config.load import load
    from dataprep.runtime.sampled_texts import train_on_sample
    from dataprep.storage import write_bytes

    if output.exists():
        raise ConfigError("this file exists already", where=str(output), mend="give another path by --output")
    with interrupts.raised():
        write_bytes(output, train_on_sample(load(pipeline, settings)))
    print(f"wrote {visible(str(output))}: use it by tokenizer: {{path: {visible(output.name)}}}", flush=True)


@tokenizer.command("inspect")
@click.argument("path")
@click.option("--text", "texts", multiple=True, help="Show how this text is cut; repeatable. Default: five examples.")
@_json
def tokenizer_inspect(path: str, texts: tuple[str, ...], as_json: bool) -> None:
    """Show what the tokenizer at PATH is, what it can lose, and how it cuts examples."""
    from dataprep.tokens import describe
    from dataprep.tokens.kinds import named_on_command_line

    described = describe.describe(named_on_command_line(path), texts or describe.EXAMPLES)
    _show(describe.as_json(described), lambda: describe.render_description(described), as_json)


@tokenizer.command("compare")
@click.argument("paths", nargs=-1, required=True)
@click.option("--text", "files", multiple=True, type=click.Path(path_type=Path), help="File of texts; repeatable.")
@click.option("--pipeline", type=click.Path(path_type=Path), help="Take the texts of this pipeline's inputs instead.")
@_json
def tokenizer_compare(paths: tuple[str, ...], files: tuple[Path, ...], pipeline: Path | None, as_json: bool) -> None:
    """Count the tokens that the tokenizers at PATHS need for the same texts, by source and by script."""
    from dataprep.config.load import load
    from dataprep.runtime.sampled_texts import COMPARED_BYTES, file_texts, pipeline_texts
    from dataprep.tokens import fertility
    from dataprep.tokens.kinds import named_on_command_line

    if bool(files) == (pipeline is not None):
        raise ConfigError("give either --text or --pipeline", mend="name files of texts, or a pipeline with inputs")
    if pipeline is None:
        texts = file_texts(files, COMPARED_BYTES)
    else:
        texts = pipeline_texts(load(pipeline), COMPARED_BYTES, by_size=False)
    figures = fertility.compare([named_on_command_line(path) for path in paths], texts)
    _show(fertility.as_json(figures), lambda: fertility.render_fertility(figures), as_json)


@main.command()
def schema() -> None:
    """Print the JSON schema of pipeline files.

    Editors complete and check pipeline files by it.
    """
    from dataprep.config.schema import pipeline_schema

    print(json_text(pipeline_schema(), sys.stdout, indent=1), flush=True)


def _print_plan(pipeline: Path, settings: tuple[str, ...], limit: int | None, *, as_json: bool, replace: bool) -> None:
    from dataprep.config.load import load
    from dataprep.runtime.estimate import as_json as estimate_json
    from dataprep.runtime.estimate import estimate, render_estimate

    estimated = estimate(load(pipeline, settings), limit, replace=replace)
    _show(estimate_json(estimated), lambda: render_estimate(estimated), as_json)


def _console() -> Console:
    """Standard output; a file or a pipe has no width of its own, and tables should not be squeezed into 80 columns."""
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH)


def _show(value: object, table: Callable[[], RenderableType], as_json: bool) -> None:
    if as_json:
        print(json_text(value, sys.stdout, indent=1), flush=True)
        return
    console, shown = _console(), table()
    # A narrow terminal breaks the lines: figures that are cut short to fit it would be wrong ones.
    natural = Measurement.get(console, console.options.update(max_width=_PIPE_WIDTH), shown).maximum
    console.width = max(console.width, natural)
    console.print(shown)


@contextmanager
def _reporter(log_json: bool) -> Iterator[Callable[[Any], None]]:
    """Standard error as bars, lines or JSON; until the run can be stopped, a signal ends the process in its manner."""
    from dataprep.runtime.events import RunFailed, json_line, json_reporter
    from dataprep.runtime.progress import plain_reporter, rich_reporter

    console = Console(stderr=True)
    with ExitStack() as stack:
        if log_json:
            interrupts.last_words(lambda: json_line(RunFailed(_RESUME, interrupts.CODE), sys.stderr))
            yield json_reporter(sys.stderr)
        elif sys.stderr.isatty() and not console.is_dumb_terminal:
            interrupts.last_words(lambda: f"\n{_SHOW_CURSOR}{_RESUME}\n")
            yield stack.enter_context(rich_reporter(console))
        else:
            interrupts.last_words(lambda: f"{_RESUME}\n")
            yield stack.enter_context(plain_reporter(sys.stderr))


@contextmanager
def _errors_as_events(context: click.Context, log_json: bool) -> Iterator[None]:
    """With --log-json an error is one more event and no plain line, so that standard error holds JSON lines alone."""
    try:
        yield
    except PipelineError as error:
        if not log_json or context.find_root().params["debug"]:
            raise
        from dataprep.runtime.events import RunFailed

        with _reporter(log_json) as report:
            report(RunFailed(str(error), error.exit_code))
        context.exit(error.exit_code)
