"""Nasty inputs through the whole job: what survives is whole, and what does not is named."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from dataprep.shards.documents import read_documents
from dataprep.shards.inspect import inspect_document
from dataprep.shards.manifest import load_manifest
from dataprep.shards.records import read_rows, row_count
from dataprep.shards.verify import verify


def pipeline_of(folder: Path, inputs: str, **keys: str) -> Path:
    """A pipeline without steps, so that every good record is kept as it is."""
    settled = {
        "steps": "[]",
        "tokenizer": "{train: {vocab_size: 300}}",
        "pack": "{seq_length: 64}",
        "output": "{path: out}",
        "run": "{work_dir: work, workers: 2, max_bad_fraction: 1}",
        **keys,
    }
    pipeline = folder / "nasty.yaml"
    pipeline.write_text(f"inputs: {inputs}\n" + "".join(f"{key}: {value}\n" for key, value in settled.items()))
    return pipeline


def ids_of(out: Path) -> set[str]:
    shards = load_manifest(out).shards
    return {doc for shard in shards for doc in read_documents(out / shard.documents_file)["doc_id"].to_pylist()}


def text_of(out: Path, doc_id: str) -> str:
    [document] = inspect_document(out, doc_id)
    # The EOS behind the text is shown by name.
    return "".join(piece.text for piece in document.pieces).removesuffix("<|endoftext|>")


def lines(*records: object, ending: str = "\n") -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + ending for record in records).encode()


def test_every_record_of_every_nasty_file_is_kept_or_named(tmp_path: Path, dataprep: Any) -> None:
    jsonl, cut = tmp_path / "jsonl", tmp_path / "cut"
    jsonl.mkdir()
    cut.mkdir()
    (jsonl / "marked.jsonl").write_bytes(b"\xef\xbb\xbf" + lines({"id": "marked", "text": "behind a mark"}))
    (jsonl / "dos.jsonl").write_bytes(lines({"id": "dos", "text": "two\r\nlines"}, ending="\r\n"))
    (jsonl / "ends.jsonl").write_bytes(lines({"id": "ends", "text": "a\u2028b\u0085c"}))
    (jsonl / "ids.jsonl").write_bytes(
        lines({"id": "00123", "text": "leading zeros"}, {"id": 1234567890123456789, "text": "nineteen digits"})
    )
    (jsonl / "bad.jsonl").write_bytes(
        b'{"id": "before", "text": "good"}\n\n{"text": "\xff"}\n{"text": "\\ud800"}\n{"text": null}\n{"text": 7}\n'
        b'{"id": "last", "text": "no line end"}'
    )
    (jsonl / "empty.jsonl").touch()
    (jsonl / "members.jsonl.gz").write_bytes(
        b"".join(gzip.compress(lines({"id": f"member-{number}", "text": "of a file"})) for number in range(3))
    )
    (jsonl / "garbage.jsonl.gz").write_bytes(gzip.compress(lines({"id": "sound", "text": "of a file"})) + b"garbage")
    digits = random.Random(0)
    packed = gzip.compress(lines(*({"id": f"cut-{n}", "text": str(digits.getrandbits(999))} for n in range(100))))
    (cut / "cut.jsonl.gz").write_bytes(packed[: len(packed) * 7 // 10])

    texts: list[str | None] = [None if number % 100 == 5 else f"row {number}" for number in range(1000)]
    table = pa.table({"text": pa.array(texts).dictionary_encode(), "id": [f"row-{n}" for n in range(1000)]})
    with pq.ParquetWriter(tmp_path / "groups.parquet", table.schema) as writer:
        for start, end in ((0, 1), (1, 1000), (1000, 1000)):
            writer.write_table(table.slice(start, end - start))

    entries = ["jsonl", "cut", "groups.parquet"]
    inputs = ", ".join(f"{{path: {name}, source: {name.split('.')[0]}, id: id}}" for name in entries)
    manifest = dataprep.run(pipeline_of(tmp_path, f"[{inputs}]"))
    ledger = manifest["ledger"]["prepare"]
    kept = ids_of(tmp_path / "out")

    assert ledger["jsonl"]["quarantined"] == {
        "invalid_utf8": 1,
        "lone_surrogate": 1,
        "text_null": 1,
        "text_not_string": 1,
        "trailing_garbage": 1,
    }
    members = {"member-0", "member-1", "member-2"}
    named = {"marked", "dos", "ends", "00123", "1234567890123456789", "before", "last", "sound", *members}
    assert {doc for doc in kept if not doc.startswith(("cut-", "row-"))} == named
    assert ledger["groups"]["quarantined"] == {"text_null": 10}
    assert {doc for doc in kept if doc.startswith("row-")} == {
        f"row-{number}" for number, text in enumerate(texts) if text is not None
    }
    # Whatever lies whole before the cut: a prefix, and the cut itself is one bad record.
    survivors = sum(doc.startswith("cut-") for doc in kept)
    assert 40 < survivors < 100
    assert {f"cut-{number}" for number in range(survivors)} <= kept
    assert sum(ledger["cut"]["quarantined"].values()) == ledger["cut"]["in"] - survivors
    assert text_of(tmp_path / "out", "ends") == "a\u2028b\u0085c"
    assert text_of(tmp_path / "out", "dos") == "two\r\nlines"
    assert verify(tmp_path / "out", rows=10_000, documents=10_000) == []


def test_a_folder_without_files_is_an_error_that_names_it(tmp_path: Path, dataprep: Any) -> None:
    (tmp_path / "nothing").mkdir()
    code, message = dataprep.fail(pipeline_of(tmp_path, "[{path: nothing, source: x, format: text}]"))
    assert code == 2
    assert "nothing" in message


@pytest.mark.slow
def test_ten_thousand_tiny_files_are_as_many_documents_for_more_workers_than_tasks(
    tmp_path: Path, dataprep: Any
) -> None:
    for folder in range(100):
        (tmp_path / "texts" / f"{folder:02d}").mkdir(parents=True)
        for number in range(100):
            (tmp_path / "texts" / f"{folder:02d}" / f"{number:02d}.txt").write_text(f"file {number} of {folder}")
    pipeline = pipeline_of(
        tmp_path, "[{path: texts, source: tiny, format: text}]", run="{work_dir: work, workers: 5, max_bad_fraction: 0}"
    )
    manifest = dataprep.run(pipeline)
    assert manifest["totals"]["documents"] == 10_000
    assert manifest["run"]["stages"]["prepare"]["tasks"] < 5
    assert len(ids_of(tmp_path / "out")) == 10_000
    assert verify(tmp_path / "out", rows=100, documents=10_000) == []


def large_tokenizer(path: Path) -> None:
    """65,530 byte-level tokens (all bytes, then pairs of them) and 20 added ones behind."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = list(islice(product(letters, repeat=2), 65_530 - 256))
    vocabulary = {token: number for number, token in enumerate([*letters, *("".join(pair) for pair in pairs)])}
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(f"<extra_{number}>", normalized=False) for number in range(18)])
    tokenizer.add_special_tokens(["<|endoftext|>", "<|pad|>"])
    tokenizer.save(str(path))


def test_ids_beyond_16_bits_and_control_tokens_spelled_in_text_come_back(tmp_path: Path, dataprep: Any) -> None:
    large_tokenizer(tmp_path / "large.json")
    texts = {
        "extra": "an <extra_17> token",
        "spelled": "text may say <|endoftext|> and <|pad|> and go on",
        "bare": "<|endoftext|>",
    }
    (tmp_path / "en.jsonl").write_bytes(lines(*({"id": name, "text": text} for name, text in texts.items())))
    pipeline = pipeline_of(tmp_path, "[{path: en.jsonl, source: en, id: id}]", tokenizer="{path: large.json}")
    manifest = dataprep.run(pipeline)
    out = tmp_path / "out"
    [shard] = manifest["shards"]
    ids = np.concatenate(
        [row["input_ids"] for row in read_rows(out / shard["file"], range(row_count(out / shard["file"])))]
    )
    assert {name: text_of(out, name) for name in texts} == texts
    assert 65_530 + 17 in ids
    # One EOS a document, although two texts spell it; what pads has its own id.
    assert manifest["tokenizer"]["eos"]["id"] == 65_530 + 18
    assert (ids == 65_530 + 18).sum() == 3
    assert (ids == 65_530 + 19).sum() == manifest["totals"]["padding"]
    assert verify(out, rows=100, documents=100) == []


PEAK_OF_CHILDREN = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
raise SystemExit(done.returncode)
"""


@pytest.mark.slow
def test_a_document_of_200_mb_is_set_aside_in_little_memory(tmp_path: Path, dataprep: Any) -> None:
    with (tmp_path / "en.jsonl").open("wb") as file:
        file.write(lines({"id": "before", "text": "good"}) + b'{"id": "huge", "text": "')
        for _ in range(2000):
            file.write(b"a word and " * 9091)
        file.write(b'"}\n' + lines({"id": "after", "text": "good too"}))
    pipeline = pipeline_of(tmp_path, "[{path: en.jsonl, source: en, id: id}]")
    command = [sys.executable, "-c", PEAK_OF_CHILDREN, *dataprep.line(pipeline)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert ids_of(tmp_path / "out") == {"before", "after"}
    assert load_manifest(tmp_path / "out").ledger["prepare"]["en"].quarantined == {"too_long": 1}
    # A worker takes 300 MiB with nothing to do; the document alone would add 200 several times over.
    assert int(done.stdout.splitlines()[-1]) < 600
