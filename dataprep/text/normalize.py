"""Normalisation: Unicode form, invisible characters, white space and line ends; each switchable, each counted."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from dataprep.batch import text_array, utf8_buffers, with_column
from dataprep.kernels import clean
from dataprep.step import Applied, Step
from dataprep.text.actions import code_point_actions

# A text is brought into its form in pieces of about this much.
_PIECE_BYTES = 1 << 20

# In the order of the kernel's counters.
_EDITS = (
    "controls",
    "invisible",
    "unicode_spaces",
    "unicode_line_ends",
    "line_ends",
    "space_runs",
    "trailing_spaces",
    "leading_spaces",
    "blank_lines",
    "strip",
)


class Normalize(Step):
    """Bring text into one form.

    The result is a fixed point: normalising again changes nothing, and the text is in `form`. Every change is counted
    under `normalize.<field>`: code points for controls, invisible, unicode_spaces and unicode_line_ends; ends for
    line_ends; runs for space_runs; lines for trailing_spaces, leading_spaces and blank_lines (max_blank_lines);
    documents for strip and form.

    White space in these rules is space, tab, NBSP and the other Unicode spaces, U+3000 among them. A U+3000 at the
    start of a line stays, for it indents a Chinese paragraph (NFKC turns it into a space). Zero-width joiners stay
    where they shape what precedes them: behind emoji and behind scripts from U+0600 on other than CJK.

    `keep_indentation` is for code: no white space inside the document changes, whether at the start, in the middle
    or at the end of a line, so indentation, alignment and multi-line strings stay as they are; form feeds, vertical
    tabs, and Unicode spaces and line ends stay too. CRLF and CR still become `\\n`, strip still removes blank lines
    before the text and white space after it, and controls, invisible and form work as always.
    """

    name: ClassVar[str] = "normalize"

    form: Literal["NFC", "NFKC", "none"] = Field("NFC", description="Unicode normalisation form.")
    controls: bool = Field(True, description="Remove C0 (but tab and line ends), DEL and C1 control characters.")
    invisible: bool = Field(
        True, description="Remove BOM, zero-width, soft-hyphen and bidi-control characters; ZWJ/ZWNJ where they join."
    )
    unicode_spaces: bool = Field(
        True, description="NBSP and other Unicode spaces become a space; U+3000 stays at the start of a line."
    )
    line_ends: bool = Field(True, description="CRLF and CR become \\n.")
    unicode_line_ends: bool = Field(True, description="VT, FF, U+0085, U+2028 and U+2029 become \\n.")
    space_runs: bool = Field(True, description="Two or more white characters inside a line become one space.")
    trailing_spaces: bool = Field(True, description="Remove white space at the end of lines.")
    leading_spaces: bool = Field(False, description="Remove white space at the start of lines.")
    max_blank_lines: int | None = Field(1, ge=0, description="Keep at most this many blank lines in a row; null: all.")
    strip: bool = Field(True, description="Remove blank lines before the text and white space after it.")
    keep_indentation: bool = Field(
        False,
        description="For code: overrides unicode_spaces, unicode_line_ends, space_runs, trailing_spaces, "
        "leading_spaces and max_blank_lines, so that white space stays as written.",
    )

    def apply(self, batch: pa.RecordBatch) -> Applied:
        """Normalise every text of the batch."""
        column = batch.column("text")
        normalized, counts, reformed = self._fixed_point(column)
        edits = {f"normalize.{what}": int(n) for what, n in zip(_EDITS, counts, strict=True) if n}
        if reformed:
            edits["normalize.form"] = reformed
        return Applied(with_column(batch, "text", normalized), edits) if edits else Applied(batch)

    def _fixed_point(self, column: pa.LargeStringArray) -> tuple[pa.LargeStringArray, npt.NDArray[np.int64], int]:
        """Clean, bring into form, and do both again for the few texts that changed their form.

        Cleaning may bring a base and its mark together, and the form may bring forth spaces (NFKC) or take away what
        a joiner stood behind. Each round removes characters or makes them ASCII, so the rounds end.
        """
        cleaned = clean.clean(*utf8_buffers(column), self._actions(), self._layout())
        texts = text_array(cleaned.data, cleaned.offsets) if cleaned.counts.any() else column
        if self.form == "none" or not cleaned.unsure.any():
            return texts, cleaned.counts, 0
        rows, changed = _reform(self.form, texts, np.flatnonzero(cleaned.unsure))
        if not rows:
            return texts, cleaned.counts, 0
        again, more, _ = self._fixed_point(pa.array(changed, pa.large_string()))
        return _replace(texts, rows, again), cleaned.counts + more, len(rows)

    def _actions(self) -> npt.NDArray[np.uint8]:
        return code_point_actions(
            self.form,
            controls=self.controls,
            invisible=self.invisible,
            spaces=self.unicode_spaces and not self.keep_indentation,
            line_ends=self.line_ends,
            breaks=self.unicode_line_ends and not self.keep_indentation,
            keep_feeds=self.keep_indentation,
        )

    def _layout(self) -> clean.Layout:
        if self.keep_indentation:
            return clean.Layout(False, False, False, -1, self.strip)
        blank_lines = -1 if self.max_blank_lines is None else self.max_blank_lines
        return clean.Layout(self.space_runs, self.trailing_spaces, self.leading_spaces, blank_lines, self.strip)


def _reform(
    form: Literal["NFC", "NFKC"], texts: pa.LargeStringArray, rows: npt.NDArray[np.int64]
) -> tuple[list[int], list[bytes]]:
    """Those of `rows` whose text is not in `form`, and their texts in it, as UTF-8."""
    changed_rows: list[int] = []
    changed: list[bytes] = []
    data, offsets = utf8_buffers(texts)
    for row in rows.tolist():
        text = data[offsets[row] : offsets[row + 1]]
        if all(unicodedata.is_normalized(form, piece) for piece in _pieces(text)):
            continue
        changed_rows.append(row)
        changed.append(b"".join(unicodedata.normalize(form, piece).encode() for piece in _pieces(text)))
    return changed_rows, changed


def _pieces(text: npt.NDArray[np.uint8]) -> Iterator[str]:
    """Pieces of a text that can be brought into form one by one.

    Nothing composes across the border before an ASCII character; a long text as one `str` could take four bytes a
    character, several times over.
    """
    start = 0
    while start < len(text):
        end = start + _PIECE_BYTES
        while end < len(text) and not (ascii_bytes := text[end : end + _PIECE_BYTES] < 0x80).any():
            end += _PIECE_BYTES
        if end < len(text):
            end += int(ascii_bytes.argmax())
        yield text[start:end].tobytes().decode()
        start = end


def _replace(texts: pa.LargeStringArray, rows: Sequence[int], by: pa.LargeStringArray) -> pa.LargeStringArray:
    source = np.arange(len(texts), dtype=np.int64)
    source[list(rows)] = np.arange(len(texts), len(texts) + len(rows))
    return pa.concat_arrays([texts, by]).take(pa.array(source))
