"""Plan the second half of a run: the task that settles the tokenizer, and those that write shards."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dataprep.dedup.exact import removed_bytes
from dataprep.runtime.draw import DrawnPart
from dataprep.runtime.ledger import TaskRecord, add_tallies
from dataprep.runtime.membership import Membership
from dataprep.runtime.mixing import settle_epochs
from dataprep.runtime.parts import ORDER_END
from dataprep.runtime.plan import WORKER_BYTES, Plan, files_of, parts_of, steps_identity, task_id
from dataprep.runtime.sets import ShardSet
from dataprep.runtime.shard_size import shard_layout, target_tokens
from dataprep.runtime.stages import emit, tokenizer
from dataprep.runtime.task import Task
from dataprep.runtime.trust import Trust
from dataprep.shards.layout import Layout
from dataprep.tokens.engines import fastokens_version
from dataprep.tokens.special import SpecialTokens

# Parts are dealt into groups and a shard draws from one group: more parts mix better, fewer need fewer reads.
PARTS_A_GROUP = 32


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left after deduplication: parts, removal lists, and the text bytes left of each part and each source."""

    parts: list[DrawnPart]
    removal_lists: tuple[Path, ...]
    hashes: list[str]
    bytes: list[int]
    sources: Mapping[str, int]


def kept_documents(prepared: Sequence[TaskRecord], deduplicated: Sequence[TaskRecord]) -> Kept:
    """What the tasks of these records have left."""
    parts = parts_of(prepared)
    lists = [output for record in deduplicated for output in record.outputs]
    paths = tuple(Path(output.path) for output in lists)
    left = [part.part.text_bytes for part in parts] - removed_bytes(paths, len(parts))
    sources: Counter[str] = Counter()
    sources.update({source: tally.bytes_kept for source, tally in add_tallies(r.tallies for r in prepared).items()})
    for source, tally in add_tallies(record.tallies for record in deduplicated).items():
        sources[source] -= tally.bytes_in - tally.bytes_kept
    hashes = [*(part.part.xxh3 for part in parts), *(output.xxh3 for output in lists)]
    return Kept(parts, paths, hashes, left.tolist(), dict(sorted(sources.items())))


def tokenizer_task(plan: Plan, kept: Kept) -> Task:
    """The one task that settles the tokenizer."""
    pipeline = plan.pipeline
    fim = pipeline.pack.fim
    total = sum(kept.bytes)
    mixed = {source: size for source, size in kept.sources.items() if size} if pipeline.mix.measures else {}
    identity = task_id(
        tokenizer.STAGE,
        "tokenizer",
        # A size that is only declared changes no id.
        config={**pipeline.tokenizer.shaping, "vocab_size": None},
        engine=[pipeline.tokenizer.engine, fastokens_version()],
        source=sorted(plan.tokenizer_files.values()),
        kept=kept.hashes,
        mixed=sorted(mixed),
        steps=steps_identity(plan, pipeline.emit_steps),
        fim=[fim.model_dump(mode="json", by_alias=True), pipeline.run.seed] if fim else None,
        work=str(plan.paths.work),
    )
    job = tokenizer.SettleTokenizer(
        config=pipeline.tokenizer,
        parts=tuple(kept.parts),
        removal_lists=kept.removal_lists,
        steps=pipeline.emit_steps,
        kept_bytes=total,
        mixed=mixed,
        fim=fim,
        seed=pipeline.run.seed,
        json=plan.paths.tokenizer(identity),
    )
    trained = pipeline.tokenizer.train
    # Learning takes about 14 bytes of memory a byte of text.
    memory = WORKER_BYTES + 14 * (min(total, trained.sample_bytes) if trained else 0)
    size = min(total, trained.sample_bytes if trained else tokenizer.MEASURED_BYTES)
    files = {**plan.tokenizer_files, **files_of(plan, pipeline.emit_steps)}
    return Task(tokenizer.STAGE, "tokenizer", identity, job, size, memory, files)


def trust_in(plan: Plan, settled: TaskRecord) -> Trust:
    """What speaks against the engines of this run's tokenizer."""
    return Trust(plan.paths.distrusted, settled.facts["fingerprint"])


def settled_mix(plan: Plan, kept: Kept, settled: TaskRecord) -> dict[str, float]:
    """Epochs of each source in the largest set; empty without a mix. Raises ConfigError if it cannot be."""
    if not plan.pipeline.mix.changes:
        return {}
    share = plan.sets[0].share
    available = {
        source: size * share * tokenizer.tokens_per_byte(settled.facts, source) for source, size in kept.sources.items()
    }
    return settle_epochs(plan.pipeline.mix, available, plan.mix_at)


@dataclass(frozen=True, slots=True)
class ShardTasks:
    """Tasks that write the shards of one set, in the order of the shards."""

    set: ShardSet
    epochs: Mapping[str, float]
    tasks: list[Task]


def shard_tasks(plan: Plan, kept: Kept, settled: TaskRecord) -> list[ShardTasks]:
    """The emit tasks of every set. Raises ConfigError if the configured mix cannot be had."""
    mix = settled_mix(plan, kept, settled)
    planned = []
    for shard_set in plan.sets:
        # Held-out documents are there to measure by, each of them once at most.
        epochs = mix if shard_set.first else {source: min(1.0, value) for source, value in mix.items()}
        planned.append(ShardTasks(shard_set, epochs, _emit_tasks(plan, kept, settled, shard_set, epochs)))
    return planned


def _emit_tasks(
    plan: Plan, kept: Kept, settled: TaskRecord, shard_set: ShardSet, epochs: Mapping[str, float]
) -> list[Task]:
    """One task a shard: parts are dealt into groups, and a group's seeded order is cut into equal ranges."""
    pipeline, share = plan.pipeline, shard_set.share
    membership = Membership(
        seed=pipeline.run.seed,
        side=shard_set.side,
        normalize="none" if pipeline.dedup_step is None else pipeline.dedup_step.normalize,
        takes_removed=shard_set.first,
        epochs=epochs,
    )
    sizes, cells = [size * share for size in kept.bytes], tokenizer.cells_per_byte(settled.facts, pipeline.pack)
    rooms = [size * cells for size in sizes]
    if epochs:
        sizes = _drawn(kept, {source: share * value for source, value in epochs.items()})
        rooms = _drawn(
            kept,
            {
                s: share * value * tokenizer.cells_per_byte(settled.facts, pipeline.pack, s)
                for s, value in epochs.items()
            },
        )
    # A group with no text left still has its shard task: it accounts for removed and for empty documents.
    groups = [group for group in _groups(kept.parts, share) if group]
    cuts = [max(1, -(-int(sum(rooms[p.number] for p in g)) // target_tokens(pipeline))) for g in groups]
    rows = [share * max([1.0, *epochs.values()]) * sum(p.part.rows for p in g) for g in groups]
    layout = shard_layout(pipeline, math.ceil(max((r / cut for r, cut in zip(rows, cuts, strict=True)), default=0)))
    tasks: list[Task] = []
    for group, cut in zip(groups, cuts, strict=True):
        size = int(sum(sizes[part.number] for part in group)) // cut
        for number in range(cut):
            bounds = ORDER_END * number // cut, ORDER_END * (number + 1) // cut
            draw = _Draw(shard_set, membership, group, bounds, (len(tasks), sum(cuts)), size)
            tasks.append(_emit_task(plan, kept, settled, draw, layout))
    return tasks


@dataclass(frozen=True, slots=True)
class _Draw:
    """What one shard draws: parts, range of places, and about so many bytes of text."""

    set: ShardSet
    membership: Membership
    group: Sequence[DrawnPart]
    bounds: tuple[int, int]
    place: tuple[int, int]
    size: int


def _drawn(kept: Kept, weights: Mapping[str, float]) -> list[float]:
    """For each part the sum over its sources of the bytes left, times the source's weight."""
    sums = []
    for part, left in zip((drawn.part for drawn in kept.parts), kept.bytes, strict=True):
        # How much of each source duplicates took from a part is not known: from all of them alike.
        share_left = left / part.text_bytes if part.text_bytes else 0.0
        sums.append(sum(size * share_left * weights[source] for source, size in sorted(part.sources.items())))
    return sums


def _groups(parts: list[DrawnPart], share: float) -> list[list[DrawnPart]]:
    """Deal the parts round-robin, so that every group has its share of every source.

    A set that takes few of the documents draws from more parts, or its shards would be small.
    """
    count = max(1, -(-len(parts) // int(PARTS_A_GROUP / share)))
    return [parts[number::count] for number in range(count)]


def _emit_task(plan: Plan, kept: Kept, settled: TaskRecord, draw: _Draw, layout: Layout) -> Task:
    pipeline, paths = plan.pipeline, draw.set.paths
    shard = paths.shard(*draw.place)
    number = f"{draw.place[0]:05d}-of-{draw.place[1]:05d}"
    key = f"{draw.set.split or ''}/{number}".removeprefix("/")
    identity = task_id(
        emit.STAGE,
        key,
        name=pipeline.name,
        parts=[[part.part.xxh3, part.number] for part in draw.group],
        removals=kept.hashes,
        bounds=draw.bounds,
        membership=asdict(draw.membership),
        steps=steps_identity(plan, pipeline.emit_steps),
        tokenizer=[
            *(output.xxh3 for output in settled.outputs),
            {**pipeline.tokenizer.shaping, "train": None, "vocab_size": None},
        ],
        pack=pipeline.pack.model_dump(mode="json", by_alias=True),
        layout=[layout.page_size, layout.header_size],
        seed=pipeline.run.seed,
        keep_text=pipeline.output.dropped_text,
        output=str(paths.output),
    )
    job = emit.Emit(
        parts=tuple(draw.group),
        removal_lists=kept.removal_lists,
        low=draw.bounds[0],
        high=draw.bounds[1],
        membership=draw.membership,
        steps=pipeline.emit_steps,
        tokenizer_files=tuple(Path(output.path) for output in settled.outputs),
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
        documents=paths.documents(*draw.place),
        dropped=paths.dropped(f"emit-{number}"),
        scratch=paths.scratch,
    )
    # Text joined and drawn from, then its tokens flat, as rows and as shuffled rows.
    memory = WORKER_BYTES + 3 * draw.size + 3 * 4 * target_tokens(pipeline)
    return Task(emit.STAGE, key, identity, job, draw.size, memory, files_of(plan, pipeline.emit_steps))
