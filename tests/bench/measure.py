"""Measure one stage, or time one replayed emit task, in a fresh process of one thread.

`python -m tests.bench.measure` is what that process runs: a request as JSON in its only argument, the figures as JSON
on its output. CPU time is `time.process_time` of the best of up to three passes, fewer when they take long; kernels are
compiled before. The peak is of the whole process, the stage's input in memory included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.figures import Figures, peak_rss_mb

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
PASSES = 3
_ENOUGH_SECONDS = 3.0


def measured(stage: str, corpus: Path, tokenizer: Path, folder: Path, encoded_bytes: int, passes: int) -> Figures:
    """Measure a stage of `stages` in a process of its own; `folder` is for its files."""
    request = {
        "stage": stage,
        "corpus": str(corpus),
        "tokenizer": str(tokenizer),
        "folder": str(folder),
        "encoded_bytes": encoded_bytes,
        "passes": passes,
    }
    return Figures(**in_fresh_process(__name__, request))


def in_fresh_process(module: str, request: dict[str, Any]) -> Any:
    """Run a module with a JSON request and return its JSON answer; raises CalledProcessError, its errors shown."""
    done = subprocess.run(
        [sys.executable, "-m", module, json.dumps(request)],
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _answer(request: dict[str, Any]) -> Figures:
    # Here, so that the process that asks stays small and quick to start.
    import pyarrow as pa

    import dataprep.kernels
    from tests.bench.stages import SETUP_STAGES, STAGES, Job

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    dataprep.kernels.warm()
    folder = Path(request["folder"])
    job = Job(Path(request["corpus"]), Path(request["tokenizer"]), folder, request["encoded_bytes"])
    timed = {**STAGES, **SETUP_STAGES}[request["stage"]](job)
    seconds: list[float] = []
    while len(seconds) < request["passes"] and sum(seconds) < _ENOUGH_SECONDS:
        start = time.process_time()
        timed.call()
        seconds.append(time.process_time() - start)
    if timed.check is not None:
        timed.check()
    return Figures(timed.text_bytes, timed.documents, min(seconds), peak_rss_mb())


if __name__ == "__main__":
    print(json.dumps(asdict(_answer(json.loads(sys.argv[1])))))
