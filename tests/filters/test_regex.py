"""Regular-expression verdicts and the errors of bad patterns."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dataprep.batch import doc_batch
from dataprep.filters.regex import Regex


def reasons(step: Regex, *texts: str) -> list[str | None]:
    batch = doc_batch([str(at) for at in range(len(texts))], texts, "s", ["o"] * len(texts))
    return step.run(batch).batch.column("reason").to_pylist()


def test_a_document_matching_any_drop_pattern_is_dropped() -> None:
    step = Regex(drop=["lorem ipsum", "^【广告】"])
    assert reasons(step, "so lorem ipsum it", "【广告】买", "不是【广告】", "") == [
        "regex.drop",
        "regex.drop",
        None,
        None,
    ]


def test_a_document_matching_no_keep_pattern_is_dropped() -> None:
    assert reasons(Regex(keep=[r"\d", "数"]), "a1", "数学", "none", "") == [None, None, "regex.keep", "regex.keep"]


def test_drop_comes_before_keep() -> None:
    step = Regex(drop="x", keep="y")
    assert reasons(step, "x", "xy", "y", "z") == ["regex.drop", "regex.drop", None, "regex.keep"]


def test_one_pattern_may_be_written_without_a_list() -> None:
    assert Regex(drop="a") == Regex(drop=["a"])
    assert Regex.model_validate({"drop": ["a"]}, strict=True) == Regex.model_validate({"drop": "a"}, strict=True)


def test_nested_repetition_takes_linear_time() -> None:
    assert reasons(Regex(drop="(a+)+$"), "a" * 1_000_000 + "b") == [None]


@pytest.mark.parametrize("text", ["", " ", "\n", "。", "😀", "x" * 1_000_000])
def test_degenerate_texts_are_judged(text: str) -> None:
    assert reasons(Regex(drop="never"), text) == [None]


@pytest.mark.parametrize(
    ("patterns", "place", "message"),
    [
        ({"drop": ["ok", "x[z-a]"]}, ("drop", 1), "at character 3: invalid character class range: z-a"),
        ({"keep": "ab*(?=c)"}, ("keep", 0), r"at character 4: invalid perl operator: \(\?="),
        ({"drop": r"(a)\1"}, ("drop", 0), r"at character 4: invalid escape sequence"),
        ({"drop": "a\\"}, ("drop", 0), r"at character 2: trailing"),
        ({"drop": ""}, ("drop", 0), "at least 1 character"),
    ],
)
def test_a_bad_pattern_is_refused_with_its_place(
    patterns: dict[str, object], place: tuple[str, int], message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        Regex(**patterns)
    assert caught.value.errors()[0]["loc"] == place


def test_a_step_without_patterns_is_refused() -> None:
    with pytest.raises(ValidationError, match="give a pattern to drop or to keep"):
        Regex()
