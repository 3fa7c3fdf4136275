"""The file being read, and how its records are named and reported."""

from __future__ import annotations

from dataclasses import dataclass

from dataprep.readers.inputs import BadRecord, Input
from dataprep.readers.lines import Damage, LongLine
from dataprep.readers.records import excerpt


@dataclass(frozen=True, slots=True)
class Place:
    """One file of an input; its records' origins are `<name>#<position>`."""

    entry: Input
    name: str
    source: str

    def origin(self, position: int | None) -> str:
        """Name the record at `position`; None: the whole file."""
        return self.name if position is None else f"{self.name}#{position}"

    def bad(self, position: int | None, reason: str, detail: str, raw: bytes | str = b"") -> BadRecord:
        """Report a record that cannot become a document."""
        return BadRecord(self.source, self.origin(position), reason, " ".join(detail.split()), excerpt(raw))

    def stopped(self, event: LongLine | Damage) -> BadRecord:
        """Report a line that could not be held, or the damage a stream ended with."""
        if isinstance(event, Damage):
            return self.bad(event.offset, event.reason, event.detail, event.head)
        return self.too_long(event.offset, event.length, event.head)

    def too_long(self, position: int | None, length: int, raw: bytes | str) -> BadRecord:
        """Report a record of `length` bytes that is over the limit."""
        detail = f"{length} bytes; max_doc_bytes is {int(self.entry.max_doc_bytes)}"
        return self.bad(position, "too_long", detail, raw)

    def exceeds(self, text: str, raw_length: int) -> bool:
        """Tell whether a text is over the limit; `raw_length` is an upper bound of its UTF-8 length."""
        limit = int(self.entry.max_doc_bytes)
        return raw_length > limit and len(text.encode("utf-8", "surrogatepass")) > limit
