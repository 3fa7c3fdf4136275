"""A trained tokenizer is lossless for all of Unicode and the same in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError
from dataprep.tokens.config import TokenizerConfig, TrainTokenizer
from dataprep.tokens.source import Source
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer
from dataprep.tokens.train import train_tokenizer

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't care.",
    "今天天气很好，我们一起去公园散步。今天的作业很多，我们没有时间。",
    "def add(left, right):\n    return left + right\n\n\nprint(add(1234567, 20))\n",
]
CONFIG = TokenizerConfig(train=TrainTokenizer(vocab_size=600, min_frequency=2))

unicode_texts = st.text(st.characters(exclude_categories=["Cs"]))


def trained(config: TokenizerConfig, texts: list[str]) -> Tokenizer:
    return load_tokenizer(config, Source("trained", train_tokenizer(config, texts)))


ENGLISH_CHINESE_CODE = trained(CONFIG, SENTENCES * 5)


def words_of(tokenizer: Tokenizer, text: str) -> list[str]:
    ids = tokenizer.encode([text]).ids[:-1]
    return [tokenizer.decode([int(token)]) for token in ids]


@given(unicode_texts)
def test_decoding_gives_any_unicode_text_back(text: str) -> None:
    tokens = ENGLISH_CHINESE_CODE.encode([text])
    assert ENGLISH_CHINESE_CODE.decode(tokens.ids) == text


def test_every_assigned_and_unassigned_character_survives_the_round_trip() -> None:
    everything = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    texts = ["".join(everything[start : start + 4096]) for start in range(0, len(everything), 4096)]
    assert [ENGLISH_CHINESE_CODE.decode(ENGLISH_CHINESE_CODE.encode_plain([text]).ids) for text in texts] == texts


def test_a_tokenizer_trained_on_nothing_still_encodes_bytes() -> None:
    tokenizer = trained(CONFIG, [])
    assert tokenizer.vocab_size == 256 + 2
    assert len(tokenizer.encode(["中"]).ids) == 3 + 1
    assert tokenizer.decode(tokenizer.encode(["中"]).ids) == "中"


def test_vocabulary_size_is_kept_to_with_special_tokens_counted_in() -> None:
    text = " ".join(f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst") * 3
    config = TokenizerConfig(train=TrainTokenizer(vocab_size=300))
    assert trained(config, [text]).vocab_size == 300


def test_a_corpus_with_too_few_pairs_gives_the_smaller_real_size() -> None:
    # "ab" twice is the one pair that occurs twice: 256 bytes, eos, pad and "ab".
    assert trained(CONFIG, ["ab", "ab"]).vocab_size == 256 + 2 + 1


def test_special_tokens_take_the_first_ids() -> None:
    config = CONFIG.model_copy(update={"bos": "<|begin|>"})
    tokenizer = trained(config, SENTENCES)
    assert (tokenizer.eos_id, tokenizer.pad_id, tokenizer.bos_id) == (0, 1, 2)
    assert tokenizer.decode([0, 1, 2], show_special=True) == "<|endoftext|><|pad|><|begin|>"


def test_digits_are_never_in_one_token_with_more_than_three_of_them() -> None:
    tokenizer = trained(CONFIG, ["123456789 " * 50])
    assert words_of(tokenizer, "123456789")[:3] == ["123", "456", "789"]


def test_chinese_punctuation_is_not_glued_to_the_words_beside_it() -> None:
    tokenizer = trained(CONFIG, ["，我们。，我们。，我们。"] * 9)
    assert words_of(tokenizer, "，我们。") == ["，", "我们", "。"]


def test_special_tokens_written_in_the_training_text_are_learnt_as_text() -> None:
    tokenizer = trained(CONFIG, ["<|endoftext|> <|pad|>"] * 50)
    tokens = tokenizer.encode(["a<|endoftext|>b"])
    assert tokens.ids.tolist().count(tokenizer.eos_id) == 1
    assert tokenizer.decode(tokens.ids) == "a<|endoftext|>b"


def test_a_special_token_that_common_words_spell_is_refused() -> None:
    config = CONFIG.model_copy(update={"eos": "END"})
    with pytest.raises(ConfigError, match="text that spells 'END' would be encoded as the special token"):
        trained(config, ["END END END"] * 20)


TRAIN_SCRIPT = """
import json, sys
from dataprep.tokens.config import TokenizerConfig, TrainTokenizer
from dataprep.tokens.train import train_tokenizer
texts = json.load(sys.stdin)
sys.stdout.buffer.write(train_tokenizer(TokenizerConfig(train=TrainTokenizer(vocab_size=1500)), iter(texts)))
"""


def test_training_gives_the_same_bytes_for_any_thread_count_and_hash_seed() -> None:
    # Real prose with many ties between pairs: the interpreter's own sources.
    folder = Path(json.__file__).parent
    texts = [path.read_text() for path in sorted(folder.glob("*.py"))] + SENTENCES
    outputs = {train_in_process(texts, threads, seed) for threads, seed in (("1", "0"), ("2", "1"), ("4", "7"))}
    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())["model"]["vocab"]) == 1500


def train_in_process(texts: list[str], threads: str, hash_seed: str) -> bytes:
    parallel = "false" if threads == "1" else "true"
    settings = {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": hash_seed, "TOKENIZERS_PARALLELISM": parallel}
    command = [sys.executable, "-c", TRAIN_SCRIPT]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, **settings, "PYTHONPATH": root}
    done = subprocess.run(command, input=json.dumps(texts).encode(), env=environment, capture_output=True, check=True)
    return done.stdout
