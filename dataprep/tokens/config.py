"""The `tokenizer:` and `pack:` parts of a pipeline file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ByteSize, Field, JsonValue, model_validator

from dataprep.shards.layouts import LayoutName
from dataprep.step import Frozen, PipelinePath, Selector

# Ids are int32.
_MAX_VOCABULARY = 2**31 - 1
_Token = Annotated[str, Field(min_length=1)]
Pattern = Literal["gpt2", "cl100k", "o200k", "llama3", "qwen"]
DEFAULT_EOS, DEFAULT_PAD = "<|endoftext|>", "<|pad|>"


class TrainTokenizer(Frozen):
    """Train a byte-level BPE on the kept documents of this run."""

    vocab_size: int = Field(32_000, ge=300, le=_MAX_VOCABULARY, description="Tokens in all, special tokens included.")
    min_frequency: int = Field(2, ge=1, description="A pair must occur this often to be merged.")
    sample_bytes: ByteSize = Field(ByteSize(64 << 20), ge=1, description="Text to train on, drawn by seed.")


class TokenizerConfig(Frozen):
    """Which tokenizer, and which of its special tokens mark documents."""

    path: PipelinePath | None = Field(
        None,
        description="A tokenizer.json, a SentencePiece .model, a tiktoken file (each may be .zst compressed), "
        "or a Hugging Face folder.",
    )
    train: TrainTokenizer | None = Field(None, description="Train one in the run instead.")
    pattern: Pattern | None = Field(None, description="Whose split expression a tiktoken file goes with.")
    special_tokens: dict[str, int] | tuple[_Token, ...] = Field(
        (), description="Special tokens of a tiktoken file: name to id, or names that follow the highest rank."
    )
    add_special_tokens: tuple[_Token, ...] = Field((), description="Special tokens to add behind the vocabulary.")
    eos: _Token | None = Field(
        None, description="Ends every document; default: the tokenizer's own, else <|endoftext|>."
    )
    bos: _Token | None = Field(None, description="Begins every document, if given.")
    pad: _Token | None = Field(None, description="Fills rows up; default: the tokenizer's pad token.")
    engine: Literal["auto", "hf", "fastokens"] = Field(
        "auto", description="Library that encodes; auto: fastokens where it proves to give the ids of hf."
    )
    check_every: int = Field(
        1000, ge=1, description="One document in so many is encoded by hf too, as proof while the run goes on."
    )
    allow_special: bool = Field(False, description="Special tokens spelled in texts become tokens; not eos, bos, pad.")
    vocab_size: int | None = Field(
        None, ge=1, le=_MAX_VOCABULARY, description="Size of the model's embedding; every id must be below it."
    )

    @property
    def shaping(self) -> dict[str, JsonValue]:
        """What can change ids, JSON-able: not where the file lies, and not which engine encodes."""
        return self.model_dump(mode="json", exclude={"path", "engine", "check_every"})

    @property
    def decides_bos(self) -> bool:
        """Whether the pipeline file says anything about bos, `null` included."""
        return "bos" in self.model_fields_set

    @model_validator(mode="after")
    def _one_origin(self) -> TokenizerConfig:
        if (self.path is None) == (self.train is None):
            raise ValueError("give either path or train")
        return self

    @model_validator(mode="after")
    def _pads_apart(self) -> TokenizerConfig:
        pad = self.pad or DEFAULT_PAD
        for key, name in (("eos", self.eos or DEFAULT_EOS), ("bos", self.bos)):
            # Of a tokenizer that exists, its file has more to say.
            if self.train is not None and pad == name:
                raise ValueError(f"pad and {key} are both {name!r}, but padding must be told from text by its id")
        return self


class FimConfig(Frozen):
    """Fill in the middle for code: a share of the documents is cut in three, and the middle part put last.

    After Bavarian et al. 2022, arXiv 2207.14255. A document chosen by seed and content is cut at two places between
    characters, drawn by the same. Its parts, encoded each for itself, stand as prefix, suffix, middle (PSM) or as
    suffix, prefix, middle (SPM), with three special tokens before them.
    """

    rate: float = Field(0.5, ge=0, le=1, description="Share of the documents that are rearranged.")
    spm_rate: float = Field(0.5, ge=0, le=1, description="Share of these that put the suffix first.")
    prefix: str | None = Field(None, description="Special token before the prefix.")
    middle: str | None = Field(None, description="Special token before the middle.")
    suffix: str | None = Field(None, description="Special token before the suffix.")
    min_chars: int = Field(3, ge=1, description="Documents of fewer code points are left as they are.")
    only: Selector | None = Field(None, description="Rearrange these documents only.")
    except_: Selector | None = Field(None, alias="except", description="Rearrange all documents but these.")

    @model_validator(mode="after")
    def _all_or_none(self) -> FimConfig:
        given = [name is not None for name in (self.prefix, self.middle, self.suffix)]
        if any(given) and not all(given):
            raise ValueError("give prefix, middle and suffix, or none of them")
        return self


class PackConfig(Frozen):
    """How token sequences become rows of equal length."""

    seq_length: int = Field(4096, ge=1, description="Tokens a model sees; a row holds one more, for the shifted label.")
    method: Literal["concat", "best_fit", "none"] = Field(
        "concat",
        description="concat: join documents and cut every seq_length + 1; best_fit: documents whole, where they fit "
        "best; none: one document a row.",
    )
    # Measured on English, Chinese and code at 4,096: 0.02 to 0.08 % of padding. Of 1,000 documents it is up to 0.08 %,
    # of all at once 0.01 to 0.06 %.
    window: int = Field(10_000, ge=1, description="best_fit: so many documents at a time are sorted by length.")
    overlong: Literal["split", "truncate"] = Field(
        "split", description="Documents longer than a row: over several rows, or cut down to one row; not for concat."
    )
    fim: FimConfig | None = Field(None, description="Fill in the middle; default: no document is rearranged.")
    layout: LayoutName = Field("compact", description="Columns of a row: compact, mcore or padded; see output.md.")

    @model_validator(mode="after")
    def _concat_cuts_nothing_away(self) -> PackConfig:
        if self.method == "concat" and self.overlong == "truncate":
            raise ValueError("method concat loses no token, so overlong: truncate needs method best_fit or none")
        return self

    @property
    def row_length(self) -> int:
        """Tokens of a row."""
        return self.seq_length + 1
