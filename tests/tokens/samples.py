"""Visible text that small tokenizers are made of and tried on."""

from __future__ import annotations

import base64

SENTENCES = (
    "The old house stood at the end of a long lane, and nobody had lived there for years.",
    "She counted 12 ships, 345 sailors and 6,789 barrels on the 3rd of March 1998.",
    "Don't say it's over: we've only begun, they'll come and I'd rather wait.",
    "春天来了，山上的花都开了，孩子们在河边跑来跑去。",
    "北京是中国的首都，有两千多年的历史和文化。",
    "def add(left, right):",
    "    return left + right  # the sum",
    "for number in range(10): print(number, number ** 2)",
    "caf\u00e9 na\u00efve r\u00e9sum\u00e9 \u00fcber stra\u00dfe",
)
# What conversions get wrong, beside plain text.
ODD = (
    "",
    " ",
    "\n",
    "  leading and trailing  ",
    "a  b   c    d",
    "\ttab\r\nline\u00a0no-break\u3000wide",
    "👍🏽 family 👨\u200d👩\u200d👧 flag 🇨🇳 \U00020000 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "0123456789 1,000,000 3.14e-10",
    "北京2024年（上海）！",
    "<s></s><unk><pad> <0x0A> <0xE4>",
    "<sep>",
    "x<sep>y <sep> z<sep><sep>",
    "\u2581low line\u2581\u2581",
    "\x00\x01\ufeff\ufffd",
    "def f(x):\n\n    return x  # \u6ce8\u91ca\n",
)


def rank_file(ranks: dict[bytes, int]) -> bytes:
    """The ranks as a .tiktoken file."""
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
