"""A SentencePiece model gives SentencePiece's own ids: by a tokenizer.json if that is exact, else by itself."""

from __future__ import annotations

import builtins
import json
import pickle
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError, EnvironmentFailure
from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.kinds import read_source
from dataprep.tokens.sentencepiece_model import convert_sentencepiece, is_sentencepiece
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer
from dataprep.tokens.tokenizer_json import open_backend
from tests.tokens.samples import ODD, SENTENCES

TEXT = st.lists(
    st.one_of(
        st.sampled_from((*SENTENCES, *ODD, " ", "  ", "\u2581", "<sep>", "<s>", "the", "\u4e2d", "1")),
        st.text(max_size=6),
    ),
    max_size=6,
).map("".join)


def by_conversion(model: bytes) -> tuple[Backend, Any]:
    """The tokenizer.json, and SentencePiece itself."""
    source = convert_sentencepiece(model, "m.model")
    assert source.model is None, source.notes
    return open_backend(source.json), sentencepiece.SentencePieceProcessor(model_proto=model)


def as_run(model: bytes, **settings: Any) -> tuple[Tokenizer, Any]:
    """The tokenizer as a run's worker gets it, and SentencePiece itself."""
    tokenizer = load_tokenizer(TokenizerConfig(path="m.model", **settings), convert_sentencepiece(model, "m.model"))
    return pickle.loads(pickle.dumps(tokenizer)), sentencepiece.SentencePieceProcessor(model_proto=model)


def refusal(model: bytes, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_tokenizer(TokenizerConfig(path="m.model", **settings), convert_sentencepiece(model, "m.model"))
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
        {"split_by_whitespace": False},
    ],
    ids=str,
)
def pair(request: pytest.FixtureRequest, train_sentencepiece: Callable[..., bytes]) -> tuple[Backend, Any]:
    return by_conversion(train_sentencepiece("bpe", **{"user_defined_symbols": [], **request.param}))


@example(text="   ")
@given(text=TEXT)
def test_bpe_ids_are_sentencepieces_own_for_any_text(pair: tuple[Backend, Any], text: str) -> None:
    ours, reference = pair
    assert ours.encode(text, add_special_tokens=False).ids == reference.encode(text)


@pytest.mark.parametrize("text", [*SENTENCES, *ODD, "\n".join(SENTENCES) * 20])
def test_bpe_ids_are_sentencepieces_own_for_texts_that_conversions_get_wrong(plain_bpe: bytes, text: str) -> None:
    ours, reference = by_conversion(plain_bpe)
    assert ours.encode(text, add_special_tokens=False).ids == reference.encode(text)


@pytest.fixture(scope="module")
def plain_bpe(train_sentencepiece: Callable[..., bytes]) -> bytes:
    """Without user-defined symbols, which only SentencePiece finds in every text."""
    return train_sentencepiece("bpe", user_defined_symbols=[])


@pytest.fixture(
    scope="module",
    params=[
        ("unigram", {}),
        ("unigram", {"normalization_rule_name": "nmt_nfkc", "remove_extra_whitespaces": True}),
        ("unigram", {"byte_fallback": False, "user_defined_symbols": []}),
        ("unigram", {"add_dummy_prefix": False, "split_by_whitespace": False}),
        ("bpe", {"normalization_rule_name": "nmt_nfkc", "remove_extra_whitespaces": True}),
        ("bpe", {}),
    ],
    ids=str,
)
def run_pair(request: pytest.FixtureRequest, train_sentencepiece: Callable[..., bytes]) -> tuple[Tokenizer, Any]:
    kind, settings = request.param
    return as_run(train_sentencepiece(kind, **settings))


@example(texts=["<sep>", "e\u0302\u0301", "   ", "", "a\x00b", "<s></s><unk>", "\ue000\U0010fffd"])
@given(texts=st.lists(TEXT, max_size=4))
def test_models_that_no_tokenizer_json_equals_encode_by_sentencepiece_itself(
    run_pair: tuple[Tokenizer, Any], texts: list[str]
) -> None:
    ours, reference = run_pair
    assert ours.reference == "sentencepiece"
    tokens = ours.encode_plain(texts)
    assert [tokens.ids[a:b].tolist() for a, b in pairwise(tokens.offsets.tolist())] == reference.encode(texts)
    assert {ours.eos_id, ours.pad_id}.isdisjoint(tokens.ids.tolist())


def test_a_lone_surrogate_is_an_error_and_no_other_text(run_pair: tuple[Tokenizer, Any]) -> None:
    with pytest.raises(UnicodeEncodeError):
        run_pair[0].encode(["a\ud800"])


def test_texts_come_back_by_the_tokenizer_json_of_a_unigram_model(train_sentencepiece: Callable[..., bytes]) -> None:
    ours, reference = as_run(train_sentencepiece("unigram"))
    texts = [text for text in (*SENTENCES, *ODD) if "\u2581" not in text]
    assert [ours.decode(ours.encode([text]).ids) for text in texts] == texts
    assert (ours.vocab_size, ours.decode([5])) == (reference.vocab_size(), reference.decode([5]))


def test_the_model_is_part_of_the_fingerprint(train_sentencepiece: Callable[..., bytes]) -> None:
    model = train_sentencepiece("unigram")
    ours, _ = as_run(model)
    # A field that no tokenizer.json holds.
    other, _ = as_run(changed(model, lambda proto: setattr(proto.trainer_spec, "mining_sentence_size", 7)))
    assert ours.json == other.json
    assert ours.fingerprint != other.fingerprint
    assert ours.fingerprint == as_run(model)[0].fingerprint


def test_a_run_gets_the_models_own_marks_and_its_texts_back(sentencepiece_bpe: bytes) -> None:
    tokenizer, reference = as_run(sentencepiece_bpe)
    assert (tokenizer.eos_id, tokenizer.bos_id, tokenizer.pad_id) == (2, None, 3)
    assert tokenizer.vocab_size == reference.vocab_size()
    assert tokenizer.encode(["ab", "</s>"]).ids.tolist() == [*reference.encode("ab"), 2, *reference.encode("</s>"), 2]
    texts = [text for text in (*SENTENCES, *ODD) if "\u2581" not in text]
    assert [tokenizer.decode(tokenizer.encode_plain([text]).ids) for text in texts] == texts


def test_added_special_tokens_come_behind_the_models_pieces(train_sentencepiece: Callable[..., bytes]) -> None:
    model = train_sentencepiece("unigram", pad_id=-1)
    ours, reference = as_run(model, add_special_tokens=["<|pad|>"], pad="<|pad|>")
    assert ours.pad_id == reference.vocab_size() == ours.vocab_size - 1
    assert ours.encode_plain(["<|pad|>"]).ids.tolist() == reference.encode("<|pad|>")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"allow_special": True}, "takes special tokens in texts as text; leave tokenizer.allow_special out"),
        ({"pad": "<unk>"}, "some text would be encoded as the special token '<unk>'"),
        ({"eos": "<0x0A>"}, "some text would be encoded as the special token '<0x0A>'"),
        ({"eos": "<sep>"}, "some text would be encoded as the special token '<sep>'"),
    ],
    ids=str,
)
def test_what_sentencepiece_would_do_otherwise_is_refused(
    train_sentencepiece: Callable[..., bytes], settings: dict[str, Any], complaint: str
) -> None:
    assert complaint in refusal(train_sentencepiece("unigram"), **settings)


def test_a_token_that_a_folder_wants_found_in_texts_must_be_the_models_own(
    tmp_path: Path, train_sentencepiece: Callable[..., bytes]
) -> None:
    model = train_sentencepiece("unigram")
    (tmp_path / "tokenizer.model").write_bytes(model)
    entry = {"special": False, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False}

    def load(name: str, token: int) -> Tokenizer:
        settings = {"added_tokens_decoder": {str(token): {"content": name, **entry}}}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
        config = TokenizerConfig(path=tmp_path)
        return load_tokenizer(config, read_source(config))

    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    found = load("<sep>", reference.piece_to_id("<sep>")).encode_plain(["a<sep>"]).ids.tolist()
    assert found == reference.encode("a<sep>")
    with pytest.raises(ConfigError, match="'<tool>' is to be found in texts, but is no user-defined symbol"):
        load("<tool>", reference.vocab_size())


def test_runs_of_spaces_whose_pieces_share_a_score_are_joined_as_sentencepiece_joins_them(plain_bpe: bytes) -> None:
    def add_runs(proto: Any) -> None:
        names = {piece.piece for piece in proto.pieces}
        for length in (2, 4, 3, 8):
            if "\u2581" * length not in names:
                proto.pieces.add(piece="\u2581" * length, score=-1e9, type=1)

    ours, reference = by_conversion(changed(plain_bpe, add_runs))
    for count in range(40):
        text = f"a{' ' * count}b"
        assert ours.encode(text).ids == reference.encode(text)


def test_pieces_that_share_a_score_and_come_out_otherwise_are_left_to_sentencepiece(plain_bpe: bytes) -> None:
    # zz zz z: SentencePiece joins the leftmost of equal pairs to zzzz z, the order of merges makes it zz zzz.
    def add(proto: Any) -> None:
        proto.pieces.add(piece="zz", score=-5.5, type=1)
        proto.pieces.add(piece="zzz", score=-7000.0, type=1)
        proto.pieces.add(piece="zzzz", score=-7000.0, type=1)
        proto.pieces.add(piece="z", score=-9000.0, type=1)

    model = changed(plain_bpe, add)
    [note] = convert_sentencepiece(model, "m.model").notes
    assert note == "a tokenizer.json encodes 'azzzzzb' otherwise, so SentencePiece itself encodes"
    ours, reference = as_run(model)
    assert ours.encode_plain(["zzzzz"]).ids.tolist() == reference.encode("zzzzz")
    assert [ours.decode([token]) for token in reference.encode("zzzzz")] == ["", "zzzz", "z"]


def test_unused_pieces_are_left_to_sentencepiece(plain_bpe: bytes) -> None:
    model = changed(plain_bpe, lambda proto: setattr(proto.pieces[300], "type", 5))
    assert convert_sentencepiece(model, "m.model").notes == ("it has UNUSED pieces, so SentencePiece itself encodes",)
    ours, reference = as_run(model)
    texts = [*SENTENCES, reference.id_to_piece(300).replace("\u2581", " ")]
    assert 300 not in reference.encode(texts[-1])
    assert ours.encode_plain(texts).ids.tolist() == [token for ids in reference.encode(texts) for token in ids]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda proto: setattr(proto.trainer_spec, "model_type", 3), "only BPE and Unigram models"),
        (lambda proto: setattr(proto.trainer_spec, "treat_whitespace_as_suffix", True), "white space as a suffix"),
        (lambda proto: setattr(proto.normalizer_spec, "escape_whitespaces", False), "cannot be converted"),
        (lambda proto: setattr(proto.pieces[300], "piece", proto.pieces[301].piece), "already defined"),
    ],
    ids=["word", "suffix", "unescaped", "twins"],
)
def test_what_a_tokenizer_json_cannot_say_is_refused(
    plain_bpe: bytes, change: Callable[[Any], object], complaint: str
) -> None:
    assert complaint in refusal(changed(plain_bpe, change))


def test_a_conversion_that_differs_on_a_probe_is_not_used(plain_bpe: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataprep.tokens import sentencepiece_model

    correct = sentencepiece_model._bpe

    def without_first_merge(model: Any) -> Any:
        value = json.loads(Backend(correct(model)).to_str())["model"]
        pairs = [tuple(merge) for merge in value["merges"]]
        shared = {"unk_token": value["unk_token"], "fuse_unk": True, "byte_fallback": True}
        return type(correct(model))(value["vocab"], pairs[1:], **shared)

    monkeypatch.setattr(sentencepiece_model, "_bpe", without_first_merge)
    source = convert_sentencepiece(plain_bpe, "m.model")
    assert source.model == plain_bpe
    assert "otherwise, so SentencePiece itself encodes" in source.notes[0]


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
        convert_sentencepiece(sentencepiece_bpe, "m.model")
    assert str(caught.value) == (
        "m.model: a SentencePiece model needs a library: No module named 'sentencepiece'; "
        'pip install "dataprep[sentencepiece]"'
    )


def test_models_are_told_from_other_files_by_their_first_bytes(sentencepiece_bpe: bytes) -> None:
    assert is_sentencepiece(sentencepiece_bpe)
    assert not any(is_sentencepiece(data) for data in (b'{"model": {}}', b"IQ== 0\n", b"", b"\n\n\n\n\n\n"))
