"""Lines of a byte stream, split at line feeds only, in bounded memory, with their byte offsets.

Splitting at byte 0x0A is safe in UTF-8, where every byte of a longer sequence is >= 0x80, and in GB18030, where the
bytes behind the first are 0x30-0x39, 0x40-0x7E or 0x80-0xFE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from dataprep.readers.streams import StreamDamage

_HEAD_BYTES = 1024
_ESCAPE_BYTES = 6  # \uXXXX
BOM_UTF8 = b"\xef\xbb\xbf"
BOM_GB18030 = b"\x84\x31\x95\x33"


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines one after the other, each ended by a line feed, but perhaps the last of the stream."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that is too long to hold: its place, length, first bytes and count of quotes; the rest was skipped."""

    offset: int
    length: int
    head: bytes
    quotes: int


@dataclass(frozen=True, slots=True)
class Damage:
    """The stream ends here, damaged; `head` is the begin of the line the damage cut, or empty."""

    offset: int
    reason: str
    detail: str
    head: bytes


LineEvent = LineBlock | LongLine | Damage


@dataclass(frozen=True, slots=True)
class LineLimit:
    """When a line is too long to hold: `raw` bytes, or `plain` bytes that belong to no JSON escape.

    Both must be at least a chunk, so that lines inside a chunk need no check.
    """

    raw: int
    plain: int


def line_events(
    chunks: Iterable[bytes], limit: LineLimit, offset: int = 0, end: int | None = None
) -> Iterator[LineEvent]:
    """Yield the lines that begin in [offset, end) of a stream whose next byte is at `offset`, a line's begin."""
    return _Cutter(limit, offset, end).events(chunks)


class _Cutter:
    def __init__(self, limit: LineLimit, offset: int, end: int | None) -> None:
        self._limit = limit
        self._offset = offset  # of the line being held or skipped
        self._end = end
        self._clear()

    def _clear(self) -> None:
        self._held: list[bytes] = []
        self._length = 0
        self._escapes = EscapeCount()
        self._skipping = False
        self._quotes = 0

    def events(self, chunks: Iterable[bytes]) -> Iterator[LineEvent]:
        if self._past_end():
            return
        try:
            for chunk in chunks:
                yield from self._chunk(chunk)
                if self._past_end():
                    return
        except StreamDamage as damage:
            yield from self._damaged(damage)
            return
        yield from self._last()

    def _past_end(self) -> bool:
        return self._end is not None and self._offset >= self._end

    def _chunk(self, chunk: bytes) -> Iterator[LineEvent]:
        last = self._last_feed(chunk)
        if last < 0:
            self._hold(chunk)
            return
        start = 0
        if self._length:
            start = chunk.index(b"\n") + 1
            self._hold(chunk[:start])
        if self._skipping:
            yield self._flush()
        if start <= last:
            self._held.append(chunk[start : last + 1])
            self._length += last + 1 - start
        if self._length:
            yield self._flush()
        if not self._past_end():
            self._hold(chunk[last + 1 :])

    def _last_feed(self, chunk: bytes) -> int:
        """Place in `chunk` of the feed that ends the last line to take from it, or -1."""
        last = chunk.rfind(b"\n")
        if self._end is None or last < 0:
            return last
        # A line that begins before `end` is taken whole: it ends at the first feed at or behind end - 1.
        bound = self._end - 1 - (self._offset + self._length)
        if bound >= len(chunk):
            return last
        first_past = chunk.find(b"\n", max(0, bound))
        return first_past if first_past >= 0 else last

    def _hold(self, part: bytes) -> None:
        if not part:
            return
        self._length += len(part)
        self._quotes += part.count(b'"')
        if self._skipping:
            return
        self._held.append(part)
        self._escapes.add(part)
        if self._length > self._limit.raw or self._length - self._escapes.covered > self._limit.plain:
            self._skipping = True
            self._held = [_head(self._held)]

    def _flush(self) -> LineBlock | LongLine:
        offset, length, data = self._offset, self._length, b"".join(self._held)
        skipped, quotes = self._skipping, self._quotes
        self._clear()
        self._offset += length
        if skipped:
            return LongLine(offset, length, data, quotes)
        return LineBlock(offset, data)

    def _last(self) -> Iterator[LineEvent]:
        if self._length:
            yield self._flush()

    def _damaged(self, damage: StreamDamage) -> Iterator[LineEvent]:
        if damage.reason == "trailing_garbage":
            yield from self._last()
        yield Damage(self._offset, damage.reason, damage.detail, _head(self._held))


def _head(parts: list[bytes]) -> bytes:
    """The first bytes of a line, without joining all of it."""
    head = b""
    for part in parts:
        head += part[: _HEAD_BYTES - len(head)]
        if len(head) == _HEAD_BYTES:
            break
    return head


class EscapeCount:
    """Counts the bytes of a line that may belong to JSON escapes: each backslash and up to five bytes behind it.

    A string of n UTF-8 bytes has at most n raw bytes outside escapes. The count of those never falls while a line
    grows, so the verdict on a line does not depend on the chunks it came in.
    """

    def __init__(self) -> None:
        self._settled = 0
        self._length = 0
        self._last: int | None = None

    def add(self, part: bytes) -> None:
        """Take the next bytes of the line."""
        places = np.flatnonzero(np.frombuffer(part, np.uint8) == ord("\\")) + self._length
        self._length += len(part)
        if not len(places):
            return
        if self._last is not None:
            places = np.insert(places, 0, self._last)
        self._settled += int(np.minimum(np.diff(places), _ESCAPE_BYTES).sum())
        self._last = int(places[-1])

    @property
    def covered(self) -> int:
        """Bytes that may belong to escapes so far."""
        open_escape = 0 if self._last is None else min(self._length - self._last, _ESCAPE_BYTES)
        return self._settled + open_escape


def records_of(block: LineBlock) -> Iterator[tuple[int, bytes]]:
    """Yield (byte offset, line without its line feed) of each line of a block."""
    offset = block.offset
    lines = block.data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for line in lines:
        yield offset, line
        offset += len(line) + 1


def without_bom(offset: int, line: bytes) -> bytes:
    """Take the byte order mark from a file's first line."""
    if offset:
        return line
    return line.removeprefix(BOM_UTF8) if line.startswith(BOM_UTF8) else line.removeprefix(BOM_GB18030)
