"""How `steps:` is written: one-key mappings from a step's name to its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

from dataprep.dedup.keys import ExactDedup
from dataprep.filters.registry import STEPS
from dataprep.step import Frozen, Step

STEP_TYPES: Mapping[str, type[Step] | type[ExactDedup]] = {**STEPS, ExactDedup.name: ExactDedup}


def step_summary(model: type[Frozen]) -> str:
    """The first sentence of a step's docstring: what an editor shows beside its name."""
    return inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def _entry_model() -> type[Frozen]:
    fields: dict[str, Any] = {
        name: (model, Field(default=None, description=step_summary(model))) for name, model in STEP_TYPES.items()
    }
    return create_model("StepEntry", __base__=Frozen, __doc__="One step: its name, then its parameters.", **fields)


StepEntry = _entry_model()


def _only_step(entry: Frozen) -> Step | ExactDedup:
    given = sorted(entry.model_fields_set)
    if len(given) != 1:
        found = ", ".join(given) or "none"
        raise ValueError(f"must hold exactly one step, found {found}; begin each step with its own '- '")
    step: Step | ExactDedup = getattr(entry, given[0])
    return step


def as_entry(step: Step | ExactDedup) -> dict[str, Any]:
    """The JSON-able mapping a pipeline file holds for this step, every parameter spelled out."""
    return {step.name: step.model_dump(mode="json", by_alias=True)}


class _WrittenAsEntry:
    """Reads a step from its one-key mapping, or takes a ready one; writes it back as the mapping."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.no_info_after_validator_function(_only_step, handler.generate_schema(StepEntry))
        ready = core_schema.is_instance_schema((Step, ExactDedup))
        return core_schema.json_or_python_schema(
            json_schema=written,
            python_schema=core_schema.union_schema([ready, written]),
            serialization=core_schema.plain_serializer_function_ser_schema(as_entry),
        )


AnyStep = Annotated[Step | ExactDedup, _WrittenAsEntry()]
