"""The fingerprint of a tokenizer: one hash over all that changes ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xxhash

from dataprep.storage import hash_value


def fingerprint(
    value: Mapping[str, Any], model: bytes | None, ids: Mapping[str, int | None], allow_special: bool
) -> str:
    """xxh3-128 (hex) of a settled, parsed tokenizer.json, the SentencePiece model that encodes in its place if there is
    one, the ids of `eos`, `bos`, `pad`, and `allow_special`.

    The post-processor is left out: it is never run, eos and bos are put by us.
    """
    parts = {key: value[key] for key in ("model", "normalizer", "pre_tokenizer", "added_tokens")}
    encoder = {} if model is None else {"sentencepiece": xxhash.xxh3_128_hexdigest(model)}
    return hash_value({**parts, **encoder, **ids, "special_tokens_in_text": "control" if allow_special else "text"})
