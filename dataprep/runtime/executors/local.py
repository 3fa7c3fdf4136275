"""Run tasks on the processes of this machine; a worker that dies is noticed and its task tried once more."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import multiprocess
import multiprocess.connection
import multiprocess.forkserver
import multiprocess.resource_tracker

from dataprep.errors import EnvironmentFailure, PipelineError
from dataprep.interrupts import SIGNALS, held_back
from dataprep.runtime.ledger import TaskRecord
from dataprep.runtime.task import Task

# Every worker is one thread: parallelism comes from the number of workers alone.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "GLOG_v": "3",
}


class TaskCrash(Exception):
    """A defect in the code of a task, with the worker's traceback."""


@dataclass(frozen=True, slots=True)
class Retried:
    """A task given to a fresh process because its worker died."""

    task: Task
    why: str


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Any
    task: Task


class LocalExecutor:
    """A pool of `workers` processes; the memory estimates of running tasks never add up to more than `memory`."""

    def __init__(self, workers: int, memory: int, ledger: Path) -> None:
        self.workers = workers
        self.memory = memory
        self.ledger = ledger
        os.environ.update({name: value for name, value in _ONE_THREAD.items() if name not in os.environ})
        self._context = multiprocess.get_context("forkserver")
        self._context.set_forkserver_preload([f"dataprep.runtime.executors.{name}" for name in ("mortal", "preload")])
        # Workers hold the reading end: when this process dies, however it dies, they see the end of file and leave.
        self._alive, self._parent_alive = self._context.Pipe(duplex=False)
        self._idle: list[tuple[Any, Any]] = []
        self._preloaded = False

    def run(self, tasks: Sequence[Task]) -> Iterator[TaskRecord | Retried]:
        """Execute the tasks and yield each record as it is committed, in the order of completion."""
        waiting = deque(tasks)
        running: dict[Any, _Worker] = {}
        retried: set[str] = set()
        try:
            while waiting or running:
                self._fill(waiting, running)
                ready = multiprocess.connection.wait([*running, *(w.process.sentinel for w in running.values())])
                for pipe in [pipe for pipe, worker in running.items() if {pipe, worker.process.sentinel} & set(ready)]:
                    worker = running.pop(pipe)
                    result = _receive(worker)
                    if result is None:
                        yield self._again(worker, waiting, retried)
                        continue
                    self._idle.append((worker.process, worker.pipe))
                    yield _record(result, worker.task)
        finally:
            for worker in running.values():
                _stop(worker.process)

    def close(self) -> None:
        """Let the idle workers go."""
        for process, pipe in self._idle:
            pipe.close()
            process.join()
        self._idle.clear()

    def _fill(self, waiting: deque[Task], running: dict[Any, _Worker]) -> None:
        while waiting and len(running) < self.workers:
            in_flight = sum(worker.task.memory for worker in running.values())
            if running and in_flight + waiting[0].memory > self.memory:
                return
            task = waiting.popleft()
            process, pipe = self._idle.pop() if self._idle else self._start()
            try:
                pipe.send(task)
            except OSError:  # it died while idle: no task is lost
                _stop(process)
                waiting.appendleft(task)
                continue
            running[pipe] = _Worker(process, pipe, task)

    def _start(self) -> tuple[Any, Any]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=work, args=(theirs, self._alive, self.ledger), daemon=True)
        _start_fork_server()
        # A worker whose start is broken off halfway would print a traceback. The first start waits for the preload,
        # so long that signals cannot wait with it; a server broken off there never comes to start that worker.
        with held_back() if self._preloaded else nullcontext():
            process.start()
        self._preloaded = True
        theirs.close()
        return process, ours

    def _again(self, worker: _Worker, waiting: deque[Task], retried: set[str]) -> Retried:
        task = worker.task
        worker.process.join()
        why = _cause(worker.process.exitcode)
        if task.id in retried:
            raise EnvironmentFailure(
                f"two workers died on task {task.id} ({why})",
                where=f"{task.stage} {task.key}",
                mend="if memory ran out, lower run.workers, run.part_bytes or output.shard_tokens; run again to resume",
            )
        retried.add(task.id)
        waiting.appendleft(task)
        return Retried(task, why)


def _start_fork_server() -> None:
    """Run the process that workers fork from, deaf from its first moment on.

    Ctrl-C goes to every process of the terminal's foreground, but only this one is to answer it and stop the others.
    """
    with held_back():
        multiprocess.resource_tracker.ensure_running()
    # Started beforehand, for starting it lets SIGINT and SIGTERM through again.
    with held_back():
        multiprocess.forkserver.ensure_running()


def work(pipe: Any, alive: Any, ledger: Path) -> None:
    """A worker's life: take a task, execute it, send back its record or its error, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    threading.Thread(target=_leave_with_parent, args=(alive,), daemon=True).start()
    while True:
        try:
            task: Task = pipe.recv()
            done = _execute(task, ledger)
            pipe.send(done)
        except (EOFError, OSError):  # the parent has closed its end, perhaps before it took an answer, or has died
            return


def _execute(task: Task, ledger: Path) -> TaskRecord | PipelineError | str:
    try:
        return task.execute(ledger)
    except PipelineError as error:
        return error
    except OSError as error:
        return EnvironmentFailure(error.strerror or str(error), where=error.filename or f"{task.stage} {task.key}")
    except MemoryError:
        return EnvironmentFailure(
            "out of memory", where=f"{task.stage} {task.key}", mend="lower run.workers or run.part_bytes"
        )
    except Exception:
        return traceback.format_exc()


def _leave_with_parent(alive: Any) -> None:
    try:
        alive.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def _receive(worker: _Worker) -> TaskRecord | PipelineError | str | None:
    """The worker's answer, or None if it died without one."""
    try:
        if worker.pipe.poll():
            answer: TaskRecord | PipelineError | str = worker.pipe.recv()
            return answer
    except (EOFError, OSError):
        pass  # a death in mid-answer is a death: the caller tries the task again
    return None


def _record(result: TaskRecord | PipelineError | str, task: Task) -> TaskRecord:
    if isinstance(result, TaskRecord):
        return result
    if isinstance(result, PipelineError):
        raise result
    raise TaskCrash(f"{task.stage} {task.key} (task {task.id})\n{result}")


def _cause(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        return f"killed by {signal.Signals(-exitcode).name}"
    return f"exit code {exitcode}"


def _stop(process: Any) -> None:
    process.kill()
    process.join()
