"""What the README and docs/ say is true: pipelines load, commands exist, code runs, translations agree."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args, get_origin

import click
import pyarrow as pa
import pytest
from pydantic import BaseModel

from dataprep.batch import LABEL, SCHEMA
from dataprep.cli import main
from dataprep.config.load import load
from dataprep.config.mix import MixConfig, SourceMix
from dataprep.config.models import DedupConfig, OutputConfig, Pipeline, RunConfig
from dataprep.config.steps import STEP_TYPES
from dataprep.readers.formats import _COMPRESSIONS, _FORMATS
from dataprep.readers.inputs import Input
from dataprep.tokens.config import FimConfig, PackConfig, TokenizerConfig, TrainTokenizer

ROOT = Path(__file__).resolve().parents[1]
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh.md"
PAGES = [ENGLISH, CHINESE, *sorted((ROOT / "docs").glob("*.md"))]
MODELS = [
    *(Pipeline, Input, DedupConfig, TokenizerConfig, TrainTokenizer, PackConfig, FimConfig, OutputConfig, RunConfig),
    *(MixConfig, SourceMix),
    *STEP_TYPES.values(),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(dataprep [^`]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for kind, text in found if kind == language]


def commands(page: Path) -> Iterator[list[str]]:
    """Every `dataprep …` a page tells to type: in shell blocks, behind a `$`, and inside sentences."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in blocks(page, "bash") for line in block.splitlines()]
    lines += [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    lines += INLINE.findall(BLOCK.sub("", text))
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[:1] == ["dataprep"]:
            yield words[1:]


def relative(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def cases(language: str) -> list[object]:
    found = [(page, number, text) for page in PAGES for number, text in enumerate(blocks(page, language))]
    return [pytest.param(text, id=f"{relative(page)}-{number}") for page, number, text in found]


@pytest.mark.parametrize("text", cases("yaml"))
def test_every_pipeline_shown_loads(text: str, tmp_path: Path) -> None:
    path = tmp_path / "shown.yaml"
    path.write_text(text, encoding="utf-8")
    assert load(path, (), {}).pipeline.name == "shown"


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_command_shown_exists_with_its_options(page: Path) -> None:
    shown = list(commands(page))
    for name, *words in shown:
        command = main.get_command(click.Context(main), name)
        assert command is not None, name
        # A sentence may name a command without its arguments.
        if words:
            command.make_context(name, list(words))
    assert shown


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_option_named_in_a_sentence_is_one_of_some_command(page: Path) -> None:
    named = set(re.findall(r"`(--[a-z-]+)", BLOCK.sub("", page.read_text(encoding="utf-8"))))
    known = {option for command in main.commands.values() for param in command.params for option in param.opts}
    assert named - known == set()


def test_the_readme_shows_every_subcommand() -> None:
    assert {words[0] for words in commands(ENGLISH)} == set(main.commands)


def test_overrides_shown_fit_a_pipeline_that_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(blocks(ENGLISH, "yaml")[0], encoding="utf-8")
    for words in commands(ENGLISH):
        settings = [value for flag, value in pairwise(words) if flag == "--set"]
        load(path, [setting for setting in settings if setting != "key.path=value"], {})


def uncommented(language: str, text: str) -> tuple[str, str]:
    """A block without its comments, which are translated."""
    return language, re.sub(r"[ ]+# .*$", "", text, flags=re.MULTILINE) if language in ("bash", "yaml") else text


def test_comments_of_the_chinese_page_are_chinese() -> None:
    comments = [
        line for block in blocks(CHINESE, "bash") + blocks(CHINESE, "yaml") for line in re.findall("# .*", block)
    ]
    assert len(comments) > 5
    assert [line for line in comments if not re.search("[一-鿿]", line)] == []


def test_both_languages_show_the_same_blocks() -> None:
    english, chinese = (BLOCK.findall(page.read_text(encoding="utf-8")) for page in (ENGLISH, CHINESE))
    assert [uncommented(*block) for block in english] == [uncommented(*block) for block in chinese]
    assert len(english) > 5


def test_both_languages_have_the_same_sections_tables_and_commands() -> None:
    def outline(page: Path) -> list[int]:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        return [len(mark) for mark in re.findall(r"^(#+) |^\|", text, re.MULTILINE)]

    assert outline(ENGLISH) == outline(CHINESE)
    assert list(commands(ENGLISH)) == list(commands(CHINESE))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_leads_to_a_file(page: Path) -> None:
    targets = LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    assert [one for one in targets if "://" not in one and not (page.parent / one.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_no_page_shows_a_home_folder(page: Path) -> None:
    assert re.findall(r"/(?:root|home|work|tmp|Users)/", page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_reference_lists_every_key(model: type[BaseModel]) -> None:
    page = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    keys = {info.alias or name for name, info in model.model_fields.items()}
    assert {key for key in keys if f"\n| `{key}` | " not in page} == set()


def test_the_reference_lists_no_key_that_is_not_there() -> None:
    page = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| key \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    listed = {key for table in tables for key in re.findall(r"^\| `(\w+)`", table, re.MULTILINE)}
    assert listed == {info.alias or name for model in MODELS for name, info in model.model_fields.items()}


def literals(annotation: object) -> set[str]:
    """Every text that a Literal anywhere in the annotation allows."""
    if get_origin(annotation) is Literal:
        return {value for value in get_args(annotation) if isinstance(value, str)}
    return {value for inner in get_args(annotation) for value in literals(inner)}


@pytest.mark.parametrize(
    ("key", "values"),
    [
        pytest.param(info.alias or name, values, id=f"{model.__name__}.{name}")
        for model in MODELS
        for name, info in model.model_fields.items()
        if (values := literals(info.annotation))
    ],
)
def test_the_reference_names_every_choice(key: str, values: set[str]) -> None:
    page = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `{key}` \| .*$", page, re.MULTILINE)
    assert any(all(f"`{value}`" in row for value in values) for row in rows), (values, rows)


@pytest.mark.parametrize(("kind", "known"), [("format", _FORMATS), ("compression", _COMPRESSIONS)])
def test_the_reference_lists_every_ending(kind: str, known: dict[str, str]) -> None:
    page = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    table = page.partition(f"| ending | {kind} |\n|---|---|\n")[2].partition("\n\n")[0]
    listed = {}
    for line in table.splitlines():
        endings, value = (re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|"))
        listed |= dict.fromkeys(endings, value[0])
    assert listed == known


def test_the_step_shown_drops_what_it_says() -> None:
    [source] = [text for text in blocks(ENGLISH, "python") if "(Step)" in text]
    shown: dict[str, object] = {"__name__": "shown"}
    exec(compile(source, "README.md", "exec"), shown)
    step = shown["Ending"]
    assert isinstance(step, type)
    texts = ["A whole sentence.", "cut off in the mid", "整句。", ""]
    columns = {
        "text": pa.array(texts, pa.large_string()),
        "source": pa.array(["s"] * 4).cast(LABEL),
        "reason": pa.nulls(4, LABEL),
    }
    ids = pa.array(["a", "b", "c", "d"])
    batch = pa.RecordBatch.from_arrays(
        [columns.get(field.name, ids if not field.nullable else pa.nulls(4, field.type)) for field in SCHEMA],
        schema=SCHEMA,
    )
    reasons = step().run(batch).batch.column("reason").cast(pa.string()).to_pylist()
    assert reasons == [None, "ending.marks", None, "ending.marks"]


@pytest.mark.slow
def test_the_reading_code_shown_reads_a_shard_set(tmp_path: Path) -> None:
    [source] = [text for text in blocks(ENGLISH, "python") if "MindDataset" in text]
    texts = [f"Document {number} counts {number} sheep on the hill. " * 3 for number in range(60)]
    lines = "".join(json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate(texts))
    (tmp_path / "in.jsonl").write_text(lines, encoding="utf-8")
    pipeline = {
        "inputs": [{"path": "in.jsonl"}],
        "tokenizer": {"train": {"vocab_size": 300}},
        "pack": {"seq_length": 16},
        "output": {"path": "shards/quickstart"},
        "run": {"workers": 1},
    }
    (tmp_path / "tiny.yaml").write_text(json.dumps(pipeline), encoding="utf-8")
    run = [sys.executable, "-m", "dataprep", "run", "tiny.yaml"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    read = subprocess.run([sys.executable, "-c", source], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert read.stdout.startswith("(8, 16) (8, 16) ")
