"""Normalisation: hand cases for every option, and the kernel against a plain reading of the rules."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.batch import doc_batch
from dataprep.text.normalize import Normalize

OFF = {
    "form": "none",
    "controls": False,
    "invisible": False,
    "unicode_spaces": False,
    "line_ends": False,
    "unicode_line_ends": False,
    "space_runs": False,
    "trailing_spaces": False,
    "leading_spaces": False,
    "max_blank_lines": None,
    "strip": False,
}

ALPHABET = "ab \t\n\r\x0b\x0c\x00\x1c\x7f\u0085\u009f\u00a0\u2003\u3000\u2028\u2029\u200b\u200c\u200d\ufeff\u202e\u00ad"
MARKS = "\u0301e\u0345\u212b\u00b4\u1100\u1161\u11a8한中न\u094d😀❤\ufe0f。ﬁ\u2000"
# Whole fragments, since what goes wrong takes a few odd characters in a row.
FRAGMENTS = (
    *(
        "\n",
        "\n\n",
        " \n",
        "\r\n",
        "\r",
        "  ",
        "\t ",
        "\u3000",
        "\n\u3000",
        "\u00a0 ",
        "a",
        "b。",
        "中",
        "e\u0301",
        "e\u200b\u0301",
    ),
    *(
        "न\u200d",
        "न \u200d",
        "न\n\u200c",
        "न\u200b\u200d",
        "\u212b\u200d",
        "👩\u200d💻",
        "\u1100\u1161\u11a8",
        "한",
        "\u09c7\u09be",
    ),
    *("\ufeff", "\x00", "\x0b", "\x0c", "\u0085", "\u2028", "\u00b4", "ﬁ", "\u2000"),
)
NASTY = st.lists(
    st.one_of(
        st.sampled_from(FRAGMENTS),
        st.sampled_from(FRAGMENTS),
        st.sampled_from(ALPHABET + MARKS),
        st.characters(exclude_categories=("Cs",)),
    ),
    max_size=15,
).map("".join)
OPTIONS = st.fixed_dictionaries(
    {name: st.booleans() for name in OFF if name not in ("form", "max_blank_lines")}
    | {
        "form": st.sampled_from(["NFC", "NFKC", "none"]),
        "max_blank_lines": st.sampled_from([None, 0, 1, 2]),
        "keep_indentation": st.booleans(),
    }
)

WHITE_CHARACTERS = " \t\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
WHITE = " \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"


def normalized(text: str, **options: object) -> tuple[str, dict[str, int]]:
    applied = Normalize(**options).apply(doc_batch(["d"], [text], "s", ["o"]))
    return applied.batch.column("text")[0].as_py(), {k.removeprefix("normalize."): v for k, v in applied.edits.items()}


def only(text: str, **options: object) -> tuple[str, dict[str, int]]:
    return normalized(text, **{**OFF, **options})


class Reference:
    """The rules as written in Normalize's docstring: one regular expression after the other."""

    def __init__(self, text: str, step: Normalize) -> None:
        self.text = text
        self.step = step
        self.prose = not step.keep_indentation
        self.edits: Counter[str] = Counter()
        self.characters()
        self.spaces()
        self.lines()

    def sub(self, wanted: bool, what: str, pattern: str, by: str) -> None:
        if wanted:
            self.text, n = re.subn(pattern, by, self.text)
            self.edits[what] += n

    def characters(self) -> None:
        step = self.step
        self.sub(step.line_ends, "line_ends", "\r\n|\r", "\n")
        self.sub(step.unicode_line_ends and self.prose, "unicode_line_ends", "[\x0b\x0c\x85\u2028\u2029]", "\n")
        self.sub(step.controls, "controls", "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]", "")
        self.sub(step.controls and self.prose, "controls", "[\x0b\x0c]", "")
        if not step.invisible:
            return
        self.sub(True, "invisible", "[\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]", "")
        kept = ""
        for ch in self.text:
            if ch not in "\u200c\u200d" or (kept and joins(kept[-1])):
                kept += ch
        self.edits["invisible"] += len(self.text) - len(kept)
        self.text = kept

    def spaces(self) -> None:
        step = self.step
        if not self.prose:
            return
        self.sub(step.unicode_spaces, "unicode_spaces", "[\xa0\u1680\u2000-\u200a\u202f\u205f]", " ")
        if step.unicode_spaces:
            lines = [(indent(line), line[len(indent(line)) :]) for line in self.text.split("\n")]
            self.edits["unicode_spaces"] += sum(rest.count("\u3000") for _, rest in lines)
            self.text = "\n".join(head + rest.replace("\u3000", " ") for head, rest in lines)
        self.sub(step.space_runs, "space_runs", f"(?<=[^{WHITE}\n])[{WHITE}]{{2,}}(?=[^{WHITE}\n])", " ")
        self.sub(step.trailing_spaces, "trailing_spaces", f"(?<![{WHITE}])[{WHITE}]+(?=\n|\\Z)", "")
        self.sub(step.leading_spaces, "leading_spaces", f"(?<![^\n])[{WHITE}]+(?=[^{WHITE}\n])", "")

    def lines(self) -> None:
        allowed = self.step.max_blank_lines
        if allowed is not None and self.prose:
            blank_lines = f"(?<![^\n])((?:[{WHITE}]*\n){{{allowed}}})((?:[{WHITE}]*\n)+)"
            self.edits["blank_lines"] += sum(found[1].count("\n") for found in re.findall(blank_lines, self.text))
            self.text = re.sub(blank_lines, r"\1", self.text)
        if self.step.strip:
            stripped = re.sub(f"\\A(?:[{WHITE}]*\n)+", "", self.text)
            stripped = re.sub(f"(?<![{WHITE}\n])[{WHITE}\n]+\\Z", "", stripped)
            self.edits["strip"] += stripped != self.text
            self.text = stripped


def indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(WHITE_CHARACTERS))]


def joins(ch: str) -> bool:
    """Scripts from U+0600 on and emoji, without spaces, punctuation, CJK, Hangul and what is itself invisible."""
    point = ord(ch)
    if 0x0600 <= point < 0x1100 or 0x1200 <= point < 0x2000:
        return ch not in "\u1680"
    if 0x2070 <= point < 0x3000 or 0xFB50 <= point < 0xFE30 or 0xFE70 <= point < 0xFEFF:
        return True
    return 0x10000 <= point < 0x20000 or 0xE0100 <= point < 0xE01F0


@settings(max_examples=600, deadline=None)
@given(NASTY, OPTIONS)
def test_kernel_and_counts_equal_the_reference_without_a_form(text: str, options: dict[str, object]) -> None:
    step = Normalize(**{**options, "form": "none"})
    expected = Reference(text, step)
    assert normalized(text, **{**options, "form": "none"}) == (expected.text, dict(+expected.edits))


@settings(max_examples=600, deadline=None)
@given(NASTY, OPTIONS)
def test_the_result_is_in_form_and_normalizing_it_again_changes_nothing(text: str, options: dict[str, object]) -> None:
    once, _ = normalized(text, **options)
    assert options["form"] == "none" or unicodedata.is_normalized(str(options["form"]), once)
    assert normalized(once, **options) == (once, {})


@settings(deadline=None)
@given(st.lists(NASTY, max_size=5))
def test_documents_of_a_batch_do_not_touch_each_other(texts: list[str]) -> None:
    batch = doc_batch([str(at) for at in range(len(texts))], texts, "s", [""] * len(texts))
    applied = Normalize().apply(batch)
    applied.batch.validate(full=True)
    alone = [normalized(text) for text in texts]
    assert applied.batch.column("text").to_pylist() == [text for text, _ in alone]
    total = sum((Counter(edits) for _, edits in alone), Counter())
    assert {k.removeprefix("normalize."): v for k, v in applied.edits.items()} == dict(total)


@settings(max_examples=600, deadline=None)
@given(NASTY, st.integers(1, 9), st.sampled_from(["NFC", "NFKC"]))
def test_a_long_text_in_pieces_comes_out_as_the_whole(text: str, piece_bytes: int, form: str) -> None:
    with patch("dataprep.text.normalize._PIECE_BYTES", piece_bytes):
        assert normalized(text, **{**OFF, "form": form})[0] == unicodedata.normalize(form, text)


@settings(max_examples=400, deadline=None)
@given(NASTY)
def test_a_text_without_unsure_code_points_is_in_form(text: str) -> None:
    for form in ("NFC", "NFKC"):
        assert unicodedata.is_normalized(form, normalized(text, **{**OFF, "form": form})[0])
        assert normalized(text, **{**OFF, "form": form})[0] == unicodedata.normalize(form, text)


@pytest.mark.parametrize(
    ("options", "text", "expected", "edits"),
    [
        ({"form": "NFC"}, "cafe\u0301", "café", {"form": 1}),
        ({"form": "NFC"}, "ﬁ", "ﬁ", {}),
        ({"form": "NFC"}, "\u1112\u1161\u11ab", "한", {"form": 1}),
        ({"form": "NFC"}, "\u09c7\u09be", "\u09cb", {"form": 1}),
        ({"form": "NFKC"}, "ﬁ１", "fi1", {"form": 1}),
        ({"form": "none"}, "cafe\u0301", "cafe\u0301", {}),
        ({"controls": True}, "a\x00b\x1b\x7f\x9fc\td\ne", "abc\td\ne", {"controls": 4}),
        ({"controls": True}, "a\u0085b\r", "a\u0085b\r", {}),
        ({"invisible": True}, "\ufeffa\u200bb\u202e\u00ad", "ab", {"invisible": 4}),
        ({"invisible": True}, "a\u200db 中\u200c文", "ab 中文", {"invisible": 2}),
        ({"invisible": True}, "می\u200cخواهم 👩\u200d💻 क्\u200dष", "می\u200cخواهم 👩\u200d💻 क्\u200dष", {}),
        ({"invisible": True}, "न \u200dन\n\u200d", "न न\n", {"invisible": 2}),
        ({"unicode_spaces": True}, "a\u00a0b\u2003c", "a b c", {"unicode_spaces": 2}),
        ({"unicode_spaces": True}, "\u3000\u3000从前\u3000有", "\u3000\u3000从前 有", {"unicode_spaces": 1}),
        ({"line_ends": True}, "a\r\nb\rc\n", "a\nb\nc\n", {"line_ends": 2}),
        ({"unicode_line_ends": True}, "a\x0cb\u2028c\u0085d", "a\nb\nc\nd", {"unicode_line_ends": 3}),
        ({"space_runs": True}, "  a  b \t c\td  ", "  a b c\td  ", {"space_runs": 2}),
        ({"trailing_spaces": True}, "a \nb\t\n  \n c", "a\nb\n\n c", {"trailing_spaces": 3}),
        ({"leading_spaces": True}, "  a\n\tb\n  \nc", "a\nb\n  \nc", {"leading_spaces": 2}),
        ({"max_blank_lines": 1}, "a\n\nb\n\n\nc\n\n\n\nd", "a\n\nb\n\nc\n\nd", {"blank_lines": 3}),
        ({"max_blank_lines": 0}, "a\n\nb\n", "a\nb\n", {"blank_lines": 1}),
        ({"max_blank_lines": 2}, "a\n\n\nb\n\n\n\nc", "a\n\n\nb\n\n\nc", {"blank_lines": 1}),
        ({"strip": True}, "\n \n  a\nb \n\n", "  a\nb", {"strip": 1}),
        ({"strip": True, "max_blank_lines": 1}, "\n\n\na\n\nb", "a\n\nb", {"blank_lines": 2, "strip": 1}),
        ({"strip": True}, "  a", "  a", {}),
    ],
)
def test_one_option_alone_does_this(
    options: dict[str, object], text: str, expected: str, edits: dict[str, int]
) -> None:
    assert only(text, **options) == (expected, edits)


def test_by_default_prose_comes_out_in_order() -> None:
    text = "\ufeff\n\nTitle\u00a0here \r\n\r\n\r\n\r\nA  cafe\u0301.\x07\r\n  - item\n\n"
    assert normalized(text) == (
        "Title here\n\nA café.\n  - item",
        {
            "controls": 1,
            "invisible": 1,
            "unicode_spaces": 1,
            "line_ends": 5,
            "space_runs": 1,
            "trailing_spaces": 1,
            "blank_lines": 3,
            "strip": 1,
            "form": 1,
        },
    )


def test_a_mark_that_meets_its_base_after_a_removal_is_composed() -> None:
    assert normalized("e\u200b\u0301") == ("é", {"invisible": 1, "form": 1})


def test_a_joiner_whose_base_composes_to_latin_is_removed_in_the_same_run() -> None:
    assert normalized("\u212b\u200da") == ("\u00c5a", {"invisible": 1, "form": 1})


@pytest.mark.parametrize("text", ["", " ", "   \n\t", "\n\n\n", "\u3000", "\ufeff", "\x00"])
def test_texts_without_anything_visible_become_empty(text: str) -> None:
    assert normalized(text)[0] == ""


@pytest.mark.parametrize("text", ["a", "。", "😀😀", "👩\u200d💻", "x" * 1_000_000, "中" * 300_000])
def test_clean_texts_come_back_as_the_very_same_column(text: str) -> None:
    batch = doc_batch(["d"], [text], "s", ["o"])
    assert Normalize().apply(batch).batch is batch


CODE = (
    'def f(x):\n\tif x:  # tab\n \t return "a\u00a0  b"   \n\n\n\n    """doc  string\n\n\n      with   blank lines  \n'
    '    \n    """\n\x0c\nclass A:\n        pass\n'
)


def test_keep_indentation_leaves_code_as_written_but_for_its_last_line_end() -> None:
    assert normalized(CODE, keep_indentation=True) == (CODE.rstrip("\n"), {"strip": 1})


def test_keep_indentation_still_mends_line_ends_controls_and_edges() -> None:
    text = "\ufeff\r\n  \r\n\tx = 1  \r\n\x00\ty\r\n"
    assert normalized(text, keep_indentation=True) == (
        "\tx = 1  \n\ty",
        {"controls": 1, "invisible": 1, "line_ends": 4, "strip": 1},
    )


@settings(deadline=None)
@given(st.lists(st.text(" \tab\"'\u00a0\u3000\x0c", max_size=8), max_size=8), OPTIONS)
def test_keep_indentation_keeps_every_line_from_the_first_visible_to_the_last(
    lines: list[str], options: dict[str, object]
) -> None:
    visible = [at for at, line in enumerate(lines) if line.strip(" \t\u00a0\u3000")]
    kept = lines[visible[0] : visible[-1] + 1] if visible else []
    result, _ = normalized("\n".join(lines), **{**options, "form": "NFC", "keep_indentation": True})
    if options["strip"] and kept:
        assert result.split("\n") == [*kept[:-1], kept[-1].rstrip(" \t\u00a0\u3000")]
    elif not options["strip"]:
        assert result.split("\n") == (lines or [""])


def test_only_and_except_choose_the_documents_and_edits_count_those_alone() -> None:
    batch = doc_batch(["1", "2", "3"], ["a  b", "a  b", "a  b"], ["web", "code", "web"], ["", "", ""])
    applied = Normalize(**{"except": {"source": ["code"]}}).run(batch)
    assert applied.batch.column("text").to_pylist() == ["a b", "a  b", "a b"]
    assert applied.edits == {"normalize.space_runs": 2}
    assert Normalize(only={"source": ["code"]}).run(batch).batch.column("text").to_pylist() == ["a  b", "a b", "a  b"]
