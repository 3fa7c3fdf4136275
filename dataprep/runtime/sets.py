"""The shard sets of a run: one of all documents, or one for each split."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from dataprep.config.models import Pipeline
from dataprep.runtime.directories import RunPaths
from dataprep.runtime.membership import DRAW_END
from dataprep.shards.manifest import largest


@dataclass(frozen=True, slots=True)
class ShardSet:
    """One shard set: its split (None without splits), folder, share of the documents, and side of their draws.

    The first set also accounts for the records that end in none.
    """

    split: str | None
    paths: RunPaths
    share: float
    side: tuple[int, int]
    first: bool


def shard_sets(pipeline: Pipeline, paths: RunPaths) -> tuple[ShardSet, ...]:
    """The sets, the largest first and equal ones by name; their sides are stretches of all draws as long as the shares.

    The order in which the pipeline file names them changes nothing.
    """
    if not pipeline.output.splits:
        return (ShardSet(None, paths, 1.0, (0, DRAW_END), first=True),)
    splits = largest(pipeline.output.splits)
    ends = [round(end * DRAW_END) for end in accumulate(share for _, share in splits)]
    # Shares that add up to 1 but for rounding leave no gap at the end.
    bounds = [0, *ends[:-1], DRAW_END]
    return tuple(
        ShardSet(name, paths.of_split(name), share, (bounds[at], bounds[at + 1]), first=at == 0)
        for at, (name, share) in enumerate(splits)
    )
