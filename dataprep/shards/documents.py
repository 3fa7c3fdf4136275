"""The document index of a shard: one Parquet row a document, saying where its tokens lie and what its text was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.batch import LABEL
from dataprep.errors import DamageError
from dataprep.storage import atomic_path

# meta is a JSON object of the record's other fields, where they were kept; copy counts a document's repetitions in a
# mix from 0; tokens counts special tokens too, and those
# that were cut away, which truncated counts; fim: rearranged to fill in the middle; text_xxh3 is the big-endian digest
# of the UTF-8 text, and exact says whether the tokens decode to it; rows are the shard's, in reading order, offsets the
# place in each of them.
SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("source", LABEL, nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("meta", pa.string()),
        pa.field("copy", pa.int32(), nullable=False),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("truncated", pa.int32(), nullable=False),
        pa.field("fim", pa.bool_(), nullable=False),
        pa.field("text_bytes", pa.int64(), nullable=False),
        pa.field("text_xxh3", pa.binary(16), nullable=False),
        pa.field("exact", pa.bool_(), nullable=False),
        pa.field("rows", pa.list_(pa.field("item", pa.int32(), nullable=False)), nullable=False),
        pa.field("offsets", pa.list_(pa.field("item", pa.int32(), nullable=False)), nullable=False),
    ]
)

# What pyarrow raises on damaged Parquet: its own kinds, OSError for bad metadata, ValueError for names not in UTF-8.
PARQUET_FAULTS = (pa.ArrowException, OSError, ValueError, KeyError)

_MEND = "restore the file or run the pipeline again"
_ROW_GROUP = 1 << 16
# By leaf column. Bits stay as they are: a compressed page that a flipped codec makes out to be plain is long enough to
# be read as bits.
_LEAVES = {f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name: field.type for field in SCHEMA}
_COMPRESSION = {name: "none" if pa.types.is_boolean(kind) else "zstd" for name, kind in _LEAVES.items()}
_LEVELS = {name: 3 for name, codec in _COMPRESSION.items() if codec == "zstd"}


def write_documents(path: Path, table: pa.Table) -> None:
    """Write a document index atomically; equal content gives equal bytes, however the table is chunked."""
    source = table.column("source").cast(pa.string()).combine_chunks().dictionary_encode().cast(LABEL)
    whole = table.set_column(table.schema.get_field_index("source"), SCHEMA.field("source"), source)
    with atomic_path(path) as temporary:
        pq.write_table(
            whole.select(SCHEMA.names).cast(SCHEMA).combine_chunks(),
            temporary,
            row_group_size=_ROW_GROUP,
            compression=_COMPRESSION,
            compression_level=_LEVELS,
            use_dictionary=["source"],
            write_page_checksum=True,
            data_page_version="1.0",
            version="2.6",
        )


def document_count(path: Path) -> int:
    """Documents in an index, by its footer alone. Raises DamageError."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except PARQUET_FAULTS as error:
        raise _damage(path, error) from error


def document_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Stream an index in record batches of at most 65,536 documents, all columns or some. Raises DamageError."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if file.schema_arrow != SCHEMA:
                raise DamageError("is not a document index: columns differ", where=str(path))
            rows = 0
            for batch in file.iter_batches(_ROW_GROUP, columns=None if columns is None else list(columns)):
                batch.validate(full=True)
                rows += batch.num_rows
                yield batch
            # The library stops in silence at a page whose header, which no checksum covers, is broken.
            if rows != file.metadata.num_rows:
                what = f"only {rows} of its {file.metadata.num_rows} documents can be read"
                raise DamageError(what, where=str(path), mend=_MEND)
    except PARQUET_FAULTS as error:
        raise _damage(path, error) from error


def read_documents(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read the index of one shard, all columns or some. Raises DamageError."""
    batches = list(document_batches(path, columns))
    names = SCHEMA.names if columns is None else columns
    return pa.Table.from_batches(batches, schema=pa.schema([SCHEMA.field(name) for name in names]))


def _damage(path: Path, error: Exception) -> DamageError:
    what = "missing" if isinstance(error, FileNotFoundError) else f"cannot be read as a document index: {error}"
    return DamageError(what, where=str(path), mend=_MEND)
