"""Plain text: one document a file, a line, or a block of lines between blank lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dataprep.readers.encodings import BadEncoding, decoder
from dataprep.readers.inputs import BadRecord
from dataprep.readers.lines import Damage, LineBlock, LineEvent, LineLimit, LongLine, records_of, without_bom
from dataprep.readers.place import Place
from dataprep.readers.records import Document
from dataprep.readers.streams import CHUNK_BYTES, StreamDamage

Records = Iterator[Document | BadRecord]


def raw_limit(max_doc_bytes: int) -> int:
    """The most raw bytes a text of `max_doc_bytes` of UTF-8 can have: GB18030 takes four where UTF-8 takes two."""
    return 2 * max_doc_bytes + CHUNK_BYTES


def line_limit(max_doc_bytes: int) -> LineLimit:
    """The longest line worth holding."""
    return LineLimit(raw=raw_limit(max_doc_bytes), plain=raw_limit(max_doc_bytes))


def read_file(chunks: Iterable[bytes], place: Place) -> Records:
    """Yield the file as one document; an empty file is none."""
    limit = raw_limit(int(place.entry.max_doc_bytes))
    parts: list[bytes] = []
    length = 0
    damage: StreamDamage | None = None
    try:
        for chunk in chunks:
            parts.append(chunk)
            length += len(chunk)
            if length > limit:
                yield place.bad(None, "too_long", f"more than {limit} bytes", parts[0])
                return
    except StreamDamage as caught:
        damage = caught
    raw = b"".join(parts)
    if damage and damage.reason != "trailing_garbage":
        yield place.bad(None, damage.reason, damage.detail, raw)
        return
    if raw := without_bom(0, raw):
        yield _document(place, None, raw)
    if damage:
        yield place.bad(None, damage.reason, damage.detail)


def read_lines(events: Iterable[LineEvent], place: Place) -> Records:
    """Yield each line that is not blank, without its line feed, as a document."""
    for event in events:
        if not isinstance(event, LineBlock):
            yield place.stopped(event)
            continue
        for offset, line in records_of(event):
            line = without_bom(offset, line)
            if line and not line.isspace():
                yield _document(place, offset, line)


def read_paragraphs(events: Iterable[LineEvent], place: Place) -> Records:
    """Yield each block of lines between blank lines, without its last line feed, as a document."""
    block = _Block(place)
    for event in events:
        if isinstance(event, LineBlock):
            yield from _paragraphs(event, block)
        elif isinstance(event, LongLine):
            block.add(event.offset, event.head, event.length)
        else:
            yield from block.damaged(event)
    yield from block.flush()


def _paragraphs(event: LineBlock, block: _Block) -> Records:
    for offset, line in records_of(event):
        line = without_bom(offset, line)
        if line and not line.isspace():
            block.add(offset, line, len(line))
        else:
            yield from block.flush()


class _Block:
    """The lines of the paragraph being read; they are let go once it is too long."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._limit = raw_limit(int(place.entry.max_doc_bytes))
        self._lines: list[bytes] = []
        self._offset = 0
        self._length = 0

    def add(self, offset: int, line: bytes, length: int) -> None:
        if not self._lines:
            self._offset = offset
        self._length += length + 1
        if self._length <= self._limit or not self._lines:
            self._lines.append(line)
        else:
            del self._lines[1:]

    def flush(self) -> Records:
        lines, length = self._lines, self._length - 1
        self._lines, self._length = [], 0
        if not lines:
            return
        if length + 1 > self._limit:
            yield self._place.too_long(self._offset, length, lines[0])
            return
        yield _document(self._place, self._offset, b"\n".join(lines))

    def damaged(self, damage: Damage) -> Records:
        if damage.reason == "trailing_garbage":
            yield from self.flush()
            yield self._place.stopped(damage)
            return
        offset = self._offset if self._lines else damage.offset
        head = b"\n".join([*self._lines[:1], damage.head])
        self._lines = []
        yield self._place.bad(offset, damage.reason, damage.detail, head)


def _document(place: Place, position: int | None, raw: bytes) -> Document | BadRecord:
    try:
        text = decoder(place.entry.encoding)(raw)
    except BadEncoding as bad:
        return place.bad(position, bad.reason, bad.detail, raw)
    # A GB18030 character of two bytes may take three in UTF-8.
    if place.exceeds(text, 2 * len(raw)):
        return place.too_long(position, len(text.encode()), text)
    origin = place.origin(position)
    return Document(origin, text, place.source, origin)
