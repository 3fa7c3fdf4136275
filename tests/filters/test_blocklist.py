"""Blocked terms: whole words, Chinese, case, counting, and the file they come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dataprep.batch import doc_batch
from dataprep.errors import ConfigError, EnvironmentFailure
from dataprep.filters.blocklist import Blocklist


def dropped(step: Blocklist, *texts: str) -> list[bool]:
    batch = doc_batch([str(at) for at in range(len(texts))], texts, "s", ["o"] * len(texts))
    reasons = step.run(batch).batch.column("reason").to_pylist()
    assert set(reasons) <= {None, "blocklist.max_hits"}
    return [reason is not None for reason in reasons]


@pytest.mark.parametrize(
    ("term", "text", "hit"),
    [
        ("ass", "class", False),
        ("ass", "an ass.", True),
        ("ass", "ASS", True),
        ("ass", "ass’s", False),
        ("don", "don't", False),
        ("ass", "'ass'", True),
        ("ass", "ass\u0301", False),
        ("ass", "snake_ass", True),
        ("ass", "中ass文", True),
        ("c++", "c++11", True),
        ("c++", "abc++", False),
        ("赌博", "网上赌博网站", True),
        ("赌博", "赌 博", False),
        ("straße", "STRASSE", True),
        ("ab", "x ab", True),
        ("ab", "ab1", False),
    ],
)
def test_terms_are_found_as_whole_words_whatever_their_case(term: str, text: str, hit: bool) -> None:
    assert dropped(Blocklist(terms=[term]), text) == [hit]


def test_without_whole_words_terms_are_found_inside_words() -> None:
    assert dropped(Blocklist(terms=["ass"], whole_words=False), "class", "clas") == [True, False]


def test_with_case_minded_only_the_same_case_counts() -> None:
    assert dropped(Blocklist(terms=["Bad"], ignore_case=False), "Bad", "bad") == [True, False]


def test_a_short_term_that_fails_does_not_hide_the_longer_one_around_it() -> None:
    assert dropped(Blocklist(terms=["ass", "assassin"]), "an assassin") == [True]


def test_a_long_term_that_fails_does_not_hide_the_shorter_one_inside_it() -> None:
    assert dropped(Blocklist(terms=["foo bar", "foo"]), "foo bars") == [True]


def test_documents_at_max_hits_stay_and_one_hit_more_drops_them() -> None:
    step = Blocklist(terms=["bad", "very bad"], max_hits=2)
    assert dropped(step, "bad bad", "bad bad bad", "very bad, very bad") == [False, True, False]


def test_of_terms_that_begin_together_the_longest_counts_once() -> None:
    assert dropped(Blocklist(terms=["bad", "bad bad"], max_hits=1), "bad bad", "bad bad bad") == [False, True]


def test_the_file_gives_one_term_a_line(tmp_path: Path) -> None:
    (tmp_path / "terms.txt").write_text("\ufeff 赌博 \r\n\nfree money\n# tag\n", encoding="utf-8")
    step = Blocklist.model_validate({"path": "terms.txt", "terms": ["x1"]}, context={"base": tmp_path})
    assert step.files() == (tmp_path / "terms.txt",)
    assert dropped(step, "赌博", "Free Money!", "a # tag", "x1", "tag") == [True, True, True, True, False]


def test_a_hundred_thousand_terms_are_searched_at_once(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("\n".join(f"term{n}x" for n in range(100_000)), encoding="utf-8")
    step = Blocklist(path=tmp_path / "many.txt")
    assert dropped(step, "word " * 100_000 + "term99999x", "word " * 100_000 + "term100000x") == [True, False]


@pytest.mark.parametrize("text", ["", " ", "\n", "a", "。", "😀😀", "x" * 1_000_000])
def test_degenerate_texts_are_judged(text: str) -> None:
    assert dropped(Blocklist(terms=["never"]), text) == [False]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"gone\.txt: No such file"):
        dropped(Blocklist(path=tmp_path / "gone.txt"), "a")


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "gbk.txt").write_bytes(b"ok\n" + "赌博".encode("gbk"))
    with pytest.raises(ConfigError, match=r"gbk\.txt:2: not valid UTF-8"):
        dropped(Blocklist(path=tmp_path / "gbk.txt"), "a")


def test_a_file_without_terms_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(ConfigError, match="no terms in the file"):
        dropped(Blocklist(path=tmp_path / "empty.txt"), "a")


def test_a_step_without_terms_is_refused() -> None:
    with pytest.raises(ValidationError, match="give terms or path"):
        Blocklist()
