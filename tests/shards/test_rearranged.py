"""Documents filled in the middle and documents cut down: what verify and inspect prove of them, and what they find."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from tokenizers import Tokenizer

from dataprep.shards.documents import SCHEMA, write_documents
from dataprep.shards.inspect import inspect_document
from dataprep.shards.layout import page_and_header
from dataprep.shards.manifest import column_facts, manifest_hash
from dataprep.shards.mindrecord import write_shard
from dataprep.shards.verify import unproved, verify
from dataprep.storage import hash_file
from tests.shards.conftest import tokenizer_fingerprint

SHARD = "tiny-00000-of-00002.mindrecord"
INDEX = "documents/tiny-00000-of-00002.parquet"
EOS, PAD, PRE, MID, SUF = range(256, 261)
ROW = 12
FIM = {
    "prefix": {"token": "<p>", "id": PRE},
    "middle": {"token": "<m>", "id": MID},
    "suffix": {"token": "<s>", "id": SUF},
}
TEXTS = ["abcdef", "no", "0123456789ABCDEF"]
TRUTH: dict[str, list[Any]] = {
    "tokens": [10, 3, 17],
    "truncated": [0, 0, 5],
    "fim": [True, False, False],
    "exact": [True, True, True],
    "rows": [[0], [1], [2]],
    "offsets": [[0], [0], [0]],
}


class Changeable:
    """One shard of three rows: "abcdef" with its middle "cd" last, "no", and the beginning of a longer document."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.tokenizer.add_special_tokens(["<p>", "<m>", "<s>"])
        # The suffix token stands before the suffix, the middle token before what comes last.
        self.rows = [
            [PRE, *self.ids("ab"), SUF, *self.ids("ef"), MID, *self.ids("cd"), EOS],
            [*self.ids("no"), EOS],
            [*self.ids(TEXTS[2][:11]), EOS],
        ]
        self.index = dict(TRUTH)
        self.pack: dict[str, Any] = {"method": "none", "overlong": "truncate", "fim": FIM}
        for path in directory.rglob("tiny-00001*"):
            path.unlink()

    def ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text).ids
        return ids

    def write(self) -> None:
        """Write shard, index, tokenizer and manifest so that sums, sizes and hashes agree."""
        padded = np.array([row + [PAD] * (ROW - len(row)) for row in self.rows], np.int32)
        offsets, layout = np.arange(4), page_and_header(ROW, 100)
        write_shard(
            self.directory / SHARD, padded, np.zeros(3, np.int32), offsets, scratch=self.directory, layout=layout
        )
        self.tokenizer.save(str(self.directory / "tokenizer.json"))
        data = [text.encode() for text in TEXTS]
        columns = {
            "doc_id": TEXTS,
            "source": ["en"] * 3,
            "origin": ["x"] * 3,
            "meta": [None] * 3,
            "copy": [0] * 3,
            "text_bytes": [len(text) for text in data],
            "text_xxh3": [xxhash.xxh3_128_digest(text) for text in data],
            **self.index,
        }
        arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA]
        write_documents(self.directory / INDEX, pa.Table.from_arrays(arrays, schema=SCHEMA))
        path = self.directory / "manifest.json"
        content = json.loads(path.read_text())
        self._describe(content)
        content["hash"] = manifest_hash(content)
        path.write_text(json.dumps(content))

    def _describe(self, content: dict[str, Any]) -> None:
        sums = {"documents": 3, "repeated": 0, "fim_documents": 1, "tokens": 30, "truncated": 5, "text_bytes": 24}
        sizes = {}
        for kind, name in (("", SHARD), ("db_", f"{SHARD}.db"), ("documents_", INDEX)):
            file = self.directory / name
            sizes |= {f"{kind}bytes": file.stat().st_size, f"{kind}xxh3": hash_file(file)}
        tokenizer = self.directory / "tokenizer.json"
        content["shards"] = [{**content["shards"][0], **sums, **sizes, "rows": 3, "padding": 11}]
        content["totals"] = {**sums, "rows": 3, "padding": 11}
        content["sources"] = {"en": sums}
        content["ledger"] = {
            stage: {"en": {**counts["en"], "in": 3, "kept": 3, "dropped": {}}}
            for stage, counts in content["ledger"].items()
        }
        content["inputs"]["records"] = 3
        content["tokenizer"] |= {
            "vocab_size": 261,
            "used_vocab_size": 261,
            "fingerprint": tokenizer_fingerprint(self.directory),
            "inexact": self.index["exact"].count(False),
        }
        content["pack"] |= {**self.pack, "row_length": ROW, "columns": column_facts("compact", ROW)}
        # Nothing is lost, so that there are no tables.
        content["files"] = [{**content["files"][0], "bytes": tokenizer.stat().st_size, "xxh3": hash_file(tokenizer)}]


@pytest.fixture
def made(shard_set: Path) -> Changeable:
    return Changeable(shard_set)


def found(made: Changeable) -> list[str]:
    made.write()
    return [finding.what for finding in verify(made.directory)]


def test_what_was_made_by_the_rules_has_no_faults(made: Changeable) -> None:
    assert found(made) == []
    assert unproved(made.directory) == ["texts of documents cut down to a row are not compared: 5 tokens are missing"]


def swap_parts(made: Changeable) -> None:
    made.rows[0][1:3], made.rows[0][4:6] = made.rows[0][4:6], made.rows[0][1:3]


def two_prefix_tokens(made: Changeable) -> None:
    made.rows[0][4] = PRE


def no_eos(made: Changeable) -> None:
    made.rows[2][-1] = made.rows[2][0]


def other_document_rearranged(made: Changeable) -> None:
    made.index["fim"] = [False, True, False]


def none_rearranged(made: Changeable) -> None:
    made.index["fim"] = [False, False, False]


def cut_elsewhere(made: Changeable) -> None:
    made.index |= {"tokens": [10, 8, 12], "truncated": [0, 5, 0]}


def cut_counted_wrong(made: Changeable) -> None:
    made.index["truncated"] = [0, 0, 4]


def never_configured(made: Changeable) -> None:
    made.pack["overlong"] = "split"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (swap_parts, "document 'abcdef': decodes to another text"),
        (two_prefix_tokens, "document 'abcdef': does not hold the three tokens"),
        (no_eos, f"document {TEXTS[2]!r}: does not begin and end with its special tokens"),
        (other_document_rearranged, "document 'no': does not hold the three tokens"),
        (none_rearranged, "fim_documents: 0 in the index, the manifest says 1"),
        (cut_elsewhere, "document 1 cannot have had 5 tokens cut away"),
        (cut_counted_wrong, "truncated: 4 in the index, the manifest says 5"),
        (never_configured, "document 2 cannot have had 5 tokens cut away"),
    ],
)
def test_every_fault_of_theirs_is_found(made: Changeable, change: Callable[[Changeable], None], words: str) -> None:
    change(made)
    faults = found(made)
    assert any(words in what for what in faults), faults


def test_a_tokenizer_that_loses_text_between_parts_proves_the_other_documents_still(made: Changeable) -> None:
    made.index["exact"] = [False, True, True]
    swap_parts(made)
    assert found(made) == []
    assert unproved(made.directory)[0] == ("texts of 1 document are not compared: the tokenizer changes what it reads")
    made.rows[1][0] = made.rows[1][1]
    assert found(made) == ["document 'no': decodes to another text than the one it was made from"]


def test_inspect_shows_the_text_in_order_and_what_was_cut_away(made: Changeable) -> None:
    made.write()
    [view] = inspect_document(made.directory, "abcdef")
    assert [piece.text for piece in view.pieces] == ["<p>ab<s>ef<m>cd<eos>"]
    assert (view.in_order, view.proved, view.truncated) == ("abcdef", True, 0)
    [view] = inspect_document(made.directory, TEXTS[2])
    assert (view.in_order, view.proved, view.truncated) == (None, None, 5)
    swap_parts(made)
    made.write()
    [view] = inspect_document(made.directory, "abcdef")
    assert (view.in_order, view.proved) == ("efcdab", False)
