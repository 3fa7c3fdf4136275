"""Byte streams: files read in chunks, decompressed on the way, and the damage met in them."""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard
from isal import igzip_lib, isal_zlib

from dataprep.readers.inputs import Compression
from dataprep.storage import disk_errors

CHUNK_BYTES = 1 << 20
# zstd --long=31 needs a 2 GiB window; the library's default limit of 128 MiB would refuse such files.
_ZSTD_WINDOW = 1 << 31
# zstd may expand 4 bytes to 128 KiB and its streaming call has no output limit: small bites bound the output.
_ZSTD_BITE = 1024


class StreamDamage(Exception):
    """A compressed stream cannot be read further; everything before it was delivered."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class Member(Protocol):
    """Decompressor of one gzip member, zstd frame, bzip2 or xz stream, as the standard library's bz2 has it."""

    @property
    def eof(self) -> bool:
        """The member has ended."""

    @property
    def needs_input(self) -> bool:
        """More output needs more input."""

    @property
    def unused_data(self) -> bytes:
        """Bytes found behind the member's end."""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Take `data`, return about `max_length` bytes at most."""


class ZstdMember:
    """A zstd frame with the interface of `bz2.BZ2Decompressor`."""

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        self._pending = memoryview(b"")
        self.unused_data = b""

    @property
    def eof(self) -> bool:
        """The frame has ended."""
        return bool(self._frame.eof)

    @property
    def needs_input(self) -> bool:
        """More output needs more input."""
        return not self._pending and not self.eof

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Take `data`, return a little over `max_length` bytes at most."""
        if data:
            self._pending = memoryview(data)
        parts, length = [], 0
        while self._pending and not self.eof and (max_length < 0 or length < max_length):
            bite, self._pending = self._pending[:_ZSTD_BITE], self._pending[_ZSTD_BITE:]
            part = self._frame.decompress(bite)
            parts.append(part)
            length += len(part)
        if self.eof:
            self.unused_data = bytes(self._frame.unused_data) + bytes(self._pending)
            self._pending = memoryview(b"")
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class _Codec:
    name: str
    magic: tuple[bytes, ...]
    member: Callable[[], Member]
    padding: int  # zero bytes may follow a member in multiples of this; 0: not at all


_SKIPPABLE_ZSTD = tuple(bytes([low, 0x2A, 0x4D, 0x18]) for low in range(0x50, 0x60))
_CODECS = {
    # The gzip manual lets zero padding follow a member (tape blocks), the xz format in multiples of four.
    "gz": _Codec("gzip", (b"\x1f\x8b",), lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP), padding=1),
    "zst": _Codec("zstd", (b"\x28\xb5\x2f\xfd", *_SKIPPABLE_ZSTD), ZstdMember, padding=0),
    "bz2": _Codec("bzip2", (b"BZh",), bz2.BZ2Decompressor, padding=0),
    "xz": _Codec("xz", (b"\xfd7zXZ\x00",), lzma.LZMADecompressor, padding=4),
}
# The stub calls the class an instance.
_ISAL_ERROR = cast("type[Exception]", isal_zlib.IsalError)
# igzip and zstandard raise their own kinds, bz2 OSError or ValueError, lzma its own; all mean a damaged stream.
_DAMAGE: tuple[type[Exception], ...] = (
    _ISAL_ERROR,
    zstandard.ZstdError,
    lzma.LZMAError,
    OSError,
    ValueError,
    EOFError,
)


def chunks(file: BinaryIO, path: str, compression: Compression) -> Iterator[bytes]:
    """Yield the decompressed content of `file` from its position on, in pieces of about 1 MiB.

    Raises StreamDamage at the first damage, when all bytes that decode before it were delivered.
    """
    if compression == "none":
        yield from _raw_chunks(file, path)
        return
    yield from _Decompression(file, path, _CODECS[compression]).chunks()


def _raw_chunks(file: BinaryIO, path: str) -> Iterator[bytes]:
    while chunk := _read(file, path):
        yield chunk


def _read(file: BinaryIO, path: str) -> bytes:
    with disk_errors(Path(path)):
        return file.read(CHUNK_BYTES)


class _Decompression:
    """Members one after the other; remembers where the current one began, to replay it up to damage."""

    def __init__(self, file: BinaryIO, path: str, codec: _Codec) -> None:
        self._file = file
        self._path = path
        self._codec = codec
        self._position = 0  # in the compressed file, behind everything taken
        self._pending = b""  # read from the file, not yet taken

    def chunks(self) -> Iterator[bytes]:
        first = True
        while self._at_member(first):
            first = False
            for part in self._member():
                yield from (part[start : start + CHUNK_BYTES] for start in range(0, len(part), CHUNK_BYTES))

    def _take(self) -> bytes:
        data, self._pending = self._pending or _read(self._file, self._path), b""
        self._position += len(data)
        return data

    def _give_back(self, data: bytes) -> None:
        self._pending = data + self._pending
        self._position -= len(data)

    def _at_member(self, first: bool) -> bool:
        """Step over padding; tell whether another member begins here."""
        zeros = 0
        while data := self._take():
            rest = data.lstrip(b"\0") if self._codec.padding and not first else data
            zeros += len(data) - len(rest)
            if rest:
                self._give_back(rest)
                break
        if zeros and zeros % self._codec.padding:
            raise StreamDamage("trailing_garbage", f"{zeros} zero bytes behind the last {self._codec.name} stream")
        if not data:
            return False
        self._fill(max(len(magic) for magic in self._codec.magic))
        if self._pending.startswith(self._codec.magic):
            return True
        if first:
            raise StreamDamage("truncated_stream", f"the file does not begin as a {self._codec.name} stream")
        raise self._not_a_member()

    def _not_a_member(self) -> StreamDamage:
        cut = len(self._pending) < 6 and any(magic.startswith(self._pending) for magic in self._codec.magic)
        if cut:
            return StreamDamage("truncated_stream", f"the {self._codec.name} stream ends inside a header")
        where = f"bytes behind the end of the {self._codec.name} stream, at compressed byte {self._position}"
        return StreamDamage("trailing_garbage", where)

    def _fill(self, length: int) -> None:
        while len(self._pending) < length and (more := _read(self._file, self._path)):
            self._pending += more

    def _member(self) -> Iterator[bytes]:
        start, delivered = self._position, 0
        member = self._codec.member()
        taken = start
        while not member.eof:
            data = b""
            if member.needs_input:
                taken = self._position
                data = self._take()
                if not data:
                    raise StreamDamage("truncated_stream", f"the {self._codec.name} stream ends before its end mark")
            try:
                part = member.decompress(data, CHUNK_BYTES)
            except _DAMAGE as error:
                cause = error
                break
            delivered += len(part)
            if part:
                yield part
        else:
            self._give_back(member.unused_data)
            return
        where = yield from self._replay(start, taken, delivered)
        raise StreamDamage("truncated_stream", f"the {self._codec.name} stream is damaged at byte {where}: {cause}")

    def _replay(self, start: int, taken: int, delivered: int) -> Generator[bytes, None, int]:
        """Yield what decodes before the damage but was lost with the call that met it; return the damage's place.

        The libraries drop the output of a failing call. So the member is decoded anew from `start`, up to `taken` in
        chunks, as before, and then byte by byte; the first `delivered` bytes of output are known already.
        """
        place, seen = start, 0
        with suppress(*_DAMAGE):  # the same damage again
            for reached, part in self._anew(start, taken):
                place = reached
                fresh = part[max(0, delivered - seen) :]
                seen += len(part)
                if fresh:
                    yield fresh
        return place

    def _anew(self, start: int, taken: int) -> Iterator[tuple[int, bytes]]:
        """Decode the member again; yield (compressed bytes taken for sure, output)."""
        with disk_errors(Path(self._path)):
            self._file.seek(start)
        member = self._codec.member()
        place = start
        while not member.eof:
            data = b""
            if member.needs_input:
                with disk_errors(Path(self._path)):
                    data = self._file.read(max(1, min(CHUNK_BYTES, taken - place)))
            yield place, member.decompress(data, CHUNK_BYTES)
            place += len(data)
