"""`dataprep plan` sizes a run up from a sample close to what the run would find, and leaves the disk as it was."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from rich.console import Console
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from dataprep.config.load import load
from dataprep.errors import ConfigError
from dataprep.runtime.estimate import Estimate, as_json, estimate, render_estimate

TOKENIZER = {"path": "tokenizer.json", "eos": "<|endoftext|>"}
TRAINED = {"train": {"vocab_size": 300}}


@pytest.fixture(autouse=True)
def tokenizer_file(tmp_path: Path) -> None:
    """Each byte of text is one token, so a document's tokens are its bytes and one EOS."""
    vocab = {character: number for number, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    backend = Backend(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<|endoftext|>", "<|pad|>"])
    backend.save(str(tmp_path / "tokenizer.json"))


def plan(folder: Path, inputs: list[Any], limit: int | None = None, **more: Any) -> Estimate:
    settings: dict[str, Any] = {
        "inputs": inputs,
        "tokenizer": TOKENIZER,
        "pack": {"seq_length": 99},
        "output": {"path": "out", "shard_tokens": 1000},
        "run": {"workers": 2, "work_dir": "work"},
        **more,
    }
    file = folder / "pipeline.yaml"
    file.write_text(json.dumps(settings))
    return estimate(load(file), limit)


def texts(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(("grain", "ferry", "quilt", "ox"), k=draw.randint(5, 200))) for _ in range(count)]


def jsonl(documents: list[str]) -> bytes:
    return "".join(json.dumps({"text": text}) + "\n" for text in documents).encode()


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def size_of(documents: list[str]) -> int:
    return sum(len(text.encode()) for text in documents)


def test_a_small_input_read_whole_is_counted_exactly(tmp_path: Path) -> None:
    # 30 documents of 99 bytes and an EOS each: 3000 tokens, 30 rows of 100, three shards of 1000 tokens.
    (tmp_path / "a.jsonl").write_bytes(jsonl(["x" * 99] * 30))
    found = plan(tmp_path, [{"path": "a.jsonl"}])
    assert (found.tokens, found.rows, found.row_length, found.shards, found.prepare_tasks) == (3000, 30, 100, 3, 1)
    [source] = found.sources
    assert (source.documents, source.text_bytes, source.kept) == (30, 2970, 1.0)
    assert (source.files, source.input_bytes) == (1, (tmp_path / "a.jsonl").stat().st_size)


def test_documents_that_steps_drop_are_not_counted_as_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["x" * 99] * 30 + ["short"] * 10))
    found = plan(tmp_path, [{"path": "a.jsonl"}], steps=[{"length": {"min_chars": 50}}])
    assert (found.tokens, found.sources[0].documents, found.sources[0].kept) == (3000, 40, 0.75)


def test_steps_behind_the_deduplication_count_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["x" * 99] * 30 + ["short"] * 10))
    found = plan(tmp_path, [{"path": "a.jsonl"}], steps=[{"exact_dedup": {}}, {"length": {"min_chars": 50}}])
    assert (found.tokens, found.sources[0].kept) == (3000, 1.0)
    assert any("duplicates" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.jsonl", bytes),
        ("a.jsonl.gz", gzip.compress),
        ("a.jsonl.bz2", bz2.compress),
        ("a.jsonl.xz", lzma.compress),
        ("a.jsonl.zst", lambda raw: zstandard.ZstdCompressor().compress(raw)),
    ],
)
def test_a_large_file_is_extrapolated_from_a_sample(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    documents = texts(30_000)
    (tmp_path / name).write_bytes(pack(jsonl(documents)))
    [source] = plan(tmp_path, [{"path": name}]).sources
    assert source.sample_bytes < 5 << 20 < size_of(documents)
    assert source.documents == pytest.approx(30_000, rel=0.05)
    assert source.text_bytes == pytest.approx(size_of(documents), rel=0.05)


def test_byte_ranges_of_one_file_are_all_sampled(tmp_path: Path) -> None:
    """The file's two halves differ tenfold, so a sample of its beginning alone would be far off."""
    documents = ["x" * 200] * 20_000 + ["y" * 2000] * 2000
    (tmp_path / "a.jsonl").write_bytes(jsonl(documents))
    [source] = plan(tmp_path, [{"path": "a.jsonl"}], run={"split_bytes": 100_000}).sources
    assert source.tasks == -(-len(jsonl(documents)) // 100_000)
    assert source.documents == pytest.approx(len(documents), rel=0.1)


def test_row_groups_are_weighed_by_their_rows(tmp_path: Path) -> None:
    documents = texts(30_000)
    pq.write_table(pa.table({"text": documents}), tmp_path / "a.parquet", row_group_size=10_000)
    [source] = plan(tmp_path, [{"path": "a.parquet"}]).sources
    assert source.sample_documents < 30_000
    assert source.documents == pytest.approx(30_000, rel=0.01)
    assert source.text_bytes == pytest.approx(size_of(documents), rel=0.05)


def test_what_an_arrow_file_does_not_tell_is_said(tmp_path: Path) -> None:
    documents = texts(30_000)
    table = pa.table({"text": documents})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)
    found = plan(tmp_path, [{"path": "a.arrow"}])
    assert found.sources[0].text_bytes == pytest.approx(size_of(documents), rel=0.05)
    assert any("Arrow" in note for note in found.notes)


def test_files_that_are_one_document_each_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, text in enumerate(texts(50)):
        (tmp_path / "in" / f"{number:02d}.txt").write_text(text)
    [source] = plan(tmp_path, [{"path": "in"}]).sources
    assert (source.source, source.files, source.documents) == ("in", 50, 50)
    assert source.text_bytes == source.input_bytes == size_of(texts(50))


def test_one_file_of_several_splits_counts_as_one_file_and_inputs_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts(100)))
    (tmp_path / "b.jsonl").write_bytes(jsonl(texts(50)))
    found = plan(tmp_path, [{"path": "a.jsonl"}, {"path": "b.jsonl"}], run={"split_bytes": 20_000})
    assert [(source.source, source.files) for source in found.sources] == [("a", 1), ("b", 1)]
    assert found.prepare_tasks == sum(source.tasks for source in found.sources) > 2


def test_a_limit_bounds_the_documents_of_each_input(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["x" * 99] * 300))
    (tmp_path / "b.jsonl").write_bytes(jsonl(["x" * 99] * 4))
    found = plan(tmp_path, [{"path": "a.jsonl"}, {"path": "b.jsonl"}], limit=10)
    assert [source.documents for source in found.sources] == [10, 4]
    assert found.tokens == 1400


def test_bad_records_are_reported_as_a_share(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["good"] * 3) + b"{broken\n")
    [source] = plan(tmp_path, [{"path": "a.jsonl"}]).sources
    assert (source.documents, source.bad) == (3, 0.25)


def test_bad_records_are_explained_with_the_mend(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["fine"] * 3))
    (tmp_path / "b.jsonl").write_bytes(b'{"id": 1, "content": "c"}\n' * 3 + b"{broken\n")
    found = plan(tmp_path, [{"path": "a.jsonl"}, {"path": "b.jsonl"}])
    assert [note for note in found.notes if "text_missing" in note or "a:" in note] == [
        "b: text_missing in 3 of 4 records (75%), such as b.jsonl#0: the record has no field text; it has id, content; "
        "set inputs[1].text to the field that holds the text"
    ]


def test_a_limit_says_that_sizes_are_of_whole_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["fine"] * 30))
    said = "size is that of whole files; of each input 1 record at most are read"
    assert said in plan(tmp_path, [{"path": "a.jsonl"}], limit=1).notes
    assert said not in plan(tmp_path, [{"path": "a.jsonl"}]).notes


@pytest.mark.parametrize("width", [200, 80, 60, 40])
def test_no_terminal_is_too_narrow_for_a_whole_number(tmp_path: Path, width: int) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["x" * 99] * 30))
    found = plan(tmp_path, [{"path": "a.jsonl", "source": "a-source-with-quite-a-long-name"}])
    console = Console(width=width, record=True)
    console.print(render_estimate(found))
    shown = console.export_text()
    assert "…" not in shown
    assert [word for word in ("3.4 kB", "docs", "30", "100.0%", "kept") if word not in shown] == []


def test_a_gzip_cut_short_is_estimated_from_what_is_left(tmp_path: Path) -> None:
    whole = gzip.compress(jsonl(texts(200)))
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) * 7 // 10])
    [source] = plan(tmp_path, [{"path": "a.jsonl.gz"}]).sources
    assert 100 < source.documents < 180
    assert source.bad > 0


@pytest.mark.parametrize(
    ("mix", "times"),
    [
        ({"sources": {"web": {"epochs": 2.5}}}, 0.8 * 2.5 + 0.2),
        ({"sources": {"web": {"epochs": 0.5}}}, 0.5),
        # The cap is that of the largest split, which has 2,400 of the 3,000 tokens; the other leaves out as much.
        ({"sources": {"web": {"max_tokens": 600}}}, 0.25),
        ({"tokens": 4800, "max_epochs": 2}, 0.8 * 2 + 0.2),
    ],
)
def test_only_the_largest_split_repeats(mix: dict[str, Any], times: float, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["x" * 99] * 30))
    output = {"path": "out", "shard_tokens": 1000, "splits": {"small": 0.2, "large": 0.8}}
    found = plan(tmp_path, [{"path": "a.jsonl", "source": "web"}], mix=mix, output=output)
    assert found.tokens == round(3000 * times)


def test_a_tokenizer_not_trained_yet_is_assumed_and_said_so(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["x" * 400] * 10))
    found = plan(tmp_path, [{"path": "a.jsonl"}], tokenizer=TRAINED)
    assert found.tokens == 10 * (100 + 1)  # four bytes a token, and EOS
    assert found.sources[0].tokens_per_byte is None
    assert any("trained" in note and "4 bytes a token" in note for note in found.notes)


@pytest.mark.parametrize("content", [b"", b"{broken\n"])
def test_nothing_to_measure_gives_zeros_and_a_note(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    found = plan(tmp_path, [{"path": "a.jsonl"}])
    assert (found.tokens, found.shards, found.output_bytes, found.sources[0].kept) == (0, 0, 0, None)
    assert any("nothing could be estimated" in note for note in found.notes)


def test_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(jsonl(texts(100))))
    plan(tmp_path, [{"path": "a.jsonl.gz"}], steps=[{"exact_dedup": {}}])
    before = tree(tmp_path)
    plan(tmp_path, [{"path": "a.jsonl.gz"}], steps=[{"exact_dedup": {}}])
    assert tree(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl.gz", "pipeline.yaml", "tokenizer.json"]


def test_inputs_and_tokenizers_that_are_missing_are_errors_as_in_a_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.jsonl matches no file"):
        plan(tmp_path, [{"path": "none.jsonl"}])
    (tmp_path / "a.jsonl").write_bytes(jsonl(["text"]))
    with pytest.raises(ConfigError, match=r"gone\.json"):
        plan(tmp_path, [{"path": "a.jsonl"}], tokenizer={"path": "gone.json"})
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"bad\.json"):
        plan(tmp_path, [{"path": "a.jsonl"}], tokenizer={"path": "bad.json"})


def test_it_is_shown_as_a_table_and_as_plain_json(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["x" * 99] * 30))
    found = plan(tmp_path, [{"path": "a.jsonl", "source": "letters"}])
    console = Console(width=160, record=True)
    console.print(render_estimate(found))
    shown = console.export_text()
    for part in ("letters", "1 task to prepare, 2 workers", "3,000 tokens", "30 rows of 100", "3 shards", "work"):
        assert part in shown
    value = json.loads(json.dumps(as_json(found)))
    assert (value["tokens"], value["sources"][0]["source"], value["workers"]) == (3000, "letters", 2)
