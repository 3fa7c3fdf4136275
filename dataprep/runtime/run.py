"""Run a pipeline: plan, prepare, dedup, tokenizer, emit, finish; each stage resumes from what the ledger holds."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import psutil

from dataprep.config.load import LoadedPipeline
from dataprep.config.models import RunConfig
from dataprep.errors import BadDataError, ConfigError
from dataprep.runtime import events
from dataprep.runtime.bad_records import bad_of_run, mend_of, told_of
from dataprep.runtime.directories import RunPaths, clear_former, clear_leftovers, clear_work, locked
from dataprep.runtime.executors.local import LocalExecutor, Retried
from dataprep.runtime.finish import Emitted, Finished, finish, why_empty
from dataprep.runtime.ledger import Ledger, TaskRecord
from dataprep.runtime.plan import Plan, dedup_tasks, load_planned_tokenizer, make_plan, prepare_tasks
from dataprep.runtime.shard_tasks import kept_documents, shard_tasks, tokenizer_task, trust_in
from dataprep.runtime.task import Task
from dataprep.shards.manifest import Manifest, load_manifest
from dataprep.storage import disk_errors
from dataprep.tokens.engines import FASTOKENS, EngineUnusable, Fastokens
from dataprep.tokens.tokenizer import HF, Tokenizer
from dataprep.wording import counted, shortened, shown_path, some_of

# What is left to the operating system and the parent when the limit is ours to choose.
_AUTO_MEMORY_SHARE = 0.8


def run_pipeline(
    loaded: LoadedPipeline, report: events.Reporter, *, force: bool = False, limit: int | None = None
) -> tuple[Manifest, ...]:
    """Bring the pipeline to finished shard sets, doing only what is not done yet; one set unless there are splits.

    `force` forgets earlier work and replaces finished sets; `limit` reads at most that many records an input. Raises
    PipelineError; everything finished by then is kept and the same call resumes.
    """
    started = time.time()
    plan = make_plan(loaded, limit)
    _check_tokenizer(plan)
    with locked(plan.paths):
        finished = finished_sets(plan, force)
        if finished:
            report(
                events.Note(f"{shown_path(plan.paths.output)} is finished already, nothing to do (--force to redo it)")
            )
            return finished
        for shard_set in plan.sets:
            with disk_errors(shard_set.paths.manifest):
                shard_set.paths.manifest.unlink(missing_ok=True)
        clear_former(plan.paths)
        plan.paths.take()
        clear_leftovers(plan.paths)
        if force:
            clear_work(plan.paths)
        stages = _Stages(plan, report)
        if limit is not None:
            report(events.Note(f"reading {counted(limit, 'record')} of each input at most; sizes are of whole files"))
        try:
            done = _all_stages(plan, stages)
        finally:
            stages.executor.close()
        manifests = finish(plan, done, stages.run_facts(started))
    for manifest in manifests:
        _tell_of(manifest, report)
    totals = [manifest.totals for manifest in manifests]
    report(
        events.RunFinished(
            documents=sum(each.documents for each in totals),
            tokens=sum(each.tokens for each in totals),
            rows=sum(each.rows for each in totals),
            shards=sum(len(manifest.shards) for manifest in manifests),
            seconds=round(time.time() - started, 3),
            manifest_hashes=tuple(manifest.hash for manifest in manifests),
        )
    )
    return manifests


def _tell_of(manifest: Manifest, report: events.Reporter) -> None:
    split = f"{manifest.split.name}: " if manifest.split else ""
    if not manifest.totals.documents:
        report(events.Note(f"{split}{why_empty(manifest)}"))
    if manifest.tokenizer.inexact:
        what = f"the tokens of {counted(manifest.tokenizer.inexact, 'document')} decode to another text than theirs"
        report(events.Note(f"{split}{what}: the tokenizer changes what it reads (documents/*.parquet, column exact)"))


def _all_stages(plan: Plan, stages: _Stages) -> Finished:
    prepared = stages.run("prepare", prepare_tasks(plan))
    _check_bad(plan, prepared)
    deduplicated = stages.run("dedup", dedup_tasks(plan, prepared))
    kept = kept_documents(prepared, deduplicated)
    [settled] = stages.run("tokenizer", [tokenizer_task(plan, kept)])
    _tell_engine(plan, settled, stages.report)
    sets = shard_tasks(plan, kept, settled)
    if sets[0].epochs:
        taken = some_of(f"{shortened(source)} {epochs:.4g}" for source, epochs in sets[0].epochs.items())
        stages.report(events.Note(f"epochs of each source: {taken}"))
    records = _trusted(plan, settled, stages, [task for each in sets for task in each.tasks])
    _tell_slow(settled, list(records.values()), stages.report)
    emitted = [Emitted(each.set, each.epochs, [records[task.id] for task in each.tasks]) for each in sets]
    return Finished(prepared, deduplicated, settled, emitted)


def _tell_engine(plan: Plan, settled: TaskRecord, report: events.Reporter) -> None:
    engine = settled.facts["engine"]
    if engine["why"]:
        slow = ", which is slow" if engine["name"] == HF else ""
        report(events.Note(f"encoding with {engine['name']}{slow}: {engine['why']}"))
    for name, texts in trust_in(plan, settled).findings().items():
        report(events.Note(f"{name} is not used: it gave other ids than {HF} for text {texts[0]}"))


def _tell_slow(settled: TaskRecord, emitted: Sequence[TaskRecord], report: events.Reporter) -> None:
    """Tell of what the reference encoded although a fast engine had proven itself."""
    fast = settled.facts["engine"]["name"]
    used = Counter(record.facts["engine"]["name"] for record in emitted)
    failed = sum(record.facts["engine"]["failed"] for record in emitted)
    if fast != HF and used[HF]:
        what = f"{counted(used[HF], 'shard')} of {len(emitted):,} were encoded with {HF}, which is slow"
        report(events.Note(f"{what}: {fast} cannot be used any more, or not on every machine"))
    if failed:
        report(events.Note(f"{fast} failed at {counted(failed, 'document')}, which {HF} encoded"))


def _trusted(plan: Plan, settled: TaskRecord, stages: _Stages, tasks: Sequence[Task]) -> dict[str, TaskRecord]:
    """Records by task of shards none of which an engine wrote that is known to differ: those are made again."""
    records = {record.id: record for record in stages.run("emit", tasks)}
    findings = trust_in(plan, settled).findings()
    again = [task for task in tasks if records[task.id].facts["engine"]["name"] in findings]
    if again:
        _tell_engine(plan, settled, stages.report)
        records |= {record.id: record for record in stages.run("emit", again, redo=True)}
    return records


def _check_tokenizer(plan: Plan) -> None:
    """Fail before the long part of the run, not after it, if the tokenizer cannot be used."""
    tokenizer = load_planned_tokenizer(plan)
    if tokenizer is not None and plan.pipeline.tokenizer.engine == FASTOKENS:
        _check_engine(tokenizer)


def _check_engine(tokenizer: Tokenizer) -> None:
    try:
        if tokenizer.model is not None:
            raise EngineUnusable(f"{FASTOKENS} cannot encode for a SentencePiece model that no tokenizer.json equals")
        Fastokens(tokenizer.encoding_json)
    except EngineUnusable as error:
        mend = "pip install fastokens, or set tokenizer.engine to auto or hf"
        raise ConfigError(str(error), where="tokenizer.engine", mend=mend) from error


def finished_sets(plan: Plan, force: bool) -> tuple[Manifest, ...]:
    """The manifests of what is finished in the output directory; empty if one is missing or `force` may replace them.

    Raises ConfigError if one is of another configuration or other inputs, DamageError if one cannot be read.
    """
    if force:
        return ()
    paths = [shard_set.paths for shard_set in plan.sets]
    found = [(each, load_manifest(each.output)) for each in (*paths, *plan.paths.former()) if each.manifest.exists()]
    for each, manifest in found:
        if each not in paths or manifest.run.get("identity") != plan.identity:
            raise ConfigError(
                "a finished shard set of another configuration or other inputs is here",
                where=str(each.output),
                mend="choose another output.path, or replace it with --force",
            )
    whole = len(found) == len(paths) and all(_all_there(each, manifest) for each, manifest in found)
    return tuple(manifest for _, manifest in found) if whole else ()


def _all_there(paths: RunPaths, manifest: Manifest) -> bool:
    listed = [(file.path, file.bytes) for file in manifest.files]
    for shard in manifest.shards:
        listed += [(shard.file, shard.bytes), (shard.db, shard.db_bytes)]
        listed += [(shard.documents_file, shard.documents_bytes)]
    files = [(paths.output / name, size) for name, size in listed]
    return all(path.is_file() and path.stat().st_size == size for path, size in files)


def _check_bad(plan: Plan, prepared: Sequence[TaskRecord]) -> None:
    config = plan.pipeline.run
    tallies = [tally for record in prepared for tally in record.tallies.values()]
    records = sum(tally.records for tally in tallies)
    bad = sum(sum(tally.quarantined.values()) for tally in tallies)
    # Tasks that an earlier run finished under `quarantine` are reused: what they set aside is refused here.
    if bad and config.on_bad_record == "fail":
        raise _too_bad(plan, prepared, f"{_of(bad, records)} bad and run.on_bad_record is fail", "set it to quarantine")
    if bad > config.max_bad_fraction * records:
        allowed = f"more than run.max_bad_fraction {config.max_bad_fraction:g} allows"
        raise _too_bad(plan, prepared, f"{_of(bad, records)} bad, {allowed}", "raise the fraction")


def _of(bad: int, records: int) -> str:
    return f"{bad} of {counted(records, 'record')} {'is' if bad == 1 else 'are'}"


def _too_bad(plan: Plan, prepared: Sequence[TaskRecord], what: str, way_out: str) -> BadDataError:
    sources = bad_of_run(plan.splits, plan.pipeline.inputs, prepared)
    every = f"`dataprep dropped {shown_path(plan.sets[0].paths.output)}` lists them"
    return BadDataError(f"{what}: {told_of(sources)}", mend=f"{mend_of(sources)}; or {way_out}; {every}")


@dataclass(slots=True)
class _StageFacts:
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss_mb: float = 0.0
    tasks: int = 0
    reused: int = 0


class _Stages:
    """Runs one stage after the other: reuses finished tasks, executes the others, and tells the reporter."""

    def __init__(self, plan: Plan, report: events.Reporter) -> None:
        config = plan.pipeline.run
        self.workers = worker_count(config)
        self.executor = LocalExecutor(self.workers, memory_limit(config), plan.paths.ledger)
        self.report = report
        self._ledger = Ledger(plan.paths.ledger)
        self._facts: dict[str, _StageFacts] = {}
        report(events.RunStarted(plan.pipeline.name, len(plan.splits), self.workers))

    def run(self, stage: str, tasks: Sequence[Task], *, redo: bool = False) -> list[TaskRecord]:
        """Records of all tasks of a stage, in the order of the tasks; `redo` does finished ones again."""
        started = time.monotonic()
        facts = self._facts[stage] = _StageFacts(tasks=len(tasks))
        if not tasks:
            return []
        with ThreadPoolExecutor(self.workers) as threads, disk_errors(self._ledger.directory):
            found = threads.map(lambda task: self._ledger.find(stage, task.id), () if redo else tasks)
            # Inside: an interrupt in here calls off the files that are not yet hashed, one outside waits for them all.
            records = {record.id: record for record in found if record is not None}
        facts.reused = len(records)
        self.report(events.StageStarted(stage, len(tasks), len(records), sum(task.bytes for task in tasks)))
        for record in records.values():
            self.report(_finished(record, reused=True))
        todo = [task for task in tasks if task.id not in records]
        for done in self.executor.run(todo):
            if isinstance(done, Retried):
                self.report(events.TaskRetried(stage, done.task.key, done.why))
                continue
            records[done.id] = done
            self.report(_finished(done, reused=False))
        self._add_up(facts, records.values())
        facts.seconds = round(time.monotonic() - started, 3)
        self.report(events.StageFinished(stage, facts.seconds))
        return [records[task.id] for task in tasks]

    @staticmethod
    def _add_up(facts: _StageFacts, records: Iterable[TaskRecord]) -> None:
        runs = [record.run for record in records]
        facts.cpu_seconds = round(sum(run["cpu_seconds"] for run in runs), 3)
        facts.peak_rss_mb = max(run["peak_rss_mb"] for run in runs)

    def run_facts(self, started: float) -> dict[str, Any]:
        """When and how the run went: not part of any hash."""
        return {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "seconds": round(time.time() - started, 3),
            "workers": self.workers,
            "stages": {
                stage: {name: getattr(facts, name) for name in _StageFacts.__slots__}
                for stage, facts in self._facts.items()
            },
        }


def _finished(record: TaskRecord, reused: bool) -> events.TaskFinished:
    tallies = record.tallies.values()
    return events.TaskFinished(
        stage=record.stage,
        key=record.key,
        seconds=record.run["seconds"],
        records_in=sum(tally.records for tally in tallies),
        kept=sum(tally.kept for tally in tallies),
        dropped=sum(sum(tally.dropped.values()) for tally in tallies),
        quarantined=sum(sum(tally.quarantined.values()) for tally in tallies),
        text_bytes=sum(tally.bytes_in for tally in tallies),
        reused=reused,
    )


def worker_count(config: RunConfig) -> int:
    """The configured number of workers, or one a core this process may use."""
    return len(os.sched_getaffinity(0)) if config.workers == "auto" else config.workers


def memory_limit(config: RunConfig) -> int:
    """The configured bytes, or most of what is available now."""
    if config.memory_limit == "auto":
        return int(psutil.virtual_memory().available * _AUTO_MEMORY_SHARE)
    return int(config.memory_limit)
