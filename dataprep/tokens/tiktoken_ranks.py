"""tiktoken rank files as tokenizer.json: the same ids for every text.

tiktoken splits text by an expression, takes a part that is a token as it is, and else joins, again and again, the
adjacent pair whose union has the lowest rank, leftmost first. A tokenizer.json does just that with `ignore_merges` and
one merge for each way to split a token into two tokens, ordered by rank: of these only one can ever stand in a text,
because what lies within a token was joined as if it were alone, so more than one merge a token changes nothing.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence

from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError
from dataprep.tokens.cuts import CL100K, GPT2, GPT4_DIGITS_1, GPT4_DIGITS_3, O200K
from dataprep.tokens.source import Source

# The split expressions by the names of the vocabularies they were published with.
PATTERNS = {"gpt2": GPT2, "cl100k": CL100K, "o200k": O200K, "llama3": GPT4_DIGITS_3, "qwen": GPT4_DIGITS_1}
_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n?")
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
# The printable stand-in of each byte, as byte-level vocabularies write it: itself if printable, else from U+0100 on.
_STAND_INS = [chr(byte) if byte in _PRINTABLE else chr(256 + _OTHERS.index(byte)) for byte in range(256)]


def is_tiktoken(data: bytes) -> bool:
    """Whether the bytes begin with a line of base64 and a rank."""
    return _LINE.match(data, 0, 4096) is not None


def convert_tiktoken(
    data: bytes, where: str, pattern: str | None, special: Mapping[str, int] | Sequence[str]
) -> Source:
    """Turn a tiktoken rank file into a byte-level tokenizer.json; `pattern` is a key of PATTERNS.

    `special` gives each special token's id, or names that get the ids behind the highest rank in order. Raises
    ConfigError if the file is broken, a byte has no rank, or the pattern or a special token's id does not fit.
    """
    if pattern not in PATTERNS:
        what = "a tiktoken file does not say how it splits text" if pattern is None else f"no pattern {pattern!r}"
        raise ConfigError(what, where=where, mend=f"set tokenizer.pattern to one of {', '.join(PATTERNS)}")
    ranks = _ranks(data, where)
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise ConfigError(
            f"byte {missing[0]:#04x} has no rank", where=where, mend="the file is cut off or no vocabulary"
        )
    ids = _special_ids(special, ranks, where)
    vocabulary = {_spelled(token): rank for token, rank in ranks.items()}
    clash = next((name for name in ids if name in vocabulary), None)
    if clash is not None:
        raise ConfigError(f"the special token {clash!r} is a token of the vocabulary", where=where, mend="rename it")
    backend = Backend(models.BPE({**vocabulary, **ids}, _merges(ranks), ignore_merges=True))
    split = pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in ids])
    _check_special_apart(backend, list(ids), where)
    return Source(f"tiktoken ({pattern})", backend.to_str().encode())


def _ranks(data: bytes, where: str) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            encoded, rank = line.split()
            ranks[base64.b64decode(encoded, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            what = f"line {number} is not a base64 token and its rank"
            raise ConfigError(what, where=where, mend="restore the tiktoken file") from error
    if len(set(ranks.values())) != len(ranks) or b"" in ranks or min(ranks.values()) < 0:
        raise ConfigError("a rank stands twice, or a token is empty", where=where, mend="restore the tiktoken file")
    return ranks


def _special_ids(special: Mapping[str, int] | Sequence[str], ranks: Mapping[bytes, int], where: str) -> dict[str, int]:
    first = max(ranks.values()) + 1
    ids = dict(special) if isinstance(special, Mapping) else {name: first + k for k, name in enumerate(special)}
    taken = set(ranks.values())
    wrong = next((name for name, token in ids.items() if token in taken or token < 0), None)
    if wrong is not None or len(set(ids.values())) != len(ids):
        what = (
            f"the id {ids[wrong]} of special token {wrong!r} is a rank" if wrong else "two special tokens share an id"
        )
        raise ConfigError(what, where=where, mend=f"mend tokenizer.special_tokens: free ids begin at {first}")
    return ids


def _spelled(token: bytes) -> str:
    return "".join(_STAND_INS[byte] for byte in token)


def _merges(ranks: Mapping[bytes, int]) -> list[tuple[str, str]]:
    return [
        (_spelled(token[:cut]), _spelled(token[cut:]))
        for token in sorted(ranks, key=ranks.__getitem__)
        for cut in range(1, len(token))
        if token[:cut] in ranks and token[cut:] in ranks
    ]


def _check_special_apart(backend: Backend, names: list[str], where: str) -> None:
    """With `ignore_merges` a special token that the expression leaves whole would be taken from text."""
    opened = Backend.from_str(backend.to_str())
    opened.encode_special_tokens = True
    for name in names:
        if opened.token_to_id(name) in opened.encode(name, add_special_tokens=False).ids:
            what = f"text that spells {name!r} would be encoded as the special token"
            raise ConfigError(what, where=where, mend="name it with punctuation around letters, such as <|eos|>")
