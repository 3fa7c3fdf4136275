"""Write more rows into the directory given than its 14 MB disk holds; print what comes of it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from dataprep.errors import EnvironmentFailure
from dataprep.shards.layout import page_and_header
from dataprep.shards.mindrecord import write_shard

directory = Path(sys.argv[1])
rows = np.random.default_rng(0).integers(0, 150_000, (5000, 1025)).astype(np.int32)
try:
    write_shard(
        directory / "x.mindrecord",
        rows,
        np.zeros(5000, np.int32),
        np.arange(5001),
        scratch=directory / "scratch",
        layout=page_and_header(1025, 5000),
    )
    print("written")
except EnvironmentFailure as failure:
    print("EnvironmentFailure", failure)
