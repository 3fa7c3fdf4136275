"""Every step a pipeline file can name, except deduplication, in the order they are documented."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dataprep.filters.blocklist import Blocklist
from dataprep.filters.length import Length
from dataprep.filters.non_text import NonText
from dataprep.filters.regex import Regex
from dataprep.step import Step
from dataprep.text.normalize import Normalize

_TYPES: tuple[type[Step], ...] = (Normalize, Length, NonText, Regex, Blocklist)

STEPS: Mapping[str, type[Step]] = MappingProxyType({step.name: step for step in _TYPES})
