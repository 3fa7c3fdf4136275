"""Estimate what a run will take from a small sample that is read, judged and encoded in memory; nothing is written.

All figures are extrapolated from the sample. Duplicates cannot be seen in it, so tokens and shards are upper estimates
where much is duplicated.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataprep.batch import text_bytes, utf8_buffers
from dataprep.config.load import LoadedPipeline
from dataprep.config.models import Pipeline
from dataprep.errors import ConfigError
from dataprep.readers.inputs import Split
from dataprep.runtime.bad_records import bad_of_sample
from dataprep.runtime.estimated import Estimate, SourceEstimate, as_json, render_estimate
from dataprep.runtime.mixing import settle_epochs
from dataprep.runtime.plan import Plan, load_planned_tokenizer, make_plan
from dataprep.runtime.run import finished_sets, worker_count
from dataprep.runtime.sample import Sample, by_input, measured, read_sample
from dataprep.runtime.shard_size import target_tokens
from dataprep.runtime.steps import judge
from dataprep.shards.layout import BYTES_A_TOKEN
from dataprep.step import Step
from dataprep.tokens.config import PackConfig
from dataprep.tokens.encoding import TokenBatch
from dataprep.tokens.engines import FASTOKENS, EngineFails, EngineUnusable, Fastokens, fastokens_version
from dataprep.tokens.packing import cells
from dataprep.tokens.tokenizer import HF, SENTENCEPIECE, Tokenizer
from dataprep.wording import counted, shortened, shown_path, some_of

__all__ = ["Estimate", "SourceEstimate", "as_json", "estimate", "render_estimate"]

SAMPLE_BYTES = 4 << 20
ENCODED_BYTES = 1 << 20
ASSUMED_BYTES_A_TOKEN = 4
# From quickstart runs (code and English, 8192 tokens): 1.9 MB/s of one core training, as much encoding with hf; the
# fast engine encoded English, Chinese and code at 21 to 33 MB/s there. Its first proof took 2 to 5 seconds.
_TRAINING = 2e6
_ASSUMED_ENCODING = {HF: 2e6, FASTOKENS: 20e6}
_PROVING_SECONDS = 3.0
# Assumed of each pass over parts; a prototype hashed and compressed them at 125 to 145 MB/s of one core.
_HANDLING = 100e6
# A shard is whole pages behind a header.
_PAGE, _HEADER = 4 << 20, 1 << 20
# Worker processes load mindspore before their first task: about this long in one quickstart run.
_STARTUP_SECONDS = 3.0
# Parts are zstd-compressed text; a document's content key and place take about 40 bytes.
_PART_BYTES_A_TEXT_BYTE = 0.35
_KEY_BYTES = 40


@dataclass(frozen=True, slots=True)
class _Encoder:
    """The tokenizer (None: trained in the run) and its fast engine as it stands, not proven yet."""

    tokenizer: Tokenizer | None
    engine: Fastokens | None
    name: str

    def encode(self, texts: list[str]) -> TokenBatch:
        if self.tokenizer is None:
            raise ValueError("the tokenizer is not trained yet")
        try:
            encode = None if self.engine is None else self.engine.encode
            return self.tokenizer.bordered(self.tokenizer.encode_plain(texts, encode))
        except EngineFails:
            return self.tokenizer.encode(texts)


@dataclass(frozen=True, slots=True)
class _Encoding:
    tokens_per_byte: float
    cells_per_token: float
    speed: float


def estimate(loaded: LoadedPipeline, limit: int | None = None, *, replace: bool = True) -> Estimate:
    """Plan the run and measure a sample of about 4 MB of text. Raises what a run raises before its first task.

    `replace` says whether the output directory may hold a finished set of another configuration.
    """
    pipeline = loaded.pipeline
    plan = make_plan(loaded, limit)
    finished_sets(plan, force=replace)
    encoder = _encoder(plan)
    groups = by_input(plan.splits)
    room = SAMPLE_BYTES // len(groups)
    samples = [read_sample(splits, room) for splits in groups]
    pairs = zip(groups, samples, strict=True)
    unmixed = [_source(pipeline, encoder, splits, sample, room, limit) for splits, sample in pairs]
    sources, mix_notes = _mixed(plan, unmixed)
    bad = [_bad_note(pipeline, splits, sample) for splits, sample in zip(groups, samples, strict=True)]
    notes = (*_notes(pipeline, encoder, samples, limit), *mix_notes, *(note for note in bad if note is not None))
    return _total(plan.pipeline, encoder, sources, notes)


def _mixed(plan: Plan, sources: Sequence[SourceEstimate]) -> tuple[tuple[SourceEstimate, ...], tuple[str, ...]]:
    """The sources as often as the mix takes them, and what is to be said about it."""
    mix = plan.pipeline.mix
    if not mix.changes:
        return tuple(sources), ()
    if any(entry.source_field for entry in plan.pipeline.inputs):
        return tuple(sources), ("sources are named by the records: the mix is not in these figures",)
    share = plan.sets[0].share
    available: dict[str, float] = defaultdict(float)
    for source in sources:
        available[source.source] += source.tokens * share
    try:
        epochs = settle_epochs(mix, available, plan.mix_at)
    except ConfigError as error:
        return tuple(sources), (f"the mix is not in these figures: by them, {error.what}",)
    # The other sets repeat nothing.
    times = {source: share * value + (1 - share) * min(1.0, value) for source, value in epochs.items()}
    mixed = tuple(
        replace(
            source,
            tokens=round(source.tokens * times[source.source]),
            row_tokens=round(source.row_tokens * times[source.source]),
            emit_seconds=round(source.emit_seconds * times[source.source], 3),
        )
        for source in sources
    )
    taken = some_of(f"{shortened(source)} {value:.4g}" for source, value in epochs.items())
    return mixed, (f"epochs of each source, by this sample: {taken}",)


def _encoder(plan: Plan) -> _Encoder:
    fast = plan.pipeline.tokenizer.engine != HF and fastokens_version() is not None
    tokenizer = load_planned_tokenizer(plan)
    if tokenizer is None:
        return _Encoder(None, None, FASTOKENS if fast else HF)
    if tokenizer.model is not None:
        return _Encoder(tokenizer, None, SENTENCEPIECE)
    try:
        return _Encoder(tokenizer, Fastokens(tokenizer.encoding_json) if fast else None, FASTOKENS)
    except EngineUnusable:
        return _Encoder(tokenizer, None, HF)


def _source(
    pipeline: Pipeline,
    encoder: _Encoder,
    splits: Sequence[Split],
    sample: Sample,
    room: int,
    limit: int | None,
) -> SourceEstimate:
    prepared, judging = _judged(sample.batches, pipeline.prepare_steps)
    emitted, emitting = _judged(prepared, pipeline.emit_steps)
    rows, size = _rows(sample.batches), _text(sample.batches)
    input_bytes = sum(split.size for split in splits)
    scale = _scale(input_bytes, sample, limit)
    encoding = _encoding(encoder, emitted, room * ENCODED_BYTES // SAMPLE_BYTES, pipeline.pack)
    assumed = _assumed_lengths(emitted)
    tokens = scale * (_text(emitted) * encoding.tokens_per_byte if encoding else int(assumed.sum()))
    row_tokens = tokens * encoding.cells_per_token if encoding else cells(assumed, pipeline.pack) * scale
    reading = sample.seconds + judging
    encoding_seconds = _text(emitted) / (encoding.speed if encoding else _ASSUMED_ENCODING[encoder.name])
    keys = _rows(prepared) * _KEY_BYTES if pipeline.dedup_step else 0
    return SourceEstimate(
        source=splits[0].key.rpartition("/")[0],
        files=len({planned.path for split in splits for planned in split.ranges}),
        input_bytes=input_bytes,
        tasks=len(splits),
        sample_documents=rows,
        sample_bytes=size,
        documents=round(rows * scale),
        text_bytes=round(size * scale),
        text_per_input_byte=size / sample.input_bytes if sample.input_bytes else 0.0,
        bad=sample.bad / (rows + sample.bad) if sample.bad else 0.0,
        kept=_rows(prepared) / rows if rows else None,
        kept_text=_text(prepared) / size if size else None,
        prepare_speed=size / reading if size else None,
        tokens_per_byte=encoding.tokens_per_byte if encoding else None,
        encode_speed=encoding.speed if encoding else None,
        tokens=round(tokens),
        row_tokens=round(row_tokens),
        prepare_seconds=round((reading + _text(prepared) / _HANDLING) * scale, 3),
        emit_seconds=round((emitting + _text(prepared) / _HANDLING + encoding_seconds) * scale, 3),
        scratch_bytes=round((_text(prepared) * _PART_BYTES_A_TEXT_BYTE + keys) * scale),
    )


def _scale(input_bytes: int, sample: Sample, limit: int | None) -> float:
    """How many samples the input is worth; `limit` counts records, bad ones too."""
    records = _rows(sample.batches) + sample.bad
    if not records or not sample.input_bytes:
        return 0.0
    whole = input_bytes / sample.input_bytes
    return whole if limit is None else min(whole, limit / records)


def _judged(batches: Sequence[pa.RecordBatch], steps: Sequence[Step]) -> tuple[list[pa.RecordBatch], float]:
    def run() -> list[pa.RecordBatch]:
        return [judge(batch, steps).kept for batch in batches if batch.num_rows]

    return measured(run)


def _encoding(encoder: _Encoder, batches: Sequence[pa.RecordBatch], room: int, pack: PackConfig) -> _Encoding | None:
    """Tokens and seconds of the first texts that fit `room` bytes, of one text at least."""
    texts = list(_first_texts(batches, room))
    size = sum(len(text.encode()) for text in texts)
    if encoder.tokenizer is None or not size:
        return None
    tokens, seconds = measured(lambda: encoder.encode(texts))
    taken = cells(np.diff(tokens.offsets), pack)
    return _Encoding(len(tokens.ids) / size, taken / len(tokens.ids), size / seconds)


def _first_texts(batches: Sequence[pa.RecordBatch], room: int) -> Iterator[str]:
    left = room
    for text in (text for batch in batches for text in batch.column("text").to_pylist()):
        # A character takes four bytes at most, and a long document's beginning tells as much as all of it.
        yield text[: max(1, left)]
        left -= len(text.encode())
        if left <= 0:
            return


def _assumed_lengths(batches: Sequence[pa.RecordBatch]) -> npt.NDArray[np.int64]:
    """Tokens of each document, eos included."""
    sizes = [np.diff(utf8_buffers(batch.column("text"))[1]) for batch in batches]
    lengths: npt.NDArray[np.int64] = np.concatenate([np.empty(0, np.int64), *sizes]) // ASSUMED_BYTES_A_TOKEN + 1
    return lengths


def _rows(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(int(batch.num_rows) for batch in batches)


def _text(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(text_bytes(batch) for batch in batches)


def _total(
    pipeline: Pipeline, encoder: _Encoder, sources: tuple[SourceEstimate, ...], notes: tuple[str, ...]
) -> Estimate:
    workers = worker_count(pipeline.run)
    tokens = sum(source.tokens for source in sources)
    row_tokens = sum(source.row_tokens for source in sources)
    target = target_tokens(pipeline)
    shards = sum(-(-round(row_tokens * each) // target) for each in pipeline.output.splits.values() or (1.0,))
    tasks = sum(source.tasks for source in sources)
    prepare = sum(source.prepare_seconds for source in sources)
    emit = sum(source.emit_seconds for source in sources)
    settling = _settling_seconds(pipeline, encoder, sources)
    wall = _STARTUP_SECONDS + prepare / min(workers, tasks) + settling + emit / min(workers, max(1, shards))
    return Estimate(
        name=pipeline.name,
        workers=workers,
        sources=sources,
        prepare_tasks=tasks,
        tokens=tokens,
        row_length=pipeline.pack.row_length,
        rows=-(-row_tokens // pipeline.pack.row_length),
        shard_tokens=target,
        shards=shards,
        output_bytes=shards * _shard_bytes(row_tokens / shards * BYTES_A_TOKEN[pipeline.pack.layout]) if shards else 0,
        scratch_bytes=sum(source.scratch_bytes for source in sources),
        cpu_seconds=round(prepare + settling + emit, 3),
        wall_seconds=round(wall, 3),
        output=shown_path(pipeline.output.path),
        work_dir=shown_path(pipeline.run.work_dir),
        notes=notes,
    )


def _shard_bytes(content: float) -> int:
    return _HEADER + math.ceil(content / _PAGE) * _PAGE


def _settling_seconds(pipeline: Pipeline, encoder: _Encoder, sources: Sequence[SourceEstimate]) -> float:
    """Training the tokenizer and proving its engine."""
    trained = pipeline.tokenizer.train
    proving = _PROVING_SECONDS if encoder.name == FASTOKENS else 0.0
    if trained is None:
        return proving
    kept = sum(source.text_bytes * (source.kept_text or 0.0) for source in sources)
    return proving + min(kept, trained.sample_bytes) / _TRAINING


def _bad_note(pipeline: Pipeline, splits: Sequence[Split], sample: Sample) -> str | None:
    bad = bad_of_sample(splits, pipeline.inputs, _rows(sample.batches), sample.bad_records)
    return None if bad is None else f"{bad.told()}; {bad.mend()}"


def _notes(pipeline: Pipeline, encoder: _Encoder, samples: Sequence[Sample], limit: int | None) -> tuple[str, ...]:
    notes = []
    speed = _ASSUMED_ENCODING[encoder.name]
    if limit is not None:
        notes.append(f"size is that of whole files; of each input {counted(limit, 'record')} at most are read")
    if pipeline.tokenizer.train is not None:
        notes.append(
            f"the tokenizer is trained in the run: its tokens are not known yet; assumed "
            f"{ASSUMED_BYTES_A_TOKEN:g} bytes a token and {speed / 1e6:g} MB/s of encoding a core"
        )
    if pipeline.dedup_step is not None:
        notes.append("duplicates are not known before the run: tokens, rows and shards are estimated as without any")
    if any(sample.guessed for sample in samples):
        notes.append("an Arrow file does not tell its rows: assumed as much text as file")
    if not any(batch.num_rows for sample in samples for batch in sample.batches):
        notes.append("the sample holds no document that can be read: nothing could be estimated")
    return tuple(notes)
