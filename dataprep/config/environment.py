"""`${NAME}` and `${NAME:-default}` in the values of a pipeline file."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"(?P<escape>\$\$\{)|\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|(?P<broken>\$\{)")


class UnknownVariable(ValueError):
    """A reference that cannot be replaced; the message says why."""


def substitute(text: str, environ: Mapping[str, str]) -> str:
    """Replace every reference; `$${` stands for a literal `${`. An empty variable takes the default, as in a shell.

    Raises UnknownVariable for a variable that is not set and has no default, or a malformed reference.
    """

    def replacement(match: re.Match[str]) -> str:
        if match["escape"]:
            return "${"
        if match["broken"]:
            raise UnknownVariable("'${' begins no ${NAME} or ${NAME:-default}; write $${ for a literal ${")
        return _value(match["name"], match["default"], environ)

    return _REFERENCE.sub(replacement, text)


def is_one_reference(text: str) -> bool:
    """Whether the whole text is a single reference, whose value then takes its type from its spelling."""
    match = _REFERENCE.fullmatch(text)
    return match is not None and match["name"] is not None


def _value(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if value or (value is not None and default is None):
        return value
    if default is None:
        raise UnknownVariable(f"environment variable {name} is not set; set it or write ${{{name}:-default}}")
    return default
