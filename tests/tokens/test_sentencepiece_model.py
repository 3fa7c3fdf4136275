"""A converted SentencePiece model gives SentencePiece's own ids, or is refused."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from typing import Any

import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError, EnvironmentFailure
from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.sentencepiece_model import convert_sentencepiece, is_sentencepiece
from dataprep.tokens.tokenizer import load_tokenizer
from dataprep.tokens.tokenizer_json import open_backend
from tests.tokens.samples import ODD, SENTENCES

TEXT = st.lists(
    st.one_of(
        st.sampled_from((*SENTENCES, *ODD, " ", "  ", "\u2581", "<sep>", "<s>", "the", "\u4e2d", "1")),
        st.text(max_size=6),
    ),
    max_size=6,
).map("".join)


def opened(model: bytes, **settings: Any) -> tuple[Backend, Any]:
    """Ours, and SentencePiece itself."""
    source = convert_sentencepiece(model, "m.model", inexact=settings.get("inexact", False))
    return open_backend(source.json), sentencepiece.SentencePieceProcessor(model_proto=model)


def refusal(model: bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        convert_sentencepiece(model, "m.model", inexact=False)
    return str(caught.value)


def changed(model: bytes, change: Callable[[Any], object]) -> bytes:
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    change(proto)
    return bytes(proto.SerializeToString())


@pytest.fixture(
    scope="module",
    params=[
        {},
        {"add_dummy_prefix": False},
        {"remove_extra_whitespaces": True},
        {"byte_fallback": False},
        {"split_digits": True, "allow_whitespace_only_pieces": True},
        {"split_by_whitespace": False, "user_defined_symbols": []},
    ],
    ids=str,
)
def pair(request: pytest.FixtureRequest, train_sentencepiece: Callable[..., bytes]) -> tuple[Backend, Any]:
    return opened(train_sentencepiece("bpe", **request.param))


# SentencePiece puts its prefix before a document that is nothing but a user-defined symbol, the conversion does not.
def is_symbol_alone(text: str) -> bool:
    return text.strip(" \u2581") == "<sep>"


@example(text="   ")
@example(text="<sep>\u2581")
@given(text=TEXT)
def test_bpe_ids_are_sentencepieces_own_for_any_text(pair: tuple[Backend, Any], text: str) -> None:
    ours, reference = pair
    if not is_symbol_alone(text):
        assert ours.encode(text, add_special_tokens=False).ids == reference.encode(text)


@pytest.mark.parametrize("text", [*SENTENCES, *(one for one in ODD if one != "<sep>"), "\n".join(SENTENCES) * 20])
def test_bpe_ids_are_sentencepieces_own_for_texts_that_conversions_get_wrong(
    sentencepiece_bpe: bytes, text: str
) -> None:
    ours, reference = opened(sentencepiece_bpe)
    assert ours.encode(text, add_special_tokens=False).ids == reference.encode(text)


def test_a_run_gets_the_models_own_marks_and_its_texts_back(sentencepiece_bpe: bytes) -> None:
    source = convert_sentencepiece(sentencepiece_bpe, "m.model", inexact=False)
    tokenizer = load_tokenizer(TokenizerConfig(path="m.model"), source.json, source.marks)
    reference = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_bpe)
    assert (tokenizer.eos_id, tokenizer.bos_id, tokenizer.pad_id) == (2, None, 3)
    assert tokenizer.vocab_size == reference.vocab_size()
    assert tokenizer.encode(["ab", "</s>"]).ids.tolist() == [*reference.encode("ab"), 2, *reference.encode("</s>"), 2]
    texts = [text for text in (*SENTENCES, *ODD) if "\u2581" not in text]
    assert [tokenizer.decode(tokenizer.encode_plain([text]).ids) for text in texts] == texts


def test_runs_of_spaces_whose_pieces_share_a_score_are_joined_as_sentencepiece_joins_them(
    sentencepiece_bpe: bytes,
) -> None:
    def add_runs(proto: Any) -> None:
        names = {piece.piece for piece in proto.pieces}
        for length in (2, 4, 3, 8):
            if "\u2581" * length not in names:
                proto.pieces.add(piece="\u2581" * length, score=-1e9, type=1)

    ours, reference = opened(changed(sentencepiece_bpe, add_runs))
    for count in range(40):
        text = f"a{' ' * count}b"
        assert ours.encode(text).ids == reference.encode(text)


def test_pieces_that_share_a_score_and_come_out_otherwise_are_refused(sentencepiece_bpe: bytes) -> None:
    # zz zz z: SentencePiece joins the leftmost of equal pairs to zzzz z, the order of merges makes it zz zzz.
    def add(proto: Any) -> None:
        proto.pieces.add(piece="zz", score=-5.5, type=1)
        proto.pieces.add(piece="zzz", score=-7000.0, type=1)
        proto.pieces.add(piece="zzzz", score=-7000.0, type=1)
        proto.pieces.add(piece="z", score=-9000.0, type=1)

    model = changed(sentencepiece_bpe, add)
    assert "encodes 'azzz" in refusal(model)


def test_a_unigram_model_is_refused_unless_near_ties_may_fall_otherwise(
    train_sentencepiece: Callable[..., bytes],
) -> None:
    model = train_sentencepiece("unigram")
    assert refusal(model) == (
        "m.model: the SentencePiece model cannot be converted exactly: a Unigram model decides near ties by rounding "
        "in single precision; use a BPE model with normalization_rule_name=identity, or accept some other ids: "
        "tokenizer: {inexact: true}"
    )
    ours, reference = opened(model, inexact=True)
    texts = [*SENTENCES, *ODD]
    same = [text for text in texts if ours.encode(text, add_special_tokens=False).ids == reference.encode(text)]
    assert same == texts


@given(text=TEXT)
def test_no_text_becomes_a_control_or_byte_piece_of_a_unigram_model(unigram: tuple[Backend, Any], text: str) -> None:
    ours, reference = unigram
    controls = {token for token in range(reference.vocab_size()) if reference.is_control(token)}
    ids = ours.encode(text, add_special_tokens=False).ids
    assert controls.isdisjoint(ids)
    assert bytes(reference.decode(ids), "utf-8") == bytes(reference.decode(reference.encode(text)), "utf-8")


@pytest.fixture(scope="module")
def unigram(train_sentencepiece: Callable[..., bytes]) -> tuple[Backend, Any]:
    return opened(train_sentencepiece("unigram"), inexact=True)


def test_a_character_map_is_refused_unless_nearly_will_do(train_sentencepiece: Callable[..., bytes]) -> None:
    model = train_sentencepiece("bpe", normalization_rule_name="nmt_nfkc", remove_extra_whitespaces=True)
    assert "its character map 'nmt_nfkc' composes combining marks" in refusal(model)
    ours, reference = opened(model, inexact=True)
    assert ours.encode("\uff21\uff22 \u2460\u3000x").ids == reference.encode("\uff21\uff22 \u2460\u3000x")
    source = convert_sentencepiece(model, "m.model", inexact=True)
    assert [note.partition(" ")[2] for note in source.notes] == ["probe texts encode otherwise than SentencePiece does"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda proto: setattr(proto.trainer_spec, "model_type", 3), "only BPE and Unigram models"),
        (lambda proto: setattr(proto.trainer_spec, "treat_whitespace_as_suffix", True), "white space as a suffix"),
        (lambda proto: setattr(proto.normalizer_spec, "escape_whitespaces", False), "cannot be converted"),
        (lambda proto: setattr(proto.pieces[300], "type", 5), "1 pieces of the SentencePiece model are UNUSED"),
    ],
    ids=["word", "suffix", "unescaped", "unused"],
)
def test_what_a_tokenizer_json_cannot_say_is_refused(
    sentencepiece_bpe: bytes, change: Callable[[Any], object], complaint: str
) -> None:
    assert complaint in refusal(changed(sentencepiece_bpe, change))


def test_a_conversion_that_differs_on_a_probe_is_refused(
    sentencepiece_bpe: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataprep.tokens import sentencepiece_model

    correct = sentencepiece_model._bpe

    def without_first_merge(model: Any) -> Any:
        value = json.loads(Backend(correct(model)).to_str())["model"]
        pairs = [tuple(merge) for merge in value["merges"]]
        shared = {"unk_token": value["unk_token"], "fuse_unk": True, "byte_fallback": True}
        return type(correct(model))(value["vocab"], pairs[1:], **shared)

    monkeypatch.setattr(sentencepiece_model, "_bpe", without_first_merge)
    assert "otherwise than SentencePiece does" in refusal(sentencepiece_bpe)


def test_a_broken_model_is_named() -> None:
    assert refusal(b"\x0a\x10\x0a\xffbroken").startswith("m.model: not a SentencePiece model: ")


def test_a_missing_library_is_named_with_how_to_get_it(
    sentencepiece_bpe: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any, **settings: Any) -> Any:
        if name == "sentencepiece":
            raise ModuleNotFoundError("No module named 'sentencepiece'")
        return real(name, *more, **settings)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EnvironmentFailure) as caught:
        convert_sentencepiece(sentencepiece_bpe, "m.model", inexact=False)
    assert str(caught.value) == (
        "m.model: a SentencePiece model needs a library: No module named 'sentencepiece'; "
        'pip install "dataprep[sentencepiece]"'
    )


def test_models_are_told_from_other_files_by_their_first_bytes(sentencepiece_bpe: bytes) -> None:
    assert is_sentencepiece(sentencepiece_bpe)
    assert not any(is_sentencepiece(data) for data in (b'{"model": {}}', b"IQ== 0\n", b"", b"\n\n\n\n\n\n"))
