"""Step: the pure function on a DocBatch that every cleaner and filter of a pipeline is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from dataprep.batch import LABEL, with_column


def _beside_pipeline(path: Path, info: ValidationInfo) -> Path:
    base = (info.context or {}).get("base")
    if "\0" in str(path):
        raise ValueError("holds a NUL character")
    try:
        return path if base is None else Path(base) / path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{path}: no such home folder") from error


# A path in a pipeline file is relative to that file: the loader validates with context {"base": its folder}.
PipelinePath = Annotated[Path, AfterValidator(_beside_pipeline)]


class Frozen(BaseModel):
    """A configuration model: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, strict=False)


class Selector(Frozen):
    """Which documents a step sees, by label."""

    source: tuple[str, ...] = Field(description="Source labels.")


@dataclass(frozen=True, slots=True)
class Applied:
    """What a step did: the batch of the same rows in the same order, and how often it edited what."""

    batch: pa.RecordBatch
    edits: Mapping[str, int] = field(default_factory=dict)


class Step(Frozen):
    """One entry of `steps:`; its state is its frozen configuration.

    A subclass sets `name` (the key in the pipeline file) and implements `apply`, which sees live, selected rows only,
    edits `text` or sets `reason` (`<name>.<rule>`), keeps every row in place and does no I/O.
    """

    name: ClassVar[str]

    only: Selector | None = Field(None, description="Apply to these documents only.")
    except_: Selector | None = Field(None, alias="except", description="Apply to all documents but these.")

    def apply(self, batch: pa.RecordBatch) -> Applied:
        """Judge or edit a batch of live documents."""
        raise NotImplementedError

    def files(self) -> tuple[Path, ...]:
        """Files whose content decides what the step does; their hashes are part of every task's identity."""
        return ()

    def run(self, batch: pa.RecordBatch) -> Applied:
        """Apply the step to the rows that are alive and selected; the others pass untouched."""
        chosen = self.selected(batch)
        if chosen.all():
            return self.apply(batch)
        if not chosen.any():
            return Applied(batch)
        applied = self.apply(batch.filter(pa.array(chosen)))
        rest = batch.filter(pa.array(~chosen))
        together = pa.Table.from_batches([applied.batch, rest]).unify_dictionaries()
        order = np.argsort(np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)]), kind="stable")
        merged = together.take(pa.array(order)).combine_chunks().to_batches()[0]
        return Applied(merged, applied.edits)

    def selected(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Bool mask of the rows this step sees."""
        return selected_rows(batch, self.only, self.except_)


def selected_rows(batch: pa.RecordBatch, only: Selector | None, except_: Selector | None) -> npt.NDArray[np.bool_]:
    """Bool mask of the rows that are alive, in `only` (None: all) and not in `except_`."""
    mask = pc.is_null(batch.column("reason"))
    for selector, wanted in ((only, True), (except_, False)):
        if selector is None:
            continue
        inside = pc.is_in(batch.column("source").cast(pa.string()), pa.array(selector.source, pa.string()))
        mask = pc.and_(mask, inside if wanted else pc.invert(inside))
    return np.asarray(mask.to_numpy(zero_copy_only=False), dtype=np.bool_)


def with_verdicts(batch: pa.RecordBatch, verdicts: npt.NDArray[np.int32], reasons: tuple[str, ...]) -> pa.RecordBatch:
    """Set `reason` from `verdicts` int32 [rows]: -1 keeps the document alive, k drops it for `reasons[k]`."""
    if (verdicts < 0).all():
        return batch
    codes = pa.array(verdicts, pa.int32(), mask=verdicts < 0)
    return with_column(batch, "reason", pa.DictionaryArray.from_arrays(codes, pa.array(reasons)).cast(LABEL))
