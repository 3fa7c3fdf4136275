"""Documents and bad records in reading order, gathered into DocBatches of bounded size."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from dataprep.batch import doc_batch
from dataprep.readers.inputs import BadRecord

EXCERPT_CHARACTERS = 200
_NAMES_SHOWN = 12
# A bad record in memory: its excerpt and its strings' overhead; keeps a file of nothing but bad lines bounded.
_BAD_RECORD_BYTES = 1024


class Document(NamedTuple):
    """One good record; `meta` is a JSON object or None."""

    doc_id: str
    text: str
    source: str
    origin: str
    meta: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive records: the good ones as a DocBatch, the bad ones with their places among all of them.

    `places` ascends; places[i] is the index of bad[i] in the sequence of all records of the piece.
    """

    batch: pa.RecordBatch
    bad: tuple[BadRecord, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def records(self) -> int:
        """Number of records, good and bad."""
        return int(self.batch.num_rows) + len(self.bad)

    def head(self, records: int) -> Piece:
        """The first `records` records."""
        kept_bad = bisect_left(self.places, records)
        return Piece(self.batch.slice(0, records - kept_bad), self.bad[:kept_bad], self.places[:kept_bad])


def gathered(records: Iterable[Document | BadRecord], batch_bytes: int) -> Iterator[Piece]:
    """Gather records into pieces of about `batch_bytes` of text; one piece may exceed that by one record."""
    good: list[Document] = []
    bad: list[BadRecord] = []
    places: list[int] = []
    weight = 0
    for record in records:
        if isinstance(record, Document):
            good.append(record)
            weight += len(record.text)
        else:
            places.append(len(good) + len(bad))
            bad.append(record)
            weight += _BAD_RECORD_BYTES
        if weight < batch_bytes:
            continue
        piece = Piece(_documents(good), tuple(bad), tuple(places))
        # Let go before the batch is worked on: the strings of one long document may take a gigabyte.
        good, bad, places, weight = [], [], [], 0
        del record
        yield piece
    if good or bad:
        yield Piece(_documents(good), tuple(bad), tuple(places))


def _documents(good: list[Document]) -> pa.RecordBatch:
    if not good:
        return empty_batch()
    doc_ids, texts, sources, origins, metas = zip(*good, strict=True)
    label: str | tuple[str, ...] = sources[0] if sources.count(sources[0]) == len(sources) else sources
    return doc_batch(doc_ids, texts, label, origins, metas if any(metas) else None)


def empty_batch() -> pa.RecordBatch:
    """A DocBatch of no rows."""
    return doc_batch([], [], [], [])


def limited(pieces: Iterable[Piece], limit: int | None) -> Iterator[Piece]:
    """Stop after `limit` records, good and bad."""
    if limit is None:
        yield from pieces
        return
    left = limit
    for piece in pieces:
        if piece.records >= left:
            yield piece.head(left)
            return
        left -= piece.records
        yield piece


def those_there(names: Sequence[str]) -> str:
    """The names of a record's fields or a file's columns for a report: `id, body`; the first twelve of many."""
    shown = [name if name.isprintable() and name else repr(name) for name in names[:_NAMES_SHOWN]]
    more = [f"{len(names) - _NAMES_SHOWN} more"] if len(names) > _NAMES_SHOWN else []
    return ", ".join([*shown, *more]) or "none"


def excerpt(raw: bytes | str) -> str:
    """The first characters of a record for a report; bytes that are not UTF-8 and lone surrogates are escaped."""
    if isinstance(raw, str):
        return raw[:EXCERPT_CHARACTERS].encode("utf-8", "backslashreplace").decode()
    # Four bytes a character at most; a cut character at the end is dropped with the surplus.
    return raw[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "backslashreplace")[:EXCERPT_CHARACTERS]
