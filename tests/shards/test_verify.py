"""Verify finds every kind of damage, names the file, and never raises on it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from dataprep.errors import ConfigError
from dataprep.shards import mindrecord
from dataprep.shards.contents import Finding, _spread
from dataprep.shards.documents import read_documents, write_documents
from dataprep.shards.layout import page_and_header
from dataprep.shards.layouts import LayoutName
from dataprep.shards.manifest import manifest_hash
from dataprep.shards.mindrecord import write_shard
from dataprep.shards.records import read_rows
from dataprep.shards.verify import checked_text, render_findings, verify
from dataprep.storage import hash_file

Change = Callable[[Callable[[dict[str, Any]], object]], None]
SHARD = "tiny-00000-of-00002.mindrecord"
INDEX = "documents/tiny-00000-of-00002.parquet"


def test_an_intact_set_has_no_findings(pristine: Path) -> None:
    assert verify(pristine) == []
    assert verify(pristine, quick=True) == []


def test_what_was_checked_is_told(pristine: Path) -> None:
    assert str(render_findings([], lambda: checked_text(pristine, rows=4))) == (
        "No damage found: 2 shards, all hashes, 4 of 6 rows and 5 of 5 documents decoded."
    )
    assert checked_text(pristine, quick=True) == "2 shards, all sizes and row counts; no hashes, nothing decoded"
    assert (
        checked_text(pristine, rows=0, documents=0) == "2 shards, all hashes, 0 of 6 rows and 0 of 5 documents decoded"
    )


def test_a_set_of_no_rows_says_so(shard_set: Path, change_manifest: Change) -> None:
    change_manifest(lambda content: (content["totals"].update(rows=0, documents=0), content.update(shards=[])))
    assert checked_text(shard_set) == "the set holds no rows, all hashes"


@pytest.mark.parametrize("trace", ["documents", "dropped", "quarantine", ".scratch"])
def test_an_unfinished_set_is_an_error_not_a_finding(tmp_path: Path, trace: str) -> None:
    (tmp_path / trace).mkdir()
    with pytest.raises(ConfigError, match=r"unfinished shard set: no manifest\.json; run the pipeline again"):
        verify(tmp_path)


def test_a_shard_without_a_manifest_is_unfinished(tmp_path: Path) -> None:
    (tmp_path / "x-00000-of-00001.mindrecord").touch()
    with pytest.raises(ConfigError, match="unfinished"):
        verify(tmp_path)


def test_a_folder_that_never_was_a_shard_set_is_not_called_unfinished(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not a shard set: no manifest\.json; give the output\.path"):
        verify(tmp_path)
    with pytest.raises(ConfigError, match="gone: no such folder; check the path"):
        verify(tmp_path / "gone")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file, not the folder"):
        verify(tmp_path / "file")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "manifest.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"not a shard set.*did you mean .*/inner\?"):
        verify(tmp_path)


def test_a_broken_manifest_is_the_one_finding(shard_set: Path) -> None:
    (shard_set / "manifest.json").write_text("{}")
    assert [finding.file for finding in verify(shard_set)] == ["manifest.json"]


LISTED = [SHARD, f"{SHARD}.db", INDEX, "tokenizer.json", "dropped/0.parquet", "quarantine/0.parquet"]


@pytest.mark.parametrize("name", LISTED)
@pytest.mark.parametrize("damage", ["flip", "cut", "grow", "remove", "directory"])
def test_damage_to_any_file_is_found_in_that_file(shard_set: Path, name: str, damage: str) -> None:
    path = shard_set / name
    data = bytearray(path.read_bytes())
    path.unlink()
    data[len(data) // 2] ^= 1
    if damage == "flip":
        path.write_bytes(data)
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 3])
    elif damage == "grow":
        path.write_bytes(data + b"x")
    elif damage == "directory":
        path.mkdir()
    assert {finding.file for finding in verify(shard_set)} == {name}


@pytest.mark.parametrize("name", [SHARD, f"{SHARD}.db", INDEX])
def test_flips_anywhere_never_crash_even_the_quick_check(shard_set: Path, name: str) -> None:
    path = shard_set / name
    original = path.read_bytes()
    random = np.random.default_rng(4)
    for place in random.integers(0, min(len(original), 20_000), 40):
        with path.open("r+b") as file:
            file.seek(place)
            file.write(bytes([original[place] ^ 0x55]))
            file.flush()
            verify(shard_set, quick=True)
            file.seek(place)
            file.write(original[place : place + 1])
    assert verify(shard_set) == []


def test_a_stale_shard_of_another_run_is_found(shard_set: Path) -> None:
    for name in ("tiny-00002-of-00003.mindrecord", "tiny-00002-of-00003.mindrecord.db", "other-0-of-1.mindrecord"):
        (shard_set / name).write_bytes(b"")
    found = [finding.file for finding in verify(shard_set)]
    assert found == ["tiny-00002-of-00003.mindrecord", "tiny-00002-of-00003.mindrecord.db"]


def test_sums_that_do_not_add_up_are_findings(shard_set: Path, change_manifest: Change) -> None:
    change_manifest(lambda content: content["inputs"].update(records=99))
    assert verify(shard_set) == [Finding("manifest.json", "99 records in the inputs, prepare took 8")]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (
            lambda ledger: ledger["dedup"]["en"].update(dropped={"length.chars": 1}),
            ["dedup of en: 0 for exact_dedup here, 1 in the tables", "dedup of en: 1 for length.chars here, 0 in"],
        ),
        (
            lambda ledger: ledger["prepare"]["zh"].update(quarantined={"no_text": 1}),
            ["quarantine of zh: 0 for invalid_json here, 1 in", "quarantine of zh: 1 for no_text here, 0 in"],
        ),
        (
            lambda ledger: ledger["prepare"]["zh"].update(quarantined={}, dropped={"length.chars": 1}),
            ["prepare of zh: 1 for length.chars here, 0 in", "quarantine of zh: 0 for invalid_json here, 1 in"],
        ),
    ],
)
def test_a_ledger_that_tells_of_other_losses_than_the_tables_is_found(
    edit: Callable[[Any], object], words: list[str], shard_set: Path, change_manifest: Change
) -> None:
    change_manifest(lambda content: edit(content["ledger"]))
    assert verify(shard_set, quick=True) == []
    found = verify(shard_set)
    assert [finding.file for finding in found] == ["manifest.json"] * len(words)
    assert all(word in finding.what for word, finding in zip(words, found, strict=True))


def test_a_table_that_cannot_be_read_is_one_finding(shard_set: Path, change_manifest: Change) -> None:
    table = shard_set / "dropped" / "0.parquet"
    table.write_bytes(b"PAR1 is not enough")

    def relisted(content: Any) -> None:
        for file in content["files"]:
            if file["path"] == "dropped/0.parquet":
                file.update(bytes=table.stat().st_size, xxh3=hash_file(table))

    change_manifest(relisted)
    (finding,) = verify(shard_set)
    assert finding.file == "dropped/0.parquet"
    assert "cannot be read" in finding.what


def relist(content: dict[str, Any], directory: Path) -> None:
    shard = content["shards"][0]
    for kind, name in (("", SHARD), ("db_", f"{SHARD}.db"), ("documents_", INDEX)):
        path = directory / name
        shard[f"{kind}bytes"], shard[f"{kind}xxh3"] = path.stat().st_size, hash_file(path)


def rewrite_rows(directory: Path, change: Callable[[np.ndarray[Any, Any], list[list[int]]], object]) -> None:
    """Write the first shard again with other rows, as a faulty program would: hashes then match."""
    decoded = read_rows(directory / SHARD, range(3))
    rows = np.stack([row["input_ids"] for row in decoded])
    starts = [row["doc_starts"].tolist() for row in decoded]
    change(rows, starts)
    write_shard(
        directory / SHARD,
        rows,
        np.concatenate(starts).astype(np.int32),
        np.cumsum([0, *map(len, starts)]),
        scratch=directory,
        layout=page_and_header(9, 1000),
    )


# Rows of the first shard: "hello" EOS "你", then "好，世界" EOS, then "x" EOS and padding, in the order 2, 0, 1.
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows, starts: rows.__setitem__((1, 0), 258), "row 1: holds an id outside the vocabulary of 258"),
        (lambda rows, starts: rows.__setitem__((1, 0), -1), "row 1: holds an id outside the vocabulary of 258"),
        (lambda rows, starts: rows.__setitem__((1, 0), 1), "document 'a': decodes to another text"),
        (lambda rows, starts: rows.__setitem__((1, 5), 1), "document 'a': does not begin and end with its special"),
        (lambda rows, starts: rows.__setitem__((1, 1), 257), "row 1: holds padding inside its text"),
        (lambda rows, starts: rows.__setitem__((0, 8), 3), "row 0: is not padded from token"),
        (lambda rows, starts: starts.__setitem__(1, [0]), "row 1: doc_starts do not match the document index"),
    ],
)
def test_rows_that_are_not_the_documents_are_found(
    shard_set: Path, change_manifest: Change, change: Callable[..., object], words: str
) -> None:
    rewrite_rows(shard_set, change)
    change_manifest(lambda content: relist(content, shard_set))
    assert any(finding.file == SHARD and words in finding.what for finding in verify(shard_set)), verify(shard_set)


@pytest.mark.parametrize("columns", get_args(LayoutName))
def test_an_intact_set_of_any_layout_has_no_findings(
    laid_out: Callable[[LayoutName], Path], columns: LayoutName
) -> None:
    assert verify(laid_out(columns)) == []


# Row 1 of the first shard is "hello" EOS "你", row 0 "，世界" cut, EOS, "x" EOS and 3 of padding; see above.
@pytest.mark.parametrize(
    ("columns", "column", "place", "value", "words"),
    [
        ("mcore", "input_ids", (1, 0), 1, "document 'a': decodes to another text"),
        ("mcore", "input_ids", (1, 1), 1, "row 1: column labels does not follow from its tokens"),
        ("mcore", "input_ids", (1, 2), 256, "row 1: doc_starts do not match the document index"),
        ("mcore", "input_ids", (1, 5), 1, "row 1: doc_starts do not match the document index"),
        ("mcore", "input_ids", (1, 1), 258, "row 1: holds an id outside the vocabulary"),
        ("mcore", "input_ids", (0, 7), 3, "row 0: is not padded from token"),
        ("mcore", "labels", (1, 3), 1, "row 1: column labels does not follow from its tokens"),
        ("mcore", "labels", (1, 7), 1, "document 'b': decodes to"),
        ("mcore", "labels", (0, 7), 3, "row 0: is not padded from token"),
        ("mcore", "loss_mask", (0, 7), 1, "row 0: column loss_mask does not follow from its tokens"),
        ("mcore", "loss_mask", (1, 0), 0, "row 1: column loss_mask does not follow from its tokens"),
        ("mcore", "position_ids", (1, 6), 6, "row 1: column position_ids does not follow from its tokens"),
        ("mcore", "actual_seq_len", (1, 0), 7, "row 1: column actual_seq_len does not follow from its tokens"),
        ("mcore", "actual_seq_len", (1, 127), 9, "row 1: column actual_seq_len does not follow from its tokens"),
        ("padded", "input_ids", (1, 0), 1, "document 'a': decodes to another text"),
        ("padded", "input_ids", (1, 3), 1, "row 1: column labels does not follow from its tokens"),
        ("padded", "labels", (1, 7), 1, "document 'b': decodes to"),
        ("padded", "labels", (0, 6), 257, "row 0: column labels does not follow from its tokens"),
        ("padded", "attention_mask", (0, 7), 1, "row 0: column attention_mask does not follow from its tokens"),
        ("padded", "attention_mask", (1, 7), 0, "row 1: column attention_mask does not follow from its tokens"),
    ],
)
def test_a_changed_value_in_any_column_of_any_layout_is_found(
    laid_out: Callable[[LayoutName], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    columns: LayoutName,
    column: str,
    place: tuple[int, int],
    value: int,
    words: str,
) -> None:
    subprocess.run(["cp", "-r", "--sparse=always", f"{laid_out(columns)}/.", str(tmp_path)], check=True)
    stored = read_rows(tmp_path / SHARD, range(3))
    changed = {name: np.stack([row[name] for row in stored]) for name in stored[0]}
    assert changed[column][place] != value
    changed[column][place] = value
    # The writer as a faulty program would have it: it puts these columns down, whatever the rows are.
    monkeypatch.setattr(mindrecord, "lay_out", lambda name, rows: changed if len(rows.tokens) == 3 else {})
    monkeypatch.setattr(mindrecord, "_direct_fault", lambda *schema: None)
    monkeypatch.setattr(mindrecord, "_check_written", lambda *written: None)
    flat, offsets = np.zeros(3, np.int32), np.arange(4)
    layout = page_and_header(9, 1000, columns)
    rows = np.zeros((3, 9), np.int32)
    write_shard(tmp_path / SHARD, rows, flat, offsets, scratch=tmp_path / "s", layout=layout, columns=columns)
    content = json.loads((tmp_path / "manifest.json").read_text())
    relist(content, tmp_path)
    content["hash"] = manifest_hash(content)
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    found = verify(tmp_path)
    assert any(finding.file == SHARD and words in finding.what for finding in found), found


def test_a_shard_of_another_layout_than_the_manifest_says_is_found(
    laid_out: Callable[[LayoutName], Path], shard_set: Path, change_manifest: Change
) -> None:
    for name in (SHARD, f"{SHARD}.db"):
        shutil.copy(laid_out("padded") / name, shard_set / name)
    change_manifest(lambda content: relist(content, shard_set))
    found = [finding.what for finding in verify(shard_set) if finding.file == SHARD]
    assert found[0] == (
        "its columns are attention_mask int32 [8], input_ids int32 [8], labels int32 [8], "
        "the manifest says doc_starts int32 [-1], input_ids int32 [9]"
    )
    assert "row 0: lacks the column doc_starts" in found


def edit_index(directory: Path, column: str, values: list[object]) -> None:
    index = read_documents(directory / INDEX)
    field = index.schema.field(column)
    place = index.column_names.index(column)
    write_documents(directory / INDEX, index.set_column(place, field, pa.array(values, field.type)))


# Truth: rows [[1], [1, 2, 0], [0]], offsets [[0], [6, 0, 0], [4]].
@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("tokens", [6, 16, 3], "tokens: 25 in the index, the manifest says 24"),
        ("text_bytes", [5, 15, 2], "text_bytes: 22 in the index, the manifest says 21"),
        ("rows", [[1], [1, 0, 2], [0]], "do not fill its rows"),
        ("rows", [[1], [1, 2], [0]], "document 1 has 2 rows and 3 offsets"),
        ("rows", [[1], [], [0]], "document 1 has 0 rows and 3 offsets"),
        ("rows", [[1], [1, 7, 0], [0]], "do not fill its rows"),
        ("offsets", [[0], [6, 0, 0], [-1]], "document 2 does not fit"),
        ("offsets", [[1], [6, 0, 0], [4]], "padding inside row 1"),
        ("offsets", [[2], [6, 0, 0], [4]], "padding inside row 1"),
        ("offsets", [[0], [5, 1, 0], [4]], "do not fill its rows (row 1)"),
        ("offsets", [[0], [6, 1, 0], [4]], "do not fill its rows (row 0)"),
        ("offsets", [[0], [6, 0, 1], [4]], "padding inside row 0"),
        ("offsets", [[0], [6, 0, 0], [6]], "padding inside row 0"),
        ("offsets", [[0], [6, 0], [4]], "document 1 has 3 rows and 2 offsets"),
        ("truncated", [0, 0, 1], "truncated: 1 in the index, the manifest says 0"),
        ("truncated", [0, 1, -1], "document 1 cannot have had 1 tokens cut away"),
        ("truncated", [0, 0, -9], "document 2 does not fit"),
        ("copy", [0, 1, 0], "repeated: 1 in the index, the manifest says 0"),
        ("fim", [True, False, False], "fim_documents: 1 in the index, the manifest says 0"),
    ],
)
def test_an_index_that_does_not_tile_the_rows_is_found(
    shard_set: Path, change_manifest: Change, column: str, values: list[object], words: str
) -> None:
    edit_index(shard_set, column, values)
    change_manifest(lambda content: relist(content, shard_set))
    found = verify(shard_set)
    assert any(finding.file == INDEX and words in finding.what for finding in found), found


@pytest.mark.parametrize(
    ("rows", "offsets"),
    [
        ([[1], [1, 2], [0]], [[0], [6, 0], [4]]),
        ([[1], [], [0]], [[0], [], [4]]),
        ([[1], [1, 2, 0, 0], [0]], [[0], [6, 0, 0, 4], [4]]),
    ],
)
def test_a_document_with_more_or_fewer_pieces_than_its_tokens_need_is_found(
    shard_set: Path, change_manifest: Change, rows: list[object], offsets: list[object]
) -> None:
    edit_index(shard_set, "rows", rows)
    edit_index(shard_set, "offsets", offsets)
    change_manifest(lambda content: relist(content, shard_set))
    assert Finding(INDEX, "document 1 does not fit the rows it names") in verify(shard_set)


def test_documents_of_another_source_than_the_manifest_says_are_found(shard_set: Path, change_manifest: Change) -> None:
    edit_index(shard_set, "source", ["en", "en", "en"])
    change_manifest(lambda content: relist(content, shard_set))
    assert Finding("manifest.json", "documents of en: 3 here, 4 in the document indexes") in verify(shard_set)


def test_texts_that_the_tokenizer_changes_are_counted_and_not_compared(
    shard_set: Path, change_manifest: Change
) -> None:
    edit_index(shard_set, "text_xxh3", [bytes(16)] * 3)
    change_manifest(lambda content: relist(content, shard_set))
    assert len(verify(shard_set)) == 3
    edit_index(shard_set, "exact", [True, False, False])
    change_manifest(lambda content: relist(content, shard_set))
    inexact = Finding("manifest.json", "inexact: 0 here, 2 in the document indexes")
    first, *others = verify(shard_set)
    assert (first.file, others) == ("tiny-00000-of-00002.mindrecord", [inexact])
    change_manifest(lambda content: content["tokenizer"].update(inexact=2))
    assert verify(shard_set) == [first]


def test_fewer_rows_than_the_manifest_says_are_found_in_both_files(shard_set: Path, change_manifest: Change) -> None:
    change_manifest(lambda content: content["shards"][0].update(rows=4))
    found = verify(shard_set, quick=True)
    wanted = "holds 3 rows, the manifest says 4"
    assert {Finding(SHARD, wanted), Finding(f"{SHARD}.db", wanted)} <= set(found)


def test_a_tokenizer_that_cannot_be_loaded_is_found(shard_set: Path, change_manifest: Change) -> None:
    path = shard_set / "tokenizer.json"
    path.write_text("{}")

    def relist_tokenizer(content: dict[str, Any]) -> None:
        content["files"][0].update(bytes=2, xxh3=hash_file(path))

    change_manifest(relist_tokenizer)
    assert [finding.file for finding in verify(shard_set)] == ["tokenizer.json"]


def test_a_swapped_pair_of_shards_is_found(shard_set: Path) -> None:
    shutil.copy(shard_set / "tiny-00001-of-00002.mindrecord.db", shard_set / f"{SHARD}.db")
    assert f"{SHARD}.db" in {finding.file for finding in verify(shard_set, quick=True)}


@pytest.mark.parametrize(("total", "wanted"), [(0, 5), (3, 100), (1000, 7), (5, 0)])
def test_samples_are_distinct_and_spread_over_the_whole_set(total: int, wanted: int) -> None:
    sample = _spread(total, wanted, seed=0).tolist()
    count = min(total, wanted)
    assert len(set(sample)) == len(sample) == count
    assert all(total * k // count <= number < total * (k + 1) // count for k, number in enumerate(sample))
    assert sample == _spread(total, wanted, seed=0).tolist()
