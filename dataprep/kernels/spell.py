"""Whether token ids spell their texts: the bytes of every token laid end to end against the bytes of the text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dataprep.kernels import kernel


@kernel
def _spell(
    ids: npt.NDArray[np.int32],
    id_offsets: npt.NDArray[np.int64],
    pieces: npt.NDArray[np.uint8],
    piece_offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    spelled: npt.NDArray[np.bool_],
) -> None:
    known = len(piece_offsets) - 1
    for row in range(len(spelled)):
        at = offsets[row]
        stop = offsets[row + 1]
        equal = True
        for place in range(id_offsets[row], id_offsets[row + 1]):
            token = ids[place]
            if token < 0 or token >= known:
                equal = False
                break
            begin = piece_offsets[token]
            size = piece_offsets[token + 1] - begin
            if size == 0 or at + size > stop:
                equal = False
                break
            for i in range(size):
                if pieces[begin + i] != data[at + i]:
                    equal = False
            if not equal:
                break
            at += size
        spelled[row] = equal and at == stop


def spell(
    ids: npt.NDArray[np.int32],
    id_offsets: npt.NDArray[np.int64],
    pieces: npt.NDArray[np.uint8],
    piece_offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """For each document whether its tokens' bytes, joined, are its text: bool [documents].

    ids int32 [tokens] with id_offsets int64 [documents + 1]; bytes of token t are
    `pieces[piece_offsets[t]:piece_offsets[t + 1]]`, and a token without bytes spells nothing; data uint8 with offsets
    int64 [documents + 1] are the texts in UTF-8.
    """
    spelled = np.empty(len(offsets) - 1, np.bool_)
    _spell(ids, id_offsets, pieces, piece_offsets, data, offsets, spelled)
    return spelled


def warm() -> None:
    """Compile or load the kernel."""
    # Arrow's buffers cannot be written to, and for the compiler that makes another type.
    data, offsets = np.frombuffer(b"a", np.uint8), np.frombuffer(np.array([0, 1], np.int64).tobytes(), np.int64)
    ends = np.array([0, 1], np.int64)
    spell(np.zeros(1, np.int32), ends, np.array([97], np.uint8), ends, data, offsets)
