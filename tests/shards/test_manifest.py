"""The manifest is sealed by its hash, proves its own sums, and is described by the schema beside the code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dataprep.shards.manifest as manifest_module
from dataprep.errors import ConfigError, DamageError
from dataprep.shards.manifest import as_json, json_schema, load_manifest, manifest_hash, prove, seal, write_manifest

Change = Callable[[Callable[[dict[str, Any]], object]], None]


def test_the_schema_file_equals_the_code() -> None:
    stored = Path(manifest_module.__file__).with_name("manifest.schema.json")
    assert json.loads(stored.read_text()) == json_schema(), (
        "write json_schema() to dataprep/shards/manifest.schema.json"
    )


def test_what_is_written_is_what_is_loaded(pristine: Path) -> None:
    manifest = load_manifest(pristine)
    assert as_json(manifest) == json.loads((pristine / "manifest.json").read_text())
    assert manifest.ledger["prepare"]["en"].in_ == 5
    prove(manifest)


def test_the_hash_covers_everything_but_itself_and_the_run(pristine: Path) -> None:
    content = json.loads((pristine / "manifest.json").read_text())
    assert content["hash"] == manifest_hash(content)
    assert manifest_hash({**content, "run": {"seconds": 9}, "hash": "x"}) == content["hash"]
    for key in set(content) - {"run", "hash"}:
        assert manifest_hash({**content, key: "changed"}) != content["hash"], key


def test_the_hash_does_not_depend_on_the_order_of_keys(pristine: Path) -> None:
    content = json.loads((pristine / "manifest.json").read_text())
    assert manifest_hash(dict(reversed(content.items()))) == content["hash"]


def test_a_directory_a_run_has_begun_without_manifest_is_unfinished(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    with pytest.raises(ConfigError, match=r"unfinished shard set: no manifest\.json; run the pipeline again"):
        load_manifest(tmp_path)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe\x00", b"[" * 100_000, b'{"manifest_version": 2}'])
def test_a_broken_manifest_is_damage(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(data)
    with pytest.raises(DamageError, match=r"manifest\.json"):
        load_manifest(tmp_path)


def test_any_edit_without_the_hash_is_damage(shard_set: Path) -> None:
    path = shard_set / "manifest.json"
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(DamageError, match="does not match its hash"):
        load_manifest(shard_set)


def test_an_unknown_field_is_named(shard_set: Path, change_manifest: Change) -> None:
    change_manifest(lambda content: content["pack"].update(extra=1))
    with pytest.raises(DamageError, match=r"pack\.extra"):
        load_manifest(shard_set)


def repeat(content: dict[str, Any], documents: int) -> None:
    for sums in (content["totals"], content["sources"]["en"], content["shards"][0]):
        sums["repeated"] = documents


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda c: c["ledger"]["prepare"]["en"].update({"in": 6}), "prepare of en: 6 in, 4 kept \\+ 1 dropped"),
        (lambda c: c["ledger"]["prepare"]["zh"].update(quarantined={}), "prepare of zh: 3 in, 2 kept \\+ 0"),
        (lambda c: c["ledger"]["dedup"].pop("zh"), "zh: prepare kept 2, dedup took 0"),
        (lambda c: c["ledger"].pop("dedup"), "ledger has the stages prepare, emit"),
        (lambda c: c["inputs"].update(records=9), "9 records in the inputs, prepare took 8"),
        (lambda c: c["sources"]["en"].update(documents=4), "en: emit kept 3, the shards took 4"),
        (lambda c: c["totals"].update(tokens=1), "tokens: 1 in all"),
        (lambda c: c["totals"].update(truncated=1), "truncated: 1 in all, 0 by shard, 0 by source"),
        (lambda c: c["sources"]["en"].update(fim_documents=1), "fim_documents: 0 in all, 0 by shard, 1 by source"),
        (lambda c: c["shards"][0].update(truncated=1), "24 tokens - 1 truncated \\+ 3 padding, but 27"),
        (lambda c: c["totals"].update(rows=1), "rows: 1 in all, 6 by shard"),
        (lambda c: c["shards"][0].update(padding=0), "tiny-00000-of-00002.mindrecord: 24 tokens \\+ 0 padding, but 27"),
        (lambda c: c.update(mix={"fr": 2.0}), "mix: no record has the source fr"),
        (lambda c: c.update(mix={"en": 2.0}), "mix of en: 2 epochs of 3 documents cannot repeat 0"),
        (lambda c: c.update(mix={"en": 1.5, "zh": 0.5}) or repeat(c, 4), "1.5 epochs of -1 documents cannot repeat 4"),
        (lambda c: c.update(mix={"en": 0.0}), "mix of en: 3 kept of a source that is left out"),
        (
            lambda c: c["ledger"]["emit"]["en"].update({"dropped": {"mix.left_out": 1}}),
            "mix of en: documents were left out, though it is taken 1 times",
        ),
        (lambda c: c.update(split={"name": "a", "splits": {"a": 0.5, "b": 0.5}}), "split: the splits are"),
        (
            lambda c: (
                c["config"].update(output={"splits": {"a": 1.0}}) or c.update(split={"name": "b", "splits": {"a": 1.0}})
            ),
            "split: b is none of a",
        ),
        (lambda c: c["ledger"]["emit"]["zh"].update(elsewhere=2), "split: 2 elsewhere, but there is no other set"),
    ],
)
def test_a_sum_that_does_not_add_up_is_named(pristine: Path, edit: Callable[[Any], object], words: str) -> None:
    content = json.loads((pristine / "manifest.json").read_text())
    edit(content)
    with pytest.raises(DamageError, match=words):
        seal(content)


def test_a_manifest_that_does_not_add_up_is_not_written(pristine: Path, tmp_path: Path) -> None:
    content = json.loads((pristine / "manifest.json").read_text())
    content["totals"]["documents"] = 6
    with pytest.raises(DamageError):
        write_manifest(tmp_path, content)
    assert list(tmp_path.iterdir()) == []
