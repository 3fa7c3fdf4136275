"""How large a shard is meant to be, and how much room its pages and header need for it."""

from __future__ import annotations

from dataprep.config.models import Pipeline
from dataprep.shards.layout import BYTES_A_TOKEN, Layout, page_and_header


def target_tokens(pipeline: Pipeline) -> int:
    """Tokens a shard should hold."""
    if pipeline.output.shard_tokens is not None:
        return pipeline.output.shard_tokens
    return max(1, int(pipeline.output.shard_bytes or 0) // BYTES_A_TOKEN[pipeline.pack.layout])


def shard_layout(pipeline: Pipeline, documents: int = 0) -> Layout:
    """Room for four times the aim and one longest document: how many rows a shard gets is known only when written.

    With best_fit at most one row stays half empty or emptier; with none each document, of `documents` on average in the
    fullest shard, may begin a row.
    """
    pack = pipeline.pack
    longest = max(entry.max_doc_bytes for entry in pipeline.inputs)
    rows = (4 * target_tokens(pipeline) + longest) // pack.row_length + 1
    more = {"concat": 0, "best_fit": rows, "none": 4 * documents}
    return page_and_header(pack.row_length, rows + more[pack.method], pack.layout)
