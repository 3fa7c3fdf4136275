from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataprep.errors import ConfigError
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


@pytest.mark.parametrize(("name", "cut"), [("x.csv", ","), ("x.tsv", "\t")])
def test_auto_is_settled_by_the_whole_row(read: Reader, name: str, cut: str) -> None:
    # The GB18030 bytes of 一 alone are also the UTF-8 of U+04BB.
    assert "一".encode("gb18030").decode() == "\u04bb"
    rows = [("一", "你好世界中文"), ("\u04bb", "plain"), ("一", "a\nb中文")]
    lines = [cut.join(("text", "标题")).encode("gb18030")]
    for (text, title), encoding in zip(rows, ("gb18030", "utf-8", "gb18030"), strict=True):
        lines.append(cut.join((text, f'"{title}"')).encode(encoding))
    found = read(name, b"\n".join(lines), encoding="auto", keep_meta=True)
    assert found.texts == ["一", "\u04bb", "一"]
    assert [msgspec.json.decode(meta) for meta in found.column("meta")] == [{"标题": title} for _, title in rows]


def test_auto_tells_a_row_that_is_neither(read: Reader) -> None:
    found = read("x.csv", "text,more\n中文,".encode() + b"\xff\nfine,\n", encoding="auto")
    assert (found.texts, found.reasons) == (["fine"], [("x.csv#0", "invalid_gb18030")])


def test_auto_reads_a_record_alike_in_any_format(read: Reader) -> None:
    record = "一,你好世界中文".encode("gb18030")
    assert read("x.txt", record, encoding="auto").texts == ["一,你好世界中文"]
    assert read("y.txt", record + b"\n", encoding="auto", unit="line").texts == ["一,你好世界中文"]
    assert read("z.txt", record.replace(b",", b"\n"), encoding="auto", unit="paragraph").texts == ["一\n你好世界中文"]
    in_json = '{"text":"一","t":"你好世界中文"}'.encode("gb18030")
    assert read("x.jsonl", in_json, encoding="auto").texts == ["一"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_only_a_line_with_nothing_in_it_is_no_row(read: Reader, end: bytes) -> None:
    rows = [b"id\ttext\tmore", b"\t\t", b"", b" \t \t ", b"1\ta\tb", b"", b" ", b"\t"]
    found = read("x.tsv", end.join(rows))
    assert found.texts == ["", " ", "a"]
    assert found.column("origin") == ["x.tsv#0", "x.tsv#1", "x.tsv#2"]
    assert found.reasons == [("x.tsv#3", "broken_row"), ("x.tsv#4", "broken_row")]
    assert read("x.csv", end.join(rows).replace(b"\t", b",")).texts == found.texts
    assert read("one.csv", end.join([b"text", b"a", b"  ", b"", b"\t", b'""', b"b"])).texts == [
        "a",
        "  ",
        "\t",
        "",
        "b",
    ]


def test_blank_lines_above_the_header_are_none(read: Reader) -> None:
    assert read("x.csv", b"\n  \nid,text\n1,a\n").column("doc_id") == ["1"]


@pytest.mark.parametrize(
    "content",
    [
        b"id,text\r1,a\r2,b\r",
        b"id,text\r1,a\r2,b\n",
        b"id,text\r1,a\n2,b\n",
        b'id,text\r1,"a"\r2,"b\nc"\r',
        b'"id","text"\r1,a\r',
        b"text\ra",
        b"id,text\r" + b"1,a\r" * 2_000_000,
    ],
)
def test_a_file_whose_lines_end_in_carriage_returns_is_refused(read: Reader, content: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        read("x.csv", content, max_doc_bytes=7)
    assert caught.value.where == "x.csv"
    assert "carriage return" in caught.value.what
    assert "line ends" in str(caught.value.mend)


def test_a_carriage_return_inside_a_field_is_content_in_a_quoted_header_too(read: Reader) -> None:
    found = read("x.csv", b'text,"a\rb\r\nc"\r\none\rtwo,"\r"\r\n', keep_meta=True)
    assert found.texts == ["one\rtwo"]
    assert found.column("meta") == ['{"a\\rb\\r\\nc":"\\r"}']


@pytest.mark.parametrize("column", ["text", "id", "from"])
def test_two_columns_for_one_field_are_refused(read: Reader, column: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read("x.csv", f"{column},text,{column}\n1,a,2\n".encode(), source_field="from")
    assert caught.value.where == "x.csv"
    assert f"columns are called '{column}'" in caught.value.what


def test_two_other_columns_of_one_name_are_refused_where_both_would_be_kept(read: Reader) -> None:
    content = b"id,text,x,x\n1,a,2,3\n"
    assert read("x.csv", content).texts == ["a"]
    with pytest.raises(ConfigError, match=r"x\.csv: 2 columns are called 'x'; .*keep_meta: false"):
        read("x.csv", content, keep_meta=True)


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
