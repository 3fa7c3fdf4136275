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
from dataprep.runtime.directories import RunPaths, file_stem
from dataprep.runtime.draw import DrawnPart
from dataprep.runtime.ledger import TaskRecord
from dataprep.runtime.parts import ORDER_END, Part
from dataprep.runtime.stages import dedup, emit, prepare, tokenizer
from dataprep.runtime.task import Task
from dataprep.shards.layout import BYTES_A_TOKEN, Layout, page_and_header
from dataprep.step import Step
from dataprep.storage import hash_file, hash_value
from dataprep.tokens.special import SpecialTokens

# Parts are dealt into groups and a shard draws from one group: more parts mix better, fewer need fewer reads.
PARTS_A_GROUP = 32
# A worker's own libraries and buffers, on top of the text it holds (measured).
WORKER_BYTES = 300 << 20
# A long text is held as record, as string, in batches and in the forms a step makes of it (measured at 200 MB).
_COPIES_OF_A_DOCUMENT = 10


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked pipeline with its splits; `config` is what decides bytes, `identity` also knows the input files."""

    pipeline: Pipeline
    paths: RunPaths
    splits: tuple[Split, ...]
    config: dict[str, Any]
    identity: str
    step_files: Mapping[str, str]


def make_plan(loaded: LoadedPipeline, limit: int | None = None) -> Plan:
    """Find the inputs and cut them into splits.

    Raises ConfigError for inputs and files of steps that are not there, and for rows or shards that cannot be written.
    """
    pipeline = loaded.pipeline
    _layout(pipeline)
    splits = plan_splits(pipeline.inputs, loaded.base, split_bytes=pipeline.run.split_bytes, limit=limit)
    steps = (step for step in pipeline.steps if isinstance(step, Step))
    step_files = {str(path): _hash_step_file(path) for step in steps for path in step.files()}
    config = hashed_config(pipeline, loaded.base)
    if limit is not None:
        config["limit"] = limit
    paths = RunPaths(pipeline.run.work_dir, pipeline.output.path, pipeline.name)
    identity = hash_value([config, [_split_identity(split) for split in splits], sorted(step_files.items())])
    return Plan(pipeline, paths, splits, config, identity, step_files)


def _hash_step_file(path: Path) -> str:
    if not path.is_file():
        raise ConfigError("no such file", where=str(path), mend="mend the path in the step that names it")
    return hash_file(path)


def _split_identity(split: Split) -> dict[str, Any]:
    ranges = [[r.name, r.size, r.mtime_ns, r.start, r.end] for r in split.ranges]
    entry = split.input.model_dump(mode="json", exclude={"path", "include", "exclude"})
    return {"key": split.key, "input": entry, "ranges": ranges, "limit": split.limit}


def task_id(stage: str, key: str, **what: object) -> str:
    """The identity of a task: two tasks with the same id write the same bytes."""
    return hash_value({"version": __version__, "stage": stage, "key": key, **what})


def _steps_identity(plan: Plan, steps: Sequence[Step]) -> list[Any]:
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
        steps=_steps_identity(plan, pipeline.prepare_steps),
        dedup=dedup_step and dedup_step.model_dump(mode="json", by_alias=True),
        seed=pipeline.run.seed,
        part_bytes=pipeline.run.part_bytes,
        keep_text=pipeline.output.dropped_text,
        paths=[str(plan.paths.output), str(plan.paths.work)],
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
        dropped=plan.paths.dropped(stem),
        quarantine=plan.paths.quarantine(stem),
    )
    memory = WORKER_BYTES + 4 * pipeline.run.part_bytes + _COPIES_OF_A_DOCUMENT * split.input.max_doc_bytes
    return Task(prepare.STAGE, split.key, identity, job, split.size, memory)


def parts_of(records: Sequence[TaskRecord]) -> list[DrawnPart]:
    """All parts in canonical order: by the key of their split, then by their number in it."""
    facts = [
        (f"{record.key}/{number:06d}", fact, {output.path: output.xxh3 for output in record.outputs})
        for record in sorted(records, key=lambda record: record.key)
        for number, fact in enumerate(record.facts["parts"])
    ]
    return [
        DrawnPart(Part(key, fact["path"], hashes[fact["path"]], fact["rows"], fact["text_bytes"]), number)
        for number, (key, fact, hashes) in enumerate(facts)
    ]


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


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left after deduplication: the parts, the removal lists, and the text bytes left of each part."""

    parts: list[DrawnPart]
    removal_lists: tuple[Path, ...]
    hashes: list[str]
    bytes: list[int]


def tokenizer_task(plan: Plan, kept: Kept, source_hash: str | None) -> Task:
    """The one task that settles the tokenizer; `source_hash` is that of the configured tokenizer.json."""
    pipeline = plan.pipeline
    total = sum(kept.bytes)
    identity = task_id(
        tokenizer.STAGE,
        "tokenizer",
        config=pipeline.tokenizer.model_dump(mode="json", exclude={"path"}),
        source=source_hash,
        kept=kept.hashes,
        steps=_steps_identity(plan, pipeline.emit_steps),
        work=str(plan.paths.work),
    )
    job = tokenizer.SettleTokenizer(
        config=pipeline.tokenizer,
        parts=tuple(kept.parts),
        removal_lists=kept.removal_lists,
        steps=pipeline.emit_steps,
        kept_bytes=total,
        json=plan.paths.tokenizer(identity),
    )
    trained = pipeline.tokenizer.train
    # Learning takes about 14 bytes of memory a byte of text.
    memory = WORKER_BYTES + 14 * (min(total, trained.sample_bytes) if trained else 0)
    size = min(total, trained.sample_bytes if trained else tokenizer.MEASURED_BYTES)
    return Task(tokenizer.STAGE, "tokenizer", identity, job, size, memory)


def emit_tasks(plan: Plan, kept: Kept, settled: TaskRecord) -> list[Task]:
    """One task a shard: parts are dealt into groups, and a group's seeded order is cut into equal ranges."""
    pipeline = plan.pipeline
    target = target_tokens(pipeline)
    # An empty sample cannot say how many tokens there are; at least one text byte a token is a safe bound.
    tokens_per_byte = settled.facts["tokens"] / settled.facts["text_bytes"] if settled.facts["text_bytes"] else 1.0
    # A group with no text left still has its shard task: it accounts for removed and for empty documents.
    groups = [group for group in _groups(kept) if group]
    cuts = [max(1, -(-int(sum(kept.bytes[p.number] for p in g) * tokens_per_byte) // target)) for g in groups]
    count = sum(cuts)
    layout = _layout(pipeline)
    tasks: list[Task] = []
    for group, cut in zip(groups, cuts, strict=True):
        size = sum(kept.bytes[part.number] for part in group) // cut
        for number in range(cut):
            low, high = ORDER_END * number // cut, ORDER_END * (number + 1) // cut
            tasks.append(_emit_task(plan, kept, settled, group, (low, high), (len(tasks), count), layout, size))
    return tasks


def target_tokens(pipeline: Pipeline) -> int:
    """Tokens a shard should hold."""
    if pipeline.output.shard_tokens is not None:
        return pipeline.output.shard_tokens
    return max(1, int(pipeline.output.shard_bytes or 0) // BYTES_A_TOKEN[pipeline.pack.layout])


def _layout(pipeline: Pipeline) -> Layout:
    """Room for four times the aim and one longest document: how many rows a shard gets is known only when written."""
    longest = max(entry.max_doc_bytes for entry in pipeline.inputs)
    row_length = pipeline.pack.seq_length + 1
    rows = (4 * target_tokens(pipeline) + longest) // row_length + 1
    return page_and_header(row_length, rows, pipeline.pack.layout)


def _groups(kept: Kept) -> list[list[DrawnPart]]:
    """Deal the parts round-robin, so that every group has its share of every source."""
    count = max(1, -(-len(kept.parts) // PARTS_A_GROUP))
    return [kept.parts[number::count] for number in range(count)]


def _emit_task(
    plan: Plan,
    kept: Kept,
    settled: TaskRecord,
    group: list[DrawnPart],
    bounds: tuple[int, int],
    place: tuple[int, int],
    layout: Layout,
    size: int,
) -> Task:
    pipeline, paths = plan.pipeline, plan.paths
    shard = paths.shard(*place)
    key = f"{place[0]:05d}-of-{place[1]:05d}"
    identity = task_id(
        emit.STAGE,
        key,
        name=pipeline.name,
        parts=[[part.part.xxh3, part.number] for part in group],
        removals=kept.hashes,
        bounds=bounds,
        steps=_steps_identity(plan, pipeline.emit_steps),
        tokenizer=[settled.outputs[0].xxh3, pipeline.tokenizer.model_dump(mode="json", exclude={"path", "train"})],
        pack=pipeline.pack.model_dump(mode="json"),
        layout=[layout.page_size, layout.header_size],
        seed=pipeline.run.seed,
        keep_text=pipeline.output.dropped_text,
        output=str(paths.output),
    )
    job = emit.Emit(
        parts=tuple(group),
        removal_lists=kept.removal_lists,
        low=bounds[0],
        high=bounds[1],
        steps=pipeline.emit_steps,
        tokenizer_json=Path(settled.outputs[0].path),
        special=SpecialTokens(**settled.facts["special"]),
        pack=pipeline.pack,
        layout=layout,
        seed=pipeline.run.seed,
        keep_text=pipeline.output.dropped_text,
        shard=shard,
        documents=paths.documents(*place),
        dropped=paths.dropped(f"emit-{key}"),
        scratch=paths.scratch,
    )
    # Text joined and drawn from, then its tokens flat, as rows and as shuffled rows.
    memory = WORKER_BYTES + 3 * size + 3 * 4 * target_tokens(pipeline)
    return Task(emit.STAGE, key, identity, job, size, memory)
