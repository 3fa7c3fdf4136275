"""Drop documents that are too short or too long, in characters, words or bytes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from dataprep.batch import utf8_buffers
from dataprep.filters.verdicts import first_failing
from dataprep.kernels.counts import CHARS, WORDS, count
from dataprep.step import Applied, Step, with_verdicts
from dataprep.text.segment import code_point_classes


class Length(Step):
    """Keep documents within limits, both ends included; `text.segment` defines characters and words."""

    name: ClassVar[str] = "length"

    min_chars: int | None = Field(None, ge=0, description="Fewer code points are dropped.")
    max_chars: int | None = Field(None, ge=0, description="More code points are dropped.")
    min_words: int | None = Field(None, ge=0, description="Fewer words are dropped; a Han character is a word.")
    max_words: int | None = Field(None, ge=0, description="More words are dropped; a Han character is a word.")
    min_bytes: int | None = Field(None, ge=0, description="Fewer bytes of UTF-8 are dropped.")
    max_bytes: int | None = Field(None, ge=0, description="More bytes of UTF-8 are dropped.")

    @model_validator(mode="after")
    def _limits_make_sense(self) -> Length:
        pairs = {unit: (getattr(self, f"min_{unit}"), getattr(self, f"max_{unit}")) for unit in _UNITS}
        if all(low is None and high is None for low, high in pairs.values()):
            raise ValueError("give at least one limit, such as min_chars")
        for unit, (low, high) in pairs.items():
            if low is not None and high is not None and low > high:
                raise ValueError(f"min_{unit} {low} is above max_{unit} {high}: nothing would be kept")
        return self

    def apply(self, batch: pa.RecordBatch) -> Applied:
        """Drop texts outside the limits, with the first failing limit as the reason."""
        data, offsets = utf8_buffers(batch.column("text"))
        sizes = {"bytes": np.diff(offsets)}
        if any(limit is not None for limit in (self.min_chars, self.max_chars, self.min_words, self.max_words)):
            counts = count(data, offsets, code_point_classes())
            sizes |= {"chars": counts[:, CHARS], "words": counts[:, WORDS]}
        failing = {}
        for unit in _UNITS:
            low, high = getattr(self, f"min_{unit}"), getattr(self, f"max_{unit}")
            if low is not None:
                failing[f"length.min_{unit}"] = sizes[unit] < low
            if high is not None:
                failing[f"length.max_{unit}"] = sizes[unit] > high
        return Applied(with_verdicts(batch, first_failing(failing.values()), tuple(failing)))


_UNITS = ("chars", "words", "bytes")
