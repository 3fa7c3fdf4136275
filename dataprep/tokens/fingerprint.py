"""The fingerprint of a tokenizer: one hash over all that changes ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dataprep.storage import hash_value


def fingerprint(value: Mapping[str, Any], ids: Mapping[str, int | None], allow_special: bool) -> str:
    """xxh3-128 (hex) of a settled, parsed tokenizer.json, the ids of `eos`, `bos`, `pad`, and `allow_special`.

    The post-processor is left out: it is never run, eos and bos are put by us.
    """
    parts = {key: value[key] for key in ("model", "normalizer", "pre_tokenizer", "added_tokens")}
    return hash_value({**parts, **ids, "special_tokens_in_text": "control" if allow_special else "text"})
