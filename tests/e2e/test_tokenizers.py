"""Runs with tokenizers of several kinds, and the tokenizer commands as a user types them."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tiktoken
from click.testing import CliRunner

from dataprep.cli import main
from dataprep.errors import DamageError
from dataprep.shards.documents import read_documents
from dataprep.shards.inspect import inspect_row
from dataprep.shards.manifest import load_manifest
from dataprep.shards.records import read_rows
from dataprep.shards.verify import verify

Write = Callable[..., Path]


def train(kind: str, normalization: str) -> bytes:
    lines = ["the ship came home at night 1024", "\u591c\u91cc\u7684\u8239\u56de\u6765\u4e86 1024"] * 50
    written = io.BytesIO()
    settings = {"vocab_size": 330, "byte_fallback": True, "hard_vocab_limit": False, "pad_id": 3, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        **{"sentence_iterator": iter(lines), "model_writer": written, "model_type": kind, **settings},
        normalization_rule_name=normalization,
    )
    return written.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as published: tokenizer.model and tokenizer_config.json."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "tokenizer.model").write_bytes(train("bpe", "identity"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": True, "bos_token": "<s>"}))
    return folder


def with_tokenizer(pipeline: Path, entry: str) -> Path:
    pipeline.write_text(pipeline.read_text().replace("tokenizer: {train: {vocab_size: 400}}", f"tokenizer: {entry}"))
    return pipeline


@pytest.mark.slow
def test_a_run_with_a_published_folder_is_verified_and_resumes_until_a_file_of_it_changes(
    tmp_path: Path, folder: Path, dataprep: Any, write_small: Write
) -> None:
    pipeline = with_tokenizer(write_small(tmp_path), f'{{path: "{folder}", bos: "<s>", vocab_size: 352}}')
    manifest = dataprep.run(pipeline)
    facts = manifest["tokenizer"]
    assert (facts["eos"]["token"], facts["bos"]["token"], facts["pad"]["token"]) == ("</s>", "<s>", "<pad>")
    assert (facts["vocab_size"], facts["inexact"]) == (352, 0)
    assert facts["used_vocab_size"] <= 330
    assert verify(tmp_path / "out") == []
    assert any(piece.text.startswith("<s>") for piece in inspect_row(tmp_path / "out", 0).pieces)
    before = manifest["run"]["stages"]["tokenizer"]["reused"]
    config = folder / "tokenizer_config.json"
    config.write_text(config.read_text() + "\n")
    (tmp_path / "out" / "manifest.json").unlink()
    again = dataprep.run(pipeline)
    assert (before, again["run"]["stages"]["tokenizer"]["reused"]) == (0, 0)
    (tmp_path / "out" / "manifest.json").unlink()
    assert dataprep.run(pipeline)["run"]["stages"]["tokenizer"]["reused"] == 1
    assert again["hash"] == manifest["hash"]


def documents(out: Path) -> dict[str, list[int]]:
    """The ids of every document of a set that puts each into one row."""
    found = {}
    for shard in load_manifest(out).shards:
        index = read_documents(out / shard.documents_file)
        rows = read_rows(out / shard.file, list(range(shard.rows)))
        columns = [index.column(name).to_pylist() for name in ("doc_id", "rows", "tokens")]
        for doc_id, [row], tokens in zip(*columns, strict=True):
            found[doc_id] = rows[row]["input_ids"][:tokens].tolist()
    return found


@pytest.mark.slow
def test_a_run_with_a_unigram_model_holds_sentencepieces_own_ids(
    tmp_path: Path, dataprep: Any, write_small: Write
) -> None:
    model = train("unigram", "nmt_nfkc")
    (tmp_path / "u.model").write_bytes(model)
    pipeline = with_tokenizer(write_small(tmp_path), f'{{path: "{tmp_path / "u.model"}"}}')
    pipeline.write_text(pipeline.read_text().replace("  - normalize\n", ""))
    settings = ["--set", "pack.method=none", "--set", "pack.seq_length=500"]
    manifest = dataprep.run(pipeline, *settings, "--set", "run.workers=1")
    facts, engine = manifest["tokenizer"], manifest["run"]["engine"]
    assert (facts["file"], facts["model"]) == ("tokenizer.json", "tokenizer.model")
    assert (list(engine["shards"]), engine["compared"]) == (["sentencepiece"], 0)
    assert engine["why"] == (
        "a Unigram model decides near ties by rounding in single precision, so SentencePiece itself encodes"
    )
    assert manifest["run"]["versions"]["sentencepiece"] == sentencepiece.__version__
    out = tmp_path / "out"
    assert (out / "tokenizer.model").read_bytes() == model
    assert "tokenizer.model" in [file["path"] for file in manifest["files"]]
    assert verify(out) == []
    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    lines = [line for name in ("en", "zh") for line in (tmp_path / f"{name}.jsonl").read_text("utf-8").splitlines()]
    read = [json.loads(line) for line in lines if line.endswith("}")]
    texts = {entry["id"]: entry.get("text", entry.get("content")) for entry in read}
    found = documents(out)
    assert len(found) == manifest["totals"]["documents"] > 300
    assert found == {doc_id: [*reference.encode(texts[doc_id]), 2] for doc_id in found}
    shards = {path.name: path.read_bytes() for path in out.glob("*.mindrecord")}
    dataprep.run(pipeline, *settings, "--set", "run.workers=2", "--force")
    assert shards == {path.name: path.read_bytes() for path in out.glob("*.mindrecord")}
    (out / "tokenizer.model").write_bytes(train("bpe", "identity"))
    assert {finding.file for finding in verify(out)} == {"tokenizer.model"}
    with pytest.raises(DamageError, match="is another tokenizer than made the ids"):
        inspect_row(out, 0)
    (out / "tokenizer.model").unlink()
    with pytest.raises(DamageError, match="cannot be loaded"):
        inspect_row(out, 0)


def test_the_fast_engine_is_refused_for_a_model_before_the_first_task(
    tmp_path: Path, dataprep: Any, write_small: Write
) -> None:
    (tmp_path / "u.model").write_bytes(train("unigram", "identity"))
    code, line = dataprep.fail(
        with_tokenizer(write_small(tmp_path), f'{{path: "{tmp_path}/u.model", engine: fastokens}}')
    )
    assert (code, "fastokens cannot encode for a SentencePiece model" in line) == (2, True)
    assert not (tmp_path / "work").exists()


def test_a_bos_that_is_not_decided_stops_the_run_before_its_first_task(
    tmp_path: Path, folder: Path, dataprep: Any, write_small: Write
) -> None:
    code, line = dataprep.fail(with_tokenizer(write_small(tmp_path), f'{{path: "{folder}"}}'))
    assert code == 2
    assert 'set tokenizer.bos: "<s>" to have it, or tokenizer.bos: null to go without' in line
    assert not (tmp_path / "work").exists()


def command(*words: str) -> str:
    done = CliRunner().invoke(main, ["tokenizer", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_train_inspect_and_compare_from_the_command_line(tmp_path: Path, write_small: Write) -> None:
    pipeline = write_small(tmp_path)
    trained, ranks = tmp_path / "t.json", tmp_path / "bytes.tiktoken"
    assert f"wrote {trained}" in command("train", str(pipeline), "--output", str(trained))
    refused = CliRunner().invoke(main, ["tokenizer", "train", str(pipeline), "--output", str(trained)])
    assert (refused.exit_code, "this file exists already" in refused.output) == (2, True)
    ranks.write_bytes(b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256)))
    described = json.loads(command("inspect", str(trained), "--text", "the ship", "--json"))
    assert 258 < described["vocab_size"] <= 400
    assert "".join(described["examples"][0]["tokens"]) == "the ship"
    assert "nothing" in command("inspect", str(trained))
    names = [str(trained), f"{ranks}:qwen"]
    figures = json.loads(command("compare", *names, "--pipeline", str(pipeline), "--json"))
    by_source = [(one["tokenizer"], one["group"]) for one in figures if one["by"] == "source"]
    assert by_source == [(name, source) for source in ("en", "zh") for name in (str(trained), str(ranks))]
    by_bytes = [one["bytes_per_token"] for one in figures if one["tokenizer"] == str(ranks)]
    assert by_bytes == [1.0] * 4
    (tmp_path / "x.txt").write_text("the ship")
    [learnt, single, *_] = json.loads(command("compare", *names, "--text", str(tmp_path / "x.txt"), "--json"))
    encoding = tiktoken.Encoding("b", pat_str="\\S+|\\s", mergeable_ranks=_bytes(), special_tokens={})
    assert single["tokens"] == len(encoding.encode_ordinary("the ship"))
    assert learnt["tokens"] < single["tokens"]
    both = CliRunner().invoke(main, ["tokenizer", "compare", str(trained)])
    assert "give either --text or --pipeline" in both.output


def _bytes() -> dict[bytes, int]:
    return {bytes([byte]): byte for byte in range(256)}
