from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataprep.errors import EnvironmentFailure
from dataprep.readers import read_split
from dataprep.readers.fields import ObjectReader
from dataprep.readers.inputs import Input
from dataprep.readers.place import Place
from dataprep.readers.split import plan_splits

Reader = Callable[..., Any]

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
LINES = b'{"id": "a", "text": "one"}\n\n  \t\n{"text": "\xe4\xba\x8c"}\r\n{"id": 3, "text": "three"}'


@pytest.mark.parametrize("suffix", sorted(PACKERS))
def test_origins_are_offsets_in_the_decompressed_file_for_every_codec(read: Reader, suffix: str) -> None:
    found = read(f"x.jsonl{suffix}", PACKERS[suffix](LINES), source="s")
    name = f"x.jsonl{suffix}"
    assert found.texts == ["one", "二", "three"]
    assert found.column("origin") == [f"{name}#0", f"{name}#32", f"{name}#{LINES.rindex(b'{')}"]
    assert found.column("doc_id") == ["a", f"{name}#32", "3"]
    assert found.column("source") == ["s", "s", "s"]
    assert found.bad == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "no end', "broken_json"),
        (b'{"text": "x"} {"text": "y"}', "broken_json"),
        (b'{"text": "x", "score": NaN}', "broken_json"),
        (b'{"text": "raw \x00 control"}', "broken_json"),
        (b'{"text": "x", "deep": ' + b"[" * 100_000, "broken_json"),
        (b'["text"]', "not_an_object"),
        (b"null", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b"{}", "text_missing"),
        (b'{"Text": "x"}', "text_missing"),
        (b'{"text": null}', "text_null"),
        (b'{"text": 5}', "text_not_string"),
        (b'{"text": ["x"]}', "text_not_string"),
        (b'{"text": {"x": "y"}}', "text_not_string"),
        (b'{"text": "a\xffb"}', "invalid_utf8"),
        (b'{"text": "ok", "other": "\xff"}', "invalid_utf8"),
        (b'{"text": "\xed\xa0\x80"}', "invalid_utf8"),
        (rb'{"text": "a\ud800b"}', "lone_surrogate"),
        (rb'{"text": "a\ud800"}', "lone_surrogate"),
        (rb'{"text": "\udc00\ud800"}', "lone_surrogate"),
        (rb'{"text": "ok", "id": "\ud800"}', "lone_surrogate"),
        (rb'{"text": "ok", "\udfff": 1}', "lone_surrogate"),
        (b'{"text": "x", "id": [1]}', "id_not_scalar"),
        (b'{"text": "x", "id": {"$oid": "1"}}', "id_not_scalar"),
    ],
)
def test_a_bad_line_is_told_and_its_neighbours_survive(read: Reader, line: bytes, reason: str) -> None:
    found = read("x.jsonl", b'{"text": "before"}\n' + line + b'\n{"text": "after"}\n')
    assert found.texts == ["before", "after"]
    assert found.reasons == [("x.jsonl#19", reason)]
    (bad,) = found.bad
    assert bad.source == "x"
    assert bad.detail
    assert "\n" not in bad.detail
    assert bad.excerpt.startswith(line[:10].decode("utf-8", "backslashreplace"))
    assert len(bad.excerpt) <= 200


def test_excerpts_escape_the_bytes_that_are_no_text(read: Reader) -> None:
    assert read("x.jsonl", b'{"text": "a\xffb"}\n').bad[0].excerpt == r'{"text": "a\xffb"}'


@pytest.mark.parametrize(
    ("value", "doc_id"),
    [
        ('"00123"', "00123"),
        ("1234567890123456789", "1234567890123456789"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("1.10", "1.10"),
        ("-0", "-0"),
        ("1E400", "1E400"),
        ("true", "true"),
        (r'"a\u4e00\"b"', 'a一"b'),
        (r'"\ud83d\ude00"', "😀"),
        ('""', "x.jsonl#0"),
        ("null", "x.jsonl#0"),
    ],
)
def test_ids_are_exact(read: Reader, value: str, doc_id: str) -> None:
    assert read("x.jsonl", f'{{"text": "t", "id": {value}}}'.encode()).column("doc_id") == [doc_id]


def test_unicode_line_ends_and_lone_carriage_returns_are_text(read: Reader) -> None:
    text = "a\u2028b\u2029c\u0085d\u000be"
    content = json.dumps({"text": text}, ensure_ascii=False).encode() + b"\r\n" + b'{"text":\r"x"}\r\n'
    assert read("x.jsonl", content).texts == [text, "x"]


def test_a_byte_order_mark_is_skipped_and_counted_in_offsets(read: Reader) -> None:
    found = read("x.jsonl", b'\xef\xbb\xbf{"text": "a"}\n{"text": "b"}\n')
    assert found.texts == ["a", "b"]
    assert found.column("origin") == ["x.jsonl#0", "x.jsonl#17"]


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\t\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_records_is_fine(read: Reader, content: bytes) -> None:
    found = read("x.jsonl", content)
    assert (found.documents, found.bad) == ([], [])


def test_fields_may_be_nested_and_a_record_may_name_its_source(read: Reader) -> None:
    content = b"\n".join(
        [
            b'{"doc": {"body": "one", "meta": {"key": 7}}, "from": "web"}',
            b'{"doc": {"body": "two", "meta": null}, "from": null}',
            b'{"doc": {"body": "three"}, "from": 5}',
            b'{"doc": {"meta": {"key": 7}}}',
            b'{"doc": "text"}',
        ]
    )
    found = read("x.jsonl", content, text="doc.body", id="doc.meta.key", source_field="from", source="default")
    assert found.texts == ["one", "two", "three"]
    assert found.column("doc_id") == ["7", "x.jsonl#60", "x.jsonl#113"]
    assert found.column("source") == ["web", "default", "default"]
    assert [reason for _, reason in found.reasons] == ["text_missing", "text_missing"]


def test_meta_holds_the_other_fields_as_they_were_written(read: Reader) -> None:
    content = b'{"z": 1.50, "text": "t", "id": 1, "a": {"b": [1, 1e400], "c": "\\u4e00"}, "n": null}'
    (meta,) = read("x.jsonl", content, keep_meta=True).column("meta")
    assert meta == r'{"z":1.50,"a":{"b":[1,1e400],"c":"\u4e00"},"n":null}'


def test_meta_of_nested_fields_keeps_their_siblings(read: Reader) -> None:
    content = b'{"a": {"b": "t", "c": 1}, "d": {"e": "id"}}'
    found = read("x.jsonl", content, text="a.b", id="d.e", keep_meta=True)
    assert found.column("meta") == ['{"a":{"c":1}}']
    assert found.column("doc_id") == ["id"]


def test_one_field_may_be_text_and_id(read: Reader) -> None:
    assert read("x.jsonl", b'{"t": "word"}', text="t", id="t").column("doc_id") == ["word"]


def test_too_long_counts_utf8_bytes_of_the_decoded_text(read: Reader) -> None:
    lines = [r'{"text": "\u4e00\u4e00"}', '{"text": "123456"}', '{"text": "1234567"}', '{"text": "一一1"}']
    found = read("x.jsonl", "\n".join(lines).encode(), max_doc_bytes=6)
    assert found.texts == ["一一", "123456"]
    assert [(bad.reason, bad.detail) for bad in found.bad] == [("too_long", "7 bytes; max_doc_bytes is 6")] * 2


def test_gb18030_and_auto_decode_what_they_should(read: Reader) -> None:
    # 0x5C, the backslash, is the second byte of 乗 in GB18030 (81 5C).
    chinese = json.dumps({"id": "甲", "text": "乗中文 é"}, ensure_ascii=False)
    gb = chinese.encode("gb18030")
    assert b"\x81\x5c" in gb
    assert read("x.jsonl", gb, encoding="gb18030").texts == ["乗中文 é"]
    mixed = read("x.jsonl", gb + b"\n" + chinese.encode() + b'\n{"text": "\xff"}\n', encoding="auto")
    assert mixed.texts == ["乗中文 é"] * 2
    assert mixed.column("doc_id") == ["甲", "甲"]
    assert [reason for _, reason in mixed.reasons] == ["invalid_gb18030"]
    assert [reason for _, reason in read("x.jsonl", gb).reasons] == ["invalid_utf8"]


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".xz"])
def test_a_stream_cut_at_70_percent_keeps_the_whole_lines_before(read: Reader, suffix: str) -> None:
    rows = [json.dumps({"id": str(n), "text": f"{n * n} {'x' * (n % 7)}"}) for n in range(60_000)]
    packed = PACKERS[suffix]("\n".join(rows).encode())
    found = read(f"x.jsonl{suffix}", packed[: len(packed) * 7 // 10])
    count = len(found.documents)
    # bzip2 decodes block by block of 900 kB, the others almost to the cut.
    assert count > 10_000
    assert found.column("doc_id") == [str(n) for n in range(count)]
    offset = len("\n".join(rows[:count])) + 1
    assert found.reasons == [(f"x.jsonl{suffix}#{offset}", "truncated_stream")]
    assert rows[count].startswith(found.bad[0].excerpt)


def test_a_cut_on_a_record_border_is_told_all_the_same(read: Reader) -> None:
    first = gzip.compress(b'{"text": "a"}\n')
    found = read("x.jsonl.gz", first + gzip.compress(b'{"text": "b"}\n')[:9])
    assert found.texts == ["a"]
    assert found.reasons == [("x.jsonl.gz#14", "truncated_stream")]


def test_garbage_behind_a_stream_is_one_bad_record_and_the_last_line_is_good(read: Reader) -> None:
    found = read("x.jsonl.gz", gzip.compress(b'{"text": "a"}\n{"text": "b"}') + b"garbage")
    assert found.texts == ["a", "b"]
    assert found.reasons == [("x.jsonl.gz#27", "trailing_garbage")]


LINE = st.one_of(
    st.text(max_size=20).map(lambda text: json.dumps({"text": text}, ensure_ascii=False).encode("utf-8", "ignore")),
    st.integers(0, 10**30).map(lambda number: b'{"id": %d, "text": "n"}' % number),
    st.sampled_from([b"", b"  ", b"\r", b"{", b'{"text": null}', b'{"text": "\xff"}', rb'{"text": "\ud800"}', b"[1]"]),
)


@given(
    lines=st.lists(LINE, max_size=25), sizes=st.lists(st.integers(1, 300), min_size=1, max_size=3), end=st.booleans()
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_splits_of_any_size_and_batches_of_any_size_read_the_same(
    tmp_path: Path, read_all: Reader, lines: list[bytes], sizes: list[int], end: bool
) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines) + (b"\n" if end else b""))
    entry = Input(path="x.jsonl")
    whole = read_all(tmp_path, entry)
    for size in sizes:
        assert read_all(tmp_path, entry, split_bytes=size, batch_bytes=size) == whole


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "id", "a", "b"]), inner),
    max_leaves=6,
)


@given(value=JSON, text=st.sampled_from(["text", "a.b", "a"]), id_=st.sampled_from(["id", "a.id", "b"]))
@settings(max_examples=300, deadline=None)
def test_the_fast_and_the_thorough_way_agree(value: Any, text: str, id_: str) -> None:
    line = json.dumps(value).encode()
    fast = Place(Input(path="x", text=text, id=id_, source_field="b.a"), "x", "s")
    slow = Place(Input(path="x", text=text, id=id_, source_field="b.a", keep_meta=True), "x", "s")
    quick, thorough = ObjectReader(fast).read(5, line), ObjectReader(slow).read(5, line)
    if hasattr(thorough, "meta"):
        thorough = thorough._replace(meta=None)
    assert quick == thorough


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 100])
def test_limit_counts_good_and_bad_records_in_order(tmp_path: Path, read_all: Reader, limit: int) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "0"}\nbad\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "2"}\n{"text": "3"}\nbad\n')
    found = read_all(tmp_path, Input(path="*.jsonl"), limit=limit, split_bytes=1)
    expected = [("0", True), ("bad", False), ("2", True), ("3", True), ("bad", False)][:limit]
    assert found.texts == [text for text, good in expected if good]
    assert [bad.excerpt for bad in found.bad] == [text for text, good in expected if not good]


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(b"{}"), lambda path: os.utime(path)])
def test_a_file_that_changed_since_the_plan_stops_the_run(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "0"}\n')
    os.utime(path, ns=(1, 1))
    (split,) = plan_splits([Input(path="x.jsonl")], tmp_path, split_bytes=100, limit=None)
    change(path)
    with pytest.raises(EnvironmentFailure, match=r"x\.jsonl"):
        list(read_split(split))


def test_a_file_that_changes_while_it_is_read_stops_the_run(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "0"}\n' * 1000)
    (split,) = plan_splits([Input(path="x.jsonl")], tmp_path, split_bytes=1 << 20, limit=None)
    batches = read_split(split, batch_bytes=10)
    next(batches)
    with path.open("ab") as file:
        file.write(b'{"text": "new"}\n')
    with pytest.raises(EnvironmentFailure, match="changed while the run was reading it"):
        list(batches)
