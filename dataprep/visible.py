r"""Text for people with nothing hidden in it: control and invisible characters as escapes such as \x1b."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

# All of C0, DEL and C1; line and paragraph separators; surrogates; and Unicode's default-ignorable characters, which
# change direction, joining or nothing that is seen (DerivedCoreProperties.txt 15.1), without the variation selectors
# U+FE00 to U+FE0F, which pick the look of the character before them.
_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def stretches(text: str, keep: str = "") -> Iterator[tuple[str, bool]]:
    """Cut text into stretches to show as they are (False) and escapes of single hidden characters (True).

    `keep` names hidden characters that are shown as they are.
    """
    for number, part in enumerate(_pattern(keep).split(text)):
        if part:
            yield (_escape(part), True) if number % 2 else (part, False)


def visible(text: str, keep: str = "") -> str:
    """Text with its hidden characters, but those in `keep`, as escapes."""
    return "".join(part for part, _ in stretches(text, keep))


@lru_cache
def _pattern(keep: str) -> re.Pattern[str]:
    kept = f"(?![{re.escape(keep)}])" if keep else ""
    return re.compile(f"({kept}[{_HIDDEN}])")


def _escape(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
