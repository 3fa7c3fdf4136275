"""The project's own files agree with each other: dependencies, pins, versions and the sample's table."""

from __future__ import annotations

import ast
import gzip
import json
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dataprep.__main__

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "pipelines" / "sample"
EXTRAS = ("ray", "s3", "sentencepiece", "mindformers", "dev")
MODULE_OF = {"ruamel-yaml": "ruamel"}
# Package indexes by name: a project file that held one would not install behind a mirror.
INDEX_HOSTS = re.compile(r"pypi\.|pythonhosted|anaconda\.org|npmjs|index-url|find-links|extra-index", re.IGNORECASE)


def requirements(extra: str | None = None) -> list[Requirement]:
    """The requirements the installed metadata declares: the base ones, or those of one extra."""
    declared = [Requirement(line) for line in metadata.requires("dataprep") or ()]
    if extra is None:
        return [one for one in declared if one.marker is None]
    return [one for one in declared if one.marker is not None and one.marker.evaluate({"extra": extra})]


def pins() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    constraints = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(one.name): one for one in constraints}


def imported_modules(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def project_files() -> list[Path]:
    names = ("pyproject.toml", "constraints.txt", "Makefile", ".ci/run")
    folders = ("dataprep", "train", "pipelines", "docker", "docs")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    texts = {".py", ".md", ".yaml", ".yml", ".json", ".toml", ".txt", ".sh", ""}
    return [ROOT / name for name in names] + [path for path in found if path.suffix in texts]


def sample_lines(name: str) -> list[bytes]:
    path = SAMPLE / name
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.splitlines(keepends=True)


def test_every_module_dataprep_imports_is_a_declared_dependency() -> None:
    declared = [
        canonicalize_name(one.name) for extra in (None, "ray", "s3", "sentencepiece") for one in requirements(extra)
    ]
    known = {MODULE_OF.get(name, name.replace("-", "_")) for name in declared}
    known |= set(sys.stdlib_module_names) | {"dataprep"}
    undeclared = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in (ROOT / "dataprep").rglob("*.py")
        for module in imported_modules(path.read_text("utf-8")) - known
    }
    assert not undeclared


def test_dataprep_never_imports_the_trainer() -> None:
    sources = (path.read_text("utf-8") for path in (ROOT / "dataprep").rglob("*.py"))
    assert not any("train" in imported_modules(source) for source in sources)


@pytest.mark.parametrize("extra", [None, *EXTRAS])
def test_every_dependency_has_one_exact_pin_its_range_allows(extra: str | None) -> None:
    pinned = pins()
    declared = requirements(extra)
    assert declared
    for one in declared:
        if one.name == "dataprep":  # an extra of ours, whose packages are checked by themselves
            assert one.extras <= set(EXTRAS)
            continue
        (specifier,) = pinned[canonicalize_name(one.name)].specifier
        assert specifier.operator == "=="
        assert one.specifier.contains(specifier.version, prereleases=True)


def test_constraints_are_plain_pins_in_order() -> None:
    constraints = pins()
    assert list(constraints) == sorted(constraints)
    assert all(one.url is None and re.fullmatch(r"==[\w.]+", str(one.specifier)) for one in constraints.values())


def test_no_file_names_a_package_index() -> None:
    named = [
        str(path.relative_to(ROOT))
        for path in project_files()
        if INDEX_HOSTS.search(path.read_text("utf-8", "replace"))
    ]
    assert not named


def test_the_installed_version_is_the_one_in_the_code() -> None:
    assert metadata.version("dataprep") == dataprep.__version__


def test_the_console_script_is_the_command_line() -> None:
    [script] = re.findall(r'^dataprep = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert metadata.EntryPoint("dataprep", script, "console_scripts").load() is dataprep.__main__.main


def test_the_samples_table_points_at_the_records_it_names() -> None:
    for planted in json.loads((SAMPLE / "expected.json").read_text("utf-8"))["planted"]:
        lines = sample_lines(planted["file"])
        line = lines[planted["line"] - 1]
        assert sum(map(len, lines[: planted["line"] - 1])) == planted["byte"]
        if planted["id"] is not None:
            assert json.loads(line)["id"] == planted["id"]


def test_the_samples_totals_add_up_to_its_records() -> None:
    expected = json.loads((SAMPLE / "expected.json").read_text("utf-8"))
    files = {"sample-en": ("en.jsonl", "en-more.jsonl.gz", "broken.jsonl"), "sample-zh": ("zh.jsonl",)}
    for source, totals in expected["totals"].items():
        fates = [planted["fate"] for planted in expected["planted"] if planted["source"] == source]
        assert totals["records"] == sum(len(sample_lines(name)) for name in files[source])
        assert totals["records"] == totals["kept"] + totals["dropped"] + totals["quarantined"]
        assert (totals["dropped"], totals["quarantined"]) == (fates.count("dropped"), fates.count("quarantined"))


def test_the_samples_readme_names_every_planted_record() -> None:
    readme = (SAMPLE / "README.md").read_text("utf-8")
    planted = json.loads((SAMPLE / "expected.json").read_text("utf-8"))["planted"]
    names = [one["id"] or f"{one['file']}, line {one['line']}" for one in planted]
    assert [name for name in names if f"| `{name}` |" not in readme] == []
