"""Fertility is tokens over characters and bytes, by source and by script."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from dataprep.tokens.describe import describe
from dataprep.tokens.fertility import compare, script
from dataprep.tokens.kinds import named_on_command_line


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("plain English, \u4e2d\u6587", "Latin"),
        ("\u4e2d\u6587\u6587\u672c ok", "Han"),
        ("\u6f22\u5b57\u4ea4\u3058\u308a\u6587", "Kana"),
        ("\u0434\u043e\u0431\u0440\u043e", "Cyrillic"),
        ("\ud55c\uad6d\uc5b4", "Hangul"),
        ("123 \U0001f44d", "other"),
        ("", "other"),
    ],
)
def test_the_script_is_that_of_most_letters(text: str, name: str) -> None:
    assert script(text) == name


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """One token a byte; and one token a word, of which only `a` and `b` are known."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    by_byte = Tokenizer(models.BPE({symbol: token for token, symbol in enumerate(alphabet)}, []))
    by_byte.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    by_word = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]"))
    by_word.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    paths = [str(tmp_path / name) for name in ("bytes.json", "words.json")]
    by_byte.save(paths[0])
    by_word.save(paths[1])
    return paths


def test_figures_are_counted_by_source_and_by_script(two: list[str]) -> None:
    texts = {"en": ["a b c", "a"], "zh": ["\u4e2d\u6587"], "empty": []}
    figures = compare([named_on_command_line(path) for path in two], texts)
    counted = [(one.by, one.group, one.documents, one.characters, one.bytes, one.tokens) for one in figures]
    assert counted == [
        ("source", "en", 2, 6, 6, 6),
        ("source", "en", 2, 6, 6, 4),
        ("source", "zh", 1, 2, 6, 6),
        ("source", "zh", 1, 2, 6, 1),
        ("script", "Latin", 2, 6, 6, 6),
        ("script", "Latin", 2, 6, 6, 4),
        ("script", "Han", 1, 2, 6, 6),
        ("script", "Han", 1, 2, 6, 1),
    ]
    assert [one.unknown for one in figures[:4]] == [0.0, 0.25, 0.0, 1.0]
    chinese = figures[2]
    assert (chinese.per_1000_characters, chinese.per_1000_bytes, chinese.bytes_per_token) == (3000.0, 1000.0, 1.0)


def test_a_description_tells_kind_losses_and_what_a_run_still_needs(two: list[str]) -> None:
    described = describe(named_on_command_line(two[1]), ["a x"])
    assert (described.kind, described.model, described.vocab_size) == ("tokenizer.json", "WordLevel", 3)
    assert described.alphabet == "characters, others unknown"
    assert described.fingerprint is None
    assert "tokenizer.eos '<|endoftext|>' is not in the vocabulary" in described.notes[0]
    assert [example.tokens for example in described.examples] == [("a", "[UNK]")]
    assert "the pre-tokenizer WhitespaceSplit drops white space" in described.losses


def test_the_fingerprint_described_is_that_of_a_run(tmp_path: Path, sentencepiece_bpe: bytes) -> None:
    from dataprep.tokens.config import TokenizerConfig
    from dataprep.tokens.kinds import read_source
    from dataprep.tokens.tokenizer import load_tokenizer

    (tmp_path / "m.model").write_bytes(sentencepiece_bpe)
    config = TokenizerConfig(path=tmp_path / "m.model")
    source = read_source(config)
    described = describe(named_on_command_line(str(tmp_path / "m.model")))
    assert described.fingerprint == load_tokenizer(config, source).fingerprint
    assert described.marks == {"eos": "</s>", "bos": None, "pad": "<pad>"}
