"""Rows of integers as they stand in the pages of a MindRecord file, and the header that says they are integers.

mindspore encodes integers one by one, with an allocation for each: half of what writing costs. Columns declared as
bytes it takes as they come, so rows are encoded here, and the header is given the true types when the file is whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dataprep.kernels import integers
from dataprep.shards.layouts import Columns, Ints

Schema = Mapping[str, Mapping[str, Any]]

# Before the header's JSON stands its length, little-endian.
_LENGTH = 8


def as_bytes(schema: Schema) -> Schema:
    """The same columns, declared to be bytes."""
    return {name: {"type": "bytes"} for name in schema}


def encode_rows(block: Columns, order: Sequence[str]) -> tuple[list[bytes], int]:
    """Encode rows with their columns in `order`; also by how many bytes that is less than plain int32 would take."""
    columns = [_flat(block[name]) for name in order]
    begins = np.zeros(len(columns[0][1]), np.int64)
    np.cumsum(sum(integers.room(np.diff(offsets)) for _, offsets in columns), out=begins[1:])
    out = np.empty(begins[-1], np.uint8)
    ends = begins[:-1].copy()
    for values, offsets in columns:
        integers.encode(values, offsets, out, ends)
    rows = [out[begin:end].tobytes() for begin, end in zip(begins.tolist(), ends.tolist(), strict=False)]
    plain = sum(8 * (len(offsets) - 1) + values.nbytes for values, offsets in columns)
    return rows, plain - int((ends - begins[:-1]).sum())


def declare(path: Path, schema: Schema, header_size: int, saved: int) -> None:
    """Rewrite a whole file's header as if its columns had been declared by `schema`, not `as_bytes`.

    `saved` is the sum over all rows that `encode_rows` tells. Raises ValueError for a header that is not as expected.
    """
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        text = file.read(length).decode()
        changes = {
            _dump(as_bytes(schema)): _dump(schema),
            '"compression_size":0,"schema"': f'"compression_size":{max(0, saved)},"schema"',
        }
        for old, new in changes.items():
            if text.count(old) != 1:
                raise ValueError(f"the header does not hold {old} once")
            text = text.replace(old, new)
        data = text.encode()
        if _LENGTH + len(data) > header_size:
            raise ValueError(f"a header of {header_size} bytes has no room for its {len(data)}")
        file.seek(0)
        file.write(len(data).to_bytes(_LENGTH, "little") + data)


def _flat(column: Ints | list[Ints]) -> tuple[Ints, npt.NDArray[np.int64]]:
    """Values of all rows in one array, and where each row's begin."""
    if isinstance(column, list):
        offsets = np.zeros(len(column) + 1, np.int64)
        np.cumsum([len(values) for values in column], out=offsets[1:])
        return np.concatenate(column), offsets
    rows, length = column.shape
    return column.reshape(-1), np.arange(rows + 1, dtype=np.int64) * length


def _dump(schema: Schema) -> str:
    return json.dumps(schema, sort_keys=True, separators=(",", ":"))
