"""A fast engine is believed only as far as its ids are proven."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from dataprep.runtime.parts import content_hashes
from dataprep.tokens.config import TokenizerConfig, TrainTokenizer
from dataprep.tokens.encoding import TokenBatch
from dataprep.tokens.engines import (
    Checks,
    Encoder,
    EngineDiffers,
    EngineFails,
    EngineUnusable,
    Fastokens,
    fastokens_version,
    prove,
)
from dataprep.tokens.probes import probe_texts
from dataprep.tokens.source import Source
from dataprep.tokens.spelling import spelling_of
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer
from dataprep.tokens.train import train_tokenizer
from tests.tokens.test_tokenizer import EOS_PAD, byte_level, load

TEXTS = [
    "the ship came home",
    "夜里的船回来了，船上没有人。",
    "def f(x):\n    return x + 1\n",
    "",
    " <|endoftext|> ",
] * 20
NEVER = 2**63


def trained() -> Tokenizer:
    config = TokenizerConfig(train=TrainTokenizer(vocab_size=400))
    return load_tokenizer(config, Source("trained", train_tokenizer(config, TEXTS)))


TRAINED = trained()


class Double:
    """Encodes as the reference does, but for what `change` makes of the ids of a text."""

    identity = "double 1"

    def __init__(self, tokenizer: Tokenizer, change: Callable[[str, list[int]], list[int]]) -> None:
        self.tokenizer = tokenizer
        self.change = change

    def encode(self, texts: list[str]) -> TokenBatch:
        plain = self.tokenizer.encode_plain(texts)
        bounds = zip(texts, plain.offsets[:-1], plain.offsets[1:], strict=True)
        changed = [self.change(text, plain.ids[start:end].tolist()) for text, start, end in bounds]
        ids = [token for each in changed for token in each]
        return TokenBatch(np.array(ids, np.int32), np.cumsum([0, *map(len, changed)], dtype=np.int64))


def last_changed(marked: str) -> Callable[[str, list[int]], list[int]]:
    return lambda text, ids: [*ids[:-1], ids[-1] ^ 1] if text == marked else ids


def cut_apart(text: str, ids: list[int]) -> list[int]:
    """The same bytes by other tokens: "Hi" as H and i instead of their merge."""
    return [72, 105] if text == "Hi" else ids


def watched(tokenizer: Tokenizer, engine: object | None, check_every: int, *, spelled: bool = True) -> Encoder:
    spelling = spelling_of(json.loads(tokenizer.json)) if spelled else None
    return Encoder(tokenizer, engine, check_every, spelling)  # type: ignore[arg-type]


def encode(encoder: Encoder, texts: list[str]) -> TokenBatch:
    array = pa.array(texts, pa.large_string())
    return encoder.encode(array, content_hashes(array)).tokens


def hashed(text: str) -> str:
    return xxhash.xxh3_128_hexdigest(text.encode())


def merging() -> Tokenizer:
    marks = json.loads(json.dumps(EOS_PAD))
    return load(byte_level([(72, 105)], [{**mark, "id": mark["id"] + 1} for mark in marks]))


def test_equal_ids_are_passed_on_with_their_borders() -> None:
    encoder = watched(TRAINED, Double(TRAINED, lambda text, ids: ids), NEVER)
    found, expected = encode(encoder, TEXTS), TRAINED.encode(TEXTS)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert encoder.checks == Checks(documents=100, spelled=100, compared=0)


def test_one_changed_id_is_found_in_the_spelling_of_its_document() -> None:
    texts = [f"{text} {number}" for number, text in enumerate(TEXTS)]
    encoder = watched(TRAINED, Double(TRAINED, last_changed(texts[42])), NEVER)
    with pytest.raises(EngineDiffers) as caught:
        encode(encoder, texts)
    assert caught.value.texts == (hashed(texts[42]),)


def test_other_tokens_for_the_same_bytes_are_found_by_the_reference() -> None:
    tokenizer = merging()
    assert encode(watched(tokenizer, Double(tokenizer, cut_apart), NEVER), ["Hi"]).ids.tolist() == [72, 105, 257]
    with pytest.raises(EngineDiffers) as caught:
        encode(watched(tokenizer, Double(tokenizer, cut_apart), 1), ["Hi", "Ho"])
    assert caught.value.texts == (hashed("Hi"),)


def test_the_documents_that_are_compared_are_chosen_by_the_hash_of_their_text() -> None:
    texts = [f"text {number}" for number in range(300)]
    chosen = sum(int(hashed(text)[:16], 16) % 7 == 0 for text in texts)
    encoder = watched(TRAINED, Double(TRAINED, lambda text, ids: ids), 7)
    encode(encoder, texts[:100])
    encode(encoder, texts[100:])
    assert encoder.checks == Checks(documents=300, spelled=300, compared=chosen)


def test_a_sliced_batch_is_compared_by_its_own_hashes() -> None:
    texts = pa.array([f"text {number}" for number in range(300)], pa.large_string())
    encoder = watched(TRAINED, Double(TRAINED, lambda text, ids: ids), 7)
    encoder.encode(texts.slice(200), content_hashes(texts).slice(200))
    chosen = sum(int(hashed(text)[:16], 16) % 7 == 0 for text in texts.to_pylist()[200:])
    assert encoder.checks.compared == chosen


def test_without_a_spelling_only_the_chosen_are_compared() -> None:
    encoder = watched(TRAINED, Double(TRAINED, last_changed("b")), NEVER, spelled=False)
    assert len(encode(encoder, ["a", "b"])) == 2
    assert encoder.checks == Checks(documents=2, spelled=0, compared=0)


def test_what_does_not_spell_its_text_but_equals_the_reference_is_right() -> None:
    tokenizer = load(byte_level([], EOS_PAD, normalizer={"type": "NFC"}))
    # A spelling that does not know of the normaliser takes the composed text for another one.
    encoder = watched(tokenizer, Double(tokenizer, lambda text, ids: ids), NEVER)
    encoder.spelling = spelling_of(json.loads(byte_level([], EOS_PAD)))
    assert encode(encoder, ["e\u0301", "e"]).ids.tolist() == [0xC3, 0xA9, 256, 101, 256]
    assert encoder.checks == Checks(documents=2, spelled=1, compared=1)


def test_texts_an_engine_fails_at_are_encoded_by_the_reference() -> None:
    def fail(text: str, ids: list[int]) -> list[int]:
        raise EngineFails("out of memory")

    encoder = watched(TRAINED, Double(TRAINED, fail), 1)
    assert encode(encoder, TEXTS).ids.tolist() == TRAINED.encode(TEXTS).ids.tolist()
    assert encoder.checks == Checks(failed=100)
    with pytest.raises(EngineUnusable, match="double 1 failed: out of memory"):
        prove(TRAINED, Double(TRAINED, fail), TEXTS, TRAINED.encode_plain(TEXTS))  # type: ignore[arg-type]


def test_a_proof_names_every_text_that_differs() -> None:
    double = Double(TRAINED, last_changed(TEXTS[1]))
    with pytest.raises(EngineDiffers, match="other ids than the reference for 2 texts") as caught:
        prove(TRAINED, double, ["a", *TEXTS[:2], TEXTS[1]], TRAINED.encode_plain(["a", *TEXTS[:2], TEXTS[1]]))  # type: ignore[arg-type]
    assert caught.value.texts == (hashed(TEXTS[1]),) * 2


def test_fastokens_passes_the_proof_for_a_trained_tokenizer() -> None:
    probes = probe_texts(TRAINED.added_tokens)
    prove(TRAINED, Fastokens(TRAINED.json), probes, TRAINED.encode_plain(probes))
    assert Fastokens(TRAINED.json).identity == f"fastokens {fastokens_version()}"


def test_special_tokens_in_a_text_stay_text() -> None:
    tokens = Fastokens(TRAINED.json).encode(["<|endoftext|>"])
    assert TRAINED.eos_id not in tokens.ids
    assert tokens.ids.tolist() == TRAINED.encode_plain(["<|endoftext|>"]).ids.tolist()


@given(st.lists(st.text(), max_size=4))
def test_fastokens_gives_the_ids_of_the_reference(texts: list[str]) -> None:
    expected = TRAINED.encode_plain(texts)
    found = TRAINED.encode_plain(texts, FAST.encode)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.offsets.tolist() == expected.offsets.tolist()


FAST = Fastokens(TRAINED.json)


def test_a_tokenizer_it_cannot_open_is_said_to_be_unusable() -> None:
    with pytest.raises(EngineUnusable, match="cannot open this tokenizer"):
        Fastokens(b'{"model": {"type": "nothing"}}')


NFC = load(byte_level([], EOS_PAD, normalizer={"type": "NFC"}))
LOWER = load(byte_level([], EOS_PAD, normalizer={"type": "Lowercase"}))


@pytest.mark.parametrize("engine", [None, Double(NFC, lambda text, ids: ids)])
def test_a_document_is_exact_if_its_tokens_decode_to_its_very_text(engine: Double | None) -> None:
    texts = pa.array(["caf\u00e9", "cafe\u0301", ""], pa.large_string())
    encoder = watched(NFC, engine, NEVER)
    assert encoder.encode(texts, content_hashes(texts)).exact.tolist() == [True, False, True]
    assert encoder.checks == (Checks() if engine is None else Checks(documents=3, spelled=2))


def test_without_a_spelling_exact_is_what_decodes_to_its_text() -> None:
    texts = pa.array(["Hi", "hi", ""], pa.large_string())
    encoder = watched(LOWER, None, NEVER)
    assert encoder.spelling is None
    assert encoder.encode(texts, content_hashes(texts)).exact.tolist() == [False, True, True]
