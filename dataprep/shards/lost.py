"""The tables of dropped documents and quarantined records of a shard set, finished or not, and their reasons."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataprep.errors import ConfigError, DamageError
from dataprep.shards.documents import PARQUET_FAULTS
from dataprep.shards.manifest import FILE_NAME, STAGES, Manifest, is_begun, load_manifest

UNFINISHED = "this set is unfinished: there may be more to come"

# The records of a stage's own name are its dropped documents; those of this one could not be read.
_QUARANTINED = "quarantine"
# Folder of the tables → what became of the records in them; also the order in which they are listed.
FATES = {"dropped": "dropped", "quarantine": "quarantined"}


@dataclass(frozen=True, slots=True)
class LostTables:
    """The tables as (path, fate), those of dropped documents first; `finished` says whether a manifest lists them."""

    tables: tuple[tuple[Path, str], ...]
    finished: bool


def lost_tables(directory: Path) -> LostTables:
    """Find the tables: those the manifest lists, or in an unfinished set those that are there.

    Raises ConfigError where no run has left a trace.
    """
    finished = (directory / FILE_NAME).exists() or not is_begun(directory)
    if finished:
        names = [file.path for file in load_manifest(directory).files]
    else:
        found = (path for folder in FATES for path in sorted((directory / folder).glob("*.parquet")))
        # A task that was killed leaves a hidden file behind.
        names = [path.relative_to(directory).as_posix() for path in found if not path.name.startswith(".")]
    tables = [
        (directory / name, fate) for folder, fate in FATES.items() for name in names if name.startswith(folder + "/")
    ]
    return LostTables(tuple(tables), finished)


def reason_counts(tables: LostTables) -> Counter[str]:
    """How many records the tables hold for each reason. Raises DamageError for a table that is missing or broken."""
    counts: Counter[str] = Counter()
    for path, _ in tables.tables:
        try:
            column = pq.read_table(path, columns=["reason"]).column("reason").cast(pa.string())
        except PARQUET_FAULTS as error:
            raise table_damage(path, error) from error
        counts.update({entry["values"]: entry["counts"] for entry in pc.value_counts(column).to_pylist()})
    return counts


def chosen_count(counts: Counter[str], reason: str | None) -> int:
    """How many records `reason` picks: one reason, or a family by what stands before its dots (None: all).

    Raises ConfigError with the reasons there are for one that picks none.
    """
    if reason is None:
        return counts.total()
    if not counts:
        raise ConfigError("nothing was dropped or quarantined", mend="leave out --reason")
    chosen = sum(count for name, count in counts.items() if fits_reason(name, reason))
    if not chosen:
        raise ConfigError(f"no record was dropped or quarantined for {reason!r}", mend=_known(counts, reason))
    return chosen


def fits_reason(name: str, reason: str) -> bool:
    """Whether a record's reason is `reason` or one of its family: `length` picks `length.min_chars`."""
    return name == reason or name.startswith(reason + ".")


def table_damage(path: Path, error: Exception) -> DamageError:
    """The error for a table that cannot be read."""
    what = "missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
    return DamageError(what, where=str(path), mend="restore the file or run the pipeline again")


def _known(counts: Counter[str], reason: str) -> str:
    families = {name.partition(".")[0] for name in counts}
    close = difflib.get_close_matches(reason, sorted({*counts, *families}), n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}reasons are: {', '.join(sorted(counts))}"


def check_lost(directory: Path, manifest: Manifest, damaged: set[str]) -> Iterator[tuple[str, str]]:
    """What the tables hold otherwise than the ledger says, by stage, source and reason, each with the faulty file.

    Nothing is compared if one of the tables is damaged.

    Of several splits the largest has the tables of all that happened before documents took sides.
    """
    tables = [file.path for file in manifest.files if file.path.partition("/")[0] in FATES]
    if not damaged.isdisjoint(tables):
        return
    found: Counter[tuple[str, str, str]] = Counter()
    for name in tables:
        try:
            found.update(_counted(directory / name))
        except PARQUET_FAULTS as error:
            yield name, table_damage(directory / name, error).what
            return
    told = Counter[tuple[str, str, str]]()
    for stage in STAGES if manifest.accounts_for_all else STAGES[-1:]:
        for source, counts in manifest.ledger[stage].items():
            told.update({(stage, source, reason): n for reason, n in counts.dropped.items()})
            told.update({(_QUARANTINED, source, reason): n for reason, n in counts.quarantined.items()})
    for key in sorted({*found, *told}):
        if found[key] != told[key]:
            stage, source, reason = key
            yield FILE_NAME, f"{stage} of {source}: {told[key]} for {reason} here, {found[key]} in the tables"


def _counted(path: Path) -> Counter[tuple[str, str, str]]:
    names = pq.read_schema(path).names
    wanted = [name for name in ("stage", "source", "reason") if name in names]
    table = pq.read_table(path, columns=wanted)
    plain = pa.table({name: table.column(name).cast(pa.string()) for name in wanted})
    groups = plain.group_by(wanted, use_threads=False).aggregate([([], "count_all")]).to_pylist()
    return Counter({(row.get("stage", _QUARANTINED), row["source"], row["reason"]): row["count_all"] for row in groups})
