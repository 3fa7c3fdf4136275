"""A small sample of an input, spread over its files, and how many bytes of these files it stands for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.batch import text_bytes
from dataprep.readers import read_split
from dataprep.readers.files import opened, seek_line
from dataprep.readers.formats import file_kind
from dataprep.readers.inputs import BadRecord, Compression, FileRange, Input, ReadBatch, Split
from dataprep.readers.parquet import row_group_bytes
from dataprep.readers.streams import StreamDamage, chunks

# Enough places for a mean, few enough that each still gives a stretch of documents.
_PLACES = 16
_MOST_FILES = 256
# Bad records count as well, lest a file of nothing else is read to its end.
_BAD_RECORD_BYTES = 1024

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Sample:
    """DocBatches, the number of bad records and these, read from `input_bytes` of the files, in CPU `seconds`.

    `input_bytes` of compressed files counts compressed bytes. `guessed` says that it could only be guessed.
    """

    batches: tuple[pa.RecordBatch, ...]
    bad: int
    input_bytes: float
    seconds: float
    guessed: bool = False
    bad_records: tuple[BadRecord, ...] = ()


def measured(work: Callable[[], _Result]) -> tuple[_Result, float]:
    """The result, and the CPU seconds of a second go: the first also compiles kernels and fills caches."""
    work()
    started = time.process_time()
    result = work()
    return result, max(time.process_time() - started, 1e-6)


def by_input(splits: Sequence[Split]) -> list[list[Split]]:
    """The splits of each input together, in the order of the inputs."""
    groups: dict[tuple[str, Input], list[Split]] = {}
    for split in splits:
        groups.setdefault((split.key.rpartition("/")[0], split.input), []).append(split)
    return list(groups.values())


def read_sample(splits: Sequence[Split], room: int) -> Sample:
    """Read about `room` bytes of text from the splits of one input; a file that is one document is read whole."""
    split = splits[0]
    ranges = [planned for one in splits for planned in one.ranges]
    chosen = _spread(ranges, _places(split, ranges, room))
    each = room // len(chosen)
    columnar = [planned for planned in chosen if file_kind(planned.name, split.input)[0] in ("parquet", "arrow")]
    samples = [_columnar(split, planned, each) for planned in columnar]
    others = [planned for planned in chosen if planned not in columnar]
    return _joined([*samples, _streamed(split, others, each, room)])


def _is_one_document(split: Split, planned: FileRange) -> bool:
    return split.input.unit == "file" and file_kind(planned.name, split.input)[0] == "text"


def _places(split: Split, ranges: Sequence[FileRange], room: int) -> int:
    if not _is_one_document(split, ranges[0]):
        return min(_PLACES, len(ranges))
    mean = sum(planned.size for planned in ranges) // len(ranges)
    return max(1, min(_MOST_FILES, len(ranges), room // max(1, mean)))


def _spread(ranges: Sequence[FileRange], places: int) -> list[FileRange]:
    return [ranges[(2 * place + 1) * len(ranges) // (2 * places)] for place in range(places)]


def _streamed(split: Split, ranges: Sequence[FileRange], each: int, room: int) -> Sample:
    """Lines, paragraphs, rows of text and whole texts: cut to whole lines before they are read."""
    cuts: list[FileRange] = []
    total = 0.0
    for planned in ranges:
        cut, taken = (planned, planned.size) if _is_one_document(split, planned) else _cut(split, planned, each)
        cuts.append(cut)
        total += taken
        if total > room:
            break
    reads, seconds = measured(lambda: list(read_split(_only(split, cuts))))
    return _sample(reads, total, seconds)


def _only(split: Split, ranges: Sequence[FileRange]) -> Split:
    return replace(split, ranges=tuple(ranges), limit=None)


def _sample(reads: Sequence[ReadBatch], input_bytes: float, seconds: float, guessed: bool = False) -> Sample:
    batches = tuple(read.batch for read in reads)
    records = tuple(record for read in reads for record in read.bad)
    return Sample(batches, sum(len(read.bad) for read in reads), input_bytes, seconds, guessed, records)


def _joined(samples: Sequence[Sample]) -> Sample:
    return Sample(
        tuple(batch for sample in samples for batch in sample.batches),
        sum(sample.bad for sample in samples),
        sum(sample.input_bytes for sample in samples),
        sum(sample.seconds for sample in samples),
        any(sample.guessed for sample in samples),
        tuple(record for sample in samples for record in sample.bad_records),
    )


def _cut(split: Split, planned: FileRange, room: int) -> tuple[FileRange, float]:
    """The range cut to whole lines of about `room` bytes, and the bytes of the file these lines take."""
    compression = file_kind(planned.name, split.input)[1]
    if compression != "none":
        return _cut_compressed(planned, compression, room)
    stop = planned.size if planned.end is None else planned.end
    with opened(planned) as file:
        first = seek_line(file, planned.start, None)
        end = seek_line(file, min(planned.start + room, stop), None)
    return replace(planned, end=end), max(0, end - first)


def _cut_compressed(planned: FileRange, compression: Compression, room: int) -> tuple[FileRange, float]:
    plain, taken, end = 0, 0, 0
    with opened(planned) as file:
        try:
            for chunk in chunks(file, planned.path, compression):
                # The decoder takes the file in bites; all that the first one holds has come out.
                if end and taken < file.tell():
                    break
                taken = file.tell()
                feed = chunk.find(b"\n", max(0, room - plain))
                end = plain + feed + 1 if feed >= 0 and not end else end
                plain += len(chunk)
            else:
                taken = planned.size
        except StreamDamage:
            # The reader meets the same damage and counts it as a bad record.
            taken = planned.size
    end = end or plain
    return replace(planned, end=end), taken * end / plain if plain else taken


def _columnar(split: Split, planned: FileRange, room: int) -> Sample:
    (reads, whole), seconds = measured(lambda: _read_until(_only(split, [planned]), room))
    sample = _sample(reads, _range_bytes(planned), seconds)
    if whole:
        return sample
    if file_kind(planned.name, split.input)[0] == "parquet":
        records = sample.bad + sum(batch.num_rows for batch in sample.batches)
        return replace(sample, input_bytes=sample.input_bytes * records / _range_rows(planned))
    # An Arrow file does not tell its rows; most are not compressed and hold little but text.
    return replace(sample, input_bytes=sum(text_bytes(batch) for batch in sample.batches), guessed=True)


def _read_until(split: Split, room: int) -> tuple[list[ReadBatch], bool]:
    """Batches of about `room` bytes of text, and whether they are all there is."""
    reads: list[ReadBatch] = []
    size = 0
    for read in read_split(split, batch_bytes=room):
        if size >= room:
            return reads, False
        reads.append(read)
        size += text_bytes(read.batch) + _BAD_RECORD_BYTES * len(read.bad)
    return reads, True


def _range_bytes(planned: FileRange) -> int:
    if planned.start == 0 and planned.end is None:
        return planned.size
    return sum((row_group_bytes(planned.path) or ())[planned.start : planned.end])


def _range_rows(planned: FileRange) -> int:
    """Rows of a Parquet file's range that could be read."""
    metadata = pq.read_metadata(planned.path)
    end = metadata.num_row_groups if planned.end is None else planned.end
    return sum(metadata.row_group(group).num_rows for group in range(planned.start, end))
