"""Read one code point of UTF-8 inside a compiled loop."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dataprep.kernels import kernel


@kernel
def read_point(data: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Code point that begins at byte `at` of valid UTF-8, and its length in bytes."""
    lead = int(data[at])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        return ((lead & 31) << 6) | int(data[at + 1] & 63), 2
    if lead < 0xF0:
        return ((lead & 15) << 12) | (int(data[at + 1] & 63) << 6) | int(data[at + 2] & 63), 3
    high = ((lead & 7) << 18) | (int(data[at + 1] & 63) << 12)
    return high | (int(data[at + 2] & 63) << 6) | int(data[at + 3] & 63), 4
