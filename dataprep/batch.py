"""DocBatch: the Arrow record batch that every reader, step and stage speaks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LABEL = pa.dictionary(pa.int32(), pa.string())

# reason is null while the document is alive; meta is a JSON object of the record's other fields, or null.
SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("source", LABEL, nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("meta", pa.string()),
        pa.field("reason", LABEL),
    ]
)


def doc_batch(
    doc_ids: Sequence[str],
    texts: Sequence[str],
    sources: str | Sequence[str],
    origins: Sequence[str],
    metas: Sequence[str | None] | None = None,
) -> pa.RecordBatch:
    """Build a DocBatch of live documents; `sources` is one label for all or one a document."""
    rows = len(texts)
    if isinstance(sources, str):
        source = pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()).fill_null(0), pa.array([sources]))
    else:
        source = pa.array(sources, pa.string()).dictionary_encode()
    return pa.RecordBatch.from_arrays(
        [
            pa.array(doc_ids, pa.string()),
            pa.array(texts, pa.large_string()),
            source,
            pa.array(origins, pa.string()),
            pa.nulls(rows, pa.string()) if metas is None else pa.array(metas, pa.string()),
            pa.nulls(rows, LABEL),
        ],
        schema=SCHEMA,
    )


def utf8_buffers(text: pa.LargeStringArray) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """View a null-free large_string array as (data uint8, offsets int64 of length n + 1), read-only, without copying.

    The offsets index into `data` as they are: a sliced array starts at an offset other than 0.
    """
    _, offset_buffer, data_buffer = text.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(text) + 1, 8 * text.offset)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    # Arrow marks some buffers mutable; one kind of view means one compilation of every kernel.
    data.flags.writeable = offsets.flags.writeable = False
    return data, offsets


def text_array(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> pa.LargeStringArray:
    """Wrap (data uint8, offsets int64) as a large_string array without copying; `data` must be valid UTF-8."""
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def with_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return the batch with one column replaced."""
    return batch.set_column(batch.schema.get_field_index(name), batch.schema.field(name), values)


def text_bytes(batch: pa.RecordBatch) -> int:
    """Sum of the texts' UTF-8 lengths in bytes."""
    _, offsets = utf8_buffers(batch.column("text"))
    return int(offsets[-1] - offsets[0])
