"""The shards are the reference's, whatever the fast engine does; a package of its name takes its place here."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

FAST = "fastokens 9.9"
# Encodes by the reference. TAMPER makes it wrong where the text holds the marker: `spelling` changes an id, `pieces`
# takes other tokens for the same bytes, `failure` raises.
DOUBLE = """\
import json, os
import numpy as np
import tokenizers

TAMPER, _, MARKER = os.environ.get("TAMPER", "").partition(":")

class Tokenizer:
    @staticmethod
    def from_json_str(text):
        made = Tokenizer()
        made.inner = tokenizers.Tokenizer.from_str(text)
        made.inner.encode_special_tokens = True
        return made

    def encode_batch_flat(self, texts, split_special_tokens):
        assert split_special_tokens
        ids = [self.tampered(text, self.inner.encode(text, add_special_tokens=False).ids) for text in texts]
        offsets = np.cumsum([0, *map(len, ids)])
        return np.array(sum(ids, []), np.uint32).tobytes(), offsets.astype(np.uint64).tobytes()

    def tampered(self, text, ids):
        if not TAMPER or MARKER not in text:
            return ids
        if TAMPER == "failure":
            raise RuntimeError("no more")
        if TAMPER == "spelling":
            return [ids[0] + 1, *ids[1:]]
        return sum((self.inner.encode(letter, add_special_tokens=False).ids for letter in text), [])
"""


@pytest.fixture
def double(tmp_path: Path) -> dict[str, str]:
    """An environment in which `fastokens` is the double."""
    package = tmp_path / "site" / "fastokens"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "_native.py").write_text(DOUBLE)
    information = tmp_path / "site" / "fastokens-9.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: fastokens\nVersion: 9.9\n")
    return {**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def manifest_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "out" / "manifest.json").read_text())
    return content


def test_the_engine_changes_no_byte_and_the_manifest_says_which_it_was(
    tmp_path: Path, dataprep: Any, write_small: Any, reference: Path, double: dict[str, str]
) -> None:
    expected = json.loads((reference / "manifest.json").read_text())
    pipeline = write_small(tmp_path)
    run(dataprep.line(pipeline, "--set", "tokenizer.engine=hf"), double)
    by_reference = manifest_of(tmp_path)
    run(dataprep.line(pipeline, "--force", "--set", "tokenizer.engine=fastokens"), double)
    fast = manifest_of(tmp_path)
    assert by_reference["hash"] == fast["hash"] == expected["hash"]
    documents, shards = fast["totals"]["documents"], len(fast["shards"])
    assert by_reference["run"]["engine"]["shards"] == {"hf": shards}
    assert fast["run"]["engine"]["shards"] == {FAST: shards}
    assert fast["run"]["engine"]["documents"] == fast["run"]["engine"]["spelled"] == documents
    assert fast["run"]["engine"]["compared"] > 30_000


@pytest.mark.parametrize(
    ("tampering", "check_every"), [("spelling:1003 ", 10**9), ("pieces:1003 ", 1)], ids=["another id", "other pieces"]
)
def test_an_engine_that_turns_wrong_is_caught_and_all_its_shards_are_made_again(
    tmp_path: Path, dataprep: Any, write_small: Any, double: dict[str, str], tampering: str, check_every: int
) -> None:
    pipeline = write_small(tmp_path, workers=1)
    command = dataprep.line(pipeline, "--set", f"tokenizer.check_every={check_every}")
    run(command, double)
    right = manifest_of(tmp_path)
    assert right["run"]["engine"]["shards"] == {FAST: len(right["shards"])}
    # The proof is in the ledger: only emit is done again, by an engine that has changed under the same name.
    for shard in right["shards"]:
        (tmp_path / "out" / shard["file"]).unlink()
    told = run(command, {**double, "TAMPER": tampering})
    found = manifest_of(tmp_path)
    assert found["hash"] == right["hash"]
    assert found["run"]["engine"]["shards"] == {"hf": len(right["shards"])}
    [difference] = found["run"]["engine"]["differences"]
    assert f"{FAST} is not used: it gave other ids than hf for text {difference}" in told
    # It stays distrusted, without being tried again.
    for shard in right["shards"]:
        (tmp_path / "out" / shard["file"]).unlink()
    run(command, double)
    assert manifest_of(tmp_path)["run"]["engine"]["differences"] == [difference]
    assert manifest_of(tmp_path)["run"]["engine"]["shards"] == {"hf": len(right["shards"])}


def test_what_an_engine_fails_at_is_encoded_by_the_reference_and_told(
    tmp_path: Path, dataprep: Any, write_small: Any, double: dict[str, str]
) -> None:
    command = dataprep.line(write_small(tmp_path))
    run(command, double)
    right = manifest_of(tmp_path)
    (tmp_path / "out" / right["shards"][0]["file"]).unlink()
    told = run(command, {**double, "TAMPER": "failure:"})
    again = manifest_of(tmp_path)
    failed = again["run"]["engine"]["failed"]
    assert again["hash"] == right["hash"]
    assert failed == right["shards"][0]["documents"]
    assert f"{FAST} failed at {failed} documents, which hf encoded" in told


def test_an_engine_that_fails_its_proof_is_not_used_or_stops_the_run(
    tmp_path: Path, dataprep: Any, write_small: Any, double: dict[str, str]
) -> None:
    wrong = {**double, "TAMPER": "spelling:\u1f88"}
    pipeline = write_small(tmp_path)
    told = run(dataprep.line(pipeline), wrong)
    engine = manifest_of(tmp_path)["run"]["engine"]
    assert set(engine["shards"]) == {"hf"}
    assert engine["why"].startswith(f"{FAST} gave other ids than the reference for ")
    assert f"encoding with hf, which is slow: {engine['why']}" in told
    command = dataprep.line(pipeline, "--force", "--set", "tokenizer.engine=fastokens")
    done = subprocess.run(command, env=wrong, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 2
    assert "set tokenizer.engine to auto or hf" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "out" / "manifest.json").exists()
