"""The probes reach every script, every added token and the known stumbling blocks, and are always the same."""

from __future__ import annotations

import unicodedata

from dataprep.tokens.probes import probe_texts


def test_every_block_of_128_code_points_that_holds_characters_is_there() -> None:
    used = {ord(character) // 0x80 for text in probe_texts([]) for character in text}
    for block in range(0x110000 // 0x80):
        points = range(block * 0x80, block * 0x80 + 0x80)
        if 0xD800 <= points[0] < 0xE000:
            assert block not in used
        elif any(unicodedata.category(chr(point)) != "Cn" for point in points):
            assert block in used, hex(points[0])


def test_added_tokens_stand_alone_inside_words_and_cut_short() -> None:
    texts = probe_texts(["<|im_start|>", "x"])
    assert {"<|im_start|>", "a<|im_start|>b", "<|im_start|", "x"} <= set(texts)
    assert any("<|im_start|>" in text and len(text) > 60 for text in texts)


def test_what_tokenizers_stumble_over_is_there() -> None:
    joined = "\n".join(probe_texts([]))
    for piece in ("\x00", "\r\n", "\u200d", "e\u0301", "\u2028", " " * 10_000, "中" * 10_000, "0" * 10_000, "\ufeff"):
        assert piece in joined


def test_they_are_the_same_each_time_and_encode_as_utf8() -> None:
    texts = probe_texts(["<a>"])
    assert texts == probe_texts(["<a>"])
    assert all(text.encode().decode() == text for text in texts)
