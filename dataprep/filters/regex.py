"""Drop documents by regular expressions, in time linear in the text."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dataprep.filters.verdicts import first_failing
from dataprep.step import Applied, Step, with_verdicts


def _compilable(pattern: str) -> str:
    try:
        pc.match_substring_regex(pa.array([""], pa.large_string()), pattern)
    except pa.ArrowInvalid as error:
        raise ValueError(_explain(pattern, str(error))) from error
    return pattern


def _explain(pattern: str, message: str) -> str:
    """RE2 names the offending piece but not its place: find it, counting characters from 1."""
    complaint = message.removeprefix("Invalid regular expression: ")
    piece = complaint.partition(": ")[2]
    at = pattern.find(piece) + 1 if piece else len(pattern)
    return f"bad regular expression (RE2 syntax) at character {at}: {complaint}"


def _as_tuple(value: object) -> object:
    # A list must leave as a tuple: strict validation takes lists for tuples only where no validator came before.
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, str) else value


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_compilable)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(_as_tuple)]


class Regex(Step):
    """Drop documents in which a pattern is found, or none of those required.

    Patterns are RE2's, searched anywhere in the text: no backreferences or look-around, and no text can make one
    slow. `^` and `$` are the ends of the text unless the pattern begins with `(?m)`; `(?i)` ignores case.
    """

    name: ClassVar[str] = "regex"

    drop: Patterns = Field((), description="A pattern or a list: documents matching any of them are dropped.")
    keep: Patterns = Field((), description="A pattern or a list: documents matching none of them are dropped.")

    @model_validator(mode="after")
    def _some_pattern(self) -> Regex:
        if not self.drop and not self.keep:
            raise ValueError("give a pattern to drop or to keep")
        return self

    def apply(self, batch: pa.RecordBatch) -> Applied:
        """Judge texts: reasons `regex.drop`, then `regex.keep`."""
        texts = batch.column("text")
        failing = {"regex.drop": _any_found(texts, self.drop)}
        if self.keep:
            failing["regex.keep"] = ~_any_found(texts, self.keep)
        return Applied(with_verdicts(batch, first_failing(failing.values()), tuple(failing)))


def _any_found(texts: pa.LargeStringArray, patterns: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(texts), np.bool_)
    for pattern in patterns:
        found |= pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False).astype(np.bool_)
    return found
