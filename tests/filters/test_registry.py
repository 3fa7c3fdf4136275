"""All steps together: names, order, labels, and degenerate batches."""

from __future__ import annotations

import pytest

from dataprep.batch import doc_batch
from dataprep.filters.registry import STEPS
from dataprep.step import Step

# Steps that need some setting to do anything.
SETTINGS = {"length": {"min_chars": 2}, "regex": {"drop": "x"}, "blocklist": {"terms": ["x"]}}


def ready(name: str) -> Step:
    return STEPS[name](**SETTINGS.get(name, {}))


def test_steps_stand_under_their_own_names() -> None:
    assert all(step.name == name for name, step in STEPS.items())


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["", "a", ""]])
def test_batches_without_rows_or_without_text_pass_through_every_step(name: str, texts: list[str]) -> None:
    batch = doc_batch([str(at) for at in range(len(texts))], texts, "s", [""] * len(texts))
    result = ready(name).run(batch).batch
    result.validate(full=True)
    assert result.schema == batch.schema
    assert result.column("text").to_pylist() == texts


def judged(step: Step) -> list[str | None]:
    batch = doc_batch(["1", "2", "3", "4"], ["x", "x", "long enough", "x"], ["web", "code", "web", "news"], [""] * 4)
    result = step.run(batch).batch
    assert result.column("doc_id").to_pylist() == ["1", "2", "3", "4"]
    return result.column("reason").to_pylist()


def test_only_judges_the_sources_named() -> None:
    step = STEPS["length"](min_chars=2, only={"source": ["web", "news"]})
    assert judged(step) == ["length.min_chars", None, None, "length.min_chars"]


def test_except_leaves_the_sources_named_alone() -> None:
    step = STEPS["length"](min_chars=2, **{"except": {"source": ["web"]}})
    assert judged(step) == [None, "length.min_chars", None, "length.min_chars"]


def test_a_dropped_document_keeps_its_first_reason() -> None:
    batch = doc_batch(["1"], ["x"], "s", [""])
    batch = STEPS["length"](min_chars=2).run(batch).batch
    assert STEPS["regex"](drop="x").run(batch).batch.column("reason").to_pylist() == ["length.min_chars"]


@pytest.mark.parametrize("name", STEPS)
def test_a_step_written_out_and_read_again_is_the_same(name: str) -> None:
    step = ready(name)
    assert STEPS[name].model_validate(step.model_dump(mode="json", by_alias=True)) == step
