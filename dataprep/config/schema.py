"""The JSON schema of a pipeline file, for editors and for naming the key that was meant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from dataprep.config.models import Pipeline
from dataprep.config.places import KeyPath
from dataprep.config.steps import STEP_TYPES, step_summary

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ENVIRONMENT = {"$ref": "#/$defs/Environment"}
_REFERENCE = {"type": "string", "pattern": r"^\$\{[A-Za-z_]\w*(:-[^}]*)?\}$"}


def pipeline_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a pipeline file as it is written; `${NAME}` may stand for any single value."""
    schema = Pipeline.model_json_schema(by_alias=True)
    schema["$defs"]["Environment"] = {**_REFERENCE, "description": "An environment variable, replaced when loaded."}
    for model in [schema, *schema["$defs"].values()]:
        for name, described in model.get("properties", {}).items():
            if model is not schema["$defs"]["StepEntry"]:
                model["properties"][name] = _or_reference(described)
    _open_steps(schema)
    return {"$schema": _DIALECT, **schema}


def _or_reference(described: dict[str, Any]) -> dict[str, Any]:
    """The same property, or a reference to the environment in its place."""
    notes: dict[str, Any] = {key: described[key] for key in ("title", "description", "default") if key in described}
    rule = {key: value for key, value in described.items() if key not in notes}
    choices = rule["anyOf"] if set(rule) == {"anyOf"} else [rule]
    nested = [choice for choice in choices if _nested_type(choice)]
    single = [choice for choice in choices if not _nested_type(choice)]
    if not nested:
        return {**notes, "anyOf": [*single, _ENVIRONMENT]}
    if not single:
        return {**notes, **rule}
    return {**notes, **_by_type(nested[0], {"anyOf": [*single, _ENVIRONMENT]})}


def _nested_type(rule: dict[str, Any]) -> str | None:
    """`object` or `array` where the rule is for such a value."""
    return "object" if "$ref" in rule else rule["type"] if rule.get("type") in ("object", "array") else None


def _by_type(nested: dict[str, Any], otherwise: dict[str, Any]) -> dict[str, Any]:
    """The rule for a mapping or list, or else another: unlike anyOf, it lets a validator point at the key at fault."""
    return {"if": {"type": _nested_type(nested)}, "then": nested, "else": otherwise}


def _open_steps(schema: dict[str, Any]) -> None:
    """A step is one key with its parameters, or nothing, or its bare name when it needs none."""
    entry = schema["$defs"]["StepEntry"]
    entry["minProperties"] = entry["maxProperties"] = 1
    for name, model in STEP_TYPES.items():
        # pydantic leaves a description out where it repeats the model's own docstring; editors show only this one.
        entry["properties"][name]["description"] = step_summary(model)
    bare = [name for name, model in STEP_TYPES.items() if not any(f.is_required() for f in model.model_fields.values())]
    for name in bare:
        described = entry["properties"][name]
        described.pop("default", None)
        described |= _by_type({"$ref": described.pop("$ref")}, {"type": ["object", "null"]})
    schema["properties"]["steps"]["items"] = _by_type({"$ref": "#/$defs/StepEntry"}, {"enum": bare})


@cache
def _plain_schema() -> dict[str, Any]:
    return Pipeline.model_json_schema(by_alias=True)


def keys_at(path: KeyPath) -> Sequence[str]:
    """The keys a pipeline file may hold at `path`; empty where it holds no mapping."""
    node: dict[str, Any] = _plain_schema()
    for part in path:
        found = [_step_into(choice, part) for choice in _choices(node)]
        node = next((step for step in found if step is not None), {})
    return tuple(next((choice["properties"] for choice in _choices(node) if "properties" in choice), {}))


def _step_into(node: dict[str, Any], part: str | int) -> dict[str, Any] | None:
    # Where any key may stand, such as the name of a source, all hold the same.
    named = node.get("properties", {}).get(part, node.get("additionalProperties"))
    entered = node.get("items") if isinstance(part, int) else named
    return entered if isinstance(entered, dict) else None


def _choices(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The node itself with references followed, or each of its alternatives."""
    if "$ref" in node:
        return _choices(_plain_schema()["$defs"][node["$ref"].rsplit("/", 1)[1]])
    if "anyOf" in node:
        return [choice for option in node["anyOf"] for choice in _choices(option)]
    return [node]
