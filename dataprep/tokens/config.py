"""The `tokenizer:` and `pack:` parts of a pipeline file."""

from __future__ import annotations

from typing import Literal

from pydantic import ByteSize, Field, model_validator

from dataprep.shards.layouts import LayoutName
from dataprep.step import Frozen, PipelinePath


class TrainTokenizer(Frozen):
    """Train a byte-level BPE on the kept documents of this run."""

    vocab_size: int = Field(32_000, ge=300, description="Tokens in all, special tokens included.")
    min_frequency: int = Field(2, ge=1, description="A pair must occur this often to be merged.")
    sample_bytes: ByteSize = Field(ByteSize(64 << 20), ge=1, description="Text to train on, drawn by seed.")


class TokenizerConfig(Frozen):
    """Which tokenizer, and which of its special tokens mark documents."""

    path: PipelinePath | None = Field(None, description="A tokenizer.json (may be .zst compressed).")
    train: TrainTokenizer | None = Field(None, description="Train one in the run instead.")
    add_special_tokens: tuple[str, ...] = Field((), description="Special tokens to add behind the vocabulary.")
    eos: str = Field("<|endoftext|>", description="Ends every document.")
    bos: str | None = Field(None, description="Begins every document, if given.")
    pad: str | None = Field(None, description="Fills the last row of a shard; default: the tokenizer's pad token.")

    @model_validator(mode="after")
    def _one_origin(self) -> TokenizerConfig:
        if (self.path is None) == (self.train is None):
            raise ValueError("give either path or train")
        return self


class PackConfig(Frozen):
    """How token sequences become rows of equal length."""

    seq_length: int = Field(4096, ge=1, description="Tokens a model sees; a row holds one more, for the shifted label.")
    method: Literal["concat"] = Field("concat", description="concat: join documents and cut every seq_length + 1.")
    layout: LayoutName = Field("compact", description="Columns of a row: compact, mcore or padded; see output.md.")
