"""The document index has one schema and one byte form, and a damaged one is named."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataprep.errors import DamageError
from dataprep.shards.documents import SCHEMA, document_count, read_documents, write_documents


def table(names: list[str]) -> pa.Table:
    rows = [
        {
            "doc_id": f"d{k}",
            "source": name,
            "origin": f"f#{k}",
            "meta": None if k else '{"lang": "en"}',
            "copy": k % 3,
            "tokens": 3,
            "truncated": 0,
            "fim": False,
            "text_bytes": 5,
            "text_xxh3": bytes([k]) * 16,
            "exact": k % 2 == 0,
            "rows": [k, k + 1],
            "offsets": [k, 0],
        }
        for k, name in enumerate(names)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = table(["en", "zh", "en"])
    write_documents(tmp_path / "x.parquet", written)
    assert read_documents(tmp_path / "x.parquet").to_pylist() == written.to_pylist()
    assert read_documents(tmp_path / "x.parquet", ("rows",)).column_names == ["rows"]
    assert document_count(tmp_path / "x.parquet") == 3


def test_the_bytes_do_not_depend_on_how_the_table_is_chunked_or_its_dictionaries(tmp_path: Path) -> None:
    whole = table(["en", "zh", "en", "code"])
    write_documents(tmp_path / "whole.parquet", whole)
    parts = pa.concat_tables([table(["en", "zh", "en", "code"]).slice(k, 1) for k in range(4)])
    shuffled = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2, 1], pa.int32()), pa.array(["zh", "code", "en"]))
    other = parts.set_column(1, SCHEMA.field("source"), shuffled)
    write_documents(tmp_path / "parts.parquet", other)
    assert (tmp_path / "parts.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_an_index_of_no_documents_is_read(tmp_path: Path) -> None:
    write_documents(tmp_path / "x.parquet", table([]))
    assert len(read_documents(tmp_path / "x.parquet")) == 0


def test_flipped_and_missing_bytes_are_damage_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_documents(path, table(["en", "zh"] * 20))
    original = path.read_bytes()
    wanted = read_documents(path)
    random = np.random.default_rng(0)
    named = []
    for place in random.integers(0, len(original), 300):
        data = bytearray(original)
        data[place] ^= int(random.integers(1, 256))
        path.write_bytes(data if place % 2 else data[:place])
        try:
            document_count(path)
            assert read_documents(path).equals(wanted)
        except DamageError as error:
            named.append(error.where)
    # The rest hit bytes that mean nothing, such as the name of the writing library.
    assert len(named) > 200
    assert set(named) == {str(path)}
    path.write_bytes(original)
    assert read_documents(path).equals(wanted)


def test_a_page_header_that_no_checksum_covers_hides_no_document(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_documents(path, table(["en", "zh"] * 20))
    original = path.read_bytes()
    wanted = read_documents(path)
    hidden = 0
    for place, bit in product(range(4, 24), range(8)):
        data = bytearray(original)
        data[place] ^= 1 << bit
        path.write_bytes(data)
        try:
            assert read_documents(path).equals(wanted)
        except DamageError as error:
            hidden += "of its 40 documents can be read" in error.what
    assert hidden > 0


def test_another_parquet_file_is_not_an_index(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    with pytest.raises(DamageError, match="columns differ"):
        read_documents(tmp_path / "x.parquet")


def test_a_missing_index_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DamageError, match="missing"):
        read_documents(tmp_path / "x.parquet")
