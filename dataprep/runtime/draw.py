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
from dataprep.runtime.parts import PART_SCHEMA, Part, read_stretch

# Work proceeds in batches of about this much text.
_BATCH_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class DrawnPart:
    """A part to draw from, and its number in the canonical order, which is how removal lists name it."""

    part: Part
    number: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """Drawn documents in their seeded order. `documents` is a DocBatch whose removed rows carry a reason already.

    `matched` names the document each removed one was found equal to, null elsewhere.
    """

    documents: pa.RecordBatch
    matched: pa.StringArray


def draw(
    parts: Sequence[DrawnPart], removal_lists: Sequence[Path], low: int, high: int, reason: str
) -> Iterator[Drawn]:
    """Yield the documents whose order lies in [low, high), in that order, in batches of a few megabytes.

    Ties fall to the part that comes first. All of the range's text is in memory at once.
    """
    pieces = [piece for part in parts for piece in _stretches(part, removal_lists, low, high, reason)]
    if not pieces:
        return
    table = pa.Table.from_batches(pieces).unify_dictionaries().combine_chunks()
    del pieces
    whole = table.to_batches()[0]
    order = np.argsort(whole.column("order").to_numpy(), kind="stable")
    for rows in _batches(order, whole):
        batch = whole.take(pa.array(rows))
        yield Drawn(batch.select(SCHEMA.names), batch.column("matched"))


def _stretches(
    drawn: DrawnPart, removal_lists: Sequence[Path], low: int, high: int, reason: str
) -> Iterator[pa.RecordBatch]:
    removals = read_removals(removal_lists, drawn.number)
    if len(removals.rows) and removals.rows[-1] >= drawn.part.rows:
        raise _other_documents(drawn.part)
    for first_row, batch in read_stretch(drawn.part, low, high):
        yield _marked(batch, first_row, removals, drawn.part, reason)


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
    columns = [*batch.columns[: PART_SCHEMA.get_field_index("order") + 1], reasons, matched]
    names = [*PART_SCHEMA.names[: PART_SCHEMA.get_field_index("order") + 1], "reason", "matched"]
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
