"""Statistics of a shard set from its manifest and document indexes: what it holds, by source, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Group, RenderableType
from rich.text import Text

from dataprep.shards.documents import document_batches
from dataprep.shards.manifest import SOURCE_SUMS, Counts, Manifest, SourceTotals, load_manifest
from dataprep.tables import Column, FittedTable
from dataprep.visible import visible
from dataprep.wording import counted

PERCENTILES = (1, 10, 50, 90, 99)

# Distinct (source, length) pairs held before they are merged: 16 MB.
_PENDING = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceStats:
    """Sums of one source (or of all): tokens count special tokens and those cut away (`truncated`).

    `rows` is the tokens not cut away / row_length: rows as they would be without padding. `share` is that of all
    tokens, `repeated` the documents that the mix put there once more.

    `lengths` maps p1 … p99 (nearest rank) and max to document lengths in tokens; empty when there are no documents.
    """

    documents: int
    repeated: int
    fim_documents: int
    tokens: int
    share: float
    truncated: int
    rows: float
    text_bytes: int
    tokens_per_1000_bytes: float
    bytes_per_token: float
    lengths: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Stats:
    """Everything `dataprep stats` shows of one shard set."""

    name: str
    split: str | None
    mix: Mapping[str, float] | None
    hash: str
    shards: int
    rows: int
    row_length: int
    method: str
    padding: int
    padding_share: float
    total: SourceStats
    sources: Mapping[str, SourceStats]
    ledger: Mapping[str, Mapping[str, Counts]]


@dataclass(frozen=True, slots=True)
class _Histogram:
    """Documents by key = source number << 32 | length in tokens; keys rise. Memory grows with distinct keys only."""

    keys: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def collect(directory: Path) -> Stats:
    """Gather the statistics of a finished shard set, one batch of documents in memory at a time.

    Raises ConfigError (unfinished), DamageError.
    """
    manifest = load_manifest(directory)
    names = list(manifest.sources)
    histogram = _count_lengths(directory, manifest, names)
    lengths = histogram.keys & 0xFFFFFFFF
    numbers = histogram.keys >> 32
    row_length, totals = manifest.pack.row_length, manifest.totals
    sources = {
        name: _source_stats(manifest, manifest.sources[name], lengths[numbers == k], histogram.counts[numbers == k])
        for k, name in enumerate(names)
    }
    everything = SourceTotals(**{name: getattr(totals, name) for name in SOURCE_SUMS})
    return Stats(
        name=manifest.name,
        split=manifest.split.name if manifest.split else None,
        mix=manifest.mix,
        hash=manifest.hash,
        shards=len(manifest.shards),
        rows=totals.rows,
        row_length=row_length,
        method=manifest.pack.method,
        padding=totals.padding,
        padding_share=_ratio(totals.padding, totals.rows * row_length),
        total=_source_stats(manifest, everything, lengths, histogram.counts),
        sources=sources,
        ledger=manifest.ledger,
    )


def as_json(stats: Stats) -> dict[str, Any]:
    """The statistics as a JSON object (`dataprep stats --json`)."""
    sources = {name: asdict(source) for name, source in stats.sources.items()}
    ledger = {
        stage: {source: counts.model_dump(mode="json", by_alias=True) for source, counts in by_source.items()}
        for stage, by_source in stats.ledger.items()
    }
    head = {
        name: getattr(stats, name)
        for name in ("name", "split", "mix", "hash", "shards", "rows", "row_length", "method", "padding")
    }
    return {
        **head,
        "padding_share": stats.padding_share,
        "total": asdict(stats.total),
        "sources": sources,
        "ledger": ledger,
    }


def render_stats(stats: Stats) -> RenderableType:
    """Tables for a person: sources, lengths, ledger."""
    named = f"{stats.name}, {stats.split}" if stats.split else stats.name
    head = (
        f"{visible(named)}: {counted(stats.shards, 'shard')}, {counted(stats.rows, 'row')} "
        f"of {stats.row_length:,} tokens, {counted(stats.padding, 'token')} of padding ({stats.padding_share:.3%})"
    )
    if stats.total.repeated:
        head += f", {stats.total.repeated:,} of {counted(stats.total.documents, 'document')} are repetitions"
    if stats.total.truncated:
        head += f", {stats.total.truncated:,} tokens cut away"
    if stats.total.fim_documents:
        head += f", {stats.total.fim_documents:,} of {stats.total.documents:,} documents filled in the middle"
    return Group(
        Text(head, no_wrap=True, overflow="ignore"), _source_table(stats), _length_table(stats), _ledger_table(stats)
    )


def _count_lengths(directory: Path, manifest: Manifest, names: list[str]) -> _Histogram:
    numbers = {name: number for number, name in enumerate(names)}
    whole = _Histogram(np.empty(0, np.int64), np.empty(0, np.int64))
    pending: list[_Histogram] = [whole]
    size = 0
    for shard in manifest.shards:
        for batch in document_batches(directory / shard.documents_file, ("source", "tokens")):
            pending.append(_batch_histogram(batch, numbers))
            size += len(pending[-1].keys)
            if size > _PENDING:
                pending, size = [_merge(pending)], 0
    return _merge(pending)


def _batch_histogram(batch: pa.RecordBatch, numbers: dict[str, int]) -> _Histogram:
    source = batch.column("source")
    # A source the manifest does not know has no line of its own, but still counts in the total.
    known = np.array([numbers.get(name, len(numbers)) for name in source.dictionary.to_pylist()], np.int64)
    keys = known[source.indices.to_numpy()] << 32 | batch.column("tokens").to_numpy().astype(np.int64)
    return _Histogram(*np.unique(keys, return_counts=True))


def _merge(parts: list[_Histogram]) -> _Histogram:
    keys, place = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, place, np.concatenate([part.counts for part in parts]))
    return _Histogram(keys, counts)


def _source_stats(
    manifest: Manifest, totals: SourceTotals, lengths: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> SourceStats:
    return SourceStats(
        documents=totals.documents,
        repeated=totals.repeated,
        fim_documents=totals.fim_documents,
        tokens=totals.tokens,
        share=_ratio(totals.tokens, manifest.totals.tokens),
        truncated=totals.truncated,
        rows=(totals.tokens - totals.truncated) / manifest.pack.row_length,
        text_bytes=totals.text_bytes,
        tokens_per_1000_bytes=1000 * _ratio(totals.tokens, totals.text_bytes),
        bytes_per_token=_ratio(totals.text_bytes, totals.tokens),
        lengths=_percentiles(lengths, counts),
    )


def _percentiles(lengths: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> dict[str, int]:
    if not len(lengths):
        return {}
    order = np.argsort(lengths, kind="stable")
    ranked, below = lengths[order], np.cumsum(counts[order])
    documents = int(below[-1])
    ranks = [-(-percent * documents // 100) for percent in PERCENTILES]
    found = {
        f"p{percent}": int(ranked[np.searchsorted(below, rank)])
        for percent, rank in zip(PERCENTILES, ranks, strict=True)
    }
    return {**found, "max": int(ranked[-1])}


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _lines(stats: Stats) -> Iterator[tuple[str, SourceStats]]:
    yield from stats.sources.items()
    yield "total", stats.total


def _source_table(stats: Stats) -> FittedTable:
    # Tokens by bytes say again what bytes by tokens say, and rows what tokens say.
    columns = (
        Column("source"),
        Column("documents", number=True),
        Column("tokens", number=True),
        Column("share", number=True, spare=4),
        *((Column("epochs", number=True),) if stats.mix else ()),
        Column("rows", number=True, spare=2),
        Column("text bytes", number=True),
        Column("tokens / 1000 B", number=True, spare=3),
        Column("B / token", number=True, spare=1),
    )
    rows = [
        (
            name,
            f"{line.documents:,}",
            f"{line.tokens:,}",
            f"{line.share:.1%}",
            *((f"{stats.mix[name]:.4g}" if name in stats.mix else "",) if stats.mix else ()),
            f"{line.rows:,.1f}",
            f"{line.text_bytes:,}",
            f"{line.tokens_per_1000_bytes:.1f}",
            f"{line.bytes_per_token:.2f}",
        )
        for name, line in _lines(stats)
    ]
    return FittedTable(columns, rows, "Sources")


def _length_table(stats: Stats) -> FittedTable:
    names = (*(f"p{percent}" for percent in PERCENTILES), "max")
    spare = {"p1": 2, "p10": 1, "p99": 3}
    columns = (Column("source"), *(Column(name, number=True, spare=spare.get(name, 0)) for name in names))
    rows = [
        (name, *(f"{line.lengths[column]:,}" if line.lengths else "-" for column in names))
        for name, line in _lines(stats)
    ]
    return FittedTable(columns, rows, "Document length in tokens")


def _ledger_table(stats: Stats) -> FittedTable:
    rows = []
    for stage, by_source in stats.ledger.items():
        for source, counts in by_source.items():
            fates = {"in": counts.in_, "kept": counts.kept}
            fates |= {f"dropped {reason}": count for reason, count in counts.dropped.items()}
            fates |= {f"quarantined {reason}": count for reason, count in counts.quarantined.items()}
            fates |= {"elsewhere": counts.elsewhere} if counts.elsewhere else {}
            rows += [(stage, source, fate, f"{count:,}") for fate, count in fates.items()]
    columns = (Column("stage"), Column("source"), Column("fate"), Column("records", number=True))
    return FittedTable(columns, rows, "Ledger")
