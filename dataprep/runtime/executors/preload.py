"""Imported once by the process that workers fork from, so that they share memory, kernels and tables."""

from __future__ import annotations

import gc

import pyarrow as pa
import pyarrow.dataset

import dataprep.kernels
import dataprep.runtime.stages.emit
import dataprep.runtime.stages.prepare
import dataprep.shards.mindrecord
from dataprep.text.actions import unsure_of_form
from dataprep.text.segment import code_point_classes

pa.set_cpu_count(1)
pa.set_io_thread_count(1)
dataprep.kernels.warm()
# 0.15 s of building that every worker would repeat.
code_point_classes()
unsure_of_form("NFC")
# pyarrow imports pandas, if there is one, at its first conversion: half a second of every worker's time.
pa.array([0])
# What is loaded by now stays: collections in the workers need not walk it over and over, nor unshare its memory.
gc.collect()
gc.freeze()
