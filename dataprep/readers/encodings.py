"""Bytes to text, strictly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

Encoding = Literal["utf-8", "gb18030", "auto"]


class BadEncoding(Exception):
    """Bytes are not text in the input's encoding."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def decoder(encoding: Encoding) -> Callable[[bytes], str]:
    """The strict decoder of an encoding; it raises BadEncoding."""
    return {"utf-8": decode_utf8, "gb18030": decode_gb18030, "auto": decode_auto}[encoding]


def field_decoder(encoding: Encoding, record: bytes) -> Callable[[bytes], str]:
    """The strict decoder of a record's fields; `auto` is settled by the whole record. Raises BadEncoding if by none."""
    if encoding != "auto":
        return decoder(encoding)
    try:
        record.decode("utf-8")
    except UnicodeDecodeError:
        decode_gb18030(record)
        return decode_gb18030
    return decode_utf8


def decode_utf8(raw: bytes) -> str:
    """Decode UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadEncoding("invalid_utf8", _place(error)) from error


def decode_gb18030(raw: bytes) -> str:
    """Decode GB18030."""
    try:
        return raw.decode("gb18030")
    except UnicodeDecodeError as error:
        raise BadEncoding("invalid_gb18030", _place(error)) from error


def decode_auto(raw: bytes) -> str:
    """Decode UTF-8 if that is what it is, else GB18030."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return decode_gb18030(raw)


def _place(error: UnicodeDecodeError) -> str:
    return f"byte 0x{error.object[error.start]:02x} at {error.start}: {error.reason}"
