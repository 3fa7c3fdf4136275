"""Whole runs by the real command, and what of them is not tokenizing.

A corpus, its texts over and over until they are large enough for what a worker needs to start (opening the tokenizers,
the writer's first proof) to weigh little, goes through `dataprep run` with one worker: zst JSONL, normalize, length,
non_text, exact_dedup, tokenize, pack, shards. Every copy of a text ends differently, so that none is dropped as a
duplicate. CPU seconds are the tasks' own from the manifest: starting Python and planning are left out.

`run prepare + dedup`: these two stages alone. `run whole`: prepare, dedup and emit; a ready tokenizer is used, and the
sample that the tokenizer stage encodes to measure it is left out. `run all but tokenizing`: the emit task is executed
once more in a process where each call of `Encoder.encode` is timed; its CPU seconds less those calls, plus the
manifest's for prepare and dedup. Both terms of that difference come from one execution, for between two the noise of
tokenizing would be as large as all the rest. `MB` is the text read, in all three.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.bench.corpus import Corpus, multiplied
from tests.bench.figures import Figures
from tests.bench.measure import ONE_THREAD, in_fresh_process

_REPEATED_BYTES = 200 * 10**6
PREPARED, BUT_TOKENIZING, WHOLE = "run prepare + dedup", "run all but tokenizing", "run whole"


def whole_run(corpus: Corpus, tokenizer: Path, folder: Path) -> dict[str, Figures]:
    """Run one corpus, repeated, in an empty folder and return the three figures by name."""
    pipeline = folder / "pipeline.yaml"
    repeated = Corpus(corpus.name, multiplied([corpus], folder, _REPEATED_BYTES).path)
    pipeline.write_text(json.dumps(_pipeline(repeated, tokenizer)), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "dataprep", "run", str(pipeline)],
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    manifest = json.loads((folder / "shards" / "manifest.json").read_bytes())
    read = manifest["ledger"]["prepare"].values()
    stages = manifest["run"]["stages"]
    before = _figures(read, [stages["prepare"], stages["dedup"]])
    whole = _figures(read, [stages["prepare"], stages["dedup"], stages["emit"]])
    (engine,) = manifest["run"]["engine"]["shards"]
    replayed = in_fresh_process(__name__, {"folder": str(folder), "tokenizer": str(tokenizer), "engine": engine})
    if replayed["tokens"] != manifest["totals"]["tokens"]:
        raise AssertionError("the replayed emit task made other tokens than the run")
    rest = replace(whole, cpu_seconds=before.cpu_seconds + replayed["cpu_seconds"])
    return {PREPARED: before, BUT_TOKENIZING: rest, WHOLE: whole}


def _pipeline(corpus: Corpus, tokenizer: Path) -> dict[str, Any]:
    from tests.bench.stages import STEP_SETTINGS, tokenizer_entry

    steps = [{name: settings} if settings else name for name, settings in STEP_SETTINGS.items()]
    return {
        "name": "bench",
        "inputs": [{"path": str(corpus.path), "source": corpus.name}],
        "steps": [*steps, "exact_dedup"],
        "tokenizer": tokenizer_entry(tokenizer),
        # One shard holds everything: the replay is one task.
        "output": {"path": "shards", "shard_tokens": 1_000_000_000},
        "run": {"workers": 1, "work_dir": "work", "split_bytes": 1 << 50},
    }


def _figures(read: Sequence[dict[str, Any]], stages: Sequence[dict[str, Any]]) -> Figures:
    return Figures(
        sum(tally["text_bytes_in"] for tally in read),
        sum(tally["in"] for tally in read),
        sum(stage["cpu_seconds"] for stage in stages),
        # The manifest's megabytes are of 2^20 bytes.
        max(stage["peak_rss_mb"] for stage in stages) * (1 << 20) / 1e6,
    )


def _replay(folder: Path, tokenizer: Path, engine: str) -> dict[str, float]:
    """Execute the emit task over the run's parts: its CPU seconds outside `Encoder.encode`, and its tokens."""
    import pyarrow as pa

    import dataprep.kernels
    import dataprep.shards.mindrecord
    from dataprep.tokens.engines import Encoded, Encoder

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    dataprep.kernels.warm()
    encode = Encoder.encode
    tokenizing = 0.0

    def timed(self: Encoder, text: Any, hashes: Any) -> Encoded:
        nonlocal tokenizing
        start = time.process_time()
        encoded = encode(self, text, hashes)
        tokenizing += time.process_time() - start
        return encoded

    task = _emit_task(folder, tokenizer, engine)
    with patch.object(Encoder, "encode", timed):
        record = task.execute(folder / "replay" / "ledger")
    return {
        "cpu_seconds": record.run["cpu_seconds"] - tokenizing,
        "tokens": sum(source["tokens"] for source in record.facts["sources"].values()),
    }


def _emit_task(folder: Path, tokenizer: Path, engine: str) -> Any:
    import pyarrow as pa

    from dataprep.batch import text_bytes
    from dataprep.runtime.draw import DrawnPart
    from dataprep.runtime.membership import Membership
    from dataprep.runtime.parts import ORDER_END, Part
    from dataprep.runtime.stages.emit import STAGE, Emit, EngineUse
    from dataprep.runtime.task import Task
    from dataprep.runtime.trust import Trust
    from dataprep.shards.layout import page_and_header
    from dataprep.tokens.special import SpecialTokens
    from tests.bench.stages import CHECK_EVERY, PACK, PAD, SEED, tokenizer_config

    # One split made all parts, so that the order of their names is the order the removal lists count in.
    files = sorted(path for path in (folder / "work" / "parts").rglob("*.arrow") if ".keys." not in path.name)
    parts = []
    for number, path in enumerate(files):
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            batches = [reader.get_batch(at) for at in range(reader.num_record_batches)]
        rows = sum(batch.num_rows for batch in batches)
        parts.append(DrawnPart(Part(path.stem, str(path), "", rows, sum(map(text_bytes, batches))), number))
    size = sum(drawn.part.text_bytes for drawn in parts)
    replay = folder / "replay"
    config = tokenizer_config(tokenizer)
    job = Emit(
        parts=tuple(parts),
        removal_lists=tuple(sorted((folder / "work" / "removals").rglob("*.arrow"))),
        low=0,
        high=ORDER_END,
        membership=Membership(SEED),
        steps=(),
        tokenizer_json=folder / "shards" / "tokenizer.json",
        special=SpecialTokens(config.eos, config.bos, PAD),
        allow_special=False,
        engine=EngineUse(engine, CHECK_EVERY, Trust(replay / "distrusted", "")),
        pack=PACK,
        layout=page_and_header(PACK.seq_length + 1, size // PACK.seq_length + 1),
        seed=SEED,
        keep_text="excerpt",
        shard=replay / "bench-00000-of-00001.mindrecord",
        documents=replay / "documents.parquet",
        dropped=replay / "dropped.parquet",
        scratch=replay / "scratch",
    )
    return Task(STAGE, "replay", "replay", job, size, 0)


if __name__ == "__main__":
    _request = json.loads(sys.argv[1])
    print(json.dumps(_replay(Path(_request["folder"]), Path(_request["tokenizer"]), _request["engine"])))
