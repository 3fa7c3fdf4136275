"""The whole pipeline file as one frozen model."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import ByteSize, Field, field_validator, model_validator

from dataprep.config.mix import MixConfig
from dataprep.config.steps import AnyStep
from dataprep.dedup.keys import ExactDedup
from dataprep.readers.inputs import Input
from dataprep.step import Frozen, PipelinePath, Step
from dataprep.tokens.config import PackConfig, TokenizerConfig

# MindRecord refuses these in a file name; white space breaks its file lists.
FORBIDDEN_IN_NAME = "\\/:*?\"<>|&';`"
# File systems allow 255; a number, endings and the marks of an unfinished file are put around it.
_MAX_NAME_BYTES = 180
DEFAULT_SHARD_TOKENS = 50_000_000
# A run keeps its tables in folders of these names beside the shards.
RESERVED_FOLDERS = ("documents", "dropped", "quarantine")
# Decimal shares such as 0.1 have no exact binary form.
_SHARES_TOLERANCE = 1e-9


def _tokens_unless_bytes(data: dict[str, Any]) -> int | None:
    return DEFAULT_SHARD_TOKENS if data.get("shard_bytes") is None else None


def _shows(letter: str) -> bool:
    return letter.isprintable() and not letter.isspace()


def _kind(letter: str) -> str:
    return "white space" if letter.isspace() else f"U+{ord(letter):04X}"


class DedupConfig(Frozen):
    """Resources of the duplicate search."""

    memory: ByteSize = Field(ByteSize(1 << 30), ge=1, description="Memory for sorting hashes; more spills to disk.")


class OutputConfig(Frozen):
    """Where the shards go, how large they are, and what is kept of dropped documents."""

    path: PipelinePath = Field(description="Folder of the shards and their manifest.json.")
    shard_bytes: ByteSize | None = Field(None, ge=1, description="Aim for this many bytes a shard, not tokens.")
    shard_tokens: int | None = Field(
        default_factory=_tokens_unless_bytes, ge=1, description="Aim for this many tokens a shard; default: 50_000_000."
    )
    dropped_text: Literal["excerpt", "full", "none"] = Field(
        "excerpt", description="How much text of each dropped document goes into dropped/*.parquet."
    )
    splits: dict[str, Annotated[float, Field(ge=1e-6, lt=1)]] = Field(
        default_factory=dict,
        description="Name to share of the documents, 1 in all: a shard set each, in a folder of that name.",
    )

    @field_validator("splits")
    @classmethod
    def _whole(cls, splits: dict[str, float]) -> dict[str, float]:
        for name in splits:
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name):
                raise ValueError(f"{name!r} cannot name a folder of shards: use small letters, digits and _")
            if name in RESERVED_FOLDERS:
                raise ValueError(f"{name!r} is the name of a folder of tables, choose another")
        if splits and abs(sum(splits.values()) - 1) > _SHARES_TOLERANCE:
            raise ValueError(f"shares add up to {sum(splits.values()):.12g}, not to 1")
        return splits

    @model_validator(mode="after")
    def _one_target(self) -> OutputConfig:
        if (self.shard_tokens is None) == (self.shard_bytes is None):
            raise ValueError("give either shard_tokens or shard_bytes")
        return self


class RunConfig(Frozen):
    """How the run goes: processes, memory, bad records. The split and part sizes and the seed shape the output."""

    executor: Literal["local"] = Field("local", description="local: processes on this machine.")
    workers: Literal["auto"] | int = Field("auto", description="Worker processes; auto: one a usable core.")
    work_dir: PipelinePath = Field(
        # Validated as if it were written, so that it lies beside the pipeline file.
        default="work",
        validate_default=True,
        description="Folder of intermediate files and of the ledger a run resumes from.",
    )
    seed: int = Field(42, ge=0, le=(1 << 63) - 1, description="Source of all randomness of the run.")
    on_bad_record: Literal["quarantine", "fail"] = Field(
        "quarantine", description="quarantine: set a broken record aside and go on; fail: stop at the first."
    )
    max_bad_fraction: float = Field(
        0.05, ge=0, le=1, description="Stop when more than this fraction of the records is broken."
    )
    memory_limit: Literal["auto"] | ByteSize = Field(
        "auto", description="Memory for all work in flight; auto: from what the machine has free."
    )
    split_bytes: ByteSize = Field(ByteSize(64 << 20), ge=1, description="Input bytes a prepare task reads.")
    part_bytes: ByteSize = Field(ByteSize(64 << 20), ge=1, description="Text bytes an intermediate part holds.")

    @field_validator("workers", "memory_limit")
    @classmethod
    def _positive(cls, value: str | int) -> str | int:
        if isinstance(value, int) and value < 1:
            raise ValueError(f"must be 'auto' or at least 1, not {int(value)}")
        return value


class Pipeline(Frozen):
    """A pipeline from raw text to packed token shards."""

    name: str = Field("pipeline", description="Begins every shard's file name; default: this file's name.")
    inputs: tuple[Input, ...] = Field(min_length=1, description="What to read.")
    steps: tuple[AnyStep, ...] = Field(
        (), description="Cleaners and filters in order; those after exact_dedup see only documents that survived it."
    )
    dedup: DedupConfig = Field(
        default_factory=dict, validate_default=True, description="What the duplicate search may use."
    )
    mix: MixConfig = Field(
        default_factory=dict,
        validate_default=True,
        description="How much of each source is taken; default: all of it, once.",
    )
    tokenizer: TokenizerConfig = Field(description="The tokenizer and its document marks.")
    pack: PackConfig = Field(default_factory=dict, validate_default=True, description="How tokens become rows.")
    output: OutputConfig = Field(description="Where the shards go, and their size.")
    run: RunConfig = Field(
        default_factory=dict,
        validate_default=True,
        description="How the run goes.",
    )

    @field_validator("name")
    @classmethod
    def _names_files(cls, name: str) -> str:
        if not name:
            raise ValueError("must not be empty")
        bad = sorted({letter for letter in name if letter in FORBIDDEN_IN_NAME or not _shows(letter)})
        if bad:
            held = " ".join(letter if _shows(letter) else _kind(letter) for letter in bad)
            raise ValueError(f"{name!r} cannot begin a shard's file name: it holds {held}")
        if len(name.encode()) > _MAX_NAME_BYTES:
            raise ValueError(f"is longer than {_MAX_NAME_BYTES} bytes, and begins every shard's file name")
        return name

    @field_validator("steps")
    @classmethod
    def _one_dedup(cls, steps: tuple[Step | ExactDedup, ...]) -> tuple[Step | ExactDedup, ...]:
        places = [f"steps[{at}]" for at, step in enumerate(steps) if isinstance(step, ExactDedup)]
        if len(places) > 1:
            raise ValueError(f"exact_dedup may stand once, found at {' and '.join(places)}")
        return steps

    @property
    def dedup_step(self) -> ExactDedup | None:
        """The duplicate removal among the steps, if any."""
        return next((step for step in self.steps if isinstance(step, ExactDedup)), None)

    @property
    def prepare_steps(self) -> tuple[Step, ...]:
        """Steps before the duplicate removal (all of them when there is none)."""
        return tuple(step for step in self.steps[: self._dedup_at()] if isinstance(step, Step))

    @property
    def emit_steps(self) -> tuple[Step, ...]:
        """Steps after the duplicate removal."""
        return tuple(step for step in self.steps[self._dedup_at() :] if isinstance(step, Step))

    def _dedup_at(self) -> int:
        return next((at for at, step in enumerate(self.steps) if isinstance(step, ExactDedup)), len(self.steps))
