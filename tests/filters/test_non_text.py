"""The share of code points that are no text."""

from __future__ import annotations

import pytest

from dataprep.batch import doc_batch
from dataprep.filters.non_text import NonText


@pytest.mark.parametrize(
    ("text", "max_fraction", "dropped"),
    [
        ("abcdefg→→→", 0.3, False),
        ("abcdef→→→→", 0.3, True),
        ("abcdefgh→→", 0.3, False),
        ("汉字汉字汉字汉■■■", 0.3, False),
        ("汉字汉字汉字■■■■", 0.3, True),
        ("a", 0, False),
        ("a\ufffd", 0, True),
        ("", 0, False),
        (" \n\t\u3000", 0, False),
        ("。", 0, False),
        ("😀", 0.99, True),
        ("😀", 1, False),
        ("x = (a + b) * c; // $1 <= ~2 | `q`", 0, False),
        ("x" * 1_000_000, 0, False),
    ],
)
def test_a_share_above_the_limit_is_dropped_and_one_at_it_stays(text: str, max_fraction: float, dropped: bool) -> None:
    batch = NonText(max_fraction=max_fraction).run(doc_batch(["d"], [text], "s", ["o"])).batch
    assert batch.column("reason").to_pylist() == ["non_text.max_fraction" if dropped else None]
