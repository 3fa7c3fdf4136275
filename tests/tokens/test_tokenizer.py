"""Encoding puts one EOS after each document, takes special tokens in text as text, and refuses what cannot work."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from dataprep.errors import ConfigError
from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.kinds import read_source
from dataprep.tokens.source import DocumentMarks, Source
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer

FILE = Path("vocab/tokenizer.json")


def byte_characters() -> list[str]:
    """The printable stand-in of each byte, as GPT-2 defines them: itself if printable, else from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def added(token: int, content: str, *, special: bool = True) -> dict[str, Any]:
    flags = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
    return {"id": token, "content": content, "special": special, **flags}


def byte_level(pairs: list[tuple[int, int]], added_tokens: list[dict[str, Any]], **more: Any) -> bytes:
    """A byte-level tokenizer.json: byte b has id b, the merge of pairs[k] has id 256 + k, then the added tokens."""
    characters = byte_characters()
    merges = [[characters[a], characters[b]] for a, b in pairs]
    names = [*characters, *("".join(merge) for merge in merges)]
    model = {"type": "BPE", "vocab": {name: token for token, name in enumerate(names)}, "merges": merges}
    pre_tokenizer = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    whole = {"version": "1.0", "model": model, "pre_tokenizer": pre_tokenizer, "added_tokens": added_tokens}
    return json.dumps({**whole, "decoder": pre_tokenizer, "normalizer": None, **more}).encode()


EOS_PAD = [added(256, "<|endoftext|>"), added(257, "<|pad|>")]


def load(text: bytes, **settings: Any) -> Tokenizer:
    return load_tokenizer(TokenizerConfig(path=FILE, **settings), Source("tokenizer.json", text))


def test_a_document_is_its_bytes_and_one_eos() -> None:
    tokens = load(byte_level([], EOS_PAD)).encode(["Hi", "", "é"])
    assert tokens.ids.tolist() == [72, 105, 256, 256, 0xC3, 0xA9, 256]
    assert tokens.offsets.tolist() == [0, 3, 4, 7]
    assert (tokens.ids.dtype, tokens.offsets.dtype) == (np.int32, np.int64)


def test_no_documents_are_no_tokens() -> None:
    tokens = load(byte_level([], EOS_PAD)).encode([])
    assert (tokens.ids.tolist(), tokens.offsets.tolist()) == ([], [0])


def test_bos_comes_before_every_document_if_configured() -> None:
    tokenizer = load(byte_level([], [*EOS_PAD, added(258, "<s>")]), bos="<s>")
    assert tokenizer.encode(["A", ""]).ids.tolist() == [258, 65, 256, 258, 256]


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [258], "tokens": ["<s>"]}},
}


@pytest.mark.parametrize(("bos", "ids"), [("<s>", [258, 65, 256]), (None, [65, 256])])
def test_a_template_that_adds_bos_neither_doubles_nor_forces_it(bos: str | None, ids: list[int]) -> None:
    text = byte_level([], [*EOS_PAD, added(258, "<s>")], post_processor=TEMPLATE)
    assert Backend.from_buffer(text).encode("A").ids == [258, 65]
    assert load(text, bos=bos).encode(["A"]).ids.tolist() == ids


def test_special_tokens_in_text_are_text() -> None:
    tokenizer = load(byte_level([], EOS_PAD))
    tokens = tokenizer.encode(["<|endoftext|><|pad|>"])
    assert tokens.ids.tolist() == [*b"<|endoftext|><|pad|>", 256]
    assert tokenizer.decode(tokens.ids) == "<|endoftext|><|pad|>"


def test_an_eos_that_the_file_does_not_call_special_is_text_in_text_all_the_same() -> None:
    text = byte_level([], [added(256, "<|endoftext|>", special=False), added(257, "<|pad|>")])
    assert load(text).encode(["<|endoftext|>"]).ids.tolist() == [*b"<|endoftext|>", 256]


def test_decoding_hides_special_tokens_unless_asked() -> None:
    tokenizer = load(byte_level([], EOS_PAD))
    assert tokenizer.decode([72, 105, 256, 257]) == "Hi"
    assert tokenizer.decode([72, 105, 256, 257], show_special=True) == "Hi<|endoftext|><|pad|>"


def test_padding_truncation_and_dropout_of_the_file_are_off() -> None:
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    padding = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 257, "pad_type_id": 0, "pad_token": "<|pad|>"}
    plain = json.loads(byte_level([(72, 105)], [added(257, "<|endoftext|>"), added(258, "<|pad|>")]))
    unsteady = {**plain, "truncation": truncation, "padding": padding, "model": {**plain["model"], "dropout": 0.9}}
    tokenizer = load(json.dumps(unsteady).encode())
    assert tokenizer.encode(["HiHiHi"] * 20).ids.tolist() == [256, 256, 256, 257] * 20
    assert tokenizer.fingerprint == load(json.dumps(plain).encode()).fingerprint


ALL_PAIRS = [(a, b) for a in range(256) for b in range(256)][: 65_530 - 256]


def test_65530_tokens_and_20_added_ones_keep_ids_above_65535() -> None:
    tools = [added(65_530 + k, f"<tool{k}>", special=False) for k in range(18)]
    text = byte_level(ALL_PAIRS, [*tools, added(65_548, "<|pad|>"), added(65_549, "<|endoftext|>")])
    tokenizer = load(text)
    assert (tokenizer.vocab_size, tokenizer.pad_id, tokenizer.eos_id) == (65_550, 65_548, 65_549)
    # "中" is e4 b8 ad: of its pairs, (b8, ad) comes first in the order of merges, as number 0xb8ad.
    middle = [0xE4, 256 + 0xB8AD]
    tokens = tokenizer.encode(["<tool17>中", "<tool5>"])
    assert tokens.ids.tolist() == [65_547, *middle, 65_549, 65_535, 65_549]
    assert tokenizer.decode(tokens.ids[:4]) == "<tool17>中"


def test_special_tokens_are_added_behind_the_vocabulary_and_published() -> None:
    settings = {"add_special_tokens": ("<|pad|>", "<|image|>"), "pad": "<|pad|>"}
    tokenizer = load(byte_level([], [added(256, "<|endoftext|>")]), **settings)
    assert (tokenizer.pad_id, tokenizer.vocab_size) == (257, 259)
    published = json.loads(tokenizer.json)["added_tokens"]
    assert [(token["id"], token["content"]) for token in published] == [
        (256, "<|endoftext|>"),
        (257, "<|pad|>"),
        (258, "<|image|>"),
    ]
    assert load(tokenizer.json, **settings) == tokenizer


def test_the_padding_token_is_the_files_own_when_none_is_named() -> None:
    padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 258, "pad_type_id": 0, "pad_token": "<fill>"}
    tokens = [*EOS_PAD, added(258, "<fill>")]
    assert load(byte_level([], tokens, padding=padding)).pad_id == 258
    assert load(byte_level([], [added(256, "<|endoftext|>"), added(257, "[PAD]")])).pad_id == 257


def refusal(text: bytes, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(text, **settings)
    return str(caught.value)


ADD_PAD = 'add one: tokenizer: {add_special_tokens: ["<|pad|>"], pad: "<|pad|>"}'


def test_a_missing_eos_lists_the_special_tokens_there_are() -> None:
    assert refusal(byte_level([], EOS_PAD), eos="</s>") == (
        "vocab/tokenizer.json: tokenizer.eos '</s>' is not in the vocabulary; its special tokens are "
        "'<|endoftext|>', '<|pad|>'; set tokenizer.eos to one, or name it in add_special_tokens"
    )


def test_a_missing_pad_says_how_to_add_one() -> None:
    assert refusal(byte_level([], [added(256, "<|endoftext|>")])) == (
        f"vocab/tokenizer.json: the tokenizer has no padding token; {ADD_PAD}"
    )
    others = [added(256, "<|endoftext|>"), added(257, "<|begin|>"), added(258, "<|free|>")]
    assert refusal(byte_level([], others), bos="<|begin|>").endswith("or set tokenizer.pad to one of '<|free|>'")


@pytest.mark.parametrize(("key", "name"), [("eos", "<|endoftext|>"), ("bos", "<s>")])
def test_a_pad_that_also_marks_documents_is_refused(key: str, name: str) -> None:
    message = refusal(byte_level([], [*EOS_PAD, added(258, "<s>")]), bos="<s>", pad=name)
    assert message == (
        f"vocab/tokenizer.json: tokenizer.pad and tokenizer.{key} are both {name!r}, "
        f"but padding must be told from text by its id; {ADD_PAD}"
    )


def test_an_eos_that_a_merge_can_form_from_text_is_refused() -> None:
    text = byte_level([(0x41, 0x42)], [added(257, "<|pad|>")])
    assert "text that spells 'AB' would be encoded as the special token" in refusal(text, eos="AB")


def test_an_added_id_that_would_be_read_otherwise_is_refused() -> None:
    assert "'<|endoftext|>' has id 300 in the file but is read as" in refusal(
        byte_level([], [added(300, "<|endoftext|>"), added(301, "<|pad|>")])
    )


def test_the_fingerprint_changes_with_whatever_changes_ids_and_with_nothing_else() -> None:
    base = load(byte_level([], EOS_PAD))
    same = load(
        byte_level(
            [],
            EOS_PAD,
            post_processor={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        )
    )
    merged = load(byte_level([(65, 66)], [added(257, "<|endoftext|>"), added(258, "<|pad|>")]))
    normalised = load(byte_level([], EOS_PAD, normalizer={"type": "NFC"}))
    with_bos = load(byte_level([], [*EOS_PAD, added(258, "<s>")]), bos="<s>")
    without_bos = load(byte_level([], [*EOS_PAD, added(258, "<s>")]))
    others = [merged, normalised, with_bos, without_bos]
    assert same.fingerprint == base.fingerprint
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 5
    assert len(bytes.fromhex(base.fingerprint)) == 16


def test_a_pickled_tokenizer_still_takes_special_tokens_in_text_as_text() -> None:
    tokenizer = load(byte_level([], EOS_PAD))
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy == tokenizer
    assert copy.encode(["<|pad|>"]).ids.tolist() == [*b"<|pad|>", 256]


def test_word_level_and_unigram_files_load_too() -> None:
    backends = [
        Backend(models.WordLevel({"a": 0, "<unk>": 1}, unk_token="<unk>")),
        Backend(models.Unigram([("<unk>", 0.0), ("a", -1.0)], unk_id=0)),
    ]
    for backend in backends:
        backend.pre_tokenizer = pre_tokenizers.Whitespace()
        backend.decoder = decoders.Fuse()
        settings = {"add_special_tokens": ("<|endoftext|>", "<|pad|>")}
        tokenizer = load(backend.to_str().encode(), **settings)
        assert tokenizer.encode(["a"]).ids.tolist() == [backend.token_to_id("a"), 2]


def test_a_plain_and_a_zst_file_are_read_alike(tmp_path: Path) -> None:
    text = byte_level([], EOS_PAD)
    (tmp_path / "t.json").write_bytes(text)
    (tmp_path / "t.json.zst").write_bytes(zstandard.compress(text))
    plain, packed = (read_source(TokenizerConfig(path=tmp_path / name)).json for name in ("t.json", "t.json.zst"))
    assert plain == packed == text


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("gone.json", None, "cannot read the tokenizer: No such file or directory"),
        ("cut.json", b'{"model": {"ty', "not a tokenizer.json: "),
        ("binary.json", b"\xff\xfe\x00", "not a tokenizer.json: "),
        ("other.json", b'{"vocab_size": 5}', "not a tokenizer.json: it has no model"),
        ("list.json", b"[1]", "not a tokenizer.json: it has no model"),
        ("plain.json.zst", b"{}", "the tokenizer is not valid zstd"),
        ("short.json.zst", zstandard.compress(b'{"model": {}}' * 9)[:-4], "the tokenizer is not valid zstd"),
    ],
)
def test_a_file_that_is_no_tokenizer_is_named_with_the_mend(
    tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_source(TokenizerConfig(path=path))
    message = str(caught.value)
    assert message.startswith(f"{path}: {complaint}")
    assert message.endswith(
        "give a tokenizer.json, a Hugging Face tokenizer folder, a SentencePiece .model or a tiktoken file, "
        "or train one in the run: tokenizer: {train: {}}"
    )


def test_a_model_the_library_does_not_know_is_named_with_its_file() -> None:
    assert refusal(b'{"model": {"type": "Oracle", "vocab": {"<|endoftext|>": 0, "<|pad|>": 1}}}').startswith(
        "vocab/tokenizer.json: not a usable tokenizer.json: "
    )


def test_a_tokenizer_that_puts_bos_by_itself_needs_a_decision() -> None:
    text = byte_level([], [*EOS_PAD, added(258, "<s>")], post_processor=TEMPLATE)
    assert refusal(text) == (
        "vocab/tokenizer.json: the tokenizer puts '<s>' before every text by itself; "
        'set tokenizer.bos: "<s>" to have it, or tokenizer.bos: null to go without'
    )


def test_eos_and_pad_are_those_the_files_name_unless_the_pipeline_says_otherwise() -> None:
    text = byte_level([], [*EOS_PAD, added(258, "</s>"), added(259, "<fill>")])
    own = DocumentMarks(eos="</s>", pad="<fill>")
    named = load_tokenizer(TokenizerConfig(path=FILE), Source("tokenizer.json", text, own))
    assert (named.eos_id, named.pad_id) == (258, 259)
    told = load_tokenizer(
        TokenizerConfig(path=FILE, eos="<|endoftext|>", pad="<|pad|>"), Source("tokenizer.json", text, own)
    )
    assert (told.eos_id, told.pad_id) == (256, 257)
    # Many published folders pad with their eos, which could not be told from text.
    assert (
        load_tokenizer(
            TokenizerConfig(path=FILE), Source("tokenizer.json", text, DocumentMarks("</s>", pad="</s>"))
        ).pad_id
        == 257
    )


CHAT = [*EOS_PAD, added(258, "<s>"), added(259, "<|im_start|>")]


def test_allowed_special_tokens_in_text_are_tokens_but_the_marks_of_documents_stay_text() -> None:
    tokenizer = load(byte_level([], CHAT), bos="<s>", allow_special=True)
    text = "<|im_start|>a<|endoftext|><|pad|><s>"
    tokens = tokenizer.encode([text])
    assert tokens.ids.tolist() == [258, 259, *b"a<|endoftext|><|pad|><s>", 256]
    assert tokenizer.decode(tokenizer.encode_plain([text]).ids) == text
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode([text]).ids.tolist() == tokens.ids.tolist()
    kept_as_text = load(byte_level([], CHAT), bos="<s>")
    assert kept_as_text.encode(["<|im_start|>"]).ids.tolist() == [258, *b"<|im_start|>", 256]
    assert kept_as_text.json == tokenizer.json
    assert kept_as_text.fingerprint != tokenizer.fingerprint


def test_a_declared_vocabulary_size_must_hold_every_id() -> None:
    assert load(byte_level([], EOS_PAD), vocab_size=258).vocab_size == 258
    assert load(byte_level([], EOS_PAD), vocab_size=320).vocab_size == 258
    assert refusal(byte_level([], EOS_PAD), vocab_size=257) == (
        "vocab/tokenizer.json: token id 257 is not below tokenizer.vocab_size 257; "
        "declare the size of the model's embedding, or leave vocab_size out"
    )
