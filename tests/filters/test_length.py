"""Length limits: at, just below and just above each."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dataprep.batch import doc_batch
from dataprep.filters.length import Length


def reasons(step: Length, *texts: str) -> list[str | None]:
    batch = doc_batch([str(at) for at in range(len(texts))], texts, "s", ["o"] * len(texts))
    return step.run(batch).batch.column("reason").to_pylist()


@pytest.mark.parametrize(
    ("limits", "text", "reason"),
    [
        ({"min_chars": 4}, "四个汉字", None),
        ({"min_chars": 4}, "abc", "length.min_chars"),
        ({"max_chars": 4}, "四个汉字", None),
        ({"max_chars": 4}, "abcde", "length.max_chars"),
        ({"min_words": 3}, "one two three", None),
        ({"min_words": 3}, "one two-", "length.min_words"),
        ({"min_words": 3}, "三个字", None),
        ({"max_words": 3}, "don't stop now", None),
        ({"max_words": 3}, "don't stop now 我", "length.max_words"),
        ({"min_bytes": 6}, "汉字", None),
        ({"min_bytes": 6}, "汉ab", "length.min_bytes"),
        ({"max_bytes": 6}, "汉字", None),
        ({"max_bytes": 6}, "汉字!", "length.max_bytes"),
        ({"min_chars": 2, "min_words": 1, "min_bytes": 9}, "。", "length.min_chars"),
        ({"min_chars": 1, "min_words": 1, "min_bytes": 9}, "。", "length.min_words"),
        ({"min_chars": 1}, "", "length.min_chars"),
        ({"min_words": 1}, " \n ", "length.min_words"),
        ({"min_words": 1}, "😀😀", "length.min_words"),
        ({"max_words": 1, "max_bytes": 1_000_000}, "x" * 1_000_000, None),
        ({"max_bytes": 999_999}, "x" * 1_000_000, "length.max_bytes"),
    ],
)
def test_a_text_within_the_limit_stays_and_one_beyond_is_dropped_for_it(
    limits: dict[str, int], text: str, reason: str | None
) -> None:
    assert reasons(Length(**limits), text) == [reason]


def test_each_document_of_a_batch_is_judged_by_itself() -> None:
    assert reasons(Length(min_chars=2, max_chars=3), "a", "ab", "abc", "abcd") == [
        "length.min_chars",
        None,
        None,
        "length.max_chars",
    ]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "give at least one limit"),
        ({"min_chars": 5, "max_chars": 4}, "min_chars 5 is above max_chars 4"),
        ({"min_words": -1}, "greater than or equal to 0"),
        ({"min_wrds": 1}, "Extra inputs are not permitted"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, int], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Length(**limits)
