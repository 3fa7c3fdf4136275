"""Tokens of each source of a mix, counted on samples in which every source has its share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from dataprep.batch import doc_batch
from dataprep.runtime.draw import DrawnPart
from dataprep.runtime.parts import Part, sort_part, write_part
from dataprep.runtime.stages import tokenizer as stage
from dataprep.runtime.stages.tokenizer import SettleTokenizer, tokens_per_byte
from dataprep.tokens.config import TokenizerConfig

Texts = dict[str, list[str]]
Settle = Callable[[Texts, int], dict[str, list[int]]]


@pytest.fixture
def settle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settle:
    """Counts sources in samples of 2,000 bytes of each; every byte is a token, with an EOS for each document."""
    monkeypatch.setattr(stage, "_A_SOURCE", 2000)
    monkeypatch.setattr(stage, "_AT_LEAST", 500)
    backend = Tokenizer(
        models.BPE({letter: n for n, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, [])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<|endoftext|>", "<|pad|>"])
    backend.save(str(tmp_path / "t.json"))

    def run(texts: Texts, seed: int) -> dict[str, list[int]]:
        sizes = {source: sum(len(text.encode()) for text in every) for source, every in texts.items()}
        parts = []
        for name, every in texts.items():
            ids = [f"{name}-{number}" for number in range(len(every))]
            batch, _ = sort_part([doc_batch(ids, every, name, ids)], seed)
            write_part(tmp_path / name, batch)
            part = Part(name, str(tmp_path / name), "", batch.num_rows, sizes[name], {name: sizes[name]})
            parts.append(DrawnPart(part, len(parts)))
        job = SettleTokenizer(
            config=TokenizerConfig(path=tmp_path / "t.json", eos="<|endoftext|>", pad="<|pad|>", engine="hf"),
            parts=tuple(parts),
            removal_lists=(),
            steps=(),
            kept_bytes=sum(sizes.values()),
            mixed=sizes,
            fim=None,
            seed=seed,
            json=tmp_path / "settled.json",
        )
        found: dict[str, list[int]] = job.run().facts["sources"]
        return found

    return run


@pytest.mark.parametrize("seed", range(20))
def test_few_large_documents_are_sampled_as_well_as_many_small_ones(seed: int, settle: Settle) -> None:
    found = settle({"books": ["b" * 30_000] * 3, "notes": ["note"] * 10_000}, seed)
    assert found["books"] in ([30_001 * n, 30_000 * n] for n in (1, 2, 3))
    tokens, size = found["notes"]
    assert 1000 < size < 4000
    assert tokens == size / 4 * 5


def test_a_source_smaller_than_its_sample_is_counted_whole(settle: Settle) -> None:
    assert settle({"a": ["x" * 10] * 7, "b": ["y" * 99] * 300}, 1)["a"] == [77, 70]


def test_what_is_read_for_a_sample_is_bounded(settle: Settle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_READ_AT_MOST", 1)
    found = settle({"books": ["b" * 30_000] * 3, "notes": ["note"] * 10_000}, 1)
    assert found == {"books": [0, 0], "notes": [0, 0]}
    # Nothing is known of the source alone: it is taken for text like all other.
    facts = {"sources": found, "lengths": [[5, 100], [10, 2]], "text_bytes": 200}
    assert tokens_per_byte(facts, "books") == 250 / 200


def test_tokens_per_byte_are_those_of_the_sample_and_of_all_text_where_there_is_none() -> None:
    facts = {"sources": {"a": [30, 60], "b": [0, 0]}, "lengths": [[], []], "text_bytes": 0}
    assert tokens_per_byte(facts, "a") == 0.5
    assert tokens_per_byte(facts, "b") == 1.0
    assert tokens_per_byte(facts, "c") == 1.0
