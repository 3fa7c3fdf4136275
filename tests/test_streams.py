"""JSON is written so that its stream can spell it, whatever the stream's encoding."""

from __future__ import annotations

import io
import json

import pytest

from dataprep.streams import json_text

VALUE = {"é": "中文 😀 \x9b"}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk", "utf-8", "utf-16"])
def test_json_is_json_in_every_encoding(encoding: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    stream.write(json_text(VALUE, stream))
    stream.flush()
    assert json.loads(stream.buffer.getvalue().decode(encoding)) == VALUE  # type: ignore[attr-defined]  # the BytesIO


def test_chinese_is_readable_where_the_encoding_holds_it() -> None:
    assert json_text("中文", io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) == '"中文"'
    assert json_text("中文", io.StringIO()) == '"中文"'
