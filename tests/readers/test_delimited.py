from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataprep.readers.inputs import Input

Reader = Callable[..., Any]


def test_rows_are_numbered_under_the_header(read: Reader) -> None:
    found = read("x.csv", b'\xef\xbb\xbfid,text,lang\r\n00123,"one, ""two""\nthree",en\r\n\r\n,four,zh', keep_meta=True)
    assert found.texts == ['one, "two"\nthree', "four"]
    assert found.column("doc_id") == ["00123", "x.csv#1"]
    assert found.column("origin") == ["x.csv#0", "x.csv#1"]
    assert found.column("meta") == ['{"lang":"en"}', '{"lang":"zh"}']


def test_tsv_is_cut_at_tabs(read: Reader) -> None:
    found = read("x.tsv", b"text\tfrom\na,b\tweb\nc\t\n", source_field="from")
    assert found.texts == ["a,b", "c"]
    assert found.column("source") == ["web", "x"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"1", "broken_row"),
        (b"1,a,b", "broken_row"),
        (b'1,"a"b', "broken_row"),
        (b"1,\xff", "invalid_utf8"),
        (b"1,12345678", "too_long"),
        (b"1," + b"x" * (5 << 20), "too_long"),
        (b'1,"' + b"x, y\n" * (1 << 20) + b'"', "too_long"),
    ],
)
def test_a_bad_row_is_told_and_its_neighbours_survive(read: Reader, row: bytes, reason: str) -> None:
    found = read("x.csv", b"id,text\na,before\n" + row + b"\nb,after\n", max_doc_bytes=7)
    assert found.texts == ["before", "after"]
    assert found.reasons == [("x.csv#1", reason)]
    assert found.column("doc_id") == ["a", "b"]


def test_a_quote_that_never_closes_costs_its_own_line_only(read: Reader) -> None:
    found = read("x.csv", b'id,text\na,one\nb,"two\nc,three\nd,four\n')
    assert found.texts == ["one", "three", "four"]
    assert found.reasons == [("x.csv#1", "broken_row")]


def test_a_missing_text_column_is_told_for_each_row(read: Reader) -> None:
    assert read("x.csv", b"id,body\n1,a\n2,b\n").reasons == [("x.csv#0", "text_missing"), ("x.csv#1", "text_missing")]


def test_carriage_returns_nul_and_unicode_line_ends_are_content(read: Reader) -> None:
    text = "a\rb\0c\u2028d\u0085e"
    assert read("x.csv", f'id,text\n1,{text}\n2,"{text}\r\n"\n'.encode()).texts == [text, f"{text}\r\n"]


def test_gb18030_rows_are_decoded_one_by_one(read: Reader) -> None:
    content = "id,text\n1,中文\n".encode("gb18030") + "2,中文\n".encode()
    assert read("x.csv", content, encoding="auto").texts == ["中文", "中文"]


def test_a_cut_stream_keeps_the_rows_before(read: Reader) -> None:
    packed = gzip.compress(b'id,text\n1,one\n2,"two\n') + gzip.compress(b"more and no end")[:-3]
    found = read("x.csv.gz", packed)
    assert found.texts == ["one"]
    assert found.reasons == [("x.csv.gz#1", "truncated_stream")]


@pytest.mark.parametrize("content", [b"", b"id,text\n", b"id,text"])
def test_a_file_without_rows_is_fine(read: Reader, content: bytes) -> None:
    found = read("x.csv", content)
    assert (found.documents, found.bad) == ([], [])


# Python 3.10's writer refuses NUL, so another character goes through it in NUL's place.
NUL = "\ue000"
FIELD = st.text(st.sampled_from(f'a,"\n\r \t中é{NUL}\u2028'), max_size=8)


@given(rows=st.lists(st.tuples(FIELD, FIELD), max_size=8), end=st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_a_csv_writer_wrote_is_read_back(
    tmp_path: Path, read_all: Reader, rows: list[tuple[str, str]], end: str
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator=end)
    writer.writerows([("id", "text"), *rows])
    (tmp_path / "x.csv").write_bytes(out.getvalue().replace(NUL, "\0").encode())
    found = read_all(tmp_path, Input(path="x.csv"))
    rows = [(id_.replace(NUL, "\0"), text.replace(NUL, "\0")) for id_, text in rows]
    assert found.bad == []
    assert found.texts == [text for _, text in rows]
    assert found.column("doc_id") == [id_ or f"x.csv#{number}" for number, (id_, _) in enumerate(rows)]
