"""The manifest: what a finished shard set holds, how it came about, and the sums that prove nothing was lost."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from dataprep.errors import ConfigError, DamageError
from dataprep.shards.layouts import DTYPE, LayoutName, column_lengths
from dataprep.storage import disk_errors, hash_value, write_json

VERSION = 1
FILE_NAME = "manifest.json"
STAGES = ("prepare", "dedup", "emit")
# Why a mix takes a document not even once.
LEFT_OUT = "mix.left_out"

Hash = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="xxh3-128, hex.")]
Count = Annotated[int, Field(ge=0)]
Reasons = dict[str, Count]


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


class SpecialToken(_Facts):
    """A token that marks documents, as written in the tokenizer and as an id."""

    token: str
    id: Count


class TokenizerFacts(_Facts):
    """The tokenizer that made the ids: `file` is its tokenizer.json, `model` the SentencePiece model if that encoded.

    `inexact` documents' tokens decode to another text than theirs.

    `vocab_size` is for the model's embedding: the declared size, else `used_vocab_size`, which is the largest id + 1.
    `allow_special` says that special tokens spelled in texts became tokens, all but eos, bos and pad.
    """

    fingerprint: str
    vocab_size: Annotated[int, Field(ge=1)]
    used_vocab_size: Annotated[int, Field(ge=1)]
    eos: SpecialToken
    bos: SpecialToken | None
    pad: SpecialToken
    file: str
    model: str | None
    inexact: Count
    allow_special: bool


class FimFacts(_Facts):
    """The tokens before the parts of rearranged documents."""

    prefix: SpecialToken
    middle: SpecialToken
    suffix: SpecialToken


class ColumnFacts(_Facts):
    """One column of every row; -1 in its shape is a length that differs from row to row."""

    name: str
    dtype: Literal["int32"]
    shape: tuple[int, ...]


class PackFacts(_Facts):
    """How tokens became rows; `row_length` is in tokens, `columns` are what `layout` makes of a row.

    `fim` is null where no document is rearranged.
    """

    seq_length: Annotated[int, Field(ge=1)]
    row_length: Annotated[int, Field(ge=1)]
    method: str
    overlong: str
    layout: LayoutName
    columns: tuple[ColumnFacts, ...]
    fim: FimFacts | None


class InputFacts(_Facts):
    """What was read: files, bytes, records; `list` names each file and `texts_xxh3` hashes the texts as read."""

    files: Count
    bytes: Count
    records: Count
    list: str
    texts_xxh3: Hash


class Counts(_Facts):
    """The fate of one source's records in one stage; those `elsewhere` are told of by the other splits."""

    in_: Count = Field(alias="in")
    kept: Count
    elsewhere: Count
    dropped: Reasons
    quarantined: Reasons
    text_bytes_in: Count
    text_bytes_kept: Count

    @property
    def lost(self) -> int:
        """Records dropped or quarantined."""
        return sum(self.dropped.values()) + sum(self.quarantined.values())


class Totals(_Facts):
    """Sums over the shards; `repeated` documents are there once more by the mix, and count in all other sums.

    Tokens are the documents', also those cut away (`truncated`), text bytes are UTF-8.
    """

    documents: Count
    repeated: Count
    fim_documents: Count
    tokens: Count
    truncated: Count
    padding: Count
    rows: Count
    text_bytes: Count


class SourceTotals(_Facts):
    """Sums over the documents of one source, repetitions included."""

    documents: Count
    repeated: Count
    fim_documents: Count
    tokens: Count
    truncated: Count
    text_bytes: Count


# What totals, shards and sources all count.
SOURCE_SUMS = tuple(SourceTotals.model_fields)


class Shard(_Facts):
    """One shard: its three files relative to the manifest, their sizes and hashes, and what is in them."""

    file: str
    db: str
    documents_file: str
    rows: Count
    documents: Count
    repeated: Count
    fim_documents: Count
    tokens: Count
    truncated: Count
    padding: Count
    text_bytes: Count
    bytes: Count
    xxh3: Hash
    db_bytes: Count
    db_xxh3: Hash
    documents_bytes: Count
    documents_xxh3: Hash


class ListedFile(_Facts):
    """Any other file of the set; `rows` for Parquet."""

    path: str
    bytes: Count
    xxh3: Hash
    rows: Count | None


class SplitFacts(_Facts):
    """Which part of a run's documents a set holds; `splits` are all of the run's, each with its share."""

    name: str
    splits: dict[str, float]


class Manifest(_Facts):
    """Everything a consumer needs to trust and open a shard set. `hash` covers all but itself and `run`.

    `split` is null where all documents are in one set; `mix` says how often each source was taken, null: once.
    """

    manifest_version: Literal[1]
    name: str
    hash: Hash
    config: dict[str, JsonValue]
    config_hash: str
    seed: int
    tokenizer: TokenizerFacts
    pack: PackFacts
    inputs: InputFacts
    ledger: dict[str, dict[str, Counts]]
    edits: Reasons
    split: SplitFacts | None
    mix: dict[str, float] | None
    totals: Totals
    sources: dict[str, SourceTotals]
    shards: tuple[Shard, ...]
    files: tuple[ListedFile, ...]
    run: dict[str, JsonValue]

    @property
    def accounts_for_all(self) -> bool:
        """Whether the set has the tables of what was dropped before documents took sides."""
        return self.split is None or largest(self.split.splits)[0][0] == self.split.name


def largest(splits: Mapping[str, float]) -> list[tuple[str, float]]:
    """Splits with their shares, the largest first, equal ones by name: the first also accounts for what none took."""
    return sorted(splits.items(), key=lambda split: (-split[1], split[0]))


def column_facts(layout: LayoutName, row_length: int) -> list[dict[str, Any]]:
    """The `columns` of a manifest, as JSON, in the order a model takes them."""
    lengths = column_lengths(layout, row_length)
    return [{"name": name, "dtype": DTYPE, "shape": [length]} for name, length in lengths.items()]


def manifest_hash(content: Mapping[str, Any]) -> str:
    """xxh3-128 (hex) of a manifest's JSON content, less `hash` and the run-time facts."""
    return hash_value({key: value for key, value in content.items() if key not in ("hash", "run")})


def json_schema() -> dict[str, Any]:
    """JSON schema of manifest.json."""
    return Manifest.model_json_schema(by_alias=True)


def seal(content: Mapping[str, Any]) -> Manifest:
    """Build a manifest from everything but its version and hash, and prove it. Raises DamageError if sums differ."""
    draft = Manifest.model_validate_json(json.dumps({**content, "manifest_version": VERSION, "hash": "0" * 32}))
    manifest = draft.model_copy(update={"hash": manifest_hash(as_json(draft))})
    prove(manifest)
    return manifest


def as_json(manifest: Manifest) -> dict[str, Any]:
    """The manifest as the JSON object that is stored."""
    return manifest.model_dump(mode="json", by_alias=True)


def write_manifest(directory: Path, content: Mapping[str, Any]) -> Manifest:
    """Seal and write manifest.json atomically; it is what makes a shard set finished, so write it last."""
    manifest = seal(content)
    write_json(directory / FILE_NAME, as_json(manifest))
    return manifest


def load_manifest(directory: Path) -> Manifest:
    """Read and check manifest.json. Raises ConfigError when there is none, DamageError when it is not as written."""
    path = directory / FILE_NAME
    if not path.exists():
        raise _no_manifest(directory)
    with disk_errors(path):
        data = path.read_bytes()
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise _broken(path, "not a JSON object")
    version = content.get("manifest_version")
    if version != VERSION:
        raise DamageError(
            f"manifest version is {version!r}, expected {VERSION}",
            where=str(path),
            mend="use the version of dataprep that wrote it",
        )
    if content.get("hash") != manifest_hash(content):
        raise _broken(path, "content does not match its hash")
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise _broken(path, f"{place}: {fault['msg']}") from error


def is_begun(directory: Path) -> bool:
    """Whether a run has left shards or tables in this folder."""
    folders = ("documents", "dropped", "quarantine", ".scratch")
    return any((directory / name).is_dir() for name in folders) or any(directory.glob("*-of-*.mindrecord"))


def _no_manifest(directory: Path) -> ConfigError:
    where = str(directory)
    if directory.exists() and not directory.is_dir():
        return ConfigError("is a file, not the folder of a shard set", where=where, mend="give the folder it is in")
    if not directory.exists():
        return ConfigError("no such folder", where=where, mend="check the path: it is output.path of the pipeline")
    if is_begun(directory):
        mend = "run the pipeline again to finish it; `dataprep dropped` works already"
        return ConfigError("unfinished shard set: no manifest.json", where=where, mend=mend)
    inside = next(iter(sorted(directory.glob(f"*/{FILE_NAME}"))), None)
    mend = "give the output.path of a pipeline that was run" if inside is None else f"did you mean {inside.parent}?"
    return ConfigError("not a shard set: no manifest.json", where=where, mend=mend)


def prove(manifest: Manifest) -> None:
    """Check that the ledger and all sums add up. Raises DamageError naming every sum that does not."""
    faults = list(imbalances(manifest))
    if faults:
        raise DamageError("the manifest does not add up: " + "; ".join(faults), where=manifest.name)


def imbalances(manifest: Manifest) -> Iterator[str]:
    """Every sum of the manifest that does not add up, in words."""
    yield from _ledger_imbalances(manifest)
    yield from _total_imbalances(manifest)
    if set(manifest.ledger) == set(STAGES):
        yield from _mix_imbalances(manifest)
        yield from _split_imbalances(manifest)
    for shard in manifest.shards:
        cells = shard.rows * manifest.pack.row_length
        if shard.tokens - shard.truncated + shard.padding != cells:
            cut = f" - {shard.truncated} truncated" if shard.truncated else ""
            yield f"{shard.file}: {shard.tokens} tokens{cut} + {shard.padding} padding, but {cells} in its rows"


def _ledger_imbalances(manifest: Manifest) -> Iterator[str]:
    ledger = manifest.ledger
    if set(ledger) != set(STAGES):
        yield f"ledger has the stages {', '.join(ledger)}, not {', '.join(STAGES)}"
        return
    entries = [(stage, source, counts) for stage in STAGES for source, counts in ledger[stage].items()]
    for stage, source, counts in entries:
        if counts.in_ != counts.kept + counts.lost + counts.elsewhere:
            told = f"{counts.kept} kept + {counts.lost} dropped or quarantined"
            told += f" + {counts.elsewhere} elsewhere" if counts.elsewhere else ""
            yield f"{stage} of {source}: {counts.in_} in, {told}"
    read = sum(counts.in_ for counts in ledger[STAGES[0]].values())
    if read != manifest.inputs.records:
        yield f"{manifest.inputs.records} records in the inputs, {STAGES[0]} took {read}"
    yield from _broken_chain(manifest)


def _broken_chain(manifest: Manifest) -> Iterator[str]:
    """Sources of which a stage, or the shards in the end, took another number than the stage before kept."""
    takers = [
        *((stage, {source: counts.in_ for source, counts in manifest.ledger[stage].items()}) for stage in STAGES[1:]),
        ("the shards", {source: t.documents - t.repeated for source, t in manifest.sources.items()}),
    ]
    for stage, (taker, taken) in zip(STAGES, takers, strict=True):
        kept = {source: counts.kept for source, counts in manifest.ledger[stage].items()}
        for source in sorted({*kept, *taken}):
            if kept.get(source, 0) != taken.get(source, 0):
                yield f"{source}: {stage} kept {kept.get(source, 0)}, {taker} took {taken.get(source, 0)}"


def _mix_imbalances(manifest: Manifest) -> Iterator[str]:
    """Repetitions that the epochs of their source cannot have made, and epochs of sources that are not there."""
    mix = manifest.mix or {}
    for source in sorted(set(mix) - set(manifest.ledger[STAGES[0]])):
        yield f"mix: no record has the source {source}"
    for source, totals in manifest.sources.items():
        epochs = mix.get(source, 1.0)
        once = totals.documents - totals.repeated
        least, most = (max(0, bound - 1) * once for bound in (math.floor(epochs), math.ceil(epochs)))
        if not least <= totals.repeated <= most:
            yield f"mix of {source}: {epochs:g} epochs of {once} documents cannot repeat {totals.repeated}"
    for source, counts in manifest.ledger[STAGES[-1]].items():
        if counts.dropped.get(LEFT_OUT) and mix.get(source, 1.0) >= 1:
            yield f"mix of {source}: documents were left out, though it is taken {mix.get(source, 1.0):g} times"
        if counts.kept and not mix.get(source, 1.0):
            yield f"mix of {source}: {counts.kept} kept of a source that is left out"


def _split_imbalances(manifest: Manifest) -> Iterator[str]:
    """A split that the configuration does not have, and documents elsewhere where there is no other set."""
    output = manifest.config.get("output")
    configured = output.get("splits") or {} if isinstance(output, dict) else {}
    splits = {} if manifest.split is None else manifest.split.splits
    if splits != configured:
        yield f"split: the splits are {splits}, the configuration says {configured}"
    if manifest.split is not None and manifest.split.name not in splits:
        yield f"split: {manifest.split.name} is none of {', '.join(splits)}"
    elsewhere = sum(counts.elsewhere for stage in STAGES for counts in manifest.ledger[stage].values())
    if elsewhere and manifest.split is None:
        yield f"split: {elsewhere} elsewhere, but there is no other set"


def _total_imbalances(manifest: Manifest) -> Iterator[str]:
    for field in SOURCE_SUMS:
        total = getattr(manifest.totals, field)
        by_shard = sum(getattr(shard, field) for shard in manifest.shards)
        by_source = sum(getattr(source, field) for source in manifest.sources.values())
        if not total == by_shard == by_source:
            yield f"{field}: {total} in all, {by_shard} by shard, {by_source} by source"
    for field in ("rows", "padding"):
        total = getattr(manifest.totals, field)
        by_shard = sum(getattr(shard, field) for shard in manifest.shards)
        if total != by_shard:
            yield f"{field}: {total} in all, {by_shard} by shard"


def _broken(path: Path, what: str) -> DamageError:
    return DamageError(what, where=str(path), mend="restore the file or run the pipeline again with --force")
