from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataprep.readers.inputs import Input

Reader = Callable[..., Any]


def test_a_file_is_one_document_named_by_the_file(read: Reader) -> None:
    content = "def f():\r\n\treturn '一'\n\n"
    found = read("a.py", content.encode(), format="text")
    assert found.texts == [content]
    assert found.column("doc_id") == found.column("origin") == ["a.py"]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_no_document(read: Reader, content: bytes) -> None:
    found = read("a.txt", content)
    assert (found.documents, found.bad) == ([], [])


def test_a_file_of_bad_bytes_is_one_bad_record(read: Reader) -> None:
    assert read("a.txt", b"fine\nnot \xff fine\n").reasons == [("a.txt", "invalid_utf8")]


def test_a_file_over_the_limit_is_one_bad_record(read: Reader) -> None:
    assert read("a.txt", b"12345", max_doc_bytes=5).texts == ["12345"]
    assert read("a.txt", b"123456", max_doc_bytes=5).reasons == [("a.txt", "too_long")]
    assert read("a.txt", bytes(3 << 20), max_doc_bytes=5).reasons == [("a.txt", "too_long")]


def test_gb18030_may_grow_over_the_limit_when_decoded(read: Reader) -> None:
    # 中 takes two bytes in GB18030 and three in UTF-8.
    assert read("a.txt", "中".encode("gb18030"), encoding="gb18030", max_doc_bytes=2).reasons == [("a.txt", "too_long")]


def test_a_cut_compressed_file_is_one_bad_record(read: Reader) -> None:
    assert read("a.txt.gz", gzip.compress(b"text" * 100)[:-9]).reasons == [("a.txt.gz", "truncated_stream")]


def test_lines_end_at_line_feeds_only_and_blank_ones_are_none(read: Reader) -> None:
    content = "\ufeffone\r\n\n \t\r\ntwo\rtwo\u2028two\u0085\nthree".encode()
    found = read("a.txt", content, unit="line")
    assert found.texts == ["one\r", "two\rtwo\u2028two\u0085", "three"]
    assert found.column("origin") == ["a.txt#0", "a.txt#13", f"a.txt#{content.index(b'three')}"]


def test_a_bad_line_leaves_its_neighbours(read: Reader) -> None:
    found = read("a.txt", b"one\n\xff\nthree\n", unit="line", encoding="auto")
    assert found.texts == ["one", "three"]
    assert found.reasons == [("a.txt#4", "invalid_gb18030")]


def test_a_line_of_megabytes_over_the_limit_is_skipped(read: Reader) -> None:
    found = read("a.txt", b"one\n" + b"x" * (5 << 20) + b"\nthree\n", unit="line", max_doc_bytes=10)
    assert found.texts == ["one", "three"]
    assert found.reasons == [("a.txt#4", "too_long")]


def test_paragraphs_lie_between_blank_lines(read: Reader) -> None:
    found = read("a.txt", b"\n\none\ntwo\n \r\n\nthree\n\nfour", unit="paragraph")
    assert found.texts == ["one\ntwo", "three", "four"]
    assert found.column("origin") == ["a.txt#2", "a.txt#14", "a.txt#21"]


def test_a_paragraph_over_the_limit_is_skipped_up_to_the_next_blank_line(read: Reader) -> None:
    long = b"\n".join([b"line of a paragraph"] * 200_000)
    found = read(
        "a.txt", b"one\n\n" + long + b"\n\n" + b"y" * (5 << 20) + b"\nz\n\nlast", unit="paragraph", max_doc_bytes=9
    )
    assert found.texts == ["one", "last"]
    assert found.reasons == [("a.txt#5", "too_long"), (f"a.txt#{5 + len(long) + 2}", "too_long")]


def test_a_paragraph_cut_by_damage_is_bad_and_those_before_are_good(read: Reader) -> None:
    packed = gzip.compress(b"one\n\ntwo\n") + gzip.compress(b"more\n")[:-3]
    found = read("a.txt.gz", packed, unit="paragraph")
    assert found.texts == ["one"]
    assert found.reasons == [("a.txt.gz#5", "truncated_stream")]


@given(content=st.lists(st.sampled_from([b"\n", b"a", b"\r", b" ", "中".encode(), b"\xff"]), max_size=40).map(b"".join))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_of_any_split_are_those_of_the_file(tmp_path: Path, read_all: Reader, content: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    entry = Input(path="a.txt", unit="line")
    whole = read_all(tmp_path, entry)
    lines = [line for line in content.split(b"\n") if line.strip(b" \r")]
    assert len(whole.documents) + len(whole.bad) == len(lines)
    assert whole.texts == [line.decode() for line in lines if b"\xff" not in line]
    for size in (1, 2, 7):
        assert read_all(tmp_path, entry, split_bytes=size) == whole
