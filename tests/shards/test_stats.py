"""Statistics are exact: sums from the manifest, percentiles by nearest rank from every document's length."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dataprep.shards import stats as stats_module
from dataprep.shards.stats import as_json, collect, render_stats


def test_sums_percentiles_and_fertility_of_the_tiny_set(pristine: Path) -> None:
    stats = collect(pristine)
    # en: hello 5, x 1, "one line\nand another" 20 bytes; zh: 15 and 3 bytes; one EOS each.
    assert (stats.sources["en"].tokens, stats.sources["en"].text_bytes) == (29, 26)
    assert (stats.sources["zh"].tokens, stats.sources["zh"].text_bytes) == (20, 18)
    assert stats.sources["en"].lengths == {"p1": 2, "p10": 2, "p50": 6, "p90": 21, "p99": 21, "max": 21}
    assert stats.total.lengths == {"p1": 2, "p10": 2, "p50": 6, "p90": 21, "p99": 21, "max": 21}
    assert stats.sources["zh"].rows == 20 / 9
    assert stats.sources["zh"].bytes_per_token == 0.9
    assert round(stats.sources["zh"].tokens_per_1000_bytes) == 1111
    assert (stats.rows, stats.padding, stats.padding_share) == (6, 5, 5 / 54)


def test_the_result_is_json_and_tables_that_name_every_source_and_reason(pristine: Path) -> None:
    stats = collect(pristine)
    document = json.loads(json.dumps(as_json(stats)))
    assert document["ledger"]["dedup"]["en"]["dropped"] == {"exact_dedup": 1}
    assert document["sources"]["zh"]["documents"] == 2
    console = Console(file=io.StringIO(), width=160)
    console.print(render_stats(stats))
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    for word in ("en", "zh", "total", "dropped exact_dedup", "quarantined invalid_json", "p99"):
        assert word in shown


@pytest.mark.parametrize("width", [160, 80, 60, 40, 20])
def test_no_terminal_is_too_narrow_for_a_whole_number(pristine: Path, width: int) -> None:
    stats = collect(pristine)
    big = replace(stats.total, documents=123_456_789, tokens=987_654_321_000, text_bytes=1_234_567_890_123)
    wide = replace(stats, total=big, sources={"a-source-with-quite-a-long-name": big, "zh": stats.sources["zh"]})
    console = Console(file=io.StringIO(), width=width)
    console.print(render_stats(wide))
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    assert "…" not in shown
    words = ("123,456,789", "987,654,321,000", "1,234,567,890,123", "documents", "records", "p50", "Sources")
    assert [word for word in words if word not in shown] == []


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60))
def test_percentiles_are_the_nearest_rank_of_all_lengths(lengths: list[int]) -> None:
    keys, counts = np.unique(np.array(lengths), return_counts=True)
    found = stats_module._percentiles(keys[::-1], counts[::-1])
    ordered = sorted(lengths)
    for percent in (1, 10, 50, 90, 99):
        at_or_below = next(n for n in ordered if 100 * sum(m <= n for m in lengths) >= percent * len(lengths))
        assert found[f"p{percent}"] == at_or_below
    assert found["max"] == ordered[-1]


@given(st.lists(st.lists(st.integers(1, 40), max_size=20), min_size=1, max_size=6))
def test_merging_histograms_is_counting_all_at_once(parts: list[list[int]]) -> None:
    histograms = [
        stats_module._Histogram(
            *(part.astype(np.int64) for part in np.unique(np.array(p, np.int64), return_counts=True))
        )
        for p in parts
    ]
    merged = stats_module._merge(histograms)
    everything = [value for part in parts for value in part]
    assert dict(zip(merged.keys.tolist(), merged.counts.tolist(), strict=True)) == {
        value: everything.count(value) for value in everything
    }


def test_counts_need_neither_mindspore_nor_tokenizers(pristine: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from dataprep.shards import inspect, stats, verify\n"
        "stats.collect(pathlib.Path(sys.argv[1]))\n"
        "assert verify.verify(pathlib.Path(sys.argv[1]), quick=True) == []\n"
        "assert not {'mindspore', 'tokenizers'} & set(sys.modules), 'imported'\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code, str(pristine)], cwd=root, check=True)
