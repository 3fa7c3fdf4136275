"""What a path names is told by its content, and what a folder's files say about tokens is honoured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import zstandard
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from dataprep.errors import ConfigError
from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.kinds import named_on_command_line, read_source, source_hash
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer
from dataprep.tokens.tokenizer_json import open_backend
from tests.tokens.samples import SENTENCES, rank_file


def byte_backend(special: list[str]) -> Backend:
    """Byte-level, no merges: bytes have ids 0 to 255, special tokens follow."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE({symbol: token for token, symbol in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.add_special_tokens(special)
    return backend


def write(folder: Path, **files: Any) -> Path:
    """Write JSON files into a folder; `a__json` is a.json."""
    folder.mkdir(exist_ok=True)
    for name, value in files.items():
        (folder / name.replace("__", ".")).write_text(json.dumps(value), "utf-8")
    return folder


def load(path: Path, **settings: Any) -> Tokenizer:
    config = TokenizerConfig(path=path, **settings)
    return load_tokenizer(config, read_source(config))


def refusal(path: Path, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, **settings)
    return str(caught.value)


DECODER = {
    "256": {"content": "</s>", "special": True},
    "257": {"content": "<pad>", "special": True},
    "258": {"content": "<tool>", "special": False, "lstrip": False, "rstrip": False, "normalized": False},
    "259": {"content": "<|im_start|>", "special": True},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    byte_backend(["</s>", "<pad>"]).save(str(tmp_path / "tokenizer.json"))
    eos = {"content": "</s>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    config = {"eos_token": eos, "pad_token": "<pad>", "bos_token": None, "added_tokens_decoder": DECODER}
    return write(tmp_path, tokenizer_config__json=config)


def test_a_folder_gives_marks_and_added_tokens_that_its_tokenizer_json_lacks(folder: Path) -> None:
    tokenizer = load(folder)
    assert (tokenizer.eos_id, tokenizer.bos_id, tokenizer.pad_id, tokenizer.vocab_size) == (256, None, 257, 260)
    ids = tokenizer.encode(["<tool><|im_start|>"]).ids.tolist()
    assert ids[0] == 258
    assert 259 not in ids
    assert load(folder, eos="<|im_start|>").eos_id == 259


def test_marks_are_read_from_the_special_tokens_map_too(tmp_path: Path) -> None:
    byte_backend(["</s>", "<pad>"]).save(str(tmp_path / "tokenizer.json"))
    write(tmp_path, special_tokens_map__json={"eos_token": {"content": "</s>"}, "pad_token": "<pad>"})
    write(tmp_path, added_tokens__json={"<tool>": 258})
    tokenizer = load(tmp_path)
    assert (tokenizer.eos_id, tokenizer.pad_id, tokenizer.vocab_size) == (256, 257, 259)


def test_a_folder_whose_files_disagree_on_an_id_is_refused(folder: Path) -> None:
    write(folder, tokenizer_config__json={"added_tokens_decoder": {"300": {"content": "</s>"}}})
    assert refusal(folder) == (
        f"{folder}: added token '</s>' has id 300 in tokenizer_config.json but 256 in the tokenizer; "
        "make the folder's files agree"
    )


def test_a_folder_that_asks_for_bos_needs_a_decision(folder: Path) -> None:
    config = {"eos_token": "</s>", "bos_token": "<|im_start|>", "add_bos_token": True, "added_tokens_decoder": DECODER}
    write(folder, tokenizer_config__json=config)
    assert "the tokenizer puts '<|im_start|>' before every text by itself" in refusal(folder)
    assert load(folder, bos=None).bos_id is None
    assert load(folder, bos="<|im_start|>").bos_id == 259


def test_the_hash_covers_every_file_that_was_read(folder: Path) -> None:
    config = TokenizerConfig(path=folder)
    before = read_source(config)
    assert {path.name for path in before.files} == {"tokenizer.json", "tokenizer_config.json"}
    assert source_hash(before) == source_hash(read_source(config))
    write(folder, special_tokens_map__json={})
    with_map = source_hash(read_source(config))
    (folder / "tokenizer_config.json").write_text((folder / "tokenizer_config.json").read_text() + " ")
    assert len({source_hash(before), with_map, source_hash(read_source(config))}) == 3


def test_vocab_and_merges_make_the_tokenizer_that_saved_them(tmp_path: Path) -> None:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    backend.train_from_iterator(SENTENCES, trainer)
    backend.model.save(str(tmp_path))
    source = read_source(TokenizerConfig(path=tmp_path))
    assert {path.name for path in source.files} == {"vocab.json", "merges.txt"}
    ours = open_backend(source.json)
    assert [ours.encode(text).ids for text in SENTENCES] == [backend.encode(text).ids for text in SENTENCES]
    tokenizer = load(tmp_path, add_special_tokens=("<|pad|>",))
    assert tokenizer.eos_id == backend.token_to_id("<|endoftext|>")
    assert tokenizer.encode(["<|endoftext|>"]).ids.tolist().count(tokenizer.eos_id) == 1
    write(tmp_path, tokenizer_config__json={"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|endoftext|>"})
    assert open_backend(read_source(TokenizerConfig(path=tmp_path)).json).encode("12").tokens == ["1", "2"]
    write(tmp_path, tokenizer_config__json={"tokenizer_class": "CLIPTokenizer"})
    assert "vocab.json and merges.txt of a CLIPTokenizer do not say how it splits text" in refusal(tmp_path)


def test_a_folder_with_only_a_sentencepiece_model_is_that_model(tmp_path: Path, sentencepiece_bpe: bytes) -> None:
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_bpe)
    write(tmp_path, tokenizer_config__json={"eos_token": "<s>", "add_bos_token": False})
    reference = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_bpe)
    tokenizer = load(tmp_path)
    assert tokenizer.encode([SENTENCES[0]]).ids.tolist() == [*reference.encode(SENTENCES[0]), 1]
    assert read_source(TokenizerConfig(path=tmp_path)).kind == "folder: SentencePiece BPE"


def test_kinds_are_told_by_content_not_by_name(
    tmp_path: Path, sentencepiece_bpe: bytes, ranks: dict[bytes, int]
) -> None:
    (tmp_path / "a.json").write_bytes(sentencepiece_bpe)
    (tmp_path / "tokenizer.model.zst").write_bytes(zstandard.compress(rank_file(ranks)))
    assert read_source(TokenizerConfig(path=tmp_path / "a.json")).kind == "SentencePiece BPE"
    config = TokenizerConfig(path=tmp_path / "tokenizer.model.zst", pattern="llama3", special_tokens=("<|eot|>",))
    assert read_source(config).kind == "tiktoken (llama3)"
    assert named_on_command_line("dir/x.tiktoken:o200k").pattern == "o200k"
    assert named_on_command_line("dir/x:y.json").path == Path("dir/x:y.json")


def test_what_is_no_tokenizer_is_told_what_is(tmp_path: Path, folder: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refusal(empty) == (
        f"{empty}: no tokenizer in this folder; give a tokenizer.json, a Hugging Face tokenizer folder, "
        "a SentencePiece .model or a tiktoken file, or train one in the run: tokenizer: {train: {}}"
    )
    assert "tokenizer.pattern is for tiktoken files, and this is none" in refusal(folder, pattern="qwen")
