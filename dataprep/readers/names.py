"""Which columns of a file are text, id and label, and that no two columns contend for one name."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dataprep.errors import ConfigError
from dataprep.readers.fields import Path
from dataprep.readers.inputs import Input
from dataprep.readers.place import Place
from dataprep.readers.values import doubled_fields, strangers

_DROP_META = "set keep_meta: false"


def paths_of(names: Sequence[str], entry: Input) -> tuple[Path, Path, Path | None]:
    """Where text, id and label stand: in the column of that very name, or else a.b reaches inside struct columns."""
    text, id_, source = ((name,) if name in names else tuple(name.split(".")) for name in _fields(entry))
    return text, id_, source if entry.source_field else None


def _fields(entry: Input) -> tuple[str, str, str]:
    return entry.text, entry.id, entry.source_field or ""


def refuse_doubles(names: Sequence[str], place: Place) -> None:
    """Raise ConfigError if two columns have the name of one that is wanted, for only one of them could be read."""
    used = {path[0] for path in paths_of(names, place.entry) if path}
    for name in sorted({name for name in names if names.count(name) > 1}):
        if name not in used and not place.entry.keep_meta:
            continue
        mend = "rename all but one" if name in used else f"rename all but one, or {_DROP_META}"
        raise ConfigError(f"{names.count(name)} columns are called {name!r}", where=place.name, mend=mend)


def refuse_schema(schema: pa.Schema, place: Place) -> None:
    """Raise ConfigError if columns or fields inside structs have one name, or a column to read has an unknown type."""
    refuse_doubles(schema.names, place)
    used = {path for path in paths_of(schema.names, place.entry) if path}
    for path in sorted(used):
        if faulty := _doubled(schema, path):
            raise ConfigError(f"two fields are called {faulty!r}", where=place.name, mend="rename one of them")
    keep_meta = place.entry.keep_meta
    for name in schema.names if keep_meta else sorted({path[0] for path in used} & set(schema.names)):
        _refuse_column(name, schema.field(name).type, place, keep_meta)


def _refuse_column(name: str, kind: pa.DataType, place: Place, keep_meta: bool) -> None:
    mend = f", or {_DROP_META}" if keep_meta else ""
    for faulty, strange in strangers(name, kind):
        what = f"column {faulty!r} is {strange}, which cannot be read"
        raise ConfigError(what, where=place.name, mend=f"convert it{mend}")
    for faulty in doubled_fields(name, kind) if keep_meta else ():
        raise ConfigError(f"two fields are called {faulty!r}", where=place.name, mend=f"rename one of them{mend}")


def _doubled(schema: pa.Schema, path: Path) -> str | None:
    """The first field on a path of which a struct holds more than one."""
    if path[0] not in schema.names:
        return None
    kind = schema.field(path[0]).type
    for depth, key in enumerate(path[1:], 2):
        fields = kind.get_all_field_indices(key) if pa.types.is_struct(kind) else []
        if len(fields) != 1:
            return ".".join(path[:depth]) if fields else None
        kind = kind.field(fields[0]).type
    return None
