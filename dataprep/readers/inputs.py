"""What to read: one entry of `inputs:` and the ranges and splits it is cut into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import ByteSize, Field

from dataprep.step import Frozen

Format = Literal["jsonl", "parquet", "csv", "tsv", "arrow", "text"]
Compression = Literal["none", "gz", "zst", "bz2", "xz"]


class Input(Frozen):
    """Files of one kind, and how their records map to documents."""

    path: str | Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="File, folder or glob (** crosses folders), or a list of them."
    )
    include: tuple[str, ...] = Field((), description="Keep only files matching one of these globs, relative to path.")
    exclude: tuple[str, ...] = Field((), description="Leave out files matching one of these globs, relative to path.")
    source: str | None = Field(None, description="Source label; default: the folder's or file's name.", min_length=1)
    source_field: str | None = Field(None, description="Take the source label from this field of each record.")
    format: Format | None = Field(None, description="Default: from the file name.")
    compression: Compression | None = Field(None, description="Default: from the file name.")
    text: str = Field("text", description="Field holding the text; a.b reaches into nested objects.")
    id: str = Field("id", description="Field holding the document id; a record without one is named by its place.")
    unit: Literal["file", "line", "paragraph"] = Field("file", description="format text: what one document is.")
    encoding: Literal["utf-8", "gb18030", "auto"] = Field(
        "utf-8", description="auto: UTF-8 where a record is valid UTF-8, else GB18030."
    )
    keep_meta: bool = Field(False, description="Carry the record's other fields along as JSON.")
    max_doc_bytes: ByteSize = Field(
        ByteSize(32 << 20), description="Longer texts (UTF-8 bytes) go to quarantine.", ge=1
    )


@dataclass(frozen=True, slots=True)
class FileRange:
    """A piece of one file: a byte range of plain line-based text, row groups of Parquet, or the whole file.

    `name` is how the file appears in origins and reports; `start` and `end` are bytes or row groups, `end` None means
    to the end of the file. `size` (bytes) and `mtime_ns` are the file's as planned; a reader that meets others stops.
    """

    path: str
    name: str
    size: int
    mtime_ns: int
    start: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """One unit of reading: ranges of files of one input, in order. `limit` stops after that many records."""

    key: str
    input: Input
    ranges: tuple[FileRange, ...]
    size: int
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not become a document: where it is and why."""

    source: str
    origin: str
    reason: str
    detail: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """What a reader yields: a DocBatch of good records, and the bad ones met among them."""

    batch: pa.RecordBatch
    bad: tuple[BadRecord, ...] = ()
