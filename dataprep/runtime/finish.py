"""finish: sum the ledger up, list and hash every file, and write the manifest, which makes the set finished."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep import storage
from dataprep.errors import DamageError
from dataprep.runtime.directories import clear_stale
from dataprep.runtime.ledger import Output, Tally, TaskRecord, add_tallies
from dataprep.runtime.plan import Plan
from dataprep.runtime.sets import ShardSet
from dataprep.runtime.shard_tasks import trust_in
from dataprep.runtime.stages import dedup, emit, prepare
from dataprep.shards.manifest import SOURCE_SUMS, Manifest, Totals, column_facts, write_manifest
from dataprep.tokens.engines import fastokens_version
from dataprep.tokens.special import SpecialTokens
from dataprep.tokens.tokenizer import SENTENCEPIECE, Tokenizer, read_settled
from dataprep.wording import counted

INPUTS_FILE = "inputs.parquet"
TOKENIZER_FILE, MODEL_FILE = "tokenizer.json", "tokenizer.model"
_VERSIONS = ("dataprep", "mindspore", "numpy", "pyarrow", "tokenizers", "xxhash")


@dataclass(frozen=True, slots=True)
class Emitted:
    """One set's shards: how often each source was taken (empty: once), and the records of the tasks."""

    set: ShardSet
    epochs: Mapping[str, float]
    records: Sequence[TaskRecord]


@dataclass(frozen=True, slots=True)
class Finished:
    """The records of all tasks of a run."""

    prepared: Sequence[TaskRecord]
    deduplicated: Sequence[TaskRecord]
    settled: TaskRecord
    emitted: Sequence[Emitted]


def finish(plan: Plan, done: Finished, run: Mapping[str, Any]) -> tuple[Manifest, ...]:
    """Write each set's inputs.parquet, tokenizer and last manifest.json; `run` are facts that are not hashed."""
    _check_removals(done)
    special = SpecialTokens.from_facts(done.settled.facts["special"])
    paths = [Path(output.path) for output in done.settled.outputs]
    tokenizer = read_settled(paths, special, plan.pipeline.tokenizer.allow_special)
    before = _before_shards(done)
    _check_sides(done, before[dedup.STAGE])
    run = {
        **run,
        "engine": _engine(plan, done),
        "shard_writers": sorted(
            {r.facts["writer"] for each in done.emitted for r in each.records if "writer" in r.facts}
        ),
        "identity": plan.identity,
        "python": platform.python_version(),
        "versions": _versions(tokenizer),
    }
    contents = []
    for emitted in done.emitted:
        output = emitted.set.paths.output
        storage.write_bytes(output / TOKENIZER_FILE, tokenizer.json)
        if tokenizer.model is not None:
            storage.write_bytes(output / MODEL_FILE, tokenizer.model)
        _write_inputs(plan, output / INPUTS_FILE)
        content = _content(plan, done, emitted, before, tokenizer)
        listed = {file["path"] for file in content["files"]} | {
            shard[key] for shard in content["shards"] for key in ("file", "db", "documents_file")
        }
        with storage.disk_errors(output):
            clear_stale(emitted.set.paths, listed)
        contents.append((output, {**content, "run": run}))
    # Nothing else is left to do by now, so that sets are finished together but for a failure in here.
    return tuple([write_manifest(output, content) for output, content in contents])


def _content(
    plan: Plan, done: Finished, emitted: Emitted, before: Mapping[str, dict[str, Tally]], tokenizer: Tokenizer
) -> dict[str, Any]:
    """A set's manifest but for its run."""
    records = sorted(emitted.records, key=lambda record: record.key)
    output = emitted.set.paths.output
    shards = [_shard(record, output) for record in records if "rows" in record.facts]
    ledger = {stage: {s: _counts(t) for s, t in tallies.items()} for stage, tallies in before.items()}
    splits = dict(sorted(plan.pipeline.output.splits.items()))
    return {
        "name": plan.pipeline.name,
        "config": plan.config,
        "config_hash": storage.hash_value(plan.config),
        "seed": plan.pipeline.run.seed,
        "tokenizer": _tokenizer_facts(plan, tokenizer, sum(record.facts["inexact"] for record in records)),
        "pack": _pack_facts(plan, tokenizer),
        "inputs": _input_facts(plan, done.prepared),
        "ledger": {**ledger, emit.STAGE: _shard_counts(before[dedup.STAGE], records)},
        "edits": _edits([*done.prepared, *records]),
        "split": None if emitted.set.split is None else {"name": emitted.set.split, "splits": splits},
        "mix": dict(emitted.epochs) or None,
        "totals": {key: sum(shard[key] for shard in shards) for key in Totals.model_fields},
        "sources": _sources(records),
        "shards": shards,
        "files": _listed(output, [*(done.prepared if emitted.set.first else ()), *records], tokenizer),
    }


def why_empty(manifest: Manifest) -> str:
    """Why a finished set holds no documents: no records in its inputs, or the reason that took most of them."""
    lost: Counter[str] = Counter()
    for counts in (counts for by_source in manifest.ledger.values() for counts in by_source.values()):
        lost.update(counts.dropped)
        lost.update(counts.quarantined)
    elsewhere = sum(counts.elsewhere for counts in manifest.ledger[emit.STAGE].values())
    if elsewhere:
        return (
            f"the set holds no documents: {counted(elsewhere, 'document')} of {manifest.inputs.records:,} records "
            "are on the other sides"
        )
    if not lost:
        return "the set holds no documents: there are no records in the inputs"
    reason, count = min(lost.items(), key=lambda item: (-item[1], item[0]))
    records = manifest.inputs.records
    share = f"all {counted(records, 'record')}" if count == records else f"{count:,} of {counted(records, 'record')}"
    return f"the set holds no documents: {reason} took {share}, see `dataprep dropped`"


def _before_shards(done: Finished) -> dict[str, dict[str, Tally]]:
    """Tallies per stage and source; documents that no dedup task saw pass through that stage untouched."""
    prepared = add_tallies(record.tallies for record in done.prepared)
    seen = add_tallies(record.tallies for record in done.deduplicated)
    passed = {
        source: Tally(
            records=tally.kept - seen.get(source, Tally()).records,
            bytes_in=tally.bytes_kept - seen.get(source, Tally()).bytes_in,
            bytes_kept=tally.bytes_kept - seen.get(source, Tally()).bytes_in,
        )
        for source, tally in prepared.items()
    }
    exempt = _exempt(done)
    wrong = [source for source in passed if passed[source].records != exempt.get(source, 0)]
    if wrong:
        raise DamageError(f"dedup did not see all documents of {', '.join(wrong)}", mend="run with --force")
    return {prepare.STAGE: prepared, dedup.STAGE: add_tallies([passed, seen])}


def _check_sides(done: Finished, kept: Mapping[str, Tally]) -> None:
    """Every document stands on the side of one set."""
    taken = add_tallies(record.tallies for emitted in done.emitted for record in emitted.records)
    wrong = [source for source in kept if kept[source].kept != taken.get(source, Tally()).records]
    if wrong:
        raise DamageError(f"the shards did not see all documents of {', '.join(wrong)}", mend="run with --force")


def _shard_counts(kept: Mapping[str, Tally], records: Sequence[TaskRecord]) -> dict[str, dict[str, Any]]:
    """The ledger of one set's shards; what the set has not drawn is in the other ones."""
    drawn = add_tallies(record.tallies for record in records)
    counts = {}
    for source, tally in kept.items():
        own = drawn.get(source, Tally())
        elsewhere = {"elsewhere": tally.kept - own.records, "text_bytes_in": tally.bytes_kept}
        counts[source] = {**_counts(own), "in": tally.kept, **elsewhere}
    return counts


def _exempt(done: Finished) -> Counter[str]:
    """Documents that had no content key: excluded by `only` or `except`, or in a run without deduplication."""
    exempt: Counter[str] = Counter()
    for record in done.prepared:
        exempt.update(record.facts["exempt"])
    return exempt


def _check_removals(done: Finished) -> None:
    listed = sum(output.rows or 0 for record in done.deduplicated for output in record.outputs)
    met = sum(record.facts["removed"] for emitted in done.emitted for record in emitted.records)
    if listed != met:
        raise DamageError(f"{listed} duplicates were found, {met} were left out of shards", mend="run with --force")


def _counts(tally: Tally) -> dict[str, Any]:
    return {
        "in": tally.records,
        "kept": tally.kept,
        "elsewhere": 0,
        "dropped": dict(tally.dropped),
        "quarantined": dict(tally.quarantined),
        "text_bytes_in": tally.bytes_in,
        "text_bytes_kept": tally.bytes_kept,
    }


def _edits(records: Iterable[TaskRecord]) -> dict[str, int]:
    edits: Counter[str] = Counter()
    for record in records:
        edits.update(record.edits)
    return dict(sorted(edits.items()))


def _sources(emitted: Sequence[TaskRecord]) -> dict[str, dict[str, int]]:
    sums: dict[str, Counter[str]] = {}
    for record in emitted:
        for source, counts in record.facts["sources"].items():
            sums.setdefault(source, Counter()).update(counts)
    return {source: dict(sums[source]) for source in sorted(sums)}


def _shard(record: TaskRecord, output: Path) -> dict[str, Any]:
    by_place = {_table(written, output): written for written in record.outputs}
    index = by_place["documents"]
    shard, db = sorted((w for w in record.outputs if not _table(w, output)), key=lambda written: written.path)
    sources = record.facts["sources"].values()
    return {
        "file": _relative(shard, output),
        "db": _relative(db, output),
        "documents_file": _relative(index, output),
        "rows": record.facts["rows"],
        "padding": record.facts["padding"],
        **{name: sum(counts[name] for counts in sources) for name in SOURCE_SUMS},
        "bytes": shard.bytes,
        "xxh3": shard.xxh3,
        "db_bytes": db.bytes,
        "db_xxh3": db.xxh3,
        "documents_bytes": index.bytes,
        "documents_xxh3": index.xxh3,
    }


def _listed(output: Path, records: Sequence[TaskRecord], tokenizer: Tokenizer) -> list[dict[str, Any]]:
    tables = [
        {"path": _relative(written, output), "bytes": written.bytes, "xxh3": written.xxh3, "rows": written.rows}
        for record in records
        for written in record.outputs
        if _table(written, output) in ("dropped", "quarantine")
    ]
    for name in (INPUTS_FILE, TOKENIZER_FILE, *([] if tokenizer.model is None else [MODEL_FILE])):
        path = output / name
        rows = pq.read_metadata(path).num_rows if name == INPUTS_FILE else None
        tables.append({"path": name, "bytes": path.stat().st_size, "xxh3": storage.hash_file(path), "rows": rows})
    return sorted(tables, key=lambda table: str(table["path"]))


def _table(written: Output, output: Path) -> str:
    """The folder of a table in the output directory; empty for a shard and its index, which lie in it directly."""
    path = Path(written.path)
    folder = path.relative_to(output).parent if path.is_relative_to(output) else None
    return "elsewhere" if folder is None else folder.as_posix().removeprefix(".")


def _relative(written: Output, output: Path) -> str:
    return Path(written.path).relative_to(output).as_posix()


def _write_inputs(plan: Plan, path: Path) -> None:
    files = {(piece.name, split.input.source or "", piece.size) for split in plan.splits for piece in split.ranges}
    names, sources, sizes = zip(*sorted(files), strict=True) if files else ((), (), ())
    table = pa.table({"file": names, "source": sources, "bytes": pa.array(sizes, pa.int64())})
    with storage.atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def _input_facts(plan: Plan, prepared: Sequence[TaskRecord]) -> dict[str, Any]:
    files = {(piece.name, piece.size) for split in plan.splits for piece in split.ranges}
    texts = [[record.key, record.facts["texts_xxh3"]] for record in sorted(prepared, key=lambda r: r.key)]
    return {
        "files": len(files),
        "bytes": sum(size for _, size in files),
        "records": sum(tally.records for record in prepared for tally in record.tallies.values()),
        "list": INPUTS_FILE,
        "texts_xxh3": storage.hash_value(texts),
    }


def _tokenizer_facts(plan: Plan, tokenizer: Tokenizer, inexact: int) -> dict[str, Any]:
    return {
        "fingerprint": tokenizer.fingerprint,
        "vocab_size": plan.pipeline.tokenizer.vocab_size or tokenizer.vocab_size,
        "used_vocab_size": tokenizer.vocab_size,
        "eos": _special(tokenizer, tokenizer.eos_id),
        "bos": None if tokenizer.bos_id is None else _special(tokenizer, tokenizer.bos_id),
        "pad": _special(tokenizer, tokenizer.pad_id),
        "file": TOKENIZER_FILE,
        "model": None if tokenizer.model is None else MODEL_FILE,
        "inexact": inexact,
        "allow_special": tokenizer.allow_special,
    }


def _engine(plan: Plan, done: Finished) -> dict[str, Any]:
    """Which engines wrote the shards, how their documents were proven, and the texts that speak against one."""
    proof = done.settled.facts["engine"]
    records = [record for emitted in done.emitted for record in emitted.records]
    shards: Counter[str] = Counter(record.facts["engine"]["name"] for record in records)
    checks: Counter[str] = Counter(compared=proof["compared"])
    for record in records:
        checks.update({key: value for key, value in record.facts["engine"].items() if key != "name"})
    findings = trust_in(plan, done.settled).findings()
    differences = sorted({*proof["differences"], *(text for texts in findings.values() for text in texts)})
    return {"shards": dict(sorted(shards.items())), **checks, "why": proof["why"], "differences": differences}


def _special(tokenizer: Tokenizer, token_id: int) -> dict[str, Any]:
    return {"token": tokenizer.decode([token_id], show_special=True), "id": token_id}


def _pack_facts(plan: Plan, tokenizer: Tokenizer) -> dict[str, Any]:
    pack, fim = plan.pipeline.pack, tokenizer.fim
    return {
        **pack.model_dump(include={"seq_length", "method", "overlong", "layout"}),
        "row_length": pack.row_length,
        "columns": column_facts(pack.layout, pack.row_length),
        "fim": None if fim is None else {key: _special(tokenizer, value) for key, value in asdict(fim).items()},
    }


def _versions(tokenizer: Tokenizer) -> dict[str, str]:
    used = _VERSIONS if tokenizer.model is None else (*_VERSIONS, SENTENCEPIECE)
    versions = {name: version(name) for name in used}
    fast = fastokens_version()
    return versions if fast is None else {**versions, "fastokens": fast}
