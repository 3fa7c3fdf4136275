"""Bad records are told by source: the commonest reason, one example, and the key to change."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataprep.readers.inputs import BadRecord, FileRange, Input, Split
from dataprep.readers.split import plan_splits
from dataprep.runtime.bad_records import (
    _MENDS,
    BadSource,
    bad_of_run,
    bad_of_sample,
    input_number,
    mend_of,
    told_of,
)
from dataprep.runtime.ledger import Output, Tally, TaskRecord
from dataprep.runtime.rejected import QUARANTINE_SCHEMA, quarantine_rows

DOCS = Path(__file__).parents[2] / "docs" / "pipeline.md"


def bad(reason: str, origin: str = "a.jsonl#0", source: str = "a", detail: str = "why") -> BadRecord:
    return BadRecord(source, origin, reason, detail, "")


def of(reason: str, entry: Input | None = None, columnar: bool = False, detail: str = "why") -> BadSource:
    return BadSource("a", 4, {reason: 2}, bad(reason, detail=detail), entry or Input(path="a"), 3, columnar)


def task(folder: Path, key: str, tallies: dict[str, Tally], records: list[BadRecord]) -> TaskRecord:
    path = folder / "quarantine" / f"{key.replace('/', '-')}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_batches([quarantine_rows(records)], schema=QUARANTINE_SCHEMA), path)
    return TaskRecord("id", "prepare", key, (Output(str(path), 1, "0", 1),), tallies, {}, {}, {})


def test_a_run_is_told_by_source_worst_first_with_an_example_from_quarantine(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("{}\n")
    inputs = (Input(path="b.jsonl"), Input(path="a.jsonl"))
    splits = plan_splits(inputs, tmp_path, split_bytes=100, limit=None)
    prepared = [
        task(
            tmp_path,
            "a/000000",
            {"a": Tally(10, quarantined={"text_null": 1, "text_missing": 2})},
            [bad("text_null"), bad("text_missing", "a.jsonl#7", detail="the record has no field text")],
        ),
        task(tmp_path, "b/000000", {"b": Tally(9, quarantined={"invalid_utf8": 9})}, [bad("invalid_utf8", "b#1", "b")]),
    ]
    found = bad_of_run(splits, inputs, prepared)
    assert told_of(found) == (
        "b: invalid_utf8 in 9 of 9 records (100%), such as b#1: why; "
        "a: text_missing in 2 of 10 records (20%), such as a.jsonl#7: the record has no field text"
    )
    assert mend_of(found) == (
        "set inputs[0].encoding to auto or gb18030, or recode the files; "
        "set inputs[1].text to the field that holds the text"
    )


def test_of_many_sources_the_worst_three_are_told() -> None:
    sources = [BadSource(name, 9, {"too_long": 1}, None, Input(path="x"), 0, False) for name in "abcde"]
    assert told_of(sources) == (
        "a: too_long in 1 of 9 records (11%); b: too_long in 1 of 9 records (11%); "
        "c: too_long in 1 of 9 records (11%); and 2 more sources"
    )
    assert mend_of(sources) == "raise inputs[0].max_doc_bytes"


def test_a_sample_is_told_by_its_commonest_reason() -> None:
    records = [bad("text_null"), bad("broken_json", "a.jsonl#5"), bad("broken_json", "a.jsonl#9")]
    split = Split("a/000000", Input(path="a", source="a"), (FileRange("/in/a.jsonl", "a.jsonl", 1, 1),), 1)
    found = bad_of_sample([split], (Input(path="a"),), 997, records)
    assert found is not None
    assert found.told() == "a: broken_json in 2 of 1,000 records (0.20%), such as a.jsonl#5: why"
    assert found.mend() == "check inputs[0].format: jsonl is one JSON object a line"
    assert bad_of_sample([split], (Input(path="a"),), 5, []) is None


def test_every_reason_in_the_reference_has_a_mend() -> None:
    table = DOCS.read_text("utf-8").partition("| reason | what was found |")[2].partition("\n\n")[0]
    reasons = {name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert len(reasons) > 10
    assert reasons - set(_MENDS) == set()


def test_where_no_other_encoding_helps_none_is_offered() -> None:
    assert of("invalid_utf8", Input(path="a", encoding="auto")).mend() == "recode these files in UTF-8"
    assert of("invalid_utf8", columnar=True).mend() == "recode these files in UTF-8"
    assert of("invalid_utf8").mend().startswith("set inputs[3].encoding to auto")


@pytest.mark.parametrize(("name", "columnar"), [("a#b.parquet", True), ("a#b.txt", False)])
def test_a_file_with_a_hash_in_its_name_is_told_from_its_records(name: str, columnar: bool) -> None:
    split = Split("a/000000", Input(path="a", source="a"), (FileRange(f"/in/{name}", name, 1, 1),), 1)
    for origin in (name, f"{name}#5"):
        found = bad_of_sample([split], (Input(path="a"),), 0, [bad("invalid_utf8", origin)])
        assert found is not None
        assert found.columnar is columnar


def test_an_endless_detail_is_cut() -> None:
    assert len(of("broken_json", detail="x" * 5000).told()) < 300


def test_an_input_is_found_again_by_all_but_its_label() -> None:
    inputs = (Input(path=("b", "a"), text="x"), Input(path=("b", "a"), text="y", exclude=("q", "p")))
    planned = Input(path=("a", "b"), text="y", exclude=("p", "q"), source="label")
    assert input_number(inputs, planned) == 1
