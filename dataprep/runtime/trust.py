"""Which engines a run no longer trusts: one small file a finding, so that workers and later runs know at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dataprep import storage


@dataclass(frozen=True, slots=True)
class Trust:
    """The findings against engines that encoded by the tokenizer of this fingerprint."""

    directory: Path
    fingerprint: str

    def withdraw(self, engine: str, finder: str, texts: Sequence[str]) -> None:
        """Note that `engine` (its name and version) gave other ids for texts (xxh3-128, hex); by task `finder`."""
        finding = {"engine": engine, "texts": list(texts)}
        storage.write_json(self.directory / f"{self.fingerprint}-{finder}.json", finding)

    def findings(self) -> dict[str, list[str]]:
        """For each engine that is not trusted the texts it got wrong, sorted."""
        texts: dict[str, set[str]] = {}
        with storage.disk_errors(self.directory):
            files = sorted(self.directory.glob(f"{self.fingerprint}-*.json"))
            for finding in (json.loads(file.read_text(encoding="utf-8")) for file in files):
                texts.setdefault(finding["engine"], set()).update(finding["texts"])
        return {engine: sorted(texts[engine]) for engine in sorted(texts)}
