"""The stages of a run, each as its real function over one corpus, ready to be timed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from dataprep.batch import text_bytes
from dataprep.dedup.exact import KEY_END, join_range, write_keys, write_removals
from dataprep.dedup.keys import ExactDedup, Normalization, content_keys
from dataprep.filters.registry import STEPS
from dataprep.readers import read_split
from dataprep.readers.inputs import Input, Split
from dataprep.readers.split import plan_splits
from dataprep.runtime.draw import DrawnPart, draw
from dataprep.runtime.parts import ORDER_END, Part, content_hashes, sort_part, write_part
from dataprep.runtime.stages.dedup import REASON
from dataprep.runtime.stages.prepare import Prepare
from dataprep.runtime.steps import judge
from dataprep.shards.layout import page_and_header
from dataprep.shards.layouts import LayoutName
from dataprep.step import Step
from dataprep.tokens.config import FimConfig, PackConfig, TokenizerConfig
from dataprep.tokens.encoding import TokenBatch
from dataprep.tokens.engines import Encoder, Fastokens, differing
from dataprep.tokens.fim import draw_cuts, encode_with_fim
from dataprep.tokens.kinds import read_source
from dataprep.tokens.packing import Packed, pack, shuffle_rows
from dataprep.tokens.spelling import spelling_of
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer
from dataprep.tokens.train import train_tokenizer

SEED = 42
VOCAB_SIZE = 32_000
STEP_SETTINGS: Mapping[str, dict[str, object]] = {
    "normalize": {},
    "length": {"min_words": 5, "max_chars": 10_000_000},
    "non_text": {"max_fraction": 0.5},
}
_EOS, PAD = "<|endoftext|>", "<|pad|>"
_PART_BYTES = 64 << 20
PACK = PackConfig.model_validate({})
CHECK_EVERY = 1000
_ROW_LENGTH = PACK.seq_length + 1
# So many times the encoded sample make a shard of millions of tokens, where opening the file weighs little.
_REPEATS = 8


@dataclass(frozen=True, slots=True)
class Job:
    """What to measure on: a corpus file, a tokenizer, an empty folder, and the text (bytes) that is encoded at most."""

    corpus: Path
    tokenizer: Path
    folder: Path
    encoded_bytes: int


@dataclass(frozen=True, slots=True)
class Timed:
    """A call to be timed and the text it works through: UTF-8 bytes and documents. May be called again.

    `check` looks at what the timed calls made and raises AssertionError when it is wrong.
    """

    call: Callable[[], object]
    text_bytes: int
    documents: int
    check: Callable[[], None] | None = None


def one_split(corpus: Path) -> Split:
    """A corpus as a single split."""
    entry = Input.model_validate({"path": str(corpus)})
    (split,) = plan_splits([entry], corpus.parent, split_bytes=1 << 50, limit=None)
    return split


def step(name: str) -> Step:
    """A step as the benchmark configures it."""
    return STEPS[name].model_validate(STEP_SETTINGS[name])


def _batches(job: Job) -> list[pa.RecordBatch]:
    return [read.batch for read in read_split(one_split(job.corpus))]


def _over(batches: list[pa.RecordBatch], call: Callable[[], object]) -> Timed:
    return Timed(call, sum(map(text_bytes, batches)), sum(batch.num_rows for batch in batches))


def _over_file(job: Job, call: Callable[[], object]) -> Timed:
    # Counted while it streams by: a gigabyte of batches held here would hide the memory the call itself takes.
    size = rows = 0
    for read in read_split(one_split(job.corpus)):
        size, rows = size + text_bytes(read.batch), rows + read.batch.num_rows
    return Timed(call, size, rows)


def _read(job: Job) -> Timed:
    def call() -> None:
        for _ in read_split(one_split(job.corpus)):
            pass

    return _over_file(job, call)


def _step(tried: Step) -> Callable[[Job], Timed]:
    def made(job: Job) -> Timed:
        batches = _batches(job)
        return _over(batches, lambda: [judge(batch, (tried,)) for batch in batches])

    return made


def _blocklist_terms() -> tuple[str, ...]:
    """A thousand made-up words and a thousand pairs of Han characters: a list of the size that such lists have."""
    syllables = ["".join(pair) for pair in product("bdgkmnprstvz", "aeiou")]
    words = ("".join(word) for word in islice(product(syllables, repeat=3), 0, None, 211))
    pairs = ("".join(pair) for pair in product("赌博彩票娱乐贷款代办发票私服外挂壮阳减肥丰胸祛斑", repeat=2))
    return (*islice(words, 1000), *islice(pairs, 1000))


def _keys(normalize: Normalization) -> Callable[[Job], Timed]:
    def made(job: Job) -> Timed:
        batches = _batches(job)
        return _over(batches, lambda: [content_keys(batch.column("text"), normalize) for batch in batches])

    return made


def _write_part(job: Job) -> Timed:
    batches = _batches(job)
    return _over(batches, lambda: write_part(job.folder / "part.arrow", sort_part(batches, SEED)[0]))


def _prepare(job: Job) -> Timed:
    prepare = Prepare(
        split=one_split(job.corpus),
        steps=tuple(map(step, STEP_SETTINGS)),
        dedup=ExactDedup.model_validate({}),
        seed=SEED,
        part_bytes=_PART_BYTES,
        keep_text="excerpt",
        fail_on_bad=False,
        parts=job.folder / "part",
        dropped=job.folder / "dropped.parquet",
        quarantine=job.folder / "quarantine.parquet",
    )
    return _over_file(job, prepare.run)


def _part_and_keys(job: Job, batches: list[pa.RecordBatch]) -> tuple[Part, Path]:
    part, positions = sort_part(batches, SEED)
    path, keys = job.folder / "part.arrow", job.folder / "part.keys.arrow"
    write_part(path, part)
    columns = {"row": np.arange(part.num_rows, dtype=np.uint32), "position": positions.astype(np.uint32)}
    documents = part
    for name, values in columns.items():
        documents = documents.append_column(name, pa.array(values))
    write_keys(keys, documents, content_keys(part.column("text"), "none"))
    return Part("bench", str(path), "", part.num_rows, sum(map(text_bytes, batches))), keys


def _join(job: Job) -> Timed:
    batches = _batches(job)
    _, keys = _part_and_keys(job, batches)
    return _over(
        batches, lambda: write_removals(job.folder / "removals.arrow", join_range([keys], 0, KEY_END).removals)
    )


def _draw(job: Job) -> Timed:
    batches = _batches(job)
    part, keys = _part_and_keys(job, batches)
    removals = job.folder / "removals.arrow"
    write_removals(removals, join_range([keys], 0, KEY_END).removals)

    def call() -> None:
        for _ in draw([DrawnPart(part, 0)], [removals], 0, ORDER_END, REASON):
            pass

    return _over(batches, call)


def tokenizer_entry(path: Path) -> dict[str, object]:
    """The `tokenizer:` of a pipeline for any tokenizer.json: the document marks are added where it has none."""
    return {"path": str(path), "add_special_tokens": [_EOS, PAD], "eos": _EOS, "pad": PAD}


def tokenizer_config(path: Path) -> TokenizerConfig:
    """The same, read."""
    return TokenizerConfig.model_validate(tokenizer_entry(path))


def _open_tokenizer(job: Job) -> Tokenizer:
    config = tokenizer_config(job.tokenizer)
    return load_tokenizer(config, read_source(config))


def _texts(job: Job) -> tuple[list[str], int]:
    """The first documents of about `encoded_bytes`, and their size."""
    texts: list[str] = []
    size = 0
    for text in _stream(job):
        texts.append(text)
        size += len(text.encode())
        if size >= job.encoded_bytes:
            break
    return texts, size


def _stream(job: Job) -> Iterator[str]:
    for read in read_split(one_split(job.corpus), batch_bytes=1 << 20):
        yield from read.batch.column("text").to_pylist()


def _train(job: Job) -> Timed:
    texts, size = _texts(job)
    config = TokenizerConfig.model_validate({"train": {"vocab_size": VOCAB_SIZE}})
    return Timed(lambda: job.tokenizer.write_bytes(train_tokenizer(config, iter(texts))), size, len(texts))


def _tokenize(job: Job) -> Timed:
    texts, size = _texts(job)
    tokenizer = _open_tokenizer(job)
    return Timed(lambda: tokenizer.encode(texts), size, len(texts))


def _encode_fast(job: Job) -> Timed:
    """The fast library alone. Once: these texts would be in its cache the next time. Its ids are compared with hf's."""
    texts, size = _texts(job)
    tokenizer = _open_tokenizer(job)
    engine = Fastokens(tokenizer.json)
    made: list[TokenBatch] = []

    def check() -> None:
        wrong = differing(tokenizer, made[0], texts, np.arange(len(texts)))
        if wrong:
            raise AssertionError(f"fastokens gives other ids than hf for {len(wrong)} of {len(texts)} documents")

    return Timed(lambda: made.append(tokenizer.encode_plain(texts, engine.encode)), size, len(texts), check)


def _tokenize_fast(job: Job) -> Timed:
    """As the emit task does it, checks and all. Once: these texts would be in the library's cache the next time."""
    texts, size = _texts(job)
    tokenizer = _open_tokenizer(job)
    encoder = Encoder(tokenizer, Fastokens(tokenizer.json), CHECK_EVERY, spelling_of(json.loads(tokenizer.json)))
    text = pa.array(texts, pa.large_string())
    hashes = content_hashes(text)
    return Timed(lambda: encoder.encode(text, hashes), size, len(texts))


def _repeated(job: Job) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], int]:
    """Ids and offsets of the encoded sample several times over, and the text (bytes) they stand for."""
    texts, size = _texts(job)
    tokens = _open_tokenizer(job).encode(texts)
    offsets = np.zeros(len(tokens) * _REPEATS + 1, np.int64)
    np.cumsum(np.tile(np.diff(tokens.offsets), _REPEATS), out=offsets[1:])
    return np.tile(tokens.ids, _REPEATS), offsets, size * _REPEATS


def _packed(ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], config: PackConfig = PACK) -> Packed:
    return shuffle_rows(pack(ids, offsets, config, 0), SEED, "bench")


def _pack(method: str) -> Callable[[Job], Timed]:
    config = PackConfig.model_validate({"method": method})

    def made(job: Job) -> Timed:
        ids, offsets, size = _repeated(job)
        return Timed(lambda: _packed(ids, offsets, config), size, len(offsets) - 1)

    return made


def _fill_in_the_middle(job: Job) -> Timed:
    """Draw, cut and encode, as emit does with every document allowed."""
    texts, size = _texts(job)
    fim = FimConfig.model_validate({"prefix": "<|pre|>", "middle": "<|mid|>", "suffix": "<|suf|>"})
    added = (_EOS, PAD, "<|pre|>", "<|mid|>", "<|suf|>")
    config = tokenizer_config(job.tokenizer).model_copy(update={"add_special_tokens": added})
    tokenizer = load_tokenizer(config, read_source(config), fim)
    hashes = [xxhash.xxh3_128_digest(text.encode()) for text in texts]
    every = np.ones(len(texts), np.bool_)
    return Timed(
        lambda: encode_with_fim(tokenizer, texts, draw_cuts(texts, hashes, every, fim, SEED)), size, len(texts)
    )


def _write_shard(columns: LayoutName) -> Callable[[Job], Timed]:
    def made(job: Job) -> Timed:
        from dataprep.shards.mindrecord import write_shard

        ids, offsets, size = _repeated(job)
        packed = _packed(ids, offsets)

        def call() -> None:
            write_shard(
                job.folder / "bench.mindrecord",
                packed.rows,
                packed.doc_starts,
                packed.doc_start_offsets,
                scratch=job.folder / "scratch",
                layout=page_and_header(_ROW_LENGTH, len(packed.rows), columns),
                columns=columns,
                lengths=packed.lengths,
            )

        return Timed(call, size, len(offsets) - 1)

    return made


TRAIN = "train tokenizer"
PREPARE = "prepare"
ENCODE_REFERENCE, ENCODE_FAST, TOKENIZE_FAST = "encode, hf", "encode, fastokens", "tokenize, fastokens"
# Whose second pass would find the texts in a cache.
ONCE = (ENCODE_FAST, TOKENIZE_FAST)
# In the order of a run. `prepare` is the real task from reading to the part and its keys.
STAGES: Mapping[str, Callable[[Job], Timed]] = {
    "read": _read,
    **{name: _step(step(name)) for name in STEP_SETTINGS},
    "blocklist": _step(STEPS["blocklist"].model_validate({"terms": _blocklist_terms()})),
    "exact keys": _keys("none"),
    "exact keys folded": _keys("casefold_no_punct"),
    "write part": _write_part,
    PREPARE: _prepare,
    "dedup join": _join,
    "draw": _draw,
    ENCODE_REFERENCE: _tokenize,
    ENCODE_FAST: _encode_fast,
    TOKENIZE_FAST: _tokenize_fast,
    "encode fim, hf": _fill_in_the_middle,
    "pack": _pack("concat"),
    "pack best_fit": _pack("best_fit"),
    "pack none": _pack("none"),
    "write shard": _write_shard("compact"),
    "write shard mcore": _write_shard("mcore"),
    "write shard padded": _write_shard("padded"),
}
SETUP_STAGES: Mapping[str, Callable[[Job], Timed]] = {TRAIN: _train}
