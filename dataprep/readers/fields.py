"""From a JSON object to a document: text, exact id, label and the other fields."""

from __future__ import annotations

import json
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw

from dataprep.readers.inputs import BadRecord
from dataprep.readers.place import Place
from dataprep.readers.records import Document, those_there

Path = tuple[str, ...]

_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_STRING = msgspec.json.Decoder(str)
_NO_VALUE = Raw(b"")


class BadField(Exception):
    """A record's content rules it out."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class ObjectReader:
    """Turns the JSON objects of one file into documents.

    Lines that decode into a struct of just the wanted fields take the fast way; any other line is taken apart field
    by field, which finds out what is wrong with it, or that it is fine after all.
    """

    def __init__(self, place: Place) -> None:
        entry = place.entry
        self._place = place
        self._prefix = f"{place.name}#"
        self._text = tuple(entry.text.split("."))
        self._id = tuple(entry.id.split("."))
        self._source = tuple(entry.source_field.split(".")) if entry.source_field else None
        self._max_bytes = int(entry.max_doc_bytes)
        self._fast = None if entry.keep_meta else struct_decoder(self._text, self._id, self._source)

    def read(self, offset: int, line: bytes) -> Document | BadRecord:
        """Make a document of the UTF-8 line at `offset`."""
        if self._fast is None:
            return self._slow(offset, line)
        decode, fields = self._fast
        try:
            text, id_, label = fields(decode(line))
        except (msgspec.DecodeError, RecursionError):
            return self._slow(offset, line)
        return self._document(offset, line, text, id_, label, None)

    def _slow(self, offset: int, line: bytes) -> Document | BadRecord:
        try:
            record = _object(line)
            text = _text(find(record, self._text), self._place.entry.text, record)
            id_ = find(record, self._id) or _NO_VALUE
            label = (find(record, self._source) if self._source else None) or _NO_VALUE
            meta = self._meta(record) if self._place.entry.keep_meta else None
        except BadField as bad:
            return self._place.bad(offset, bad.reason, bad.detail, line)
        return self._document(offset, line, text, id_, label, meta)

    def _document(
        self, offset: int, line: bytes, text: str, id_: Raw, label: Raw, meta: str | None
    ) -> Document | BadRecord:
        if len(line) > self._max_bytes and self._place.exceeds(text, len(line)):
            return self._place.too_long(offset, len(text.encode()), text)
        origin = self._prefix + str(offset)
        try:
            return Document(identity(id_) or origin, text, _label(bytes(label)) or self._place.source, origin, meta)
        except BadField as bad:
            return self._place.bad(offset, bad.reason, bad.detail, line)

    def _meta(self, record: dict[str, Raw]) -> str:
        wanted = [path for path in (self._text, self._id, self._source) if path]
        return msgspec.json.format(_without(record, wanted), indent=-1).decode()


def struct_decoder(text: Path, id_: Path, source: Path | None) -> tuple[Any, Any] | None:
    """Build (decode, fields): a decoder of the three fields alone, and the getter of (text, id, label) of its result.

    None where no struct can tell the fields apart: one of them is, or lies inside, another.
    """
    source = source or ("",)
    paths = (text, id_, source)
    if any(a is not b and a == b[: len(a)] for a in paths for b in paths):
        return None
    tree: dict[str, Any] = {}
    for path, kind in zip(paths, (str, Raw, Raw), strict=True):
        node = tree
        for key in path[:-1]:
            node = node.setdefault(key, {})
        node[path[-1]] = kind
    names = [_attributes(tree, path) for path in paths]
    return msgspec.json.Decoder(_struct(tree)).decode, attrgetter(*names)


def _struct(tree: dict[str, Any]) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for index, kind in enumerate(tree.values()):
        name = f"f{index}"
        if isinstance(kind, dict):
            fields.append((name, _struct(kind)))
            continue
        fields.append((name, kind, _NO_VALUE) if kind is Raw else (name, kind))
    rename = {f"f{index}": key for index, key in enumerate(tree)}
    return msgspec.defstruct("Record", fields, rename=rename, kw_only=True, gc=False)


def _attributes(tree: dict[str, Any], path: Path) -> str:
    names = []
    for key in path:
        names.append(f"f{list(tree).index(key)}")
        tree = tree[key]
    return ".".join(names)


def _object(line: bytes) -> dict[str, Raw]:
    try:
        return _OBJECT.decode(line)
    except msgspec.ValidationError as error:
        raise BadField("not_an_object", str(error)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        reason = "lone_surrogate" if has_lone_surrogate(line) else "broken_json"
        raise BadField(reason, str(error)) from error


def has_lone_surrogate(line: bytes) -> bool:
    """Tell whether a line is JSON but for an escape of half a surrogate pair."""
    try:
        value = json.loads(line, parse_int=float, parse_constant=float)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def find(record: dict[str, Raw], path: Path) -> Raw | None:
    """The raw value at a path of keys, or None if there is none."""
    for key in path[:-1]:
        inner = record.get(key)
        if inner is None or not bytes(inner).startswith(b"{"):
            return None
        record = _OBJECT.decode(inner)
    return record.get(path[-1])


def _text(raw: Raw | None, name: str, record: dict[str, Raw]) -> str:
    if raw is None:
        raise BadField("text_missing", f"the record has no field {name}; it has {those_there(list(record))}")
    value = bytes(raw)
    if value == b"null":
        raise BadField("text_null", f"field {name} is null")
    if not value.startswith(b'"'):
        raise BadField("text_not_string", f"field {name} is {value[:60].decode('utf-8', 'replace')}")
    return _STRING.decode(value)


def identity(raw: Raw) -> str | None:
    """An id's text: strings as they are, numbers with the digits they were written with; None for none."""
    value = bytes(raw)
    if value[:1] == b'"':
        return value[1:-1].decode() if b"\\" not in value else _STRING.decode(value)
    if not value or value == b"null":
        return None
    if value[:1] in b"{[":
        raise BadField("id_not_scalar", f"the id is {value[:60].decode('utf-8', 'replace')}")
    return value.decode()


@lru_cache(maxsize=1024)
def _label(raw: bytes) -> str | None:
    return _STRING.decode(raw) if raw[:1] == b'"' else None


def _without(record: dict[str, Raw], paths: list[Path]) -> bytes:
    """The record as JSON without the fields at `paths`; an object that lost all its fields goes with them."""
    parts = []
    for key, raw in record.items():
        inner = [path[1:] for path in paths if path[0] == key]
        if () in inner:
            continue
        value = bytes(raw)
        if inner and value.startswith(b"{"):
            value = _without(_OBJECT.decode(value), inner)
        if inner and value == b"{}":
            continue
        parts.append(msgspec.json.encode(key) + b":" + value)
    return b"{" + b",".join(parts) + b"}"
