"""Imported once by the process that workers fork from, so that they share the memory and the compiled kernels."""

from __future__ import annotations

import pyarrow as pa

import dataprep.kernels
import dataprep.runtime.stages.emit
import dataprep.runtime.stages.prepare
import dataprep.shards.mindrecord

pa.set_cpu_count(1)
pa.set_io_thread_count(1)
dataprep.kernels.warm()
