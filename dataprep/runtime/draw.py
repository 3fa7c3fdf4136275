"""Draw documents from many parts: the rows of one range of their seeded order, less the removed duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataprep.batch import LABEL, SCHEMA
from dataprep.dedup.exact import Removals, read_removals
from dataprep.errors import DamageError
from dataprep.runtime.membership import Picks
from dataprep.runtime.parts import ORDER_END, PART_SCHEMA, Part, read_stretch

# Work proceeds in batches of about this much text.
_BATCH_BYTES = 4 << 20
# Of the circle of orders by the golden ratio: any number of multiples lie evenly on it.
_SHIFT = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class DrawnPart:
    """A part to draw from, and its number in the canonical order, which is how removal lists name it."""

    part: Part
    number: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """Drawn documents in their seeded order. `documents` is a DocBatch whose removed rows carry a reason already.

    `matched` names the document each removed one was found equal to, null elsewhere; `copy` int32 counts the
    repetitions of a document from 0.
    """

    documents: pa.RecordBatch
    matched: pa.StringArray
    copy: npt.NDArray[np.int32]


def draw(
    parts: Sequence[DrawnPart],
    removal_lists: Sequence[Path],
    low: int,
    high: int,
    reason: str,
    picks: Picks | None = None,
) -> Iterator[Drawn]:
    """Yield the documents whose place lies in [low, high), in that order, in batches of a few megabytes.

    A document's place is its order; that of a repetition is shifted round the circle of orders, so that the copies of
    one document lie far apart. Ties fall to the part that comes first. What `picks` (None: all, once) leaves of
    the range's text is in memory at once.
    """
    pieces = [piece for part in parts for piece in _stretches(part, removal_lists, (low, high), reason, picks)]
    if not pieces:
        return
    table = pa.Table.from_batches(pieces).unify_dictionaries().combine_chunks()
    del pieces
    whole = table.to_batches()[0]
    order = np.argsort(whole.column("place").to_numpy(), kind="stable")
    for rows in _batches(order, whole):
        batch = whole.take(pa.array(rows))
        yield Drawn(batch.select(SCHEMA.names), batch.column("matched"), batch.column("copy").to_numpy())


def _stretches(
    drawn: DrawnPart,
    removal_lists: Sequence[Path],
    bounds: tuple[int, int],
    reason: str,
    picks: Picks | None,
) -> Iterator[pa.RecordBatch]:
    removals = read_removals(removal_lists, drawn.number)
    if len(removals.rows) and removals.rows[-1] >= drawn.part.rows:
        raise _other_documents(drawn.part)
    for copy in range(1 if picks is None else picks.copies):
        if picks is not None and not picks.may_take(drawn.part.sources, copy):
            continue
        shift = copy * _SHIFT % ORDER_END
        for low, high in _shifted_back(bounds, shift):
            for first_row, batch in read_stretch(drawn.part, low, high):
                marked = _marked(batch, first_row, removals, drawn.part, reason)
                chosen = marked if picks is None else picks.of(marked, copy)
                if chosen.num_rows:
                    yield _placed(chosen, copy, shift)


def _shifted_back(bounds: tuple[int, int], shift: int) -> list[tuple[int, int]]:
    """The ranges of orders that a shift round the circle brings into these bounds."""
    low, high = bounds[0] - shift, bounds[1] - shift
    ranges = [(low + ORDER_END, min(high, 0) + ORDER_END), (max(low, 0), high)]
    return [(start, end) for start, end in ranges if 0 <= start < end]


def _placed(batch: pa.RecordBatch, copy: int, shift: int) -> pa.RecordBatch:
    place = batch.column("order").to_numpy() + np.uint64(shift)
    copies = np.full(batch.num_rows, copy, np.int32)
    columns = [*batch.columns, pa.array(place), pa.array(copies)]
    return pa.RecordBatch.from_arrays(columns, [*batch.schema.names, "place", "copy"])


def _marked(batch: pa.RecordBatch, first_row: int, removals: Removals, part: Part, reason: str) -> pa.RecordBatch:
    start, end = np.searchsorted(removals.rows, [first_row, first_row + batch.num_rows]).tolist()
    inside = removals.rows[start:end].astype(np.int64) - first_row
    listed = removals.table.slice(start, end - start)
    hashes = batch.column("content_hash").take(pa.array(inside))
    if not hashes.equals(listed.column("content_hash").combine_chunks()):
        raise _other_documents(part)
    places = np.full(batch.num_rows, -1, np.int32)
    places[inside] = np.arange(len(inside), dtype=np.int32)
    gone = places < 0
    matched = listed.column("kept_doc_id").combine_chunks().take(pa.array(places, mask=gone))
    codes = pa.array(np.zeros(batch.num_rows, np.int32), mask=gone)
    reasons = pa.DictionaryArray.from_arrays(codes, pa.array([reason])).cast(LABEL)
    columns, names = [*batch.columns, reasons, matched], [*PART_SCHEMA.names, "reason", "matched"]
    return pa.RecordBatch.from_arrays(columns, names)


def _other_documents(part: Part) -> DamageError:
    what = "the removal list names other documents than this part holds"
    return DamageError(what, where=part.path, mend="run with --force")


def _batches(order: npt.NDArray[np.int64], whole: pa.RecordBatch) -> Iterator[npt.NDArray[np.int64]]:
    sizes = np.diff(np.frombuffer(whole.column("text").buffers()[1], np.int64)[: whole.num_rows + 1])[order]
    ends = np.cumsum(sizes)
    start = 0
    while start < len(order):
        done = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, done + _BATCH_BYTES, side="right")))
        yield order[start:end]
        start = end
