"""Memory of reading, measured in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SIZE = 200_000_000

PROGRAM = """
import re, sys
from pathlib import Path
from dataprep.readers import read_split
from dataprep.readers.inputs import Input
from dataprep.readers.split import plan_splits

def peak():
    # Not getrusage: its peak begins at the parent's, and pytest is large.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10

folder, name, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
def read(name):
    good, bad, size = 0, [], 0
    entry = Input(path=name, max_doc_bytes=limit, unit="line")
    for split in plan_splits([entry], folder, split_bytes=1 << 30, limit=None):
        for batch in read_split(split):
            good += batch.batch.num_rows
            bad += [record.reason for record in batch.bad]
            size = max([size, *(len(text.as_py()) for text in batch.batch.column("text"))])
    return good, bad, size
read("small.jsonl")
before = peak()
good, bad, size = read(name)
print(good, ",".join(bad) or "-", size, peak() - before)
"""


def measured(folder: Path, name: str, limit: int) -> tuple[int, str, int, int]:
    """(good records, reasons, characters of the longest text, MiB the peak rose by)."""
    (folder / "small.jsonl").write_text('{"text": "small"}\n')
    command = [sys.executable, "-c", PROGRAM, str(folder), name, str(limit)]
    root = Path(__file__).parents[2]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout.split()
    return int(out[0]), out[1], int(out[2]), int(out[3])


def one_long(folder: Path, name: str, unit: bytes, head: bytes, tail: bytes) -> None:
    small = head + b"small" + tail + b"\n"
    with (folder / name).open("wb") as file:
        file.write(small + head)
        for _ in range(SIZE // len(unit) // 1000):
            file.write(unit * 1000)
        file.write(tail + b"\n" + small)


@pytest.mark.parametrize(
    ("name", "unit", "head", "tail"),
    [
        ("x.jsonl", b"word and ", b'{"text": "', b'"}'),
        ("x.txt", b"word and ", b"", b""),
        ("x.csv", b"word and ", b"text\n", b""),
    ],
)
def test_a_200_mb_document_over_the_limit_is_never_held(
    tmp_path: Path, name: str, unit: bytes, head: bytes, tail: bytes
) -> None:
    one_long(tmp_path, name, unit, head, tail)
    good, reasons, _, rise = measured(tmp_path, name, 32 << 20)
    assert reasons.split(",").count("too_long") == 1
    assert good >= 2
    assert rise < 110


def test_a_200_mb_document_within_the_limit_passes(tmp_path: Path) -> None:
    one_long(tmp_path, "x.jsonl", b"word and ", b'{"text": "', b'"}')
    good, reasons, size, rise = measured(tmp_path, "x.jsonl", 256 << 20)
    assert (good, reasons) == (3, "-")
    assert size > 199_000_000
    # The line, its text and its Arrow copy, and the joins in between.
    assert rise < 1500


def test_a_long_file_of_short_records_takes_no_more_than_batches(tmp_path: Path) -> None:
    line = b'{"text": "' + b"word and " * 100 + b'"}\n'
    with (tmp_path / "x.jsonl").open("wb") as file:
        for _ in range(SIZE // len(line) // 1000):
            file.write(line * 1000)
    good, reasons, _, rise = measured(tmp_path, "x.jsonl", 32 << 20)
    assert (good, reasons) == (SIZE // len(line) // 1000 * 1000, "-")
    assert rise < 110
