"""JSON lines: one object a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from dataprep.readers.encodings import BadEncoding, decoder
from dataprep.readers.fields import ObjectReader
from dataprep.readers.inputs import BadRecord
from dataprep.readers.lines import LineBlock, LineEvent, LineLimit, records_of, without_bom
from dataprep.readers.place import Place
from dataprep.readers.records import Document

# Beside the text, a record may carry this much in other fields; longer lines are skipped unread.
_OTHER_FIELDS_BYTES = 32 << 20


def line_limit(max_doc_bytes: int) -> LineLimit:
    """The longest line whose text can be within `max_doc_bytes`: an escaped byte of text takes six at most."""
    return LineLimit(raw=6 * max_doc_bytes + _OTHER_FIELDS_BYTES, plain=max_doc_bytes + _OTHER_FIELDS_BYTES)


def read(events: Iterable[LineEvent], place: Place) -> Iterator[Document | BadRecord]:
    """Yield the records of a stream of lines; white-space lines are none."""
    reader = ObjectReader(place)
    for event in events:
        if not isinstance(event, LineBlock):
            yield place.stopped(event)
        elif place.entry.encoding == "utf-8" and is_utf8(event.data):
            yield from _utf8_records(event, reader)
        else:
            yield from _recoded_records(event, reader, place)


def _utf8_records(block: LineBlock, reader: ObjectReader) -> Iterator[Document | BadRecord]:
    for offset, line in records_of(block):
        if not offset:
            line = without_bom(offset, line)
        if line and not line.isspace():
            yield reader.read(offset, line)


def _recoded_records(block: LineBlock, reader: ObjectReader, place: Place) -> Iterator[Document | BadRecord]:
    decode = decoder(place.entry.encoding)
    for offset, line in records_of(block):
        line = without_bom(offset, line)
        if not line or line.isspace():
            continue
        try:
            yield reader.read(offset, decode(line).encode())
        except BadEncoding as bad:
            yield place.bad(offset, bad.reason, bad.detail, line)


def is_utf8(data: bytes) -> bool:
    """Tell whether bytes are valid UTF-8, at gigabytes a second and without decoding them."""
    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    whole = pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(data))
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
