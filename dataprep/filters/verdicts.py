"""From rules to verdicts: the first rule that fails gives the reason."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt


def first_failing(failing: Collection[npt.NDArray[np.bool_]]) -> npt.NDArray[np.int32]:
    """Index of the first of `failing` (bool [rows] each, in order of rules) that is true a row, else -1: int32."""
    masks = np.stack(list(failing))
    return np.where(masks.any(axis=0), masks.argmax(axis=0), -1).astype(np.int32)
