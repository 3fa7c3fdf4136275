"""What a file is, told from its name: format and compression."""

from __future__ import annotations

from pathlib import PurePosixPath

from dataprep.errors import ConfigError
from dataprep.readers.inputs import Compression, Format, Input

_FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
}
_COMPRESSIONS: dict[str, Compression] = {
    ".gz": "gz",
    ".gzip": "gz",
    ".zst": "zst",
    ".zstd": "zst",
    ".bz2": "bz2",
    ".xz": "xz",
}
_UNSUPPORTED = frozenset(
    (".lz4", ".br", ".z", ".zip", ".7z", ".rar", ".tar", ".tgz", ".tbz2", ".txz", ".lzma", ".lzo", ".snappy", ".sz")
)
_COMPRESSED_INSIDE = ("parquet", "arrow")


def file_kind(name: str, entry: Input) -> tuple[Format, Compression]:
    """Tell format and compression of a file; `format:` and `compression:` of the input win over its name.

    Raises ConfigError for a name that tells no format, and for a codec that cannot be read.
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    compression = entry.compression or _compression(name, suffixes)
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    format_ = entry.format or _FORMATS.get(suffixes[-1] if suffixes else "")
    if format_ is None:
        raise ConfigError(
            "the file's name does not tell its format", where=name, mend="give the input `format:` or `exclude:` it"
        )
    if format_ in _COMPRESSED_INSIDE and compression != "none":
        mend = f"decompress it first: {format_} files are compressed inside"
        raise ConfigError(f"{format_} inside .{compression} cannot be read", where=name, mend=mend)
    return format_, compression


def _compression(name: str, suffixes: list[str]) -> Compression:
    if not suffixes:
        return "none"
    if suffixes[-1] in _UNSUPPORTED:
        mend = "recompress it as gz, zst, bz2 or xz, or `exclude:` it"
        raise ConfigError(f"unsupported codec {suffixes[-1]}", where=name, mend=mend)
    return _COMPRESSIONS.get(suffixes[-1], "none")
