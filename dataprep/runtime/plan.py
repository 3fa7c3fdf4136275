"""Plan: configuration and inputs become tasks whose ids hash everything that can change what they write.

How work is cut depends on the inputs and the configuration alone, never on the number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataprep import __version__
from dataprep.config.canonical import hashed_config
from dataprep.config.load import LoadedPipeline
from dataprep.config.models import Pipeline
from dataprep.dedup.exact import key_ranges
from dataprep.errors import ConfigError
from dataprep.readers.inputs import Split
from dataprep.readers.split import plan_splits
from dataprep.runtime.checks import check_labels, check_layout, check_paths
from dataprep.runtime.directories import RunPaths, file_stem, owned_by
from dataprep.runtime.draw import DrawnPart
from dataprep.runtime.ledger import TaskRecord
from dataprep.runtime.parts import ORDER_END, Part
from dataprep.runtime.sets import ShardSet, shard_sets
from dataprep.runtime.shard_size import shard_layout
from dataprep.runtime.stages import dedup, prepare
from dataprep.runtime.task import Task
from dataprep.shards.layouts import LayoutName
from dataprep.step import Step
from dataprep.storage import hash_file, hash_value
from dataprep.tokens.config import DEFAULT_EOS
from dataprep.tokens.fim_tokens import check_fim_of_trained
from dataprep.tokens.kinds import read_source
from dataprep.tokens.source import Source
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer

# A worker's own libraries and buffers, on top of the text it holds (measured).
WORKER_BYTES = 300 << 20
# A long text is held as record, as string, in batches and in the forms a step makes of it (measured at 200 MB).
_COPIES_OF_A_DOCUMENT = 10


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked pipeline with its splits; `config` is what decides bytes, `identity` also knows the input files.

    `step_files` and `tokenizer_files` are the configured files that decide bytes too, each with its xxh3-128; `source`
    is the configured tokenizer, as it was then. `mix_at` is the place of the mix in the pipeline file.
    """

    pipeline: Pipeline
    paths: RunPaths
    sets: tuple[ShardSet, ...]
    splits: tuple[Split, ...]
    config: dict[str, Any]
    identity: str
    step_files: Mapping[str, str]
    tokenizer_files: Mapping[str, str]
    source: Source | None
    mix_at: str


def make_plan(loaded: LoadedPipeline, limit: int | None = None) -> Plan:
    """Find the inputs and cut them into splits. Raises ConfigErrors with everything that would stop the run later."""
    pipeline = loaded.pipeline
    paths = RunPaths(pipeline.run.work_dir, pipeline.output.path, pipeline.name, tuple(sorted(pipeline.output.splits)))
    check_paths(loaded, paths)
    check_fim_of_trained(pipeline.tokenizer, pipeline.pack.fim)
    splits = plan_splits(
        pipeline.inputs,
        loaded.base,
        split_bytes=pipeline.run.split_bytes,
        limit=limit,
        # Of earlier runs: what they wrote is no input, even if it lies below one.
        leave_out=owned_by(paths, marked=True),
    )
    check_labels(loaded, splits)
    check_layout(loaded, lambda: shard_layout(pipeline))
    steps = [step for step in pipeline.steps if isinstance(step, Step)]
    step_files = {str(path): hash_file(path) for step in steps for path in step.files()}
    source = None if pipeline.tokenizer.path is None else read_source(pipeline.tokenizer)
    tokenizer_files = {str(path): hash_file(path) for path in (source.files if source else ())}
    config = hashed_config(pipeline, loaded.base)
    if limit is not None:
        config["limit"] = limit
    contents = [sorted(step_files.items()), sorted(tokenizer_files.values())]
    identity = hash_value([config, [_split_identity(split) for split in splits], *contents])
    return Plan(
        pipeline,
        paths,
        shard_sets(pipeline, paths),
        splits,
        config,
        identity,
        step_files,
        tokenizer_files,
        source,
        loaded.where("mix"),
    )


def _split_identity(split: Split) -> dict[str, Any]:
    ranges = [[r.name, r.size, r.mtime_ns, r.start, r.end] for r in split.ranges]
    entry = split.input.model_dump(mode="json", exclude={"path", "include", "exclude"})
    return {"key": split.key, "input": entry, "ranges": ranges, "limit": split.limit}


def load_planned_tokenizer(plan: Plan) -> Tokenizer | None:
    """The configured tokenizer, None if one is trained in the run. Raises ConfigError if it cannot be used."""
    pipeline, source = plan.pipeline, plan.source
    if source is None:
        check_borders(pipeline.tokenizer.bos == (pipeline.tokenizer.eos or DEFAULT_EOS), pipeline.pack.layout)
        return None
    tokenizer = load_tokenizer(pipeline.tokenizer, source, pipeline.pack.fim)
    check_borders(tokenizer.bos_id == tokenizer.eos_id, pipeline.pack.layout)
    return tokenizer


def check_borders(one_token: bool, layout: LayoutName) -> None:
    """Refuse layouts without `doc_starts` where bos and eos are one token: nothing would tell where documents begin."""
    if one_token and layout != "compact":
        what = f"bos and eos are one token: with the layout {layout} nothing tells where documents begin"
        raise ConfigError(what, where="tokenizer.bos", mend="take another bos, or none, or pack.layout compact")


def task_id(stage: str, key: str, **what: object) -> str:
    """The identity of a task: two tasks with the same id write the same bytes."""
    return hash_value({"version": __version__, "stage": stage, "key": key, **what})


def steps_identity(plan: Plan, steps: Sequence[Step]) -> list[Any]:
    """All of these steps that can change what a task writes, their files by hash."""
    return [
        [step.name, step.model_dump(mode="json", by_alias=True), [plan.step_files[str(file)] for file in step.files()]]
        for step in steps
    ]


def prepare_tasks(plan: Plan) -> list[Task]:
    """One task a split."""
    return [_prepare_task(plan, split) for split in plan.splits]


def _prepare_task(plan: Plan, split: Split) -> Task:
    pipeline = plan.pipeline
    dedup_step = pipeline.dedup_step
    identity = task_id(
        prepare.STAGE,
        split.key,
        split=_split_identity(split),
        steps=steps_identity(plan, pipeline.prepare_steps),
        dedup=dedup_step and dedup_step.model_dump(mode="json", by_alias=True),
        seed=pipeline.run.seed,
        part_bytes=pipeline.run.part_bytes,
        keep_text=pipeline.output.dropped_text,
        paths=[str(plan.sets[0].paths.output), str(plan.paths.work)],
    )
    stem = f"prepare-{file_stem(split.key)}"
    job = prepare.Prepare(
        split=split,
        steps=pipeline.prepare_steps,
        dedup=dedup_step,
        seed=pipeline.run.seed,
        part_bytes=pipeline.run.part_bytes,
        keep_text=pipeline.output.dropped_text,
        fail_on_bad=pipeline.run.on_bad_record == "fail",
        parts=plan.paths.part_stem(identity),
        dropped=plan.sets[0].paths.dropped(stem),
        quarantine=plan.sets[0].paths.quarantine(stem),
    )
    memory = WORKER_BYTES + 4 * pipeline.run.part_bytes + _COPIES_OF_A_DOCUMENT * split.input.max_doc_bytes
    return Task(prepare.STAGE, split.key, identity, job, split.size, memory, files_of(plan, pipeline.prepare_steps))


def files_of(plan: Plan, steps: Sequence[Step]) -> dict[str, str]:
    """The configured files these steps read, each with the xxh3-128 it had when the run was planned."""
    return {str(path): plan.step_files[str(path)] for step in steps for path in step.files()}


def parts_of(records: Sequence[TaskRecord]) -> list[DrawnPart]:
    """All parts in canonical order: by the key of their split, then by their number in it."""
    facts = [
        (f"{record.key}/{number:06d}", fact, {output.path: output.xxh3 for output in record.outputs})
        for record in sorted(records, key=lambda record: record.key)
        for number, fact in enumerate(record.facts["parts"])
    ]
    return [
        DrawnPart(_part(key, fact, hashes[fact["path"]]), number) for number, (key, fact, hashes) in enumerate(facts)
    ]


def _part(key: str, fact: Mapping[str, Any], xxh3: str) -> Part:
    return Part(key, fact["path"], xxh3, fact["rows"], fact["text_bytes"], fact["sources"])


def dedup_tasks(plan: Plan, prepared: Sequence[TaskRecord]) -> list[Task]:
    """One task a range of content keys; none when the pipeline has no exact_dedup or nothing was kept."""
    ordered = sorted(prepared, key=lambda record: record.key)
    facts = [fact for record in ordered for fact in record.facts["parts"] if "keys" in fact]
    hashes = {output.path: output.xxh3 for record in ordered for output in record.outputs}
    keys = sum(fact["keyed"] for fact in facts)
    if plan.pipeline.dedup_step is None or keys == 0:
        return []
    files = tuple(Path(fact["keys"]) for fact in facts)
    content = [hashes[fact["keys"]] for fact in facts]
    tasks = []
    for number, (low, high) in enumerate(key_ranges(keys, plan.pipeline.dedup.memory)):
        key = f"{number:05d}"
        identity = task_id(dedup.STAGE, key, keys=content, range=[low, high], work=str(plan.paths.work))
        job = dedup.Dedup(files, low, high, plan.paths.removals(identity))
        size = sum(fact["text_bytes"] for fact in facts) * (high - low) // ORDER_END
        tasks.append(Task(dedup.STAGE, key, identity, job, size, WORKER_BYTES + plan.pipeline.dedup.memory))
    return tasks
