"""YAML text → plain values with the place of every key, and every fault of the text itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from dataprep.config.environment import UnknownVariable, is_one_reference, substitute
from dataprep.config.places import Fault, KeyPath, Place, Tree

_TAG = "tag:yaml.org,2002:"
_TYPED = {_TAG + name for name in ("int", "float", "bool", "null")}
# Dates are read as the text they are; no key of a pipeline holds a date.
_TEXT = {_TAG + "str", _TAG + "timestamp"}

PlaceAt = Callable[[int, int], Place]


class BadYaml(Exception):
    """Text that is no YAML at all: one fault, since nothing behind it can be trusted."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


def parse(text: str, place_at: PlaceAt, environ: Mapping[str, str], root: KeyPath = ()) -> Tree:
    """Read YAML `text` standing at `root` of the pipeline; `place_at(line, column)` names positions, both from 1.

    Raises BadYaml when the text cannot be parsed; other faults are collected in the tree.
    """
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
        walk = _Walk(yaml, place_at, environ)
        if node is None:
            return Tree(None, {root: place_at(1, 1)})
        walk.places[root] = walk.place(node)
        return Tree(walk.value(node, root), walk.places, walk.faults)
    except RecursionError as error:
        raise BadYaml(place_at(1, 1).fault(root, "nested too deeply, or an alias that holds itself")) from error
    except YAMLError as error:
        raise BadYaml(_syntax_fault(error, text, place_at, root)) from error


@dataclass(slots=True)
class _Walk:
    yaml: YAML
    place_at: PlaceAt
    environ: Mapping[str, str]
    places: dict[KeyPath, Place] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def place(self, node: Node) -> Place:
        return self.place_at(node.start_mark.line + 1, node.start_mark.column + 1)

    def value(self, node: Node, path: KeyPath) -> Any:
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
            return [self._item(item, (*path, at)) for at, item in enumerate(node.value)]
        if isinstance(node, MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, path)
        return self._fault(node, path, f"the YAML tag {node.tag} has no meaning here, remove it")

    def _item(self, node: Node, path: KeyPath) -> Any:
        self.places[path] = self.place(node)
        return self.value(node, path)

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            here = (*path, key.value) if isinstance(key, ScalarNode) else path
            if key.tag == _TAG + "merge":
                merged = {**self._merged(value, path), **merged}
            elif not isinstance(key, ScalarNode):
                self._fault(key, path, "a key must be plain text")
            elif key.value in values:
                self._fault(key, here, f"this key stands here twice, first on line {self.places[here].line}")
            else:
                self.places[here] = self.place(key)
                values[key.value] = self.value(value, here)
        return {**merged, **values}

    def _merged(self, node: Node, path: KeyPath) -> dict[str, Any]:
        """What `<<: *anchor` brings in; its keys keep the places they have at the anchor."""
        parts = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, MappingNode):
                self._fault(part, path, "'<<' takes a mapping or a list of mappings")
                continue
            written = {known: place for known, place in self.places.items() if known[: len(path)] == path}
            merged = {**self._mapping(part, path), **merged}
            self.places.update(written)
        return merged

    def _scalar(self, node: ScalarNode, path: KeyPath) -> Any:
        if node.tag in _TEXT:
            return self._text(node, path)
        if node.tag not in _TYPED:
            return self._fault(node, path, f"the YAML tag {node.tag} has no meaning here, remove it")
        try:
            return self.yaml.constructor.construct_object(node)
        except ValueError:
            return self._fault(node, path, f"{node.value!r} does not fit its tag {node.tag.replace(_TAG, '!!')}")

    def _text(self, node: ScalarNode, path: KeyPath) -> Any:
        text: str = node.value
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            return self._fault(node, path, "holds half of a surrogate pair, which is no character")
        if "${" not in text:
            return text
        try:
            replaced = substitute(text, self.environ)
        except UnknownVariable as error:
            return self._fault(node, path, str(error))
        # Single quotes keep a value text; double quotes cannot, as `{workers: "${N}"}` needs them.
        if not is_one_reference(text) or node.style == "'" or not replaced:
            return replaced
        return self._retyped(replaced, node, path)

    def _retyped(self, text: str, node: ScalarNode, path: KeyPath) -> Any:
        here = self.place(node)
        try:
            tree = parse(text, lambda line, column: here, {}, path)
        except BadYaml as bad:
            self.faults.append(bad.fault)
            return text
        self.places.update({known: here for known in tree.places if known != path})
        self.faults.extend(tree.faults)
        return tree.value

    def _fault(self, node: Node, path: KeyPath, message: str) -> str:
        """Note the fault; the text given back stands in for the value, so that the rest can still be judged."""
        self.faults.append(self.place(node).fault(path, message))
        return node.value.encode(errors="replace").decode() if isinstance(node, ScalarNode) else ""


def _syntax_fault(error: YAMLError, text: str, place_at: PlaceAt, root: KeyPath) -> Fault:
    if isinstance(error, ReaderError):
        before = text[: error.position]
        column = error.position - before.rfind("\n")
        place = place_at(before.count("\n") + 1, column)
        return place.fault(root, f"character U+{ord(text[error.position]):04X} may not stand in YAML, remove it")
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return place_at(1, 1).fault(root, f"not valid YAML: {error}")
    mark = error.problem_mark
    place = place_at(mark.line + 1, mark.column + 1)
    return place.fault(root, _syntax_message(error.problem or "cannot be read", text, mark.line))


def _syntax_message(problem: str, text: str, line: int) -> str:
    if "'\\t'" in problem:
        return "a tab cannot indent YAML, use spaces"
    if "another document" in problem:
        return "a second document begins here; a pipeline file holds one"
    lines = text.splitlines()
    if line < len(lines) and "${" in lines[line]:
        return f'not valid YAML: {problem}; inside {{ }} and [ ] put quotes around "${{NAME}}"'
    return f"not valid YAML: {problem}"
