"""Small real tokenizers of every kind, made by the libraries they belong to."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import sentencepiece
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from tests.tokens.samples import SENTENCES


@pytest.fixture(scope="session")
def train_sentencepiece() -> Callable[..., bytes]:
    """Trains a model of 420 pieces with all bytes, identity normalisation, <pad> at 3 and the user symbol <sep>."""

    def train(kind: str, **settings: Any) -> bytes:
        written = io.BytesIO()
        defaults = {
            "vocab_size": 420,
            "byte_fallback": True,
            "normalization_rule_name": "identity",
            "pad_id": 3,
            "user_defined_symbols": ["<sep>"],
            "remove_extra_whitespaces": False,
            "character_coverage": 0.99,
            "hard_vocab_limit": False,
            "num_threads": 1,
            "minloglevel": 2,
        }
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES * 40), model_writer=written, model_type=kind, **{**defaults, **settings}
        )
        return written.getvalue()

    return train


@pytest.fixture(scope="session")
def sentencepiece_bpe(train_sentencepiece: Callable[..., bytes]) -> bytes:
    return train_sentencepiece("bpe")


@pytest.fixture(scope="session")
def ranks() -> dict[bytes, int]:
    """A tiktoken vocabulary: a byte-level BPE of the sentences, and whole words that no pair of tokens makes up."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(SENTENCES * 20, trainer)
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte) if byte in printable else chr(256 + others.index(byte)): byte for byte in range(256)}
    by_id = sorted(backend.get_vocab().items(), key=lambda one: one[1])
    learnt = {bytes(byte_of[character] for character in name): token for name, token in by_id}
    whole = ["\u8fd9\u4e2a".encode(), b"zqxj", b"aaa", b" \n  "]
    return {**learnt, **{token: len(learnt) + number for number, token in enumerate(whole)}}
