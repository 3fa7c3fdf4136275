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
from dataprep.readers.inputs import Split
from dataprep.readers.split import plan_splits
from dataprep.runtime.checks import check_labels, check_layout, check_paths
from dataprep.runtime.directories import RunPaths, file_stem, owned_by
from dataprep.runtime.draw import DrawnPart
from dataprep.runtime.ledger import TaskRecord
from dataprep.runtime.parts import ORDER_END, Part
from dataprep.runtime.stages import dedup, emit, prepare, tokenizer
from dataprep.runtime.task import Task
from dataprep.runtime.trust import Trust
from dataprep.shards.layout import BYTES_A_TOKEN, Layout, page_and_header
from dataprep.step import Step
from dataprep.storage import hash_file, hash_value
from dataprep.tokens.engines import fastokens_version
from dataprep.tokens.fim_tokens import check_fim_of_trained
from dataprep.tokens.kinds import read_source
from dataprep.tokens.source import Source
from dataprep.tokens.special import SpecialTokens

# Parts are dealt into groups and a shard draws from one group: more parts mix better, fewer need fewer reads.
PARTS_A_GROUP = 32
# A worker's own libraries and buffers, on top of the text it holds (measured).
WORKER_BYTES = 300 << 20
# A long text is held as record, as string, in batches and in the forms a step makes of it (measured at 200 MB).
_COPIES_OF_A_DOCUMENT = 10


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked pipeline with its splits; `config` is what decides bytes, `identity` also knows the input files.

    `step_files` and `tokenizer_files` are the configured files that decide bytes too, each with its xxh3-128; `source`
    is the configured tokenizer, as it was then.
    """

    pipeline: Pipeline
    paths: RunPaths
    splits: tuple[Split, ...]
    config: dict[str, Any]
    identity: str
    step_files: Mapping[str, str]
    tokenizer_files: Mapping[str, str]
    source: Source | None


def make_plan(loaded: LoadedPipeline, limit: int | None = None) -> Plan:
    """Find the inputs and cut them into splits. Raises ConfigErrors with everything that would stop the run later."""
    pipeline = loaded.pipeline
    paths = RunPaths(pipeline.run.work_dir, pipeline.output.path, pipeline.name)
    check_paths(loaded, paths)
    check_fim_of_trained(pipeline.tokenizer, pipeline.pack.fim)
    splits = plan_splits(
        pipeline.inputs,
        loaded.base,
        split_bytes=pipeline.run.split_bytes,
        limit=limit,
        # Of earlier runs: what they wrote is no input, even if it lies below one.
        leave_out=owned_by(paths) if paths.taken() else None,
    )
    check_labels(loaded, splits)
    check_layout(loaded, lambda: _layout(pipeline))
    steps = [step for step in pipeline.steps if isinstance(step, Step)]
    step_files = {str(path): hash_file(path) for step in steps for path in step.files()}
    source = None if pipeline.tokenizer.path is None else read_source(pipeline.tokenizer)
    tokenizer_files = {str(path): hash_file(path) for path in (source.files if source else ())}
    config = hashed_config(pipeline, loaded.base)
    if limit is not None:
        config["limit"] = limit
    contents = [sorted(step_files.items()), sorted(tokenizer_files.values())]
    identity = hash_value([config, [_split_identity(split) for split in splits], *contents])
    return Plan(pipeline, paths, splits, config, identity, step_files, tokenizer_files, source)


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
    return Task(prepare.STAGE, split.key, identity, job, split.size, memory, _files_of(plan, pipeline.prepare_steps))


def _files_of(plan: Plan, steps: Sequence[Step]) -> dict[str, str]:
    return {str(path): plan.step_files[str(path)] for step in steps for path in step.files()}


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


def tokenizer_task(plan: Plan, kept: Kept) -> Task:
    """The one task that settles the tokenizer."""
    pipeline = plan.pipeline
    fim = pipeline.pack.fim
    total = sum(kept.bytes)
    identity = task_id(
        tokenizer.STAGE,
        "tokenizer",
        # A size that is only declared changes no id.
        config={**pipeline.tokenizer.shaping, "vocab_size": None},
        engine=[pipeline.tokenizer.engine, fastokens_version()],
        source=sorted(plan.tokenizer_files.values()),
        kept=kept.hashes,
        steps=_steps_identity(plan, pipeline.emit_steps),
        fim=[fim.model_dump(mode="json", by_alias=True), pipeline.run.seed] if fim else None,
        work=str(plan.paths.work),
    )
    job = tokenizer.SettleTokenizer(
        config=pipeline.tokenizer,
        parts=tuple(kept.parts),
        removal_lists=kept.removal_lists,
        steps=pipeline.emit_steps,
        kept_bytes=total,
        fim=fim,
        seed=pipeline.run.seed,
        json=plan.paths.tokenizer(identity),
    )
    trained = pipeline.tokenizer.train
    # Learning takes about 14 bytes of memory a byte of text.
    memory = WORKER_BYTES + 14 * (min(total, trained.sample_bytes) if trained else 0)
    size = min(total, trained.sample_bytes if trained else tokenizer.MEASURED_BYTES)
    files = {**plan.tokenizer_files, **_files_of(plan, pipeline.emit_steps)}
    return Task(tokenizer.STAGE, "tokenizer", identity, job, size, memory, files)


def trust_in(plan: Plan, settled: TaskRecord) -> Trust:
    """What speaks against the engines of this run's tokenizer."""
    return Trust(plan.paths.distrusted, settled.facts["fingerprint"])


def emit_tasks(plan: Plan, kept: Kept, settled: TaskRecord) -> list[Task]:
    """One task a shard: parts are dealt into groups, and a group's seeded order is cut into equal ranges."""
    pipeline = plan.pipeline
    target = target_tokens(pipeline)
    cells_per_byte = tokenizer.cells_per_byte(settled.facts, pipeline.pack)
    # A group with no text left still has its shard task: it accounts for removed and for empty documents.
    groups = [group for group in _groups(kept) if group]
    cuts = [max(1, -(-int(sum(kept.bytes[p.number] for p in g) * cells_per_byte) // target)) for g in groups]
    count = sum(cuts)
    documents = max((-(-sum(p.part.rows for p in g) // cut) for g, cut in zip(groups, cuts, strict=True)), default=0)
    layout = _layout(pipeline, documents)
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


def _layout(pipeline: Pipeline, documents: int = 0) -> Layout:
    """Room for four times the aim and one longest document: how many rows a shard gets is known only when written.

    With best_fit at most one row stays half empty or emptier; with none each document, of `documents` on average in the
    fullest shard, may begin a row.
    """
    pack = pipeline.pack
    longest = max(entry.max_doc_bytes for entry in pipeline.inputs)
    rows = (4 * target_tokens(pipeline) + longest) // pack.row_length + 1
    more = {"concat": 0, "best_fit": rows, "none": 4 * documents}
    return page_and_header(pack.row_length, rows + more[pack.method], pack.layout)


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
        tokenizer=[
            settled.outputs[0].xxh3,
            {**pipeline.tokenizer.shaping, "train": None, "vocab_size": None},
        ],
        pack=pipeline.pack.model_dump(mode="json", by_alias=True),
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
        special=SpecialTokens.from_facts(settled.facts["special"]),
        allow_special=pipeline.tokenizer.allow_special,
        engine=emit.EngineUse(
            name=settled.facts["engine"]["name"],
            check_every=pipeline.tokenizer.check_every,
            trust=trust_in(plan, settled),
        ),
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
    return Task(emit.STAGE, key, identity, job, size, memory, _files_of(plan, pipeline.emit_steps))
