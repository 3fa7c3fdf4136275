"""Check what is inside intact shards: the document index, sampled rows, and sampled documents decoded to their text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dataprep.errors import DamageError, EnvironmentFailure
from dataprep.shards.decoder import (
    Decoder,
    content_ids,
    document_text,
    in_vocabulary,
    open_decoder,
    rearranged_text,
)
from dataprep.shards.documents import read_documents
from dataprep.shards.layouts import derived_faults, restore
from dataprep.shards.manifest import SOURCE_SUMS, Manifest, Shard
from dataprep.shards.pieces import PLACE_COLUMNS, Pieces, in_row, misplaced, of_document, piece_tokens, pieces_of
from dataprep.shards.records import check_framing, columns, read_rows

_COLUMNS = ("doc_id", "source", "copy", "fim", "text_bytes", "text_xxh3", "exact", *PLACE_COLUMNS)
# What the manifest names otherwise than the index.
_COLUMN_OF = {"fim_documents": "fim"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: the file it is in, relative to the shard set, and what is wrong."""

    file: str
    what: str


@dataclass(frozen=True, slots=True)
class Sample:
    """How many rows and documents to decode, spread evenly over the set, and the seed that draws them."""

    rows: int
    documents: int
    seed: int


@dataclass(frozen=True, slots=True)
class _Shard:
    """An intact shard under examination: its index, where the documents lie, and the decoder if texts can be proved."""

    path: Path
    facts: Shard
    manifest: Manifest
    index: pa.Table
    pieces: Pieces
    decode: Decoder | None


def check_contents(directory: Path, manifest: Manifest, damaged: set[str], sample: Sample) -> Iterator[Finding]:
    """Check every shard none of whose files is in `damaged`; yields findings, never raises on damage."""
    decode: Decoder | None = None
    if damaged.isdisjoint((manifest.tokenizer.file, manifest.tokenizer.model)):
        try:
            decode = open_decoder(directory, manifest)
        except DamageError as error:
            yield Finding(manifest.tokenizer.file, error.what)
    rows = _spread(manifest.totals.rows, sample.rows, sample.seed)
    documents = _spread(manifest.totals.documents, sample.documents, sample.seed)
    sums: Counter[tuple[str, str]] = Counter()
    first_row = first_document = 0
    inexact = 0
    whole = True
    for facts in manifest.shards:
        chosen_rows = _within(rows, first_row, facts.rows)
        chosen_documents = _within(documents, first_document, facts.documents)
        first_row, first_document = first_row + facts.rows, first_document + facts.documents
        index = _intact_index(directory, facts, damaged)
        if not isinstance(index, pa.Table):
            whole = False
            yield from index
            continue
        _add_sources(index, sums)
        inexact += len(index) - pc.sum(index.column("exact"), min_count=0).as_py()
        faults = list(_index_faults(facts, manifest, index))
        yield from (Finding(facts.documents_file, what) for what in faults)
        if not faults and damaged.isdisjoint((facts.file, facts.db)):
            pieces = pieces_of(index, manifest.pack.row_length)
            shard = _Shard(directory / facts.file, facts, manifest, index, pieces, decode)
            yield from _check_rows_and_texts(shard, chosen_rows, chosen_documents)
    # Sums over some of the indexes only would put the blame on the manifest.
    if whole:
        yield from _check_sources(manifest, sums)
        if inexact != manifest.tokenizer.inexact:
            what = f"inexact: {manifest.tokenizer.inexact} here, {inexact} in the document indexes"
            yield Finding("manifest.json", what)


def _intact_index(directory: Path, facts: Shard, damaged: set[str]) -> pa.Table | list[Finding]:
    """A shard's document index, or what is to be said where it cannot be read: nothing if its damage is known."""
    if facts.documents_file in damaged:
        return []
    try:
        return read_documents(directory / facts.documents_file, _COLUMNS)
    except (DamageError, EnvironmentFailure) as error:
        return [Finding(facts.documents_file, error.what)]


def _spread(total: int, wanted: int, seed: int) -> npt.NDArray[np.int64]:
    """At most `wanted` numbers below `total`, rising, one drawn from each of as many equal ranges."""
    parts = max(0, min(wanted, total))
    edges = np.arange(parts + 1, dtype=np.int64) * total // max(1, parts)
    return np.random.default_rng(seed).integers(edges[:-1], edges[1:])


def _within(sample: npt.NDArray[np.int64], first: int, count: int) -> list[int]:
    return [int(number) - first for number in sample if first <= number < first + count]


def _index_faults(facts: Shard, manifest: Manifest, index: pa.Table) -> Iterator[str]:
    for name in SOURCE_SUMS:
        found, expected = _sum(index, name), getattr(facts, name)
        if found != expected:
            yield f"{name}: {found} in the index, the manifest says {expected}"
    try:
        what = misplaced(index, pieces_of(index, manifest.pack.row_length), facts.rows, facts.padding, manifest.pack)
    except DamageError as error:
        what = error.what
    if what:
        yield what


def _sum(index: pa.Table, name: str) -> int:
    if name == "documents":
        return len(index)
    if name == "repeated":
        return int((index.column("copy").to_numpy() > 0).sum())
    return int(index.column(_COLUMN_OF.get(name, name)).to_numpy().astype(np.int64).sum())


def _add_sources(index: pa.Table, sums: Counter[tuple[str, str]]) -> None:
    names = index.column("source").cast(pa.string()).combine_chunks()
    for source in names.unique().to_pylist():
        of_source = index.filter(pc.equal(names, source))
        for name in SOURCE_SUMS:
            sums[source, name] += _sum(of_source, name)


def _check_sources(manifest: Manifest, sums: Counter[tuple[str, str]]) -> Iterator[Finding]:
    listed = {
        (source, name): getattr(totals, name) for source, totals in manifest.sources.items() for name in SOURCE_SUMS
    }
    for source, name in sorted({*listed, *sums}):
        expected, found = listed.get((source, name), 0), sums[source, name]
        if expected != found:
            what = f"{name} of {source}: {expected} here, {found} in the document indexes"
            yield Finding("manifest.json", what)


def _check_rows_and_texts(shard: _Shard, rows: list[int], documents: list[int]) -> Iterator[Finding]:
    try:
        yield from (Finding(shard.facts.file, what) for what in _column_faults(shard))
        check_framing(shard.path)
        for row, decoded in zip(rows, read_rows(shard.path, rows), strict=True):
            yield from (Finding(shard.facts.file, f"row {row}: {what}") for what in _row_faults(shard, row, decoded))
        for document in documents:
            what = _text_fault(shard, document)
            if what:
                doc_id = shard.index.column("doc_id")[document].as_py()
                yield Finding(shard.facts.file, f"document {doc_id!r}: {what}")
    except (DamageError, EnvironmentFailure) as error:
        yield Finding(shard.facts.file, error.what)


def _column_faults(shard: _Shard) -> Iterator[str]:
    listed = {column.name: (column.dtype, column.shape) for column in shard.manifest.pack.columns}
    found = {name: (column.type, column.shape) for name, column in columns(shard.path).items()}
    if found != listed:
        yield f"its columns are {_listing(found)}, the manifest says {_listing(listed)}"


def _listing(columns: Mapping[str, tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{name} {dtype} {list(shape)}" for name, (dtype, shape) in sorted(columns.items()))


def _row_faults(shard: _Shard, row: int, decoded: dict[str, npt.NDArray[Any]]) -> Iterator[str]:
    missing = {column.name for column in shard.manifest.pack.columns} - set(decoded)
    if missing:
        yield f"lacks the column {', '.join(sorted(missing))}"
        return
    tokenizer = shard.manifest.tokenizer
    ids, starts = restore(decoded, tokenizer.eos.id, tokenizer.pad.id)
    if len(ids) != shard.manifest.pack.row_length:
        yield f"has {len(ids)} tokens, not {shard.manifest.pack.row_length}"
    if not in_vocabulary(ids, shard.manifest):
        yield f"holds an id outside the vocabulary of {tokenizer.used_vocab_size}"
    pieces = in_row(shard.pieces, row)
    if not np.array_equal(starts, pieces.start):
        yield "doc_starts do not match the document index"
    content = int(pieces.length.sum())
    if (ids[content:] != tokenizer.pad.id).any():
        yield f"is not padded from token {content} on"
    # Text never encodes to a special token; padding may share its id with the tokens that mark documents.
    marks = {tokenizer.eos.id} | ({tokenizer.bos.id} if tokenizer.bos else set())
    if tokenizer.pad.id not in marks and (ids[:content] == tokenizer.pad.id).any():
        yield "holds padding inside its text"
    if len(ids) == shard.manifest.pack.row_length:
        derived = derived_faults(shard.manifest.pack.layout, decoded, ids, pieces.start, content)
        yield from (f"column {name} does not follow from its tokens" for name in derived)


def _text_fault(shard: _Shard, document: int) -> str | None:
    ids = np.concatenate(list(piece_tokens(shard.path, of_document(shard.pieces, document))))
    manifest, decode = shard.manifest, shard.decode
    if decode is None:
        return None
    if not in_vocabulary(ids, manifest):
        return f"holds an id outside the vocabulary of {manifest.tokenizer.used_vocab_size}"
    if content_ids(ids, manifest) is None:
        return "does not begin and end with its special tokens"
    # Of a document that was cut down, the rows hold the beginning alone, which no hash was made of.
    if shard.index.column("truncated")[document].as_py():
        return None
    rearranged = shard.index.column("fim")[document].as_py()
    text = (rearranged_text if rearranged else document_text)(ids, manifest, decode)
    if text is None:
        return "does not hold the three tokens that stand before its rearranged parts"
    if not shard.index.column("exact")[document].as_py():
        return None
    data = text.encode()
    if len(data) != shard.index.column("text_bytes")[document].as_py():
        return f"decodes to {len(data)} bytes of text, not those in the index"
    if xxhash.xxh3_128_digest(data) != shard.index.column("text_xxh3")[document].as_py():
        return "decodes to another text than the one it was made from"
    return None
