"""Texts on which tokenizers are known to differ: all scripts, white space, added tokens, long runs, mixtures."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator, Sequence

# Unicode has 17 planes of 65,536; the last two are for private use, as are the 6,400 code points from U+E000.
_CODE_POINTS = range(0x110000)
_SURROGATES = range(0xD800, 0xE000)
_BLOCK = 0x80
_RUN = 20_000
_MIXTURES = 1500
_LONGEST_MIXTURE = 200

_PIECES = (
    *("'s", "'RE", "'Ll", "\u2019t", "'\u017f", "don't", "I'M", "x'", "''"),
    *("0", "12", "345", "6789", "1,234.5", "\u0663", "\u00bd", "\u2167", "\U0001d7d8", "1e-5", "0x1F"),
    *(" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\v", "\f", "\x00", "\x1c", "\x7f", "\x85"),
    *("\u00a0", "\u2003", "\u2028", "\u2029", "\u200b", "\u200d", "\u3000", "\ufeff", "\u00ad", "\u202e"),
    *("e\u0301", "\u00e9", "a\u0323\u0302", "\u0345", "\u1f88", "\u01c5", "\ufb01", "\u212b", "\u0130"),
    *("\u1100\u1161\u11a8", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f3f3\ufe0f\u200d\U0001f308"),
    *("\U0001f44d\U0001f3fd", "\U0001f1e8\U0001f1f3", "1\ufe0f\u20e3"),
    *("中", "中文", "夜里的船回来了", "，", "。”", "ＡＢＣ", "日本語カナ", "한국어", "ไทย", "हिन्दी", "العربية"),
    *("the", "The", " of", "WORD", "camelCase", "snake_case", "x=1;", "->", "!=", "//", "/*", "</p>", "{}", "()"),
    *("https://a.b/c?d=e&f", "a@b.example", "C++", "#!/", "\\n", "...", "_" * 7, "%", "$", "\u20ac", "\u00a5"),
    *("\u2026", "\u2014", "\u00ab", "\u2192", "\ue000", "\ufffd", "\uffff"),
)


def probe_texts(added_tokens: Sequence[str]) -> list[str]:
    """Texts that use every block of Unicode, the added tokens and what tokenizers stumble over; always the same."""
    return [*_blocks(), *_added(added_tokens), *_runs(), *_mixtures([*_PIECES, *added_tokens])]


def _blocks() -> Iterator[str]:
    """Characters spread over each 128 code points, alone, doubled, and between letters, digits and spaces."""
    for first in range(0, len(_CODE_POINTS), _BLOCK):
        if first in _SURROGATES:
            continue
        characters = [chr(first + place) for place in range(0, _BLOCK, 11)]
        assigned = [character for character in characters if unicodedata.category(character) != "Cn"]
        # Two thirds of all code points are not assigned and alike to every tokenizer: one of each block will do.
        for character in assigned or characters[:1]:
            yield f"a{character}b {character} {character}{character}1{character}\n{character}中{character}"


def _added(tokens: Sequence[str]) -> Iterator[str]:
    for token in tokens:
        yield from (token, f"a{token}b", f" {token} {token}{token}\n", token[:-1], f"{token[:-1]} {token[-1:]}")


def _runs() -> Iterator[str]:
    for piece in ("a", " ", "\n", "=", "0", "中", "ab", "\r\n", "\t ", "\x00", "e\u0301", "\U0001f600", "Aa1+/"):
        yield piece * (_RUN // len(piece))
    source = random.Random(1)
    yield "".join(source.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=_RUN))
    yield "".join(chr(source.randrange(0x4E00, 0x9FA6)) for _ in range(_RUN // 4))


def _mixtures(pieces: Sequence[str]) -> Iterator[str]:
    source = random.Random(2)
    for _ in range(_MIXTURES):
        some = source.sample(pieces, source.randrange(1, 20))
        yield "".join(source.choices(some, k=source.randrange(1, _LONGEST_MIXTURE)))
