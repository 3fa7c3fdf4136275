"""The small pipeline with every packing method and with fill in the middle: whole, provable, and found when damaged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from dataprep.shards.documents import read_documents, write_documents
from dataprep.shards.inspect import inspect_document, render_documents
from dataprep.shards.manifest import load_manifest, manifest_hash
from dataprep.shards.stats import as_json, collect
from dataprep.shards.verify import unproved, verify
from dataprep.storage import hash_file

ALL = {"rows": 10_000, "documents": 10_000}
FIM = '["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"]'
SETTINGS = {
    "best_fit": ["pack.method=best_fit", "pack.window=50"],
    "none": ["pack.method=none", "pack.seq_length=64"],
    "none truncated": ["pack.method=none", "pack.overlong=truncate"],
    "best_fit truncated": ["pack.method=best_fit", "pack.overlong=truncate", "tokenizer.bos=<|begin|>"],
    "fim": [
        "pack.method=best_fit",
        "pack.fim={rate: 0.6, spm_rate: 0.5, only: {source: [en]}}",
        f"tokenizer.add_special_tokens={FIM}",
        "tokenizer.bos=<|begin|>",
    ],
}
TRUNCATED = [name for name in SETTINGS if name.endswith("truncated")]


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory, dataprep: Any, write_small: Callable[..., Path]) -> dict[str, Path]:
    """The set that each of the settings makes of the small pipeline."""
    made = {}
    for name, settings in SETTINGS.items():
        pipeline = write_small(tmp_path_factory.mktemp("packed"))
        dataprep.run(pipeline, *(word for setting in settings for word in ("--set", setting)))
        made[name] = pipeline.parent / "out"
    return made


def indexes(directory: Path) -> pa.Table:
    return pa.concat_tables(
        read_documents(directory / shard.documents_file) for shard in load_manifest(directory).shards
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_verify_proves_every_row_and_document(sets: dict[str, Path], name: str) -> None:
    assert verify(sets[name], **ALL) == []
    totals = load_manifest(sets[name]).totals
    row_length = load_manifest(sets[name]).pack.row_length
    assert totals.tokens - totals.truncated + totals.padding == totals.rows * row_length
    assert sum(indexes(sets[name]).column("truncated").to_pylist()) == totals.truncated


def test_best_fit_cuts_no_document_that_fits_a_row_and_wastes_little(sets: dict[str, Path]) -> None:
    index = indexes(sets["best_fit"])
    for tokens, rows in zip(index.column("tokens").to_pylist(), index.column("rows").to_pylist(), strict=True):
        assert len(rows) == -(-tokens // 33)
    totals = load_manifest(sets["best_fit"]).totals
    assert totals.padding < 0.1 * totals.rows * 33


def test_without_packing_every_document_has_rows_of_its_own(sets: dict[str, Path]) -> None:
    for shard in load_manifest(sets["none"]).shards:
        rows = read_documents(sets["none"] / shard.documents_file).column("rows").to_pylist()
        assert sorted(row for mine in rows for row in mine) == list(range(shard.rows))


def test_shards_of_padded_rows_are_about_as_large_as_asked_for(sets: dict[str, Path]) -> None:
    shards = load_manifest(sets["none"]).shards
    assert len(shards) > 2
    assert all(shard.rows * 65 < 2 * 3000 for shard in shards)


@pytest.mark.parametrize("name", TRUNCATED)
def test_truncated_tokens_are_counted_and_verify_says_what_it_cannot_prove(sets: dict[str, Path], name: str) -> None:
    index = indexes(sets[name])
    tokens, truncated = (index.column(column).to_pylist() for column in ("tokens", "truncated"))
    assert truncated == [max(0, count - 33) for count in tokens]
    assert all(len(rows) == 1 for rows in index.column("rows").to_pylist())
    stats = collect(sets[name])
    assert as_json(stats)["total"]["truncated"] == sum(truncated) > 0
    assert unproved(sets[name]) == [
        f"texts of documents cut down to a row are not compared: {sum(truncated):,} tokens are missing"
    ]


def test_documents_filled_in_the_middle_are_of_the_source_asked_for_and_about_as_many(sets: dict[str, Path]) -> None:
    manifest = load_manifest(sets["fim"])
    assert manifest.pack.fim is not None
    assert manifest.tokenizer.inexact == 0
    assert manifest.sources["zh"].fim_documents == 0
    english = manifest.sources["en"]
    assert 0.4 < english.fim_documents / english.documents < 0.8
    assert sum(indexes(sets["fim"]).column("fim").to_pylist()) == manifest.totals.fim_documents


def test_inspect_puts_a_rearranged_document_back_in_order(sets: dict[str, Path], tmp_path: Path) -> None:
    index = indexes(sets["fim"])
    texts = [json.loads(line) for line in (sets["fim"].parent / "en.jsonl").read_text().splitlines() if "text" in line]
    text_of = {record["id"]: record["text"] for record in texts}
    orders = set()
    for doc_id, rearranged in zip(index.column("doc_id").to_pylist(), index.column("fim").to_pylist(), strict=True):
        [view] = inspect_document(sets["fim"], doc_id)
        if not rearranged:
            assert (view.in_order, view.proved) == (None, None)
            continue
        # `normalize` takes the white space at the end away.
        assert (view.in_order, view.proved) == (text_of[doc_id].rstrip(), True)
        stored = "".join(piece.text for piece in view.pieces)
        orders.add("SPM" if stored.startswith("<|begin|><|fim_prefix|><|fim_suffix|>") else "PSM")
    assert orders == {"PSM", "SPM"}
    console = Console(record=True, width=200)
    doc_id = index.column("doc_id").to_pylist()[index.column("fim").to_pylist().index(True)]
    console.print(render_documents(inspect_document(sets["fim"], doc_id)))
    assert "put back in order, this is the text it was made from" in console.export_text()


def relist(directory: Path, number: int) -> None:
    """Give the manifest the size and hash of a changed index, as a faulty program would."""
    path = directory / "manifest.json"
    content = json.loads(path.read_text())
    shard = content["shards"][number]
    index = directory / shard["documents_file"]
    shard["documents_bytes"], shard["documents_xxh3"] = index.stat().st_size, hash_file(index)
    content["hash"] = manifest_hash(content)
    path.write_text(json.dumps(content))


def swap_first_two_of_a_kind(values: list[Any]) -> list[Any]:
    """Exchange the first value with the first that differs from it."""
    other = next(k for k, value in enumerate(values) if value != values[0])
    return [values[other], *values[1:other], values[0], *values[other + 1 :]]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        *((name, "rows") for name in SETTINGS),
        *((name, "offsets") for name in SETTINGS if not name.startswith("none")),
        *((name, "truncated") for name in TRUNCATED),
        ("fim", "fim"),
    ],
)
def test_an_index_whose_values_are_exchanged_is_found(
    sets: dict[str, Path], tmp_path: Path, name: str, column: str
) -> None:
    directory = tmp_path / "set"
    shutil.copytree(sets[name], directory)
    shard = load_manifest(directory).shards[0]
    path = directory / shard.documents_file
    index = read_documents(path)
    values = index.column(column).to_pylist()
    place = index.column_names.index(column)
    field = index.schema.field(column)
    write_documents(path, index.set_column(place, field, pa.array(swap_first_two_of_a_kind(values), field.type)))
    relist(directory, 0)
    assert verify(directory, **ALL) != []


def test_neither_workers_nor_the_order_of_inputs_change_a_byte(
    sets: dict[str, Path], tmp_path: Path, dataprep: Any, write_small: Callable[..., Path]
) -> None:
    inputs = "  - {path: zh.jsonl, source: zh, text: content}\n  - {path: en.jsonl, source: en}"
    pipeline = write_small(tmp_path, inputs, 1)
    settings = [word for setting in SETTINGS["fim"] for word in ("--set", setting)]
    assert dataprep.run(pipeline, *settings)["hash"] == load_manifest(sets["fim"]).hash


def test_a_tokenizer_without_the_tokens_is_refused_in_one_line(tmp_path: Path, dataprep: Any, write_small: Any) -> None:
    code, message = dataprep.fail(write_small(tmp_path), "--set", "pack.fim={}")
    assert code == 2
    assert not (tmp_path / "work").exists()
    assert "has none of a known family to fill in the middle" in message


@pytest.mark.parametrize("layout", ["mcore", "padded"])
@pytest.mark.parametrize(
    "tokenizer", ["{{train: {{vocab_size: 400}}, bos: <|endoftext|>}}", "{{path: {file}, bos: <|endoftext|>}}"]
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_layout_that_could_not_tell_where_documents_begin_is_refused(
    command: str, tokenizer: str, layout: str, sets: dict[str, Path], tmp_path: Path, write_small: Callable[..., Path]
) -> None:
    told = tokenizer.format(file=sets["fim"] / "tokenizer.json")
    settings = ["--set", f"pack.layout={layout}", "--set", f"tokenizer={told}"]
    line = [sys.executable, "-m", "dataprep", command, str(write_small(tmp_path)), *settings]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"bos and eos are one token: with the layout {layout} nothing tells where documents begin" in done.stderr
