"""Imported first by the process that workers fork from, so that it dies with the run, however that ends."""

from __future__ import annotations

import ctypes
import signal

# From <linux/prctl.h>. Workers do not inherit it.
_SET_PARENT_DEATH_SIGNAL = 1

# What it imports next takes seconds in which it would not see that its parent is gone, and it would hold on to the
# terminal or the pipes of a run that is interrupted.
ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
