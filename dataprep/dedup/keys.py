"""Exact duplicates: which texts count as equal, and the 128-bit key that says so."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash
from pydantic import Field

from dataprep.batch import utf8_buffers
from dataprep.kernels import classes as c
from dataprep.kernels.fold import BLANK, DROP, KEEP, fold
from dataprep.step import Frozen, Selector, selected_rows
from dataprep.text.segment import code_point_classes

Normalization = Literal["none", "whitespace", "casefold_no_punct"]

_COMPARED_AS = {
    "whitespace": {c.SPACE: BLANK},
    "casefold_no_punct": {
        c.SPACE: BLANK,
        **dict.fromkeys((c.PUNCTUATION, c.APOSTROPHE, c.SYMBOL, c.FORMAT, c.OTHER), DROP),
    },
}


class ExactDedup(Frozen):
    """Remove documents whose text equals another's; the smallest doc_id survives."""

    name: ClassVar[str] = "exact_dedup"

    normalize: Normalization = Field(
        "none",
        description="Compare texts as they are, with white-space runs as one space, or case-folded letters, marks "
        "and digits only.",
    )
    only: Selector | None = Field(None, description="Deduplicate these documents only.")
    except_: Selector | None = Field(None, alias="except", description="Deduplicate all documents but these.")

    def selected(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Bool mask of the live rows that take part."""
        return selected_rows(batch, self.only, self.except_)


def content_keys(text: pa.LargeStringArray, normalize: Normalization) -> npt.NDArray[np.uint64]:
    """xxh3-128 of each text under the normalisation: uint64 [rows, 2], high and low half.

    `whitespace`: each run of Unicode white space is one space, none at the ends. `casefold_no_punct`: case-folded,
    letters, marks and digits only, white space as before. A text of which nothing is left is keyed as it is, so that
    unlike texts of punctuation do not become equal.
    """
    data, offsets = utf8_buffers(text)
    if normalize == "none":
        return _hash(data, offsets)
    source = utf8_buffers(_casefold(text)) if normalize == "casefold_no_punct" else (data, offsets)
    folded, folded_offsets = fold(*source, _actions(normalize))
    keys = _hash(folded, folded_offsets)
    for row in np.flatnonzero(np.diff(folded_offsets) == 0):
        keys[row] = _hash(data, offsets[row : row + 2])[0]
    return keys


@lru_cache(maxsize=2)
def _actions(normalize: Literal["whitespace", "casefold_no_punct"]) -> npt.NDArray[np.uint8]:
    action_of_class = np.full(c.CLASS_COUNT, KEEP, np.uint8)
    for code, action in _COMPARED_AS[normalize].items():
        action_of_class[code] = action
    table = action_of_class[code_point_classes()]
    table.flags.writeable = False
    return table


def _casefold(text: pa.LargeStringArray) -> pa.LargeStringArray:
    return pa.array([document.casefold() for document in text.to_pylist()], pa.large_string())


def _hash(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    view = data.data
    digest = xxhash.xxh3_128_digest
    borders = offsets.tolist()
    digests = b"".join([digest(view[start:end]) for start, end in pairwise(borders)])
    return np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)
