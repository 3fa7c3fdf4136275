"""A small shard set of two shards, made by the writer itself from visible text."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from dataprep.shards.documents import SCHEMA, write_documents
from dataprep.shards.layout import page_and_header
from dataprep.shards.layouts import LayoutName
from dataprep.shards.manifest import Manifest, Totals, column_facts, manifest_hash, write_manifest
from dataprep.shards.mindrecord import write_shard
from dataprep.storage import hash_file
from dataprep.tokens.fingerprint import fingerprint

ROW_LENGTH = 9
EOS, PAD = 256, 257
# Per shard: (doc_id, source, text). One token a byte, then EOS.
SHARDS = [
    [("a", "en", "hello"), ("b", "zh", "你好，世界"), ("c", "en", "x")],
    [("d", "en", "one line\nand another"), ("e", "zh", "完")],
]


def byte_tokenizer() -> Tokenizer:
    """One token for each byte, ids in byte order of the byte-level alphabet, then EOS and PAD."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({symbol: k for k, symbol in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<eos>", "<pad>"])
    return tokenizer


def build_shard(
    directory: Path,
    stem: str,
    documents: list[tuple[str, str, str]],
    order: list[int],
    columns: LayoutName = "compact",
) -> dict[str, Any]:
    """Pack by hand, row by row, put the rows in `order`, write the three files, return the manifest's entry."""
    tokenizer = byte_tokenizer()
    stream: list[int] = []
    places = []
    for doc_id, source, text in documents:
        ids = [*tokenizer.encode(text).ids, EOS]
        places.append((doc_id, source, text, len(stream), len(ids)))
        stream += ids
    padding = -len(stream) % ROW_LENGTH
    packed = np.array(stream + [PAD] * padding, np.int32).reshape(-1, ROW_LENGTH)
    new_row = {old: new for new, old in enumerate(order)}
    starts_of = {row: {0} for row in order}
    index = []
    for doc_id, source, text, first, length in places:
        starts_of[first // ROW_LENGTH].add(first % ROW_LENGTH)
        rows = [new_row[row] for row in range(first // ROW_LENGTH, (first + length - 1) // ROW_LENGTH + 1)]
        offsets = [first % ROW_LENGTH, *[0] * (len(rows) - 1)]
        data = text.encode()
        digest = xxhash.xxh3_128_digest(data)
        origin = f"{source}.jsonl#{first}"
        index.append((doc_id, source, origin, None, 0, length, 0, False, len(data), digest, True, rows, offsets))
    starts = [sorted(starts_of[row]) for row in order]
    layout = page_and_header(ROW_LENGTH, 1000, columns)
    written = write_shard(
        directory / f"{stem}.mindrecord",
        packed[order],
        np.concatenate(starts).astype(np.int32),
        np.cumsum([0, *map(len, starts)]),
        scratch=directory / "scratch",
        layout=layout,
        columns=columns,
        lengths=np.array([min(ROW_LENGTH, len(stream) - row * ROW_LENGTH) for row in order], np.int32),
    )
    columns = [pa.array(column, field.type) for column, field in zip(zip(*index, strict=True), SCHEMA, strict=True)]
    documents_file = directory / "documents" / f"{stem}.parquet"
    write_documents(documents_file, pa.Table.from_arrays(columns, schema=SCHEMA))
    return {
        "file": f"{stem}.mindrecord",
        "db": f"{stem}.mindrecord.db",
        "documents_file": f"documents/{stem}.parquet",
        "rows": len(packed),
        "documents": len(documents),
        "repeated": 0,
        "fim_documents": 0,
        "tokens": len(stream),
        "truncated": 0,
        "padding": padding,
        "text_bytes": sum(len(text.encode()) for _, _, text in documents),
        "bytes": written.bytes,
        "xxh3": written.xxh3,
        "db_bytes": written.db_bytes,
        "db_xxh3": written.db_xxh3,
        "documents_bytes": documents_file.stat().st_size,
        "documents_xxh3": hash_file(documents_file),
    }


def tokenizer_fingerprint(directory: Path) -> str:
    value = json.loads((directory / "tokenizer.json").read_text("utf-8"))
    return fingerprint(value, None, {"eos": EOS, "bos": None, "pad": PAD}, allow_special=False)


def listed(directory: Path, name: str, rows: int | None) -> dict[str, Any]:
    path = directory / name
    return {"path": name, "bytes": path.stat().st_size, "xxh3": hash_file(path), "rows": rows}


def _counts(taken: int, kept: int, dropped: dict[str, int], quarantined: dict[str, int]) -> dict[str, Any]:
    rest = {"elsewhere": 0, "text_bytes_in": 0, "text_bytes_kept": 0}
    return {"in": taken, "kept": kept, "dropped": dropped, "quarantined": quarantined, **rest}


def manifest_content(
    directory: Path, shards: list[dict[str, Any]], files: list[dict[str, Any]], columns: LayoutName = "compact"
) -> dict[str, Any]:
    """Manifest of the set above: 3 en and 2 zh documents kept; one en dropped, one duplicate, one zh quarantined."""
    totals = {key: sum(shard[key] for shard in shards) for key in Totals.model_fields}
    sources = {}
    for source in ("en", "zh"):
        texts = [text.encode() for shard in SHARDS for _, name, text in shard if name == source]
        size = sum(map(len, texts))
        sums = {"documents": len(texts), "tokens": size + len(texts), "text_bytes": size}
        sources[source] = {**sums, "repeated": 0, "truncated": 0, "fim_documents": 0}
    special = {"eos": {"token": "<eos>", "id": EOS}, "bos": None, "pad": {"token": "<pad>", "id": PAD}}
    return {
        "name": "tiny",
        "config": {"name": "tiny"},
        "config_hash": "0" * 32,
        "seed": 1,
        "tokenizer": {
            "fingerprint": tokenizer_fingerprint(directory),
            "vocab_size": 258,
            "used_vocab_size": 258,
            **special,
            "file": "tokenizer.json",
            "model": None,
            "inexact": 0,
            "allow_special": False,
        },
        "pack": {
            "seq_length": ROW_LENGTH - 1,
            "row_length": ROW_LENGTH,
            "method": "concat",
            "overlong": "split",
            "layout": columns,
            "columns": column_facts(columns, ROW_LENGTH),
            "fim": None,
        },
        "inputs": {"files": 2, "bytes": 100, "records": 8, "list": "inputs.parquet", "texts_xxh3": "0" * 32},
        "ledger": {
            "prepare": {"en": _counts(5, 4, {"length.chars": 1}, {}), "zh": _counts(3, 2, {}, {"invalid_json": 1})},
            "dedup": {"en": _counts(4, 3, {"exact_dedup": 1}, {}), "zh": _counts(2, 2, {}, {})},
            "emit": {"en": _counts(3, 3, {}, {}), "zh": _counts(2, 2, {}, {})},
        },
        "edits": {"normalize.crlf": 2},
        "split": None,
        "mix": None,
        "totals": totals,
        "sources": sources,
        "shards": shards,
        "files": files,
        "run": {"seconds": 1.5},
    }


def build_set(directory: Path, columns: LayoutName = "compact") -> Manifest:
    shards = [
        build_shard(directory, "tiny-00000-of-00002", SHARDS[0], [2, 0, 1], columns),
        build_shard(directory, "tiny-00001-of-00002", SHARDS[1], [1, 0, 2], columns),
    ]
    byte_tokenizer().save(str(directory / "tokenizer.json"))
    (directory / "dropped").mkdir()
    (directory / "quarantine").mkdir()
    lost = {
        "doc_id": ["p", "q"],
        "source": ["en", "en"],
        "origin": ["en.jsonl#7", "en.jsonl#8"],
        "stage": ["prepare", "dedup"],
        "reason": ["length.chars", "exact_dedup"],
        "matched_doc": pa.array([None, "a"], pa.string()),
        "text": ["[bold]too short", "hello"],
    }
    pq.write_table(pa.table(lost), directory / "dropped" / "0.parquet")
    bad = {
        "source": ["zh"],
        "origin": ["zh.jsonl#9"],
        "reason": ["invalid_json"],
        "detail": ["at 3"],
        "excerpt": ["{x"],
    }
    pq.write_table(pa.table(bad), directory / "quarantine" / "0.parquet")
    files = [
        listed(directory, "tokenizer.json", None),
        listed(directory, "dropped/0.parquet", 2),
        listed(directory, "quarantine/0.parquet", 1),
    ]
    (directory / "scratch").rmdir()
    return write_manifest(directory, manifest_content(directory, shards, files, columns))


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The set, read only by agreement; take `shard_set` to change files."""
    directory = tmp_path_factory.mktemp("pristine")
    build_set(directory)
    return directory


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Callable[[LayoutName], Path]:
    """Makes the same set in a column layout, once; read only by agreement."""

    @cache
    def make(columns: LayoutName) -> Path:
        directory = tmp_path_factory.mktemp(columns)
        build_set(directory, columns)
        return directory

    return make


@pytest.fixture
def shard_set(pristine: Path, tmp_path: Path) -> Path:
    """A copy of the set to damage; the big, mostly empty .mindrecord files stay sparse."""
    subprocess.run(["cp", "-r", "--sparse=always", f"{pristine}/.", str(tmp_path)], check=True)
    return tmp_path


@pytest.fixture
def change_manifest(shard_set: Path) -> Callable[[Callable[[dict[str, Any]], object]], None]:
    """Edit manifest.json as someone would who also fixes its hash."""

    def change(edit: Callable[[dict[str, Any]], object]) -> None:
        path = shard_set / "manifest.json"
        content = json.loads(path.read_text())
        edit(content)
        content["hash"] = manifest_hash(content)
        path.write_text(json.dumps(content))

    return change
