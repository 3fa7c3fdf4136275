"""Where a long text may be cut so that its pieces encode to exactly the ids of the whole.

The rule: cut before one separator that stands between two letters ("word| word", "名|，名", "call|(arg"). In every
pre-tokenizer accepted here

- a token that holds the left letter ends with it, because no alternative goes from a letter to a separator,
- a token therefore starts at the separator, and the expressions never look back,
- what looks ahead, `\\s+(?!\\S)` and `\\s+\\z`, is tried at white space, and the left piece ends in a letter,

so the whole is split there too and both sides are split alike. Models work word by word, hence equal ids. The
apostrophe is no separator (other expressions glue "'s" to its word); letters are those that every Unicode version
calls letters and no normaliser composes with what precedes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_LETTER = "A-Za-z\u4e00-\u9fa5"
_SEPARATORS = frozenset(' \n\t!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~、。，！？：；')

# Split expressions for which the proof above holds, by the tokenizers that made them known.
GPT4_DIGITS_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4_DIGITS_1 = GPT4_DIGITS_3.replace("{1,3}", "")
# GPT-4's own as tiktoken has it: white space that ends the text stays whole.
CL100K = GPT4_DIGITS_3.replace(r"|\s*[\r\n]+", r"|\s+\z|\s*[\r\n]+")
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDING = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDING}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDING}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DIGIT_GROUPS = r"\p{N}{1,3}"
HAN_RUNS = "[\u4e00-\u9fa5]+"
_WORDS = frozenset({GPT4_DIGITS_3, GPT4_DIGITS_1, CL100K, GPT2, O200K})
_PROVEN = _WORDS | {DIGIT_GROUPS, HAN_RUNS}


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts texts for one tokenizer; `place` matches a letter after which a cut is safe."""

    place: re.Pattern[str]

    def pieces(self, text: str, characters: int) -> Iterator[str]:
        """Yield pieces that join to `text`, each cut at the first safe place after `characters` characters."""
        start = 0
        while match := self.place.search(text, start + characters):
            yield text[start : match.end()]
            start = match.end()
        yield text[start:]


def cutter_for(tokenizer: dict[str, Any]) -> Cutter | None:
    """The cutter for a parsed tokenizer.json, or None if it is not one the rule is proven for."""
    in_text = [token for token in tokenizer["added_tokens"] if not token["special"]]
    if not (_keeps_separators(tokenizer["normalizer"]) and _is_proven(tokenizer["pre_tokenizer"])):
        return None
    if any(token["lstrip"] or token["rstrip"] or token["single_word"] for token in in_text):
        return None
    # An added token found in the text must not lie across a cut, so what it contains separates nothing.
    separators = _SEPARATORS.difference(*(token["content"] for token in in_text))
    if not separators:
        return None
    between = "".join(re.escape(character) for character in sorted(separators))
    return Cutter(re.compile(f"[{_LETTER}](?=[{between}][{_LETTER}])"))


def _keeps_separators(normalizer: dict[str, Any] | None) -> bool:
    return normalizer is None or normalizer["type"] == "NFC"


def _is_proven(pre_tokenizer: dict[str, Any] | None) -> bool:
    if pre_tokenizer is None:
        return False
    parts = pre_tokenizer["pretokenizers"] if pre_tokenizer["type"] == "Sequence" else [pre_tokenizer]
    return _splits_words(parts) and all(_is_proven_part(part) for part in parts)


def _splits_words(parts: list[dict[str, Any]]) -> bool:
    """Whether some part tells words apart, and not digits or Han only."""
    return any(part.get("use_regex", False) or part.get("pattern", {}).get("Regex") in _WORDS for part in parts)


def _is_proven_part(part: dict[str, Any]) -> bool:
    if part["type"] == "ByteLevel":
        return part["add_prefix_space"] is False
    if part["type"] == "Split":
        isolates = part["behavior"] == "Isolated" and part["invert"] is False
        return isolates and part["pattern"].get("Regex") in _PROVEN
    return bool(part["type"] == "Digits")
