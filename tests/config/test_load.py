"""A pipeline file loads into the values it holds, or names every fault at its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from dataprep.config.load import LoadedPipeline, load
from dataprep.config.models import Pipeline
from dataprep.errors import ConfigErrors

GOOD = """\
inputs:
  - path: raw/*.jsonl
steps:
  - normalize
  - length:
      min_words: 5
  - exact_dedup:
  - length: {max_words: 9}
tokenizer: {path: t.json}
output: {path: shards}
"""
TAIL = "inputs: [{path: a.jsonl}]\ntokenizer: {path: t.json}\noutput: {path: o}\n"


def write(folder: Path, text: str, name: str = "x.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def faults(folder: Path, text: str, *overrides: str, environ: dict[str, str] | None = None) -> list[str]:
    path = write(folder, text)
    with pytest.raises(ConfigErrors) as caught:
        load(path, overrides, environ or {})
    assert caught.value.exit_code == 2
    return [line.replace(f"{folder}/", "") for line in str(caught.value).splitlines()]


def loaded(folder: Path, text: str, *overrides: str, environ: dict[str, str] | None = None) -> LoadedPipeline:
    return load(write(folder, text), overrides, environ or {})


def test_a_good_file_loads_with_its_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD)
    pipeline = found.pipeline
    assert (pipeline.name, found.base) == ("x", tmp_path)
    assert [step.name for step in pipeline.prepare_steps] == ["normalize", "length"]
    assert pipeline.dedup_step is not None
    assert [step.name for step in pipeline.emit_steps] == ["length"]
    assert pipeline.tokenizer.path == tmp_path / "t.json"
    assert (pipeline.output.path, pipeline.run.work_dir) == (tmp_path / "shards", tmp_path / "work")
    assert (pipeline.output.shard_tokens, pipeline.output.shard_bytes) == (50_000_000, None)
    assert (pipeline.dedup.memory, pipeline.run.seed, pipeline.run.workers) == (1 << 30, 42, "auto")


def test_without_dedup_every_step_belongs_to_prepare(tmp_path: Path) -> None:
    pipeline = loaded(tmp_path, "steps: [normalize]\n" + TAIL).pipeline
    assert [step.name for step in pipeline.prepare_steps] == ["normalize"]
    assert pipeline.dedup_step is None
    assert pipeline.emit_steps == ()


def test_sizes_and_grouped_digits_are_read(tmp_path: Path) -> None:
    text = TAIL + "dedup: {memory: 64MB}\nrun: {seed: 1_000, memory_limit: 1GiB, split_bytes: 4096}\n"
    pipeline = loaded(tmp_path, text).pipeline
    assert pipeline.dedup.memory == 64_000_000
    assert (pipeline.run.seed, pipeline.run.memory_limit, pipeline.run.split_bytes) == (1000, 1 << 30, 4096)


def test_a_byte_target_takes_the_place_of_the_token_target(tmp_path: Path) -> None:
    output = loaded(tmp_path, TAIL.replace("path: o", "path: o, shard_bytes: 1MB")).pipeline.output
    assert (output.shard_tokens, output.shard_bytes) == (None, 1_000_000)


def test_the_shipped_pipelines_load() -> None:
    shipped = sorted((Path(__file__).parents[2] / "pipelines").glob("*.yaml"))
    assert [load(path, (), {}).pipeline.name for path in shipped] == [path.stem for path in shipped]


def test_keys_are_found_again_for_later_errors(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD, "run.seed=7")
    file = str(tmp_path / "x.yaml")
    assert found.where("steps", 1, "min_words") == f"{file}:6:7"
    assert found.where("steps", 3, "max_words") == f"{file}:8:14"
    assert found.where("steps", 1) == f"{file}:5:5"
    assert found.where("tokenizer", "eos") == f"{file}:9:1"
    assert found.where("pack", "seq_length") == f"{file}:1:1"
    assert found.where("run", "seed") == "--set run.seed=7"


ONE_FAULT = {
    "unknown key": (
        TAIL + "pack: {seq_lenght: 8}\n",
        "x.yaml:4:8: pack.seq_lenght: unknown key, did you mean seq_length?",
    ),
    "unknown key at the top": (TAIL + "outptu: {}\n", "x.yaml:4:1: outptu: unknown key, did you mean output?"),
    "unknown key like no other": (
        TAIL + "pack: {zzz: 8}\n",
        "x.yaml:4:8: pack.zzz: unknown key, known are: seq_length, method, window, overlong, fim, layout",
    ),
    "unknown step": (
        TAIL + "steps:\n  - lenght: {}\n",
        "x.yaml:5:5: steps[0]: unknown step lenght, did you mean length?",
    ),
    "unknown bare step": (
        TAIL + "steps:\n- normalise\n",
        "x.yaml:5:3: steps[0]: unknown step normalise, did you mean normalize?",
    ),
    "setting indented too little": (
        TAIL + "steps:\n- normalize:\n  keep_indentation: true\n",
        "x.yaml:6:3: steps[0]: keep_indentation is a setting of normalize: indent it deeper, under normalize",
    ),
    "setting named like a step indented too little": (
        TAIL + "steps:\n- exact_dedup:\n  normalize: whitespace\n",
        "x.yaml:6:3: steps[0]: normalize is a setting of exact_dedup: indent it deeper, under exact_dedup",
    ),
    "two steps in one": (
        TAIL + "steps:\n  - length: {min_words: 5}\n    normalize:\n",
        "x.yaml:5:5: steps[0]: must hold exactly one step, found length, normalize; begin each step with its own '- '",
    ),
    "step that is a number": (TAIL + "steps: [3]\n", "x.yaml:4:9: steps[0]: must be a mapping (key: value), not 3"),
    "two dedups": (
        TAIL + "steps:\n- exact_dedup\n- normalize\n- exact_dedup\n",
        "x.yaml:4:1: steps: exact_dedup may stand once, found at steps[0] and steps[2]",
    ),
    "text for a number": (TAIL + 'run: {seed: "5"}\n', "x.yaml:4:7: run.seed: must be a whole number, not '5'"),
    "bool for a number": (TAIL + "run: {seed: true}\n", "x.yaml:4:7: run.seed: must be a whole number, not true"),
    "fraction for a number": (TAIL + "run: {seed: 1.5}\n", "x.yaml:4:7: run.seed: must be a whole number, not 1.5"),
    "number for a bool": (
        TAIL.replace("a.jsonl", "a.jsonl, keep_meta: 1"),
        "x.yaml:1:26: inputs[0].keep_meta: must be true or false, not 1",
    ),
    "number for text": (TAIL + "name: 7\n", "x.yaml:4:1: name: must be text, not 7"),
    "out of range": (
        TAIL + "run: {max_bad_fraction: 2}\n",
        "x.yaml:4:7: run.max_bad_fraction: must be at most 1, not 2",
    ),
    "no such choice": (
        TAIL + "run: {on_bad_record: ignore}\n",
        "x.yaml:4:7: run.on_bad_record: must be 'quarantine' or 'fail', not 'ignore'",
    ),
    "neither auto nor number": (
        TAIL + "run: {workers: many}\n",
        "x.yaml:4:7: run.workers: must be 'auto' or a whole number, not 'many'",
    ),
    "no workers": (TAIL + "run: {workers: 0}\n", "x.yaml:4:7: run.workers: must be 'auto' or at least 1, not 0"),
    "bad size": (
        TAIL + "dedup: {memory: 3XB}\n",
        "x.yaml:4:9: dedup.memory: must be a size such as 64MB, 1GiB or a number of bytes, not '3XB'",
    ),
    "wrong path": (TAIL.replace("a.jsonl", "5"), "x.yaml:1:11: inputs[0].path: must be text or a list, not 5"),
    "wrong path in a list": (TAIL.replace("a.jsonl", "[a, 5]"), "x.yaml:1:21: inputs[0].path[1]: must be text, not 5"),
    "no inputs": (
        TAIL.replace("{path: a.jsonl}", ""),
        "x.yaml:1:1: inputs: must be at least one entry long, not an empty list",
    ),
    "missing in a mapping": (TAIL.replace("path: o", ""), "x.yaml:3:1: output.path: missing"),
    "missing at the top": (TAIL.replace("output: {path: o}\n", ""), "x.yaml:1:1: output: missing"),
    "both shard targets": (
        TAIL.replace("path: o", "path: o, shard_bytes: 5, shard_tokens: 5"),
        "x.yaml:3:1: output: give either shard_tokens or shard_bytes",
    ),
    "no tokenizer": (TAIL.replace("path: t.json", ""), "x.yaml:2:1: tokenizer: give either path or train"),
    "forbidden name": (
        TAIL + "name: a b&c\n",
        "x.yaml:4:1: name: 'a b&c' cannot begin a shard's file name: it holds white space &",
    ),
    "duplicate key": (TAIL + "pack: {}\npack: {}\n", "x.yaml:5:1: pack: this key stands here twice, first on line 4"),
    "tab": ("inputs:\n\t- path: a\n", "x.yaml:2:1: a tab cannot indent YAML, use spaces"),
    "syntax": ("a: [1, 2\nb: 3\n", "x.yaml:2:2: not valid YAML: expected ',' or ']', but got ':'"),
    "bare reference in braces": (
        "a: {x: ${N}}\n",
        "x.yaml:1:9: not valid YAML: expected ',' or '}', but got '{'; "
        'inside { } and [ ] put quotes around "${NAME}"',
    ),
    "empty": ("# nothing\n", "x.yaml:1:1: the file is empty; write one with: dataprep init"),
    "list": ("- a\n", "x.yaml:1:1: must be a mapping (key: value), not a list"),
    "two documents": ("a: 1\n---\nb: 2\n", "x.yaml:2:1: a second document begins here; a pipeline file holds one"),
    "own tag": (TAIL + "name: !py x\n", "x.yaml:4:7: name: the YAML tag !py has no meaning here, remove it"),
    "control character": ("a: \x01\n", "x.yaml:1:4: character U+0001 may not stand in YAML, remove it"),
    "half a surrogate": (
        TAIL + 'name: "\\ud800"\n',
        "x.yaml:4:7: name: holds half of a surrogate pair, which is no character",
    ),
    "alias of itself": ("a: &x [*x]\n", "x.yaml:1:1: nested too deeply, or an alias that holds itself"),
    "unset variable": (
        TAIL + "name: ${NOPE}\n",
        "x.yaml:4:7: name: environment variable NOPE is not set; set it or write ${NOPE:-default}",
    ),
    "broken reference": (
        TAIL + "name: ${1}\n",
        "x.yaml:4:7: name: '${' begins no ${NAME} or ${NAME:-default}; write $${ for a literal ${",
    ),
    "a home that is nobody's": (
        "inputs: [{path: a}]\ntokenizer: {path: ~nosuchuser/t.json}\noutput: {path: o}\n",
        "x.yaml:2:13: tokenizer.path: ~nosuchuser/t.json: no such home folder",
    ),
}


@pytest.mark.parametrize("case", ONE_FAULT)
def test_a_fault_is_named_at_its_line_and_column(case: str, tmp_path: Path) -> None:
    text, message = ONE_FAULT[case]
    assert faults(tmp_path, text) == [message]


def test_all_faults_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        "inputs: [{path: a}]\n"
        "steps:\n  - normalize\n  - normalize\n  - normalize\n"
        "  - length:\n      min_wrds: 5\n      max_words: x\n"
        "tokenizer: {path: '${T}'}\npack: {seq_length: 0}\n"
    )
    assert faults(tmp_path, text, "run.seed=-1") == [
        "x.yaml:1:1: output: missing",
        "x.yaml:7:7: steps[3].min_wrds: unknown key, did you mean min_words?",
        "x.yaml:8:7: steps[3].max_words: must be a whole number, not 'x'",
        "x.yaml:9:19: tokenizer.path: environment variable T is not set; set it or write ${T:-default}",
        "x.yaml:10:8: pack.seq_length: must be at least 1, not 0",
        "--set run.seed=-1: run.seed: must be at least 0, not -1",
    ]


def test_the_path_is_shown_as_the_user_gave_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pipelines").mkdir()
    write(tmp_path / "pipelines", TAIL + "nam: x\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigErrors, match=r"^pipelines/x\.yaml:4:1: nam: unknown key, did you mean name\?$"):
        load(Path("pipelines/x.yaml"))


def test_a_file_that_is_not_there_or_no_file_or_not_utf8_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "gbk.yaml").write_bytes(b"name: a\nx: \xff\n")
    expected = {
        "none.yaml": "none.yaml: no such file; check the path",
        ".": ": is a folder; name the YAML file in it",
        "gbk.yaml": "gbk.yaml:2:4: byte 0xFF is not UTF-8; save the file as UTF-8",
    }
    for name, message in expected.items():
        with pytest.raises(ConfigErrors) as caught:
            load(tmp_path / name)
        assert str(caught.value).replace(str(tmp_path), "").removeprefix("/") == message


def test_a_file_name_that_cannot_name_shards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match="name: 'my pipe' cannot begin a shard's file name: it holds white space"):
        load(write(tmp_path, TAIL, "my pipe.yaml"))


def test_references_take_their_value_and_its_type(tmp_path: Path) -> None:
    text = (
        'inputs: [{path: ["${DATA}/a", "$${DATA}"], text: \'${SEED}\'}]\n'
        "tokenizer: {path: t.json}\noutput: {path: o}\n"
        'run: {workers: "${N:-2}", seed: "${SEED}", max_bad_fraction: "${F:-0.5}"}\n'
        "name: ${EMPTY:-fallback}\n"
    )
    pipeline = loaded(tmp_path, text, environ={"DATA": "/d", "SEED": "7", "EMPTY": ""}).pipeline
    assert pipeline.inputs[0].path == ("/d/a", "${DATA}")
    assert pipeline.inputs[0].text == "7"
    assert (pipeline.run.workers, pipeline.run.seed, pipeline.run.max_bad_fraction) == (2, 7, 0.5)
    assert pipeline.name == "fallback"


def test_anchors_and_merge_keys_are_followed(tmp_path: Path) -> None:
    text = "inputs:\n  - &web {path: a, text: body}\n  - {<<: *web, path: b}\ntokenizer: {path: t}\noutput: {path: o}\n"
    first, second = loaded(tmp_path, text).pipeline.inputs
    assert (first.path, first.text, second.path, second.text) == ("a", "body", "b", "body")


def test_overrides_reach_into_lists_and_steps(tmp_path: Path) -> None:
    pipeline = loaded(
        tmp_path,
        GOOD,
        "inputs[0].path=other.jsonl",
        "steps.1.min_words=6",
        "steps.normalize={}",
        "steps[3].max_words=8",
        "run.workers=3",
        "tokenizer.path=sub/t.json",
        "output.shard_tokens=1_000",
    ).pipeline
    assert pipeline.inputs[0].path == "other.jsonl"
    dumped = pipeline.model_dump(mode="json")["steps"]
    assert (dumped[1]["length"]["min_words"], dumped[3]["length"]["max_words"]) == (6, 8)
    assert (pipeline.run.workers, pipeline.output.shard_tokens) == (3, 1000)
    assert pipeline.tokenizer.path == tmp_path / "sub/t.json"


def test_an_override_mends_a_fault_of_the_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, TAIL + "name: ${NOPE}\n", "name=mended").pipeline.name == "mended"


OVERRIDE_FAULTS = {
    "steps.0.frm=NFC": "--set steps.0.frm=NFC: steps[0].frm: unknown key, did you mean form?",
    "steps.1.min_wrds=5": "--set steps.1.min_wrds=5: steps[1].min_wrds: unknown key, did you mean min_words?",
    "steps.length.min_words=5": (
        "--set steps.length.min_words=5: length stands more than once (steps[1] and steps[3]), name it by its index"
    ),
    "steps.regex.x=5": "--set steps.regex.x=5: steps has no entry 'regex', name it by its index from 0",
    "inputs.4.path=x": "--set inputs.4.path=x: inputs has no entry 4, it has 1, counted from 0",
    "output.path.deep=x": "--set output.path.deep=x: output.path holds a single value, so nothing can be set inside it",
    "run.seed": "--set run.seed: write key.path=value",
    "a..b=1": "--set a..b=1: cannot read the key 'a..b'; write it like run.workers or inputs[0].path",
    "run.seed=[": "--set run.seed=[: run.seed: not valid YAML: expected the node content, but found '<stream end>'",
}


@pytest.mark.parametrize("override", OVERRIDE_FAULTS)
def test_a_faulty_override_is_shown_as_given(override: str, tmp_path: Path) -> None:
    assert faults(tmp_path, GOOD, override) == [OVERRIDE_FAULTS[override]]


SIZES = st.integers(1, 1 << 50)
PIPELINES = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[a-zA-Z0-9_.中文-]{1,12}", fullmatch=True),
        "inputs": st.lists(
            st.fixed_dictionaries(
                {"path": st.text("abc/*. $#:'\"中\n", min_size=1, max_size=9), "keep_meta": st.booleans()},
                optional={"source": st.text("ab:#{}[]- ", min_size=1, max_size=5), "max_doc_bytes": SIZES},
            ),
            min_size=1,
            max_size=3,
        ),
        "steps": st.lists(
            st.sampled_from([{"normalize": {}}, {"length": {"min_words": 3}}, {"length": {"max_words": 900}}]),
            max_size=4,
        ),
        "tokenizer": st.fixed_dictionaries({"train": st.fixed_dictionaries({"vocab_size": st.integers(300, 10**6)})}),
        "output": st.fixed_dictionaries({"path": st.just("/o"), "shard_bytes": SIZES}),
        "run": st.fixed_dictionaries(
            {
                "workers": st.just("auto") | st.integers(1, 99),
                "work_dir": st.just("/w"),
                "seed": st.integers(0, (1 << 63) - 1),
                "max_bad_fraction": st.floats(0, 1),
            }
        ),
    }
)


@settings(max_examples=50, deadline=None)
@given(PIPELINES)
def test_a_dumped_pipeline_loads_with_the_same_values(tmp_path_factory: pytest.TempPathFactory, values: dict) -> None:  # type: ignore[type-arg]  # any pipeline
    pipeline = Pipeline.model_validate_json(json.dumps(values))
    path = tmp_path_factory.getbasetemp() / "round.yaml"
    dumped = json.loads(pipeline.model_dump_json(by_alias=True).replace("${", "$${"))
    YAML(typ="safe", pure=True).dump(dumped, path)
    assert load(path, (), {}).pipeline == pipeline
