"""Drop documents that contain listed terms, however many terms there are."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

import ahocorasick_rs
import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from dataprep.errors import ConfigError
from dataprep.filters.verdicts import first_failing
from dataprep.step import Applied, PipelinePath, Step, with_verdicts
from dataprep.storage import disk_errors
from dataprep.text.segment import cuts_word


class Blocklist(Step):
    """Limit how often a document contains terms of a list.

    Occurrences are counted from left to right, the longest at each place, without overlaps. With `whole_words` an
    occurrence that begins or ends inside a word of `text.segment` does not count; in scripts written without spaces
    every character is a word, so Chinese terms are found anywhere. The file holds one term a line in UTF-8; white
    space around terms and blank lines do not count.
    """

    name: ClassVar[str] = "blocklist"

    terms: tuple[Annotated[str, Field(min_length=1)], ...] = Field((), description="Terms, beside those of the file.")
    path: PipelinePath | None = Field(None, description="File with one term a line.")
    whole_words: bool = Field(True, description="Count whole words only.")
    ignore_case: bool = Field(True, description="Compare case-folded.")
    max_hits: int = Field(0, ge=0, description="More occurrences than this are dropped.")

    @model_validator(mode="after")
    def _some_terms(self) -> Blocklist:
        if not self.terms and self.path is None:
            raise ValueError("give terms or path")
        return self

    def files(self) -> tuple[Path, ...]:
        """The file of terms, if any."""
        return () if self.path is None else (self.path,)

    def apply(self, batch: pa.RecordBatch) -> Applied:
        """Drop texts with more than max_hits occurrences (reason `blocklist.max_hits`)."""
        matcher = _matcher(self.terms, self.path, self.ignore_case)
        over = [self._hits(matcher, text) > self.max_hits for text in batch.column("text").to_pylist()]
        verdicts = first_failing([np.array(over, np.bool_)])
        return Applied(with_verdicts(batch, verdicts, ("blocklist.max_hits",)))

    def _hits(self, matcher: ahocorasick_rs.AhoCorasick, text: str) -> int:
        searched = text.casefold() if self.ignore_case else text
        found = matcher.find_matches_as_indexes(searched, overlapping=True)
        # Longest first at each start: matches arrive by their ends.
        hits, free_from = 0, 0
        for _, start, end in sorted(found, key=lambda match: (match[1], -match[2])):
            if start < free_from or (self.whole_words and (cuts_word(searched, start) or cuts_word(searched, end))):
                continue
            hits, free_from = hits + 1, end
        return hits


@lru_cache(maxsize=8)
def _matcher(terms: tuple[str, ...], path: Path | None, ignore_case: bool) -> ahocorasick_rs.AhoCorasick:
    """Automaton over all terms; built once a process, since a file of terms does not change during a run."""
    listed = terms if path is None else (*terms, *_read_terms(path))
    return ahocorasick_rs.AhoCorasick(sorted({term.casefold() if ignore_case else term for term in listed}))


def _read_terms(path: Path) -> list[str]:
    with disk_errors(path):
        content = path.read_bytes()
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError("not valid UTF-8", where=f"{path}:{line}", mend="save the list as UTF-8") from error
    terms = [line.strip() for line in lines if line.strip()]
    if not terms:
        raise ConfigError("no terms in the file", where=str(path), mend="put one term on each line")
    return terms
