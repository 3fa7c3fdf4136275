"""Exact deduplication over any number of parts: sorted key files, joined range by range in bounded memory.

`prepare` writes for every part a key file: the 128-bit content key of each row, sorted. The key space is then cut into
ranges; one task joins one range of all key files, finds equal keys and writes the removal list of that range. Only the
documents of groups with more than one member have their ids looked at. The survivor of a group is the document with the
smallest id (by UTF-8 bytes), then the earliest in input order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataprep.batch import LABEL
from dataprep.errors import DamageError
from dataprep.storage import atomic_path, disk_errors

# Peak bytes a key costs while a range is joined: its 28 bytes, the sort's copies and the Arrow views (measured).
BYTES_PER_KEY = 100
KEY_END = 1 << 64

KEY_SCHEMA = pa.schema(
    [
        pa.field("high", pa.uint64(), nullable=False),
        pa.field("low", pa.uint64(), nullable=False),
        pa.field("row", pa.uint32(), nullable=False),
        pa.field("position", pa.uint32(), nullable=False),
        pa.field("text_bytes", pa.uint32(), nullable=False),
        pa.field("source", LABEL, nullable=False),
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("content_hash", pa.binary(16), nullable=False),
    ]
)

# part and row say which document goes; content_hash lets the reader of the part make sure that it is that document.
REMOVAL_SCHEMA = pa.schema(
    [
        pa.field("part", pa.uint32(), nullable=False),
        pa.field("row", pa.uint32(), nullable=False),
        pa.field("text_bytes", pa.uint32(), nullable=False),
        pa.field("content_hash", pa.binary(16), nullable=False),
        pa.field("kept_doc_id", pa.string(), nullable=False),
    ]
)


def write_keys(path: Path, documents: pa.RecordBatch, keys: npt.NDArray[np.uint64]) -> None:
    """Write the key file of one part.

    `documents` holds row (uint32, in the part), position (uint32, the place it was read at), doc_id, text, source and
    content_hash of the documents that take part; `keys` is uint64 [rows, 2], the (high, low) content key of each.
    """
    sizes = pc.cast(pc.binary_length(documents.column("text")), pa.uint32())
    taken = ("row", "position", "source", "doc_id", "content_hash")
    columns = {"high": pa.array(keys[:, 0]), "low": pa.array(keys[:, 1]), "text_bytes": sizes}
    columns |= {name: documents.column(name) for name in taken}
    unsorted = pa.RecordBatch.from_arrays([columns[name] for name in KEY_SCHEMA.names], schema=KEY_SCHEMA)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    _write(path, pa.Table.from_batches([unsorted.take(pa.array(order))]))


def write_removals(path: Path, removals: pa.Table) -> None:
    """Write a removal list."""
    _write(path, removals)


def _write(path: Path, table: pa.Table) -> None:
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)


def key_ranges(keys: int, memory: int) -> list[tuple[int, int]]:
    """Cut the 64-bit space of high keys into equal ranges whose join fits `memory` bytes."""
    count = max(1, -(-keys * BYTES_PER_KEY // memory))
    bounds = [KEY_END * number // count for number in range(count + 1)]
    return list(pairwise(bounds))


@dataclass(frozen=True, slots=True)
class Joined:
    """The outcome of one range: the removal list sorted by (part, row), and (documents, text bytes) per source."""

    removals: pa.Table
    seen: Mapping[str, tuple[int, int]]
    removed: Mapping[str, tuple[int, int]]


def join_range(key_files: Sequence[Path], low: int, high: int) -> Joined:
    """Find the duplicates among all keys whose high word lies in [low, high).

    `key_files` are in the canonical order of their parts; a removal's `part` is the index in this list.
    """
    slices = [_slice(path, low, high) for path in key_files]
    removed = _removed(slices, *_members(slices))
    return Joined(
        removals=removed.select(REMOVAL_SCHEMA.names).cast(REMOVAL_SCHEMA),
        seen=_by_source(slices),
        removed=_by_source(removed.to_batches()),
    )


def _slice(path: Path, low: int, high: int) -> pa.RecordBatch:
    batches = _mapped(path).to_batches()
    batch = batches[0] if batches else _no_keys()
    words = batch.column("high").to_numpy()
    start = int(np.searchsorted(words, np.uint64(low), side="left"))
    end = int(np.searchsorted(words, np.uint64(high - 1), side="right"))
    return batch.slice(start, end - start)


def _no_keys() -> pa.RecordBatch:
    # An empty table has no batch that could be sliced.
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in KEY_SCHEMA], schema=KEY_SCHEMA)


def _mapped(path: Path) -> pa.Table:
    # Closing gives the descriptor back at once; the mapping lives as long as the table, and pages load when touched.
    try:
        with disk_errors(path), pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).read_all()
    except pa.ArrowInvalid as error:
        raise DamageError(
            f"this file cannot be read ({error})", where=str(path), mend="run again: its task is redone"
        ) from error


def _members(slices: Sequence[pa.RecordBatch]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Members of groups of equal keys, and the group of each: int64 indices into the joined slices, int64 groups."""
    high = _joined(slices, "high")
    # The slices are sorted: a stable sort merges their runs instead of starting from nothing.
    by_high = np.argsort(high, kind="stable")
    ordered = high[by_high]
    equal = ordered[1:] == ordered[:-1]
    repeated = np.zeros(len(ordered), np.bool_)
    repeated[1:] |= equal
    repeated[:-1] |= equal
    suspects = by_high[repeated]
    low, high = _joined(slices, "low")[suspects], high[suspects]
    order = np.lexsort((low, high))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
    groups = np.cumsum(fresh) - 1
    real = np.bincount(groups)[groups] > 1 if len(groups) else np.zeros(0, np.bool_)
    return suspects[order][real], groups[real]


def _joined(slices: Sequence[pa.RecordBatch], name: str) -> npt.NDArray[np.uint64]:
    columns = [piece.column(name).to_numpy() for piece in slices]
    return np.concatenate(columns) if columns else np.empty(0, np.uint64)


def _removed(
    slices: Sequence[pa.RecordBatch], members: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]
) -> pa.Table:
    """All members but the survivors, sorted by (part, row), with the id of the document kept for each."""
    starts = np.concatenate([[0], np.cumsum([piece.num_rows for piece in slices], dtype=np.int64)])
    parts = np.searchsorted(starts, members, side="right") - 1
    pieces = []
    for part in np.unique(parts).tolist():
        inside = parts == part
        piece = pa.Table.from_batches([slices[part].take(pa.array(members[inside] - starts[part]))])
        piece = piece.append_column("part", pa.array(np.full(piece.num_rows, part, np.uint32)))
        pieces.append(piece.append_column("group", pa.array(groups[inside])))
    if not pieces:
        empty = REMOVAL_SCHEMA.append(pa.field("source", LABEL))
        return empty.empty_table()
    keys = [(name, "ascending") for name in ("group", "doc_id", "part", "position")]
    table = pa.concat_tables(pieces).unify_dictionaries().combine_chunks().sort_by(keys)
    group = table.column("group").to_numpy()
    first = np.searchsorted(group, group, side="left")
    kept = table.column("doc_id").take(pa.array(first))
    table = table.append_column("kept_doc_id", kept).filter(pa.array(first != np.arange(len(group))))
    return table.sort_by([("part", "ascending"), ("row", "ascending")]).combine_chunks()


def _by_source(batches: Sequence[pa.RecordBatch]) -> dict[str, tuple[int, int]]:
    """(documents, text bytes) per source."""
    documents: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for batch in batches:
        source = batch.column("source")
        names = source.dictionary.to_pylist()
        codes = source.indices.to_numpy()
        counts = np.bincount(codes, minlength=len(names)).tolist()
        totals = np.bincount(codes, weights=batch.column("text_bytes").to_numpy(), minlength=len(names)).tolist()
        for name, count, total in zip(names, counts, totals, strict=True):
            documents[name] += count
            sizes[name] += int(total)
    return {name: (documents[name], sizes[name]) for name in sorted(documents) if documents[name]}


@dataclass(frozen=True, slots=True)
class Removals:
    """The removals of one part: rows uint32 ascending, and columns content_hash and kept_doc_id beside them."""

    rows: npt.NDArray[np.uint32]
    table: pa.Table


def read_removals(lists: Sequence[Path], part: int) -> Removals:
    """Collect the removals of one part from all ranges' lists."""
    pieces = []
    for path in lists:
        table = _mapped(path)
        parts = table.column("part").to_numpy()
        start, end = (int(np.searchsorted(parts, np.uint32(part), side=side)) for side in ("left", "right"))
        pieces.append(table.slice(start, end - start))
    table = pa.concat_tables(pieces).sort_by("row") if pieces else REMOVAL_SCHEMA.empty_table()
    return Removals(table.column("row").to_numpy(), table)


def removed_bytes(lists: Sequence[Path], parts: int) -> npt.NDArray[np.int64]:
    """Text bytes removed from each part, int64 [parts]."""
    total = np.zeros(parts, np.int64)
    for path in lists:
        table = _mapped(path)
        sizes = table.column("text_bytes").to_numpy().astype(np.int64)
        np.add.at(total, table.column("part").to_numpy(), sizes)
    return total
