"""The small pipeline mixed and split: every record accounted for, no text on two sides, the same bytes every time."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dataprep.shards.documents import read_documents
from dataprep.shards.inspect import inspect_document
from dataprep.shards.manifest import Manifest, load_manifest, manifest_hash
from dataprep.shards.stats import as_json, collect
from dataprep.shards.verify import verify

MIX = "mix={sources: {en: {epochs: 2.5}, zh: {epochs: 0.4}}}"
SPLITS = "output.splits={train: 0.7, validation: 0.2, test: 0.1}"
NAMES = ("train", "validation", "test")
ALL = {"rows": 10_000, "documents": 10_000}


def run(pipeline: Path, *settings: str, more: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    words = [word for setting in settings for word in ("--set", setting)]
    line = [sys.executable, "-m", "dataprep", "run", str(pipeline), *words, *more]
    return subprocess.run(line, capture_output=True, text=True, timeout=500, check=False)


def made(folder: Path, write_small: Callable[..., Path], *settings: str) -> Path:
    pipeline = write_small(folder)
    done = run(pipeline, *settings)
    assert done.returncode == 0, done.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, write_small: Callable[..., Path]) -> Path:
    return made(tmp_path_factory.mktemp("plain"), write_small)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory, write_small: Callable[..., Path]) -> Path:
    return made(tmp_path_factory.mktemp("mixed"), write_small, MIX)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory, write_small: Callable[..., Path]) -> Path:
    return made(tmp_path_factory.mktemp("split"), write_small, MIX, SPLITS)


def index(directory: Path) -> pa.Table:
    """Documents of a set: id, source, copy, text's hash and shard."""
    tables = []
    for number, shard in enumerate(load_manifest(directory).shards):
        table = read_documents(directory / shard.documents_file, ("doc_id", "source", "copy", "text_xxh3", "tokens"))
        table = table.set_column(1, "source", table.column("source").cast(pa.string()))
        tables.append(table.append_column("shard", pa.array([number] * len(table))))
    return pa.concat_tables(tables)


def copies(directory: Path, source: str) -> Counter[str]:
    """How often each document of a source is there; its copies are numbered from 0."""
    rows = [row for row in index(directory).to_pylist() if row["source"] == source]
    counts = Counter(row["doc_id"] for row in rows)
    for doc_id, count in counts.items():
        assert sorted(row["copy"] for row in rows if row["doc_id"] == doc_id) == list(range(count))
    return counts


def test_every_document_is_there_as_often_as_its_epochs_say(plain: Path, mixed: Path) -> None:
    assert verify(mixed, **ALL) == []
    before = {source: set(copies(plain, source)) for source in ("en", "zh")}
    en, zh = copies(mixed, "en"), copies(mixed, "zh")
    assert set(en) == before["en"]
    assert set(en.values()) == {2, 3}
    thrice = sum(count == 3 for count in en.values())
    assert abs(thrice - len(en) / 2) < 5 * len(en) ** 0.5 / 2
    assert set(zh) < before["zh"]
    assert set(zh.values()) == {1}
    assert abs(len(zh) - 0.4 * len(before["zh"])) < 5 * (0.24 * len(before["zh"])) ** 0.5


def test_the_manifest_counts_repetitions_apart_and_left_out_documents_as_dropped(plain: Path, mixed: Path) -> None:
    manifest, unmixed = load_manifest(mixed), load_manifest(plain)
    en, zh = (manifest.ledger["emit"][source] for source in ("en", "zh"))
    assert manifest.mix == {"en": 2.5, "zh": 0.4}
    assert en == unmixed.ledger["emit"]["en"]
    assert manifest.sources["en"].documents == en.kept + manifest.sources["en"].repeated
    assert manifest.sources["en"].repeated == sum(copies(mixed, "en").values()) - len(copies(mixed, "en"))
    assert manifest.totals.repeated == manifest.sources["en"].repeated
    assert manifest.sources["zh"].repeated == 0
    left_out = zh.dropped["mix.left_out"]
    assert zh.kept + left_out + sum(zh.dropped.values()) - left_out == zh.in_ == unmixed.ledger["emit"]["zh"].in_
    lost = [json.loads(line) for line in dropped_lines(mixed, "mix")]
    assert len(lost) == left_out
    assert {row["doc_id"] for row in lost} & set(copies(mixed, "zh")) == set()


def dropped_lines(directory: Path, reason: str) -> list[str]:
    line = [sys.executable, "-m", "dataprep", "dropped", str(directory), "--reason", reason, "--json"]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()


def test_copies_lie_in_other_shards_and_are_all_shown(mixed: Path) -> None:
    rows = index(mixed).to_pylist()
    shards = {row["doc_id"]: set[int]() for row in rows}
    for row in rows:
        shards[row["doc_id"]].add(row["shard"])
    counts = copies(mixed, "en")
    assert sum(len(shards[doc_id]) > 1 for doc_id in counts) > 0.9 * len(counts)
    doc_id, count = counts.most_common(1)[0]
    assert len(inspect_document(mixed, doc_id)) == count


def test_stats_tell_shares_and_epochs(mixed: Path) -> None:
    told = as_json(collect(mixed))
    assert told["mix"] == {"en": 2.5, "zh": 0.4}
    assert sum(source["share"] for source in told["sources"].values()) == pytest.approx(1)
    shown = subprocess.run(
        [sys.executable, "-m", "dataprep", "stats", str(mixed)], capture_output=True, text=True, check=True
    ).stdout
    assert "epochs" in shown
    assert f"{told['total']['repeated']:,} of {told['total']['documents']:,} documents are repetitions" in shown


def test_weights_come_to_the_shares_asked_for(tmp_path: Path, write_small: Callable[..., Path]) -> None:
    weights = "mix={sources: {en: {weight: 3}, zh: {weight: 1}}, max_epochs: 3}"
    manifest = load_manifest(made(tmp_path, write_small, weights))
    tokens = {name: source.tokens for name, source in manifest.sources.items()}
    assert tokens["en"] / sum(tokens.values()) == pytest.approx(0.75, abs=0.03)
    assert manifest.mix is not None
    assert max(manifest.mix.values()) == 3


def test_a_cap_holds_a_source_down(plain: Path, tmp_path: Path, write_small: Callable[..., Path]) -> None:
    there = load_manifest(plain).sources["en"].tokens
    capped = load_manifest(made(tmp_path, write_small, f"mix={{sources: {{en: {{max_tokens: {there // 2}}}}}}}"))
    # To within three times what drawing half of 150 documents of this spread can be off by.
    assert capped.sources["en"].tokens == pytest.approx(there / 2, rel=0.25)
    assert capped.sources["zh"] == load_manifest(plain).sources["zh"]


def test_a_changed_mix_redoes_the_shards_alone(tmp_path: Path, write_small: Callable[..., Path]) -> None:
    pipeline = write_small(tmp_path)
    run(pipeline)
    (tmp_path / "out" / "manifest.json").unlink()
    done = run(pipeline, MIX, more=("--log-json",))
    events = [json.loads(line) for line in done.stderr.splitlines()]
    reused = {event["stage"]: event["finished_before"] for event in events if event["event"] == "stage_started"}
    tasks = {event["stage"]: event["tasks"] for event in events if event["event"] == "stage_started"}
    assert reused["prepare"] == tasks["prepare"] > 0
    assert reused["dedup"] == tasks["dedup"] > 0
    assert reused["emit"] == 0
    assert any("epochs of each source: en 2.5, zh 0.4" in event.get("message", "") for event in events)


def test_splits_are_sets_of_their_own_and_add_up(plain: Path, split: Path) -> None:
    whole = load_manifest(plain)
    sets = {name: load_manifest(split / name) for name in NAMES}
    assert not (split / "manifest.json").exists()
    for name, manifest in sets.items():
        assert verify(split / name, **ALL) == []
        assert manifest.split is not None
        assert (manifest.split.name, manifest.split.splits) == (name, {"train": 0.7, "validation": 0.2, "test": 0.1})
        for stage in ("prepare", "dedup"):
            assert manifest.ledger[stage] == whole.ledger[stage]
    for source in ("en", "zh"):
        counts = [manifest.ledger["emit"][source] for manifest in sets.values()]
        taken = whole.ledger["emit"][source].in_
        assert sum(each.kept + each.lost for each in counts) == taken
        assert all(each.kept + each.lost + each.elsewhere == each.in_ == taken for each in counts)
    assert sets["train"].mix == {"en": 2.5, "zh": 0.4}
    assert sets["test"].mix == {"en": 1.0, "zh": 0.4}
    assert sets["validation"].totals.repeated == 0


def test_no_document_is_in_two_splits_and_all_are_in_one(plain: Path, split: Path) -> None:
    sides = [set(copies(split / name, "en")) for name in NAMES]
    assert sum(map(len, sides)) == len(set.union(*sides))
    assert set.union(*sides) == set(copies(plain, "en"))
    share = len(sides[0]) / len(set.union(*sides))
    assert share == pytest.approx(0.7, abs=0.15)


def test_the_largest_split_has_the_tables_of_what_no_split_took(plain: Path, split: Path) -> None:
    # Of English, of which the mix leaves nothing out.
    reasons = [reasons_of(split / name, "en") for name in NAMES]
    whole = reasons_of(plain, "en")
    for reason in ("broken_json", "length.min_chars", "exact_dedup.duplicate"):
        assert [counts[reason] for counts in reasons] == [whole[reason], 0, 0]
        assert whole[reason] > 0
    assert sum(counts["length.max_chars"] for counts in reasons) == whole["length.max_chars"]


def reasons_of(directory: Path, source: str) -> Counter[str]:
    line = [sys.executable, "-m", "dataprep", "dropped", str(directory), "--json"]
    told = subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()
    return Counter(row["reason"] for row in map(json.loads, told) if row["source"] == source)


def test_texts_that_deduplication_holds_equal_stay_on_one_side(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": f"{number}-{kind}", "text": text.format(number)})
        for number in range(200)
        for kind, text in (("a", "The ship, number {}, came HOME."), ("b", "the ship number {} came home"))
    ]
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(
        "inputs: [{path: d.jsonl, source: en}]\n"
        "steps: [{exact_dedup: {normalize: casefold_no_punct, except: {source: [en]}}}]\n"
        "tokenizer: {train: {vocab_size: 300}}\noutput: {path: out, splits: {train: 0.5, validation: 0.5}}\n"
    )
    assert run(pipeline).returncode == 0
    sides = [set(copies(tmp_path / "out" / name, "en")) for name in ("train", "validation")]
    assert sum(map(len, sides)) == 400
    for number in range(200):
        assert any({f"{number}-a", f"{number}-b"} <= side for side in sides)


def hashes(directory: Path) -> dict[str, str]:
    return {name: load_manifest(directory / name).hash for name in NAMES}


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_nothing(workers: int, split: Path, tmp_path: Path, write_small: Callable[..., Path]) -> None:
    assert hashes(made(tmp_path, write_small, MIX, SPLITS, f"run.workers={workers}")) == hashes(split)


@pytest.mark.parametrize("seconds", [2.0, 2.6, 3.2])
def test_a_killed_run_resumes_to_the_same_sets(
    seconds: float, split: Path, tmp_path: Path, write_small: Callable[..., Path]
) -> None:
    pipeline = write_small(tmp_path)
    line = [sys.executable, "-m", "dataprep", "run", str(pipeline), "--set", MIX, "--set", SPLITS]
    process = subprocess.Popen(line, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run(pipeline, MIX, SPLITS).returncode == 0
    assert hashes(tmp_path / "out") == hashes(split)


def test_one_split_lost_is_made_again_and_nothing_to_do_is_told(
    split: Path, tmp_path: Path, write_small: Callable[..., Path]
) -> None:
    pipeline = write_small(tmp_path)
    run(pipeline, MIX, SPLITS)
    (tmp_path / "out" / "test" / "manifest.json").unlink()
    assert run(pipeline, MIX, SPLITS).returncode == 0
    assert hashes(tmp_path / "out") == hashes(split)
    again = run(pipeline, MIX, SPLITS)
    assert "finished already" in again.stderr
    assert [line.split(": manifest ")[1] for line in again.stdout.splitlines()] == list(hashes(split).values())


def test_sets_of_other_splits_are_refused_and_with_force_removed(
    plain: Path, tmp_path: Path, write_small: Callable[..., Path]
) -> None:
    pipeline = write_small(tmp_path)
    other = "output.splits={train: 0.9, held_out: 0.1}"
    run(pipeline, SPLITS)
    refused = run(pipeline, other)
    assert refused.returncode == 2
    assert "another configuration" in refused.stderr
    assert run(pipeline, other, more=("--force",)).returncode == 0
    left = {path.parent.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.mindrecord")}
    assert left == {"train", "held_out"}
    assert not (tmp_path / "out" / "test" / "manifest.json").exists()
    assert run(pipeline).returncode == 2
    assert run(pipeline, more=("--force",)).returncode == 0
    assert load_manifest(tmp_path / "out").hash == load_manifest(plain).hash
    assert list((tmp_path / "out").glob("*/manifest.json")) == []
    assert run(pipeline, other).returncode == 2
    assert run(pipeline, other, more=("--force",)).returncode == 0
    assert list((tmp_path / "out").glob("*.mindrecord")) == []
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("mix", "told"),
    [
        ("mix={sources: {fr: {epochs: 2}}}", "no input has the source 'fr'; they are en, zh"),
        ("mix={sources: {en: {weight: 1}}}", "the source 'zh' has no weight"),
        ("mix={sources: {en: {weight: 1}, zhh: {weight: 1}}}", "has the source 'zhh'; did you mean zh?"),
        ("mix={tokens: 1_000_000_000}", "to be taken at most 1 times"),
    ],
)
def test_a_mix_that_cannot_be_had_is_one_line(
    mix: str, told: str, tmp_path: Path, write_small: Callable[..., Path], dataprep: Any
) -> None:
    code, line = dataprep.fail(write_small(tmp_path), "--set", mix)
    assert code == 2
    assert told in line


def test_the_plan_counts_the_mix(tmp_path: Path, write_small: Callable[..., Path]) -> None:
    pipeline = write_small(tmp_path)

    def planned(*settings: str) -> dict[str, Any]:
        words = [word for setting in settings for word in ("--set", setting)]
        line = [sys.executable, "-m", "dataprep", "plan", str(pipeline), "--json", *words]
        content: dict[str, Any] = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
        return content

    once, twice = planned(), planned("mix={sources: {en: {epochs: 2}, zh: {epochs: 2}}}")
    assert twice["tokens"] == 2 * once["tokens"]
    assert "epochs of each source, by this sample: en 2, zh 2" in twice["notes"]
    assert any("by them, " in note for note in planned("mix={tokens: 1_000_000_000}")["notes"])


def test_a_source_that_no_input_has_is_told_before_anything_is_read(
    tmp_path: Path, write_small: Callable[..., Path]
) -> None:
    line = [sys.executable, "-m", "dataprep", "plan", str(write_small(tmp_path)), "--set", "mix.sources.fr.epochs=2"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no input has the source 'fr'" in done.stderr


@pytest.mark.parametrize("mix", ["{tokens: 100}", "{temperature: 2}", "{sources: {en: {weight: 1}, zh: {weight: 2}}}"])
def test_a_mix_of_nothing_is_an_empty_set(mix: str, tmp_path: Path, write_small: Callable[..., Path]) -> None:
    done = run(write_small(tmp_path), f"mix={mix}", "steps=[{length: {min_chars: 1_000_000}}]")
    assert done.returncode == 0, done.stderr
    assert "the set holds no documents" in done.stderr
    assert verify(tmp_path / "out", **ALL) == []


def test_sources_named_by_records_are_mixed_and_broken_records_need_no_weight(tmp_path: Path) -> None:
    lines = [
        json.dumps({"kind": kind, "text": f"{kind} text {n} " * 9}) for n in range(300) for kind in ("web", "book")
    ]
    (tmp_path / "d.jsonl").write_text("\n".join([*lines, '{"kind": "web", "text": ']))
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(
        "inputs: [{path: d.jsonl, source_field: kind}]\n"
        "tokenizer: {train: {vocab_size: 300}}\noutput: {path: out}\nrun: {work_dir: work, max_bad_fraction: 0.1}\n"
        "mix: {sources: {web: {weight: 3}, book: {weight: 1}}, max_epochs: 3}\n"
    )
    done = run(pipeline)
    assert done.returncode == 0, done.stderr
    manifest = load_manifest(tmp_path / "out")
    assert manifest.mix == {"book": pytest.approx(1, abs=0.1), "d": 0.0, "web": 3.0}
    assert sum(counts.lost for counts in manifest.ledger["prepare"].values()) == 1


def test_a_set_that_gets_none_of_the_documents_says_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text(json.dumps({"text": "the only one there is"}))
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(
        "inputs: [{path: d.jsonl, source: en}]\ntokenizer: {train: {vocab_size: 300}}\n"
        "output: {path: out, splits: {train: 0.5, validation: 0.5}}\nrun: {work_dir: work}\n"
    )
    done = run(pipeline)
    assert done.returncode == 0, done.stderr
    assert "1 document of 1 records are on the other sides" in done.stderr


def test_the_manifest_of_a_split_whose_figures_are_changed_is_found(split: Path, tmp_path: Path) -> None:
    copied = tmp_path / "train"
    shutil.copytree(split / "train", copied)
    path = copied / "manifest.json"

    def found(change: Callable[[dict[str, Any]], object]) -> list[str]:
        content = json.loads((split / "train" / "manifest.json").read_text())
        change(content)
        content["hash"] = manifest_hash(content)
        path.write_text(json.dumps(content))
        return [finding.what for finding in verify(copied, **ALL)]

    assert found(lambda content: None) == []
    assert found(lambda content: content["mix"].update(en=1.5)) != []
    assert found(lambda content: content["mix"].update(zh=0.0)) != []
    assert found(lambda content: content["split"].update(name="test")) != []
    assert found(lambda content: content["split"]["splits"].update(train=0.6, test=0.2)) != []

    def elsewhere_as_dropped(content: dict[str, Any]) -> None:
        counts = content["ledger"]["emit"]["zh"]
        counts["dropped"]["mix.left_out"] += counts["elsewhere"]
        counts["elsewhere"] = 0

    assert any("mix.left_out" in what for what in found(elsewhere_as_dropped))


@pytest.fixture(scope="module")
def rows_read(split: Path) -> dict[str, int]:
    """Rows that MindDataset reads of each split over two ranks."""
    program = (
        "import sys, mindspore.dataset as ds\n"
        "files = sys.argv[2:]\n"
        "print(sum(1 for rank in range(2) for _ in ds.MindDataset(files, columns_list=['input_ids'], num_shards=2,"
        " shard_id=rank, shuffle=False).create_tuple_iterator(output_numpy=True, num_epochs=1)))\n"
    )
    found = {}
    for name in NAMES:
        files = [str(split / name / shard.file) for shard in load_manifest(split / name).shards]
        line = [sys.executable, "-c", program, name, *files]
        found[name] = int(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    return found


def test_mind_dataset_reads_every_split(split: Path, rows_read: dict[str, int]) -> None:
    for name in NAMES:
        manifest: Manifest = load_manifest(split / name)
        # Two ranks of an odd number of rows: one of them reads a row twice.
        assert rows_read[name] in (manifest.totals.rows, manifest.totals.rows + 1)
