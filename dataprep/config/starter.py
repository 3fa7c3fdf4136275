"""The commented pipeline file that `dataprep init` writes."""

from __future__ import annotations

from importlib.resources import files


def starter_text() -> str:
    """The starter pipeline: loads as it is, and names every setting outside the steps with its default."""
    return files(__package__).joinpath("starter.yaml").read_text(encoding="utf-8")
