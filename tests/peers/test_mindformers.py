"""mindformers as installed trains from our shards, by the YAML files in pipelines/mindformers made small."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from dataprep.shards.layouts import LayoutName, column_lengths

ROOT = Path(__file__).resolve().parents[2]
YAMLS = ROOT / "pipelines" / "mindformers"
SEQ_LENGTH, VOCAB_SIZE, BATCH, STEPS = 32, 320, 8, 20
LAYOUT_OF: dict[str, LayoutName] = {"llama_compact": "compact", "qwen3_mcore": "mcore"}
# Sizes of the models, and what only Ascend has.
SMALL: dict[str, dict[str, Any]] = {
    "llama_compact": {
        "hidden_size": 32,
        "num_layers": 1,
        "num_heads": 2,
        "n_kv_heads": 1,
        "intermediate_size": 64,
        "max_position_embedding": SEQ_LENGTH,
        "batch_size": BATCH,
        "use_flash_attention": False,
        "use_rope_slice": True,
        "compute_dtype": "float32",
    },
    "qwen3_mcore": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "intermediate_size": 64,
        "max_position_embeddings": SEQ_LENGTH,
        "use_eod_attn_mask_compression": False,
        "compute_dtype": "float32",
    },
}


def load_yaml(name: str) -> dict[str, Any]:
    content: dict[str, Any] = YAML(typ="safe").load(YAMLS / f"{name}.yaml")
    return content


def make_shards(folder: Path, layout: LayoutName) -> dict[str, Any]:
    texts = [f"The ship number {number} came home at night. " * (1 + number % 4) for number in range(200)]
    lines = "".join(json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate(texts))
    (folder / "in.jsonl").write_text(lines, encoding="utf-8")
    pipeline = {
        "inputs": [{"path": "in.jsonl"}],
        "tokenizer": {"train": {"vocab_size": VOCAB_SIZE}},
        "pack": {"seq_length": SEQ_LENGTH, "layout": layout},
        # Several shards, for mindformers looks for them in the folder by their names.
        "output": {"path": "shards", "shard_tokens": 4000},
        "run": {"workers": 1, "split_bytes": 4000},
    }
    (folder / "ships.yaml").write_text(json.dumps(pipeline), encoding="utf-8")
    run = [sys.executable, "-c", "from dataprep.cli import main; main()", "run", "ships.yaml"]
    subprocess.run(run, cwd=folder, check=True, capture_output=True)
    manifest: dict[str, Any] = json.loads((folder / "shards" / "manifest.json").read_text())
    return manifest


@pytest.mark.parametrize("name", sorted(path.stem for path in YAMLS.glob("*.yaml")))
def test_the_yaml_files_read_the_columns_their_layout_has(name: str) -> None:
    content = load_yaml(name)
    data = content["train_dataset"]
    columns = list(column_lengths(LAYOUT_OF[name], 4097))
    # Every column in the order of the layout, but what only we read.
    assert data["input_columns"] == [column for column in columns if column != "doc_starts"]
    assert data.get("construct_args_key", data["input_columns"]) == data["input_columns"]
    assert content["parallel"]["dataset_strategy"] == [[content["parallel_config"]["data_parallel"], 1]] * len(
        data["input_columns"]
    )
    # Ends of documents are counted from a row's begin, so a second row in a batch would be taken for more of the first.
    assert "actual_seq_len" not in data["input_columns"] or content["runner_config"]["batch_size"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LAYOUT_OF))
def test_a_stock_trainer_learns_from_our_shards(tmp_path: Path, name: str) -> None:
    manifest = make_shards(tmp_path, LAYOUT_OF[name])
    assert len(manifest["shards"]) > 1
    special = {f"{kind}_token_id": manifest["tokenizer"][kind]["id"] for kind in ("eos", "pad")}
    sizes = {**SMALL[name], **special, "seq_length": SEQ_LENGTH, "vocab_size": VOCAB_SIZE}
    dataset = {"data_loader": {"dataset_dir": str(tmp_path / "shards"), "num_samples": STEPS * BATCH}}
    dataset |= {"batch_size": BATCH, "num_parallel_workers": 1}
    changes = {
        "use_parallel": False,
        "context": {"device_target": "CPU"},
        "parallel": {"parallel_mode": 0, "full_batch": False, "enable_parallel_optimizer": False},
        "parallel_config": {"data_parallel": 1},
        "runner_config": {"batch_size": BATCH, "sink_mode": False, "gradient_accumulation_steps": 1},
        "lr_schedule": {"learning_rate": 1e-2},
        "train_dataset": dataset,
        "train_dataset_task": {"dataset_config": dataset},
        "model": {"model_config": sizes},
        "callbacks": [{"type": "MFLossMonitor", "per_print_times": 1}],
    }
    script = Path(__file__).with_name("mindformers_on_cpu.py")
    environment = {**os.environ, "LOG_MF_PATH": str(tmp_path / "log"), "GLOG_v": "3", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script), str(YAMLS / f"{name}.yaml"), json.dumps(changes)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    losses = [float(loss) for loss in re.findall(r"loss:\[([\d.]+)/", done.stdout + done.stderr)]
    assert len(losses) == STEPS
    # Begins at the logarithm of the vocabulary's size, 5.77, where every token is as likely as any other.
    assert 5.5 < losses[0] < 6.2
    assert losses[-1] < losses[0] - 1.5
