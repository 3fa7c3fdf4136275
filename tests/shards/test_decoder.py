"""A set's own tokenizer.json must be the one whose fingerprint its manifest holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import DamageError
from dataprep.shards.inspect import inspect_row
from dataprep.shards.verify import verify
from dataprep.storage import hash_file

Change = Callable[[Callable[[dict[str, Any]], object]], None]


def replace_tokenizer(shard_set: Path, change_manifest: Change) -> None:
    """Swap the ids of two letters, and list the new file as someone would who wants it to pass."""
    path = shard_set / "tokenizer.json"
    value = json.loads(path.read_text("utf-8"))
    vocabulary = value["model"]["vocab"]
    vocabulary["h"], vocabulary["x"] = vocabulary["x"], vocabulary["h"]
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")

    def relist(content: dict[str, Any]) -> None:
        [entry] = [file for file in content["files"] if file["path"] == "tokenizer.json"]
        entry |= {"bytes": path.stat().st_size, "xxh3": hash_file(path)}

    change_manifest(relist)


def test_verify_and_inspect_refuse_another_tokenizer(shard_set: Path, change_manifest: Change) -> None:
    replace_tokenizer(shard_set, change_manifest)
    findings = [one for one in verify(shard_set, documents=0) if one.file == "tokenizer.json"]
    assert [one.what.partition(":")[0] for one in findings] == ["is another tokenizer than made the ids"]
    with pytest.raises(DamageError, match="is another tokenizer than made the ids"):
        inspect_row(shard_set, 0)


def test_special_tokens_in_text_are_part_of_the_fingerprint(shard_set: Path, change_manifest: Change) -> None:
    change_manifest(lambda content: content["tokenizer"].update(allow_special=True))
    assert [one.file for one in verify(shard_set)] == ["tokenizer.json"]


def test_a_padded_embedding_does_not_hide_ids_that_no_token_has(shard_set: Path, change_manifest: Change) -> None:
    change_manifest(lambda content: content["tokenizer"].update(vocab_size=512))
    assert verify(shard_set) == []
    change_manifest(lambda content: content["tokenizer"].update(used_vocab_size=200))
    assert any("outside the vocabulary of 200" in one.what for one in verify(shard_set))
