"""Column layouts: what a packed row looks like as columns of a shard, and how its tokens and borders are got back.

Every layout holds the same rows; all columns are int32. With L = `seq_length` tokens a model sees, a row has L + 1:

compact  input_ids [L + 1], doc_starts [any]: all there is to know, and what mindformers' legacy models read.
mcore    input_ids, labels, loss_mask, position_ids [L], actual_seq_len [fixed]: what mindformers' mcore models read,
         after mindformers 1.9.0, dataset/blended_datasets/gpt_dataset.py.
padded   input_ids, attention_mask, labels [L]: what short training loops want; padding has the label -100.

In each the labels are shifted already: labels[i] is the token behind input_ids[i]. Padding is known by its id, which no
text holds, and a document ends in the only EOS it holds; that is what makes the layouts reversible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Places = npt.NDArray[Any]
Columns = Mapping[str, Ints | list[Ints]]

LayoutName = Literal["compact", "mcore", "padded"]
DTYPE = "int32"
# A length in `column_lengths` that differs from row to row, as MindRecord spells it.
ANY = -1
# The label of padding in `padded`: what CrossEntropyLoss ignores unless told otherwise.
IGNORED = -100

# mindformers' own data sets have room for 128 ends of documents; longer rows get as many as they have 32 tokens.
_MIN_ENDS = 128
_TOKENS_AN_END = 32


@dataclass(frozen=True, slots=True)
class Rows:
    """Packed rows to be laid out.

    tokens: int32 [n, L + 1]; lengths: int32 [n], how many tokens of a row are text, the rest is padding; doc_starts:
    int32 flat, offsets: int64 [n + 1]: per row where a document's piece begins, ascending, the first always 0.
    """

    tokens: Ints
    lengths: Ints
    doc_starts: Ints
    offsets: npt.NDArray[np.int64]

    def block(self, first: int, last: int) -> Rows:
        """Rows `first` to `last` - 1."""
        low, high = self.offsets[first], self.offsets[last]
        offsets = self.offsets[first : last + 1] - low
        return Rows(self.tokens[first:last], self.lengths[first:last], self.doc_starts[low:high], offsets)


def column_lengths(name: LayoutName, row_length: int) -> dict[str, int]:
    """Columns of a layout in the order a model takes them, each with its length in a row of `row_length` tokens."""
    seen = row_length - 1
    if name == "compact":
        return {"input_ids": row_length, "doc_starts": ANY}
    if name == "mcore":
        same = dict.fromkeys(("input_ids", "labels", "loss_mask", "position_ids"), seen)
        return {**same, "actual_seq_len": ends_room(seen)}
    return dict.fromkeys(("input_ids", "attention_mask", "labels"), seen)


def ends_room(seq_length: int) -> int:
    """Length of `actual_seq_len`."""
    return max(_MIN_ENDS, seq_length // _TOKENS_AN_END)


def lay_out(name: LayoutName, rows: Rows) -> Columns:
    """Rows as columns: for each column an int32 array [n, length], or a list of n arrays where the length is ANY."""
    if name == "compact":
        starts = [rows.doc_starts[begin:end] for begin, end in pairwise(rows.offsets.tolist())]
        return {"input_ids": rows.tokens, "doc_starts": starts}
    inputs, labels = rows.tokens[:, :-1], rows.tokens[:, 1:]
    place = np.arange(rows.tokens.shape[1], dtype=np.int32)
    is_text = place < rows.lengths[:, None]
    if name == "padded":
        shown = np.where(is_text[:, 1:], labels, np.int32(IGNORED))
        return {"input_ids": inputs, "attention_mask": is_text[:, :-1].astype(np.int32), "labels": shown}
    row, begin = _segments(rows)
    return {
        "input_ids": inputs,
        "labels": labels,
        "loss_mask": is_text[:, 1:].astype(np.int32),
        "position_ids": _positions(row, begin, inputs.shape),
        "actual_seq_len": _ends(row, begin, inputs.shape),
    }


def row_tokens(decoded: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """All L + 1 tokens of one row from its columns in any layout; a last one that is padding may show as IGNORED."""
    if "labels" not in decoded:
        return decoded["input_ids"]
    return np.concatenate([decoded["input_ids"], decoded["labels"][-1:]])


def restore(
    decoded: Mapping[str, npt.NDArray[Any]], eos_id: int, pad_id: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The tokens int32 [L + 1] and the starts of documents of one row, from its columns in any layout."""
    tokens = row_tokens(decoded)
    if "doc_starts" in decoded:
        return tokens, decoded["doc_starts"]
    if len(tokens) and tokens[-1] == IGNORED:
        tokens[-1] = pad_id
    text = np.flatnonzero(tokens != pad_id)
    length = int(text[-1]) + 1 if len(text) else 0
    behind = np.flatnonzero(tokens[: max(0, length - 1)] == eos_id) + 1
    return tokens, np.append(0, behind).astype(np.int32)


def derived_faults(
    name: LayoutName, decoded: Mapping[str, npt.NDArray[Any]], tokens: npt.NDArray[Any], starts: Places, length: int
) -> list[str]:
    """The derived columns of one row that are not what its tokens, true document starts and length of text make them.

    All columns but those `restore` takes as they are: `input_ids` and `doc_starts`.
    """
    row = Rows(
        tokens.astype(np.int32)[None],
        np.array([length], np.int32),
        starts.astype(np.int32),
        np.array([0, len(starts)], np.int64),
    )
    made = lay_out(name, row)
    derived = (column for column in made if column not in ("input_ids", "doc_starts"))
    return [column for column in derived if not np.array_equal(made[column][0], decoded[column])]


def _segments(rows: Rows) -> tuple[Places, Places]:
    """Where documents and the padding behind them begin in the inputs: row and place, ascending."""
    width = rows.tokens.shape[1]
    row = np.repeat(np.arange(len(rows.tokens), dtype=np.int64), np.diff(rows.offsets))
    padded = np.flatnonzero(rows.lengths < width)
    keys = np.concatenate([row * width + rows.doc_starts, padded * width + rows.lengths[padded]])
    keys = np.sort(keys, kind="stable")
    row, begin = np.divmod(keys, width)
    # The last token of a row is only ever a label: what begins with it begins nothing in the inputs.
    seen = begin < width - 1
    return row[seen], begin[seen]


def _positions(row: Places, begin: Places, shape: tuple[int, ...]) -> Ints:
    begins = np.zeros(shape, np.int32)
    begins[row, begin] = begin
    np.maximum.accumulate(begins, axis=1, out=begins)
    return np.arange(shape[1], dtype=np.int32) - begins


def _ends(row: Places, begin: Places, shape: tuple[int, ...]) -> Ints:
    """Ends of documents, filled up with L, where the last always ends; those there is no room for share one end."""
    count, seq_length = shape
    room = ends_room(seq_length)
    ends = np.full((count, room), seq_length, np.int32)
    first = np.searchsorted(row, np.arange(count))
    # Each segment but a row's first begins where the one before it ends.
    nth = np.arange(len(row)) - first[row] - 1
    kept = (nth >= 0) & (nth < room - 1)
    ends[row[kept], nth[kept]] = begin[kept]
    return ends
