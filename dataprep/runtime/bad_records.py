"""What is wrong with the bad records of a run or of a sample: by source the most frequent reason, and its mend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataprep.readers.formats import file_kind
from dataprep.readers.inputs import BadRecord, Input, Split
from dataprep.runtime.ledger import TaskRecord, add_tallies
from dataprep.wording import counted

# A message is one line: these many sources are told, the worst first.
_SOURCES_TOLD = 3
_DETAIL_CHARACTERS = 200

_DAMAGED = "fetch these files again, or leave them out with {input}.exclude"
_MENDS = {
    "text_missing": "set {input}.text to the field that holds the text",
    "text_null": "leave these records out, or set {input}.text to another field",
    "text_not_string": "set {input}.text to a field that holds text",
    "invalid_utf8": "set {input}.encoding to auto or gb18030, or recode the files",
    "invalid_gb18030": "set {input}.encoding to auto or utf-8, or recode the files",
    "lone_surrogate": "write these records anew with whole characters",
    "broken_json": "check {input}.format: jsonl is one JSON object a line",
    "not_an_object": "check {input}.format: jsonl is one JSON object a line",
    "broken_row": "check {input}.format, and the quotes of these rows",
    "id_not_scalar": "set {input}.id to a field that holds text or numbers",
    "too_long": "raise {input}.max_doc_bytes",
    **dict.fromkeys(
        ("broken_file", "broken_row_group", "broken_record_batch", "truncated_stream", "trailing_garbage"), _DAMAGED
    ),
}
_NEITHER_ENCODING = "recode these files in UTF-8"


@dataclass(frozen=True, slots=True)
class BadSource:
    """One source with bad records: of `records` read, how many are bad for each reason, and one for the commonest.

    `input_number` is that of the input the example is from; `columnar` says that its file is Parquet or Arrow.
    """

    source: str
    records: int
    reasons: Mapping[str, int]
    example: BadRecord | None
    input: Input
    input_number: int
    columnar: bool

    @property
    def bad(self) -> int:
        """Bad records of all reasons."""
        return sum(self.reasons.values())

    @property
    def commonest(self) -> str:
        """The most frequent reason; of equally frequent ones the first by name."""
        return _most(self.reasons)

    def told(self) -> str:
        """`zh: text_missing in 20 of 20 records (100%), such as zh.jsonl#0: the record has no field content`."""
        count = self.reasons[self.commonest]
        of = f"{count:,} of {counted(self.records, 'record')} ({_percent(count / self.records)})"
        such = "" if self.example is None else f", such as {_shown(self.example)}"
        return f"{self.source}: {self.commonest} in {of}{such}"

    def mend(self) -> str:
        """What to do about the commonest reason, with the key to change."""
        mend = _MENDS.get(self.commonest, "mend these records")
        if self.commonest.startswith("invalid_") and (self.columnar or self.input.encoding == "auto"):
            mend = _NEITHER_ENCODING
        return mend.format(input=f"inputs[{self.input_number}]")


def told_of(sources: Sequence[BadSource]) -> str:
    """The worst sources in one line."""
    worst = [source.told() for source in sources[:_SOURCES_TOLD]]
    more = len(sources) - len(worst)
    return "; ".join([*worst, *([f"and {counted(more, 'more source')}"] if more else [])])


def mend_of(sources: Sequence[BadSource]) -> str:
    """The mends of the worst sources, each once."""
    return "; ".join(dict.fromkeys(source.mend() for source in sources[:_SOURCES_TOLD]))


def bad_of_run(splits: Sequence[Split], inputs: Sequence[Input], prepared: Sequence[TaskRecord]) -> list[BadSource]:
    """The sources with bad records, most bad records first; examples are read from the quarantine tables."""
    by_key = {split.key: split for split in splits}
    found = []
    for source, tally in add_tallies(record.tallies for record in prepared).items():
        if not tally.quarantined:
            continue
        reason = _most(tally.quarantined)
        having = [r for r in prepared if source in r.tallies and reason in r.tallies[source].quarantined]
        task = min(having, key=lambda record: record.key)
        split = by_key[task.key]
        example = _example(task, source, reason)
        number, columnar = input_number(inputs, split.input), _is_columnar(split, example)
        found.append(BadSource(source, tally.records, tally.quarantined, example, split.input, number, columnar))
    return sorted(found, key=lambda one: -one.bad)


def bad_of_sample(
    splits: Sequence[Split], inputs: Sequence[Input], documents: int, bad: Sequence[BadRecord]
) -> BadSource | None:
    """The same of a sample of one input's `splits`, in which `documents` are good; None where no record is bad."""
    if not bad:
        return None
    reasons = Counter(record.reason for record in bad)
    commonest = _most(reasons)
    example = next(record for record in bad if record.reason == commonest)
    split = next((one for one in splits if _file_of(one, example)), splits[0])
    label = split.key.rpartition("/")[0]
    number, columnar = input_number(inputs, split.input), _is_columnar(split, example)
    return BadSource(label, documents + len(bad), reasons, example, split.input, number, columnar)


def _most(reasons: Mapping[str, int]) -> str:
    """The most frequent reason; of equally frequent ones the first by name."""
    return min(reasons, key=lambda reason: (-reasons[reason], reason))


def _file_of(split: Split, example: BadRecord) -> str | None:
    names = (planned.name for planned in split.ranges)
    return next((name for name in names if example.origin == name or example.origin.startswith(f"{name}#")), None)


def _is_columnar(split: Split, example: BadRecord | None) -> bool:
    name = None if example is None else _file_of(split, example)
    return name is not None and file_kind(name, split.input)[0] in ("parquet", "arrow")


def input_number(inputs: Sequence[Input], planned: Input) -> int:
    """Which of `inputs` a split's input is: there its label is filled in and its lists are sorted."""
    settled = {"source", "path", "include", "exclude"}

    def lists(entry: Input) -> list[set[str]]:
        paths = {entry.path} if isinstance(entry.path, str) else set(entry.path)
        return [paths, set(entry.include), set(entry.exclude)]

    plain = planned.model_dump(exclude=settled)
    same = (
        at
        for at, entry in enumerate(inputs)
        if lists(entry) == lists(planned) and entry.model_dump(exclude=settled) == plain
    )
    return next(same)


def _example(task: TaskRecord, source: str, reason: str) -> BadRecord | None:
    tables = [Path(output.path) for output in task.outputs if Path(output.path).parent.name == "quarantine"]
    for table in tables:
        with pq.ParquetFile(table) as file:
            for batch in file.iter_batches(1024):
                fits = pc.and_(pc.equal(batch.column("source"), source), pc.equal(batch.column("reason"), reason))
                chosen = batch.filter(fits.cast(pa.bool_()))
                if chosen.num_rows:
                    return BadRecord(**chosen.slice(0, 1).to_pylist()[0])
    return None


def _shown(record: BadRecord) -> str:
    text = f"{record.origin}: {record.detail}"
    return text if len(text) <= _DETAIL_CHARACTERS else text[: _DETAIL_CHARACTERS - 1] + "…"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.2%}"
