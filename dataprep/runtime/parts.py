"""Parts: the cleaned text between the two passes, in Arrow IPC files ordered by a seeded hash.

Rows of a part are sorted by `order`, a hash of the document id under the run's seed. Any range of `order` is therefore
a uniform random sample of the part that lies in one piece of the file: a shard draws its documents from many parts by
reading one short stretch of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from dataprep.batch import LABEL
from dataprep.errors import DamageError
from dataprep.storage import atomic_path, disk_errors

# Orders are 64-bit: every row lies in [0, ORDER_END).
ORDER_END = 1 << 64
# A stretch is read in whole record batches: small ones waste little at its two ends, large ones compress better.
_BATCH_BYTES = 512 << 10
_BATCH_ROWS = 16_384

PART_SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("source", LABEL, nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("meta", pa.string()),
        pa.field("order", pa.uint64(), nullable=False),
        pa.field("content_hash", pa.binary(16), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Part:
    """One part file; `key` names its place in the canonical order of all parts of a run.

    `sources` are the text bytes in it by source label.
    """

    key: str
    path: str
    xxh3: str
    rows: int
    text_bytes: int
    sources: Mapping[str, int] = field(default_factory=dict)


def order_hashes(doc_ids: pa.StringArray, seed: int) -> npt.NDArray[np.uint64]:
    """xxh3-64 of each document id under the seed, uint64 [rows]."""
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(doc_id, seed) for doc_id in _utf8(doc_ids)), np.uint64, len(doc_ids))


def content_hashes(text: pa.LargeStringArray) -> pa.FixedSizeBinaryArray:
    """xxh3-128 of each text's UTF-8 bytes, as binary(16), big-endian."""
    digest = xxhash.xxh3_128_digest
    return pa.array([digest(value) for value in _utf8(text)], pa.binary(16))


def _utf8(strings: pa.Array) -> Iterator[memoryview]:
    offset_type = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    _, offset_buffer, data = strings.buffers()
    offsets = np.frombuffer(offset_buffer, offset_type)[strings.offset : strings.offset + len(strings) + 1].tolist()
    view = memoryview(data if data is not None else b"").cast("B")
    return (view[start:end] for start, end in pairwise(offsets))


def sort_part(batches: Sequence[pa.RecordBatch], seed: int) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
    """Join DocBatches into one batch of PART_SCHEMA sorted by order; also the position each row was read at."""
    table = pa.Table.from_batches(batches).drop_columns("reason").unify_dictionaries().combine_chunks()
    joined = table.to_batches()[0]
    order = order_hashes(joined.column("doc_id"), seed)
    positions = np.argsort(order, kind="stable")
    columns = [*joined.columns, pa.array(order), content_hashes(joined.column("text"))]
    part = pa.RecordBatch.from_arrays(columns, schema=PART_SCHEMA)
    return part.take(pa.array(positions)), positions


def write_part(path: Path, part: pa.RecordBatch) -> None:
    """Write a sorted part, zstd-compressed, in record batches of about half a megabyte of text."""
    order = part.column("order").to_numpy()
    bounds = _batch_bounds(part)
    index = {
        "first": [int(order[start]) for start, _ in bounds],
        "last": [int(order[end - 1]) for _, end in bounds],
        "rows": [end - start for start, end in bounds],
    }
    schema = part.schema.with_metadata({b"index": json.dumps(index).encode()})
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, schema, options=options) as writer,
    ):
        for start, end in bounds:
            writer.write_batch(part.slice(start, end - start))


def _batch_bounds(part: pa.RecordBatch) -> list[tuple[int, int]]:
    offsets = np.frombuffer(part.column("text").buffers()[1], np.int64)[: part.num_rows + 1]
    bounds = []
    start = 0
    while start < part.num_rows:
        end = int(np.searchsorted(offsets, offsets[start] + _BATCH_BYTES, side="left"))
        end = min(max(end, start + 1), start + _BATCH_ROWS, part.num_rows)
        bounds.append((start, end))
        start = end
    return bounds


def read_stretch(part: Part, low: int, high: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (first row, batch) for the rows of a part whose order lies in [low, high), 0 <= low < high <= 2^64."""
    with disk_errors(part.path):
        file = pa.memory_map(part.path)
    try:
        with file:
            yield from _stretch(file, low, high)
    # The file is mapped: an OSError here is Arrow's word for text that does not decompress.
    except (LookupError, NotImplementedError, OSError, TypeError, ValueError) as error:
        raise DamageError(
            f"this part cannot be read ({error})", where=part.path, mend="run again: its task is redone"
        ) from error


def _stretch(file: pa.MemoryMappedFile, low: int, high: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(use_threads=False))
    index = json.loads((reader.schema.metadata or {})[b"index"])
    row = 0
    for number, (first, last, rows) in enumerate(zip(*index.values(), strict=True)):
        if last >= low and first < high:
            yield from _inside(reader.get_batch(number), row, low, high)
        row += rows


def _inside(batch: pa.RecordBatch, first_row: int, low: int, high: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    order = batch.column("order").to_numpy()
    start = int(np.searchsorted(order, np.uint64(low), side="left"))
    end = int(np.searchsorted(order, np.uint64(high - 1), side="right"))
    if end > start:
        yield first_row + start, batch.slice(start, end - start)
