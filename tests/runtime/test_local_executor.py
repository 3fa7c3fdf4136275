"""The local executor finishes every task, survives what kills its workers, and leaves no process behind."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataprep.errors import BadDataError, EnvironmentFailure
from dataprep.runtime.executors.local import LocalExecutor, Retried, TaskCrash
from dataprep.runtime.ledger import Ledger, TaskRecord
from dataprep.runtime.task import Job, Task

HERE = Path(__file__).parent
# Workers get this process's sys.path, and so find the jobs by their module's name.
sys.path.insert(0, str(HERE))

from executor_jobs import Busy, Crash, DieUntil, Exhaust, HoldOpen, Leave, Meet, Open, Refuse, Write  # noqa: E402

GIB = 1 << 30


def task(name: str, job: Job, memory: int = 1) -> Task:
    return Task("stage", f"web/{name}", f"id-{name}", job, 10, memory)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledger")


@pytest.fixture(scope="module")
def pool(ledger: Path) -> Iterator[LocalExecutor]:
    executor = LocalExecutor(2, 10, ledger)
    yield executor
    executor.close()


def pids(results: list[TaskRecord | Retried]) -> set[int]:
    return {result.facts["pid"] for result in results if isinstance(result, TaskRecord)}


def test_every_task_is_done_and_committed_by_the_pool(pool: LocalExecutor, ledger: Path, tmp_path: Path) -> None:
    tasks = [task(f"w{n}", Write(tmp_path / f"{n}", "x" * n)) for n in range(12)]
    results = list(pool.run(tasks))
    assert sorted(result.id for result in results if isinstance(result, TaskRecord)) == sorted(t.id for t in tasks)
    for result in results:
        assert isinstance(result, TaskRecord)
        assert Ledger(ledger).find("stage", result.id) == result
        assert Path(result.outputs[0].path).read_text() == "x" * result.outputs[0].bytes
    assert os.getpid() not in pids(results)
    assert len(pids(results)) <= 2
    # Workers stay for the next stage.
    assert pids(list(pool.run([task("next", Write(tmp_path / "next", ""))]))) <= pids(results)


def test_no_tasks_are_done_at_once(pool: LocalExecutor) -> None:
    assert list(pool.run([])) == []


def test_as_many_tasks_run_at_once_as_there_are_workers(pool: LocalExecutor, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    meeting = [task("r", Meet(tmp_path / "fifo", "rb")), task("w", Meet(tmp_path / "fifo", "wb"))]
    assert len(list(pool.run(meeting))) == 2


def test_a_task_whose_worker_is_killed_once_is_retried_and_finishes(pool: LocalExecutor, tmp_path: Path) -> None:
    dies = task("once", DieUntil(tmp_path / "marker", once=True))
    others = [task(f"o{n}", Write(tmp_path / f"{n}", "")) for n in range(3)]
    results = list(pool.run([others[0], dies, *others[1:]]))
    assert [result for result in results if isinstance(result, Retried)] == [Retried(dies, "killed by SIGKILL")]
    done = [result.id for result in results if isinstance(result, TaskRecord)]
    assert sorted(done) == ["id-o0", "id-o1", "id-o2", "id-once"]


@pytest.mark.parametrize(("name", "cause"), [("killed", "killed by SIGKILL"), ("left", "exit code 7")])
def test_a_task_that_always_kills_its_worker_fails_with_its_name_and_the_cause(
    pool: LocalExecutor, tmp_path: Path, name: str, cause: str
) -> None:
    job = DieUntil(tmp_path / "never", once=False) if name == "killed" else Leave(7)
    seen = []
    with pytest.raises(EnvironmentFailure) as failure:
        seen.extend(pool.run([task(name, job)]))
    assert f"id-{name}" in failure.value.what
    assert cause in failure.value.what
    assert failure.value.where == f"stage web/{name}"
    assert "lower run.workers" in (failure.value.mend or "")


def test_an_idle_worker_that_was_killed_costs_no_task(pool: LocalExecutor, tmp_path: Path) -> None:
    list(pool.run([task("first", Write(tmp_path / "first", ""))]))
    for process, _ in pool._idle:
        process.kill()
        process.join()
    results = list(pool.run([task(f"after{n}", Write(tmp_path / f"{n}", "")) for n in range(3)]))
    assert sorted(result.id for result in results if isinstance(result, TaskRecord)) == [
        f"id-after{n}" for n in range(3)
    ]


def test_errors_arrive_with_all_they_say(pool: LocalExecutor, tmp_path: Path) -> None:
    with pytest.raises(BadDataError) as refused:
        list(pool.run([task("bad", Refuse())]))
    assert (refused.value.what, refused.value.where) == ("not JSON", "a.jsonl:3")
    assert refused.value.mend == "mend the record"

    with pytest.raises(EnvironmentFailure) as missing:
        list(pool.run([task("open", Open(tmp_path / "gone"))]))
    assert (missing.value.what, missing.value.where) == ("No such file or directory", str(tmp_path / "gone"))

    with pytest.raises(EnvironmentFailure) as exhausted:
        list(pool.run([task("exhaust", Exhaust())]))
    assert (exhausted.value.what, exhausted.value.where) == ("out of memory", "stage web/exhaust")


def test_a_defect_arrives_with_the_traceback_of_the_worker(pool: LocalExecutor) -> None:
    with pytest.raises(TaskCrash) as crash:
        list(pool.run([task("crash", Crash())]))
    text = str(crash.value)
    assert text.startswith("stage web/crash (task id-crash)\n")
    assert "executor_jobs.py" in text
    assert "ZeroDivisionError: a defect of the code" in text


def test_a_failure_stops_the_tasks_that_run_beside_it_and_the_pool_goes_on(pool: LocalExecutor, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    holding, failing = task("hold", HoldOpen(fifo)), task("bad", Refuse(after=fifo))
    with pytest.raises(BadDataError):
        list(pool.run([holding, failing]))
    # The end of the pipe is closed: the worker that would hold it for ever is gone.
    assert _at_end(reader)
    os.close(reader)
    assert len(list(pool.run([task("on", Write(tmp_path / "on", ""))]))) == 1


def _at_end(reader: int) -> bool:
    while True:
        assert select.select([reader], [], [], 30)[0], "a worker still holds the pipe after 30 s"
        if os.read(reader, 16) == b"":
            return True


def spans(directory: Path) -> list[tuple[int, int, int]]:
    """(start, end, memory) of the busy jobs, whose notes are named by number and memory."""
    return [
        (*(int(moment) for moment in note.read_text().split()), int(note.suffix[1:]))  # type: ignore[misc]
        for note in directory.iterdir()
    ]


def test_tasks_never_run_together_that_need_more_memory_than_there_is(pool: LocalExecutor, tmp_path: Path) -> None:
    needs = [6, 6, 4, 7, 3, 30, 1, 10, 5, 5]
    results = list(pool.run([task(f"m{n}", Busy(tmp_path / f"{n}.{need}"), need) for n, need in enumerate(needs)]))
    assert len(results) == len(needs)
    noted = spans(tmp_path)
    assert sorted(need for *_, need in noted) == sorted(needs)
    for moment, _, _ in noted:
        together = [need for start, end, need in noted if start <= moment < end]
        assert sum(together) <= pool.memory or len(together) == 1


PARENT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from executor_jobs import HoldOpen
from dataprep.runtime.executors.local import LocalExecutor
from dataprep.runtime.task import Task
if __name__ == "__main__":
    fifo = Path(sys.argv[2])
    tasks = [Task("stage", f"web/{n}", f"id-{n}", HoldOpen(fifo), 1, 1) for n in range(2)]
    list(LocalExecutor(2, 10, fifo.parent / "ledger").run(tasks))
"""


def test_workers_leave_when_the_run_is_killed(tmp_path: Path) -> None:
    fifo, script = tmp_path / "fifo", tmp_path / "parent.py"
    os.mkfifo(fifo)
    script.write_text(PARENT)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    keeper = os.open(fifo, os.O_WRONLY)  # no end of file before both workers have come
    with subprocess.Popen([sys.executable, str(script), str(HERE), str(fifo)]) as parent:
        said = b""
        while len(said) < 2:
            assert select.select([reader], [], [], 120)[0], "the workers have not started within 120 s"
            said += os.read(reader, 2)
        parent.kill()
    os.close(keeper)
    assert _at_end(reader)
    os.close(reader)


UNREAD = """
import sys
from pathlib import Path
import multiprocess
sys.path.insert(0, sys.argv[2])
from executor_jobs import Write
from dataprep.runtime.executors.local import work
from dataprep.runtime.task import Task

folder = Path(sys.argv[1])
context = multiprocess.get_context("spawn")
ours, theirs = context.Pipe()
alive, _ = context.Pipe(duplex=False)
worker = context.Process(target=work, args=(theirs, alive, folder))
worker.start()
theirs.close()
ours.send(Task("stage", "web/x", "x", Write(folder / "x", "x"), 1, 1))
ours.poll(60)
ours.close()
worker.join(60)
print(worker.exitcode)
"""


def test_a_worker_whose_answer_nobody_takes_leaves_without_a_word(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNREAD, str(tmp_path), str(HERE)],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
