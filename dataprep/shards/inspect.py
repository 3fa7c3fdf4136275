"""Look inside a shard set: the text of a row or a document with the borders in it, and the records that were lost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from dataprep.errors import ConfigError
from dataprep.shards.decoder import Decoder, open_decoder, rearranged_text
from dataprep.shards.documents import PARQUET_FAULTS, document_batches, read_documents
from dataprep.shards.lost import LostTables, chosen_count, lost_tables, reason_counts, table_damage
from dataprep.shards.manifest import Manifest, Shard, load_manifest
from dataprep.shards.pieces import PLACE_COLUMNS, Pieces, in_row, of_document, piece_tokens, pieces_of
from dataprep.tables import Column, FittedTable
from dataprep.visible import stretches, visible
from dataprep.wording import counted

_COLUMNS = ("doc_id", "source", "origin", "copy", *PLACE_COLUMNS)
_EXCERPT = 500
_HIDDEN = Style(reverse=True)


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a document in one row: global `row`, first token in it, tokens, and whether it begins or ends there.

    `text` is the decoded ids, special tokens included; characters cut by the row's border show as U+FFFD.
    """

    doc_id: str
    source: str
    origin: str
    row: int
    start: int
    tokens: int
    begins: bool
    ends: bool
    text: str


@dataclass(frozen=True, slots=True)
class RowView:
    """One row: its number in the set and in its shard, its pieces in order, and the tokens of padding behind them."""

    row: int
    shard: str
    row_in_shard: int
    pieces: tuple[Piece, ...]
    padding: int


@dataclass(frozen=True, slots=True)
class DocumentView:
    """One document: its shard, its pieces in reading order and the tokens that were cut away behind them.

    `copy` counts the repetitions of a mix from 0.

    `in_order` is the text of a document that was rearranged to fill in the middle, its parts put back in order, and
    `proved` says whether it has the hash of the text it was made from; both None for other documents, and where tokens
    were cut away.
    """

    doc_id: str
    source: str
    origin: str
    shard: str
    copy: int
    pieces: tuple[Piece, ...]
    truncated: int
    in_order: str | None
    proved: bool | None


@dataclass(frozen=True, slots=True)
class LostRecord:
    """A dropped document (with doc_id, stage, maybe the document it matched) or a quarantined record (with detail)."""

    fate: str
    source: str
    origin: str
    reason: str
    text: str | None
    doc_id: str | None = None
    stage: str | None = None
    matched_doc: str | None = None
    detail: str | None = None


def inspect_row(directory: Path, row: int) -> RowView:
    """Decode the row numbered `row` in the manifest's order of shards. Raises ConfigError if there is none."""
    manifest = load_manifest(directory)
    if not manifest.totals.rows:
        raise ConfigError(
            "the set holds no rows", where=str(directory), mend="see `dataprep dropped` for what was lost"
        )
    if not 0 <= row < manifest.totals.rows:
        raise ConfigError(f"no row {row}", where=str(directory), mend=f"rows are 0 to {manifest.totals.rows - 1}")
    first = 0
    for shard in manifest.shards:
        if row < first + shard.rows:
            break
        first += shard.rows
    index = read_documents(directory / shard.documents_file, _COLUMNS)
    pieces = in_row(pieces_of(index, manifest.pack.row_length), row - first)
    decode = open_decoder(directory, manifest)
    shown = tuple(_show(directory / shard.file, index, pieces, first, decode))
    return RowView(row, shard.file, row - first, shown, manifest.pack.row_length - int(pieces.length.sum()))


def inspect_document(directory: Path, doc_id: str) -> list[DocumentView]:
    """Decode every document with this id, across its rows. Raises ConfigError if there is none."""
    manifest = load_manifest(directory)
    decode = open_decoder(directory, manifest)
    views = list(_documents(directory, manifest, doc_id, decode))
    if not views:
        raise ConfigError(
            f"no document {doc_id!r}", where=str(directory), mend="see `dataprep dropped` for those not kept"
        )
    return views


def dropped(directory: Path, reason: str | None = None, limit: int | None = 20) -> list[LostRecord]:
    """List dropped documents, then quarantined records; `reason` picks one reason or a family (`gopher` → `gopher.…`).

    `limit` None lists all. Raises DamageError for a listed file that is missing or broken.
    """
    return list(islice(lost_records(lost_tables(directory), reason), limit))


def lost_records(tables: LostTables, reason: str | None = None) -> Iterator[LostRecord]:
    """The records of all tables, one after the other."""
    for path, fate in tables.tables:
        yield from _lost_in(path, fate, reason)


def render_row(view: RowView) -> RenderableType:
    """A row as text: a heading for each piece of a document, then what it says."""
    head = f"row {view.row}: {view.shard}, row {view.row_in_shard}, {counted(len(view.pieces), 'piece')}"
    tail = [Text(f"── {counted(view.padding, 'token')} of padding", style="dim")] if view.padding else []
    return Group(Text(head, style="bold"), *_render_pieces(view.pieces), *tail)


def render_documents(views: Sequence[DocumentView]) -> RenderableType:
    """Documents as text, a heading where each row begins."""
    parts: list[RenderableType] = []
    for view in views:
        tokens = sum(piece.tokens for piece in view.pieces)
        rows = counted(len(view.pieces), "row")
        copy = f", copy {view.copy}" if view.copy else ""
        head = f"document {visible(view.doc_id)}{copy}: {counted(tokens, 'token')} in {rows} of {view.shard}"
        parts += [Text(head, style="bold"), *_render_pieces(view.pieces), *_render_rest(view)]
    return Group(*parts)


def render_dropped(records: Sequence[LostRecord]) -> RenderableType:
    """A table of lost records with the beginning of their text, hidden characters as escapes."""
    rows = []
    for record in records:
        place = _stacked(record.doc_id, record.origin)
        why = _stacked(record.reason, f"equals {record.matched_doc}" if record.matched_doc else None, record.detail)
        rows.append((record.fate, why, record.source, place, (record.text or "")[:_EXCERPT]))
    return FittedTable(tuple(map(Column, ("fate", "reason", "source", "id, origin", "text"))), rows)


def render_lost(tables: LostTables, reason: str | None, limit: int) -> RenderableType:
    """A table of at most `limit` lost records, and a line that says of how many.

    Raises ConfigError for a reason that no record has.
    """
    total = chosen_count(reason_counts(tables), reason)
    if not total:
        return Text("nothing was dropped or quarantined")
    shown = render_dropped(list(islice(lost_records(tables, reason), limit)))
    if total <= limit:
        return shown
    return Group(shown, Text(f"{limit:,} of {total:,} shown, --limit {total} shows all"))


def as_json_lines(tables: LostTables, reason: str | None, limit: int | None) -> Iterator[str]:
    """Lost records as JSON objects, all that the tables hold of them. Raises as `render_lost`."""
    chosen_count(reason_counts(tables), reason)
    for record in islice(lost_records(tables, reason), limit):
        yield json.dumps(asdict(record), ensure_ascii=False)


def _documents(directory: Path, manifest: Manifest, doc_id: str, decode: Decoder) -> Iterator[DocumentView]:
    first = 0
    for shard in manifest.shards:
        for number in _find(directory / shard.documents_file, doc_id):
            yield _document(directory, manifest, shard, number, first, decode)
        first += shard.rows


def _find(path: Path, doc_id: str) -> list[int]:
    found: list[int] = []
    first = 0
    for batch in document_batches(path, ("doc_id",)):
        hits = np.flatnonzero(pc.equal(batch.column("doc_id"), doc_id).to_numpy(zero_copy_only=False))
        found += (first + hits).tolist()
        first += len(batch)
    return found


def _document(
    directory: Path, manifest: Manifest, shard: Shard, number: int, first_row: int, decode: Decoder
) -> DocumentView:
    index = read_documents(directory / shard.documents_file, (*_COLUMNS, "fim", "text_xxh3"))
    pieces = of_document(pieces_of(index, manifest.pack.row_length), number)
    path = directory / shard.file
    shown = tuple(_show(path, index, pieces, first_row, decode))
    head = index.slice(number, 1).to_pylist()[0]
    text = None
    if head["fim"] and not head["truncated"]:
        text = rearranged_text(np.concatenate(list(piece_tokens(path, pieces))), manifest, decode)
    return DocumentView(
        doc_id=head["doc_id"],
        source=head["source"],
        origin=head["origin"],
        shard=shard.file,
        copy=head["copy"],
        pieces=shown,
        truncated=head["truncated"],
        in_order=text,
        proved=None if text is None else xxhash.xxh3_128_digest(text.encode()) == head["text_xxh3"],
    )


def _show(path: Path, index: pa.Table, pieces: Pieces, first_row: int, decode: Decoder) -> Iterator[Piece]:
    for k, ids in enumerate(piece_tokens(path, pieces)):
        document, row, start = int(pieces.document[k]), int(pieces.row[k]), int(pieces.start[k])
        head: dict[str, Any] = index.slice(document, 1).to_pylist()[0]
        yield Piece(
            doc_id=head["doc_id"],
            source=head["source"],
            origin=head["origin"],
            row=first_row + row,
            start=start,
            tokens=len(ids),
            begins=(row, start) == (head["rows"][0], head["offsets"][0]),
            ends=(row, start) == (head["rows"][-1], head["offsets"][-1]),
            text=decode(ids),
        )


class _Exact:
    """Text to the last space and tab, ended by a line end; hidden characters stand out as escapes."""

    # rich's own Text would turn tabs into spaces, drop some control characters and let others through.
    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for part, hidden in stretches(self._text, keep="\n\t"):
            yield Segment(part, _HIDDEN if hidden else None)
        yield Segment.line()


def _stacked(*lines: str | None) -> str:
    return "\n".join(visible(line) for line in lines if line is not None)


def _render_pieces(pieces: Iterable[Piece]) -> Iterator[RenderableType]:
    for piece in pieces:
        edges = " ".join(word for word, holds in (("begins", piece.begins), ("ends", piece.ends)) if holds)
        place = f"row {piece.row}, tokens {piece.start} to {piece.start + piece.tokens - 1}"
        head = f"── {piece.doc_id} [{piece.source}] {piece.origin}: {place} {edges}".rstrip()
        yield Text(visible(head), style="cyan")
        yield _Exact(piece.text)


def _render_rest(view: DocumentView) -> Iterator[RenderableType]:
    if view.truncated:
        yield Text(f"── {view.truncated:,} tokens were cut away behind the last but eos", style="dim")
    if view.in_order is not None:
        proof = "this is the text it was made from" if view.proved else "this is not the text it was made from"
        yield Text(f"── filled in the middle; put back in order, {proof}:", style="cyan")
        yield _Exact(view.in_order)


def _lost_in(path: Path, fate: str, reason: str | None) -> Iterator[LostRecord]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1024):
                yield from (_lost_record(fate, record) for record in _with_reason(batch, reason).to_pylist())
    except PARQUET_FAULTS as error:
        raise table_damage(path, error) from error


def _with_reason(batch: pa.RecordBatch, reason: str | None) -> pa.RecordBatch:
    if reason is None:
        return batch
    reasons = batch.column("reason").cast(pa.string())
    return batch.filter(pc.or_(pc.equal(reasons, reason), pc.starts_with(reasons, reason + ".")))


def _lost_record(fate: str, record: dict[str, Any]) -> LostRecord:
    common = {"fate": fate, "source": record["source"], "origin": record["origin"], "reason": record["reason"]}
    if fate == "dropped":
        return LostRecord(
            **common,
            text=record["text"],
            doc_id=record["doc_id"],
            stage=record["stage"],
            matched_doc=record["matched_doc"],
        )
    return LostRecord(**common, text=record["excerpt"], detail=record["detail"])
