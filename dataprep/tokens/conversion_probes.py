"""Texts on which a converted tokenizer must agree with the library it came from, before it is used."""

from __future__ import annotations

# Each line is something that conversions are known to get wrong.
PROBES = (
    "",
    " ",
    "The quick brown fox jumps over the lazy dog.",
    "  two  spaces   inside    and at the end  ",
    " " * 33 + "deep" + " " * 17,
    "tabs\tand\n\nnew lines\r\nof\rall \u00a0kinds\u3000here\u2028",
    "don't DON'T we'll I'VE it\u2019s 'quoted' x'y",
    "0 1 12 123 1234 12345 1,234.56 \u0663\u0664 \u2167 \u00bd 3.14e-10 0xFF",
    "def f(x):\n    return {k: v**2 for k, v in x.items()}  # why\n\n\n",
    "中文，没有空格。北京（Beijing）2024年！「引号」　全角　",
    "日本語のテキスト ひらがな カタカナ 한국어 문장",
    "caf\u00e9 cafe\u0301 na\u00efve \u1ebf e\u0302\u0301 \u00df \u0130 \u017f \ufb01 \u2460 \uff21\uff22",
    "\u0645\u0631\u062d\u0628\u0627 добрый \u05e9\u05dc\u05d5\u05dd \u0939\u093f\u0928\u094d",
    "👍🏽 👨‍👩‍👧 🇨🇳 ❤️ 🤷\u200d♂️ \U0001fae8",
    "\u2581 literal \u2581\u2581 marks\u2581",
    "<s> </s> <unk> <pad> <0x0A> <0x41> <|endoftext|> <|im_start|> [INST] [PAD]",
    "<s></s>a<unk>",
    "\x00\x01\x7f\u200b\ufeff\ufffd\U000e0041\U0010fffd",
    "aaaaaaaaaaaaaaaaaaaaaaa -------------------- ====== ........ !!!!!!??",
    "https://example.org/a_b-c?d=e&f=%20#g user@example.org C:\\path\\x",
    "UPPER lower Title camelCase snake_case kebab-case ABCdefGHI",
)
