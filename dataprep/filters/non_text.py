"""Drop documents that are mostly symbols, controls or private characters."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from dataprep.batch import utf8_buffers
from dataprep.filters.verdicts import first_failing
from dataprep.kernels.counts import CHARS, NON_TEXT, count
from dataprep.step import Applied, Step, with_verdicts
from dataprep.text.segment import code_point_classes


class NonText(Step):
    """Limit the share of code points that are neither letters, marks, numbers, punctuation nor white space.

    Currency signs and the ASCII symbols `$+<=>^`|~`, also full-width, count as punctuation: they are the daily bread
    of code and prices. Emoji, arrows, box drawing, other mathematical symbols, U+FFFD, format characters, controls,
    private-use and unassigned code points do not. An empty text has a share of 0.
    """

    name: ClassVar[str] = "non_text"

    max_fraction: float = Field(0.3, ge=0, le=1, description="A larger share of non-text code points is dropped.")

    def apply(self, batch: pa.RecordBatch) -> Applied:
        """Drop texts whose share is above max_fraction (reason `non_text.max_fraction`)."""
        counts = count(*utf8_buffers(batch.column("text")), code_point_classes())
        share = counts[:, NON_TEXT] / np.maximum(counts[:, CHARS], 1)
        verdicts = first_failing([share > self.max_fraction])
        return Applied(with_verdicts(batch, verdicts, ("non_text.max_fraction",)))
