"""Texts of a sample of the inputs after the steps, for learning or comparing tokenizers without a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import xxhash

from dataprep.config.load import LoadedPipeline
from dataprep.errors import ConfigError
from dataprep.readers.inputs import Input, Split
from dataprep.readers.split import plan_splits
from dataprep.runtime.plan import make_plan
from dataprep.runtime.sample import by_input, read_sample
from dataprep.runtime.steps import judge
from dataprep.step import Step
from dataprep.tokens.train import train_tokenizer

COMPARED_BYTES = 4 << 20
# Read more than is taken, so that the seed has something to choose from.
_READ_PER_TAKEN = 2


def train_on_sample(loaded: LoadedPipeline) -> bytes:
    """Learn the tokenizer.json that `tokenizer.train` asks for, from a seeded sample of the inputs after the steps.

    Inputs give text by their size in bytes; exact_dedup, which needs all documents, is left out. Raises ConfigError if
    the pipeline trains none, or nothing is left to learn from.
    """
    config = loaded.pipeline.tokenizer
    if config.train is None:
        mend = "set tokenizer: {train: {vocab_size: 32000}}, on the command line by --set"
        raise ConfigError("this pipeline trains no tokenizer", where=str(config.path), mend=mend)
    texts = pipeline_texts(loaded, config.train.sample_bytes, by_size=True)
    chosen = [text for source in texts.values() for text in source]
    if not any(chosen):
        raise ConfigError("no text is left to train on", where="inputs", mend="look at the inputs and steps")
    return train_tokenizer(config, chosen)


def pipeline_texts(loaded: LoadedPipeline, room: int, *, by_size: bool) -> dict[str, list[str]]:
    """About `room` bytes of kept texts by source, shared among inputs by their size in bytes or evenly."""
    pipeline = loaded.pipeline
    groups = by_input(make_plan(loaded).splits)
    sizes = [sum(split.size for split in splits) if by_size else 1 for splits in groups]
    shares = [room * size // max(1, sum(sizes)) for size in sizes]
    steps = (*pipeline.prepare_steps, *pipeline.emit_steps)
    texts: dict[str, list[str]] = {}
    for splits, share in zip(groups, shares, strict=True):
        for source, text in _drawn(splits, steps, max(1, share), pipeline.run.seed):
            texts.setdefault(source, []).append(text)
    return texts


def file_texts(paths: Sequence[Path], room: int) -> dict[str, list[str]]:
    """About `room` bytes of the texts of files of any format that pipelines read, by file name."""
    texts: dict[str, list[str]] = {}
    for path in paths:
        splits = plan_splits(
            (Input.model_validate({"path": str(path), "source": path.name}),),
            Path.cwd(),
            split_bytes=1 << 30,
            limit=None,
        )
        for source, text in _drawn(splits, (), room // len(paths), 0):
            texts.setdefault(source, []).append(text)
    return texts


def _drawn(splits: Sequence[Split], steps: Sequence[Step], room: int, seed: int) -> Iterator[tuple[str, str]]:
    """Sources and texts of kept documents in seeded order until `room` bytes are full."""
    left = room
    ordered = sorted(_kept(splits, steps, _READ_PER_TAKEN * room), key=lambda one: _order(one[0], seed))
    for _, source, text in ordered:
        if left <= 0:
            return
        yield source, text
        left -= len(text.encode())


def _order(doc_id: str, seed: int) -> int:
    return int(xxhash.xxh3_64_intdigest(doc_id.encode(), seed))


def _kept(splits: Sequence[Split], steps: Sequence[Step], wanted: int) -> list[tuple[str, str, str]]:
    """Ids, sources and texts of about `wanted` bytes of kept documents, or of all there are."""
    room, read = wanted, -1
    while True:
        sample = read_sample(splits, room)
        records = sample.bad + sum(batch.num_rows for batch in sample.batches)
        kept = [one for batch in sample.batches if batch.num_rows for one in _documents(judge(batch, steps).kept)]
        # Steps may drop most of what is read; a sample that grows no more is the whole input.
        if records == read or sum(len(text.encode()) for _, _, text in kept) >= wanted:
            return kept
        room, read = room * _READ_PER_TAKEN, records


def _documents(batch: pa.RecordBatch) -> Iterator[tuple[str, str, str]]:
    columns = [batch.column(name).cast(pa.large_string()).to_pylist() for name in ("doc_id", "source", "text")]
    return zip(*columns, strict=True)
