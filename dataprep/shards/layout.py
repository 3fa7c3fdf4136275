"""Page and header sizes of a shard set, fixed before its first row is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dataprep.errors import ConfigError
from dataprep.shards.layouts import ANY, LayoutName, column_lengths

# What a token takes in a shard, in bytes: an id 1.8 to 2.1, a position as much, a mask 1.3 (measured).
BYTES_A_TOKEN: Mapping[LayoutName, int] = {"compact": 2, "mcore": 8, "padded": 6}
_MIN_PAGE = 4 << 20
_MAX_PAGE = 256 << 20
_MIN_HEADER = 1 << 20
_MAX_HEADER = 128 << 20
# Measured 191 to 209 bytes of header a page, and 25 more in its row group's entry on a page of raw data.
_HEADER_BYTES_A_PAGE = 300
_HEADER_BYTES_FIXED = 8192
# Bytes a row takes on a raw page: 13 measured.
_RAW_BYTES_A_ROW = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes in bytes that all files of a shard set share: MindDataset refuses a list of files that differ in them."""

    page_size: int
    header_size: int


def page_and_header(row_length: int, rows_per_shard: int, columns: LayoutName = "compact") -> Layout:
    """Page and header sizes with room for any `rows_per_shard` rows of `row_length` int32 tokens in a column layout.

    Raises ConfigError when no allowed page (256 MB) holds a row or no allowed header (128 MB) lists the pages.
    """
    row = largest_row(row_length, columns)
    # Four rows a page at least, so that what is left empty at a page's end stays below a quarter.
    page_size = max(_MIN_PAGE, -(-4 * row >> 20) << 20)
    if page_size > _MAX_PAGE:
        raise ConfigError(f"a row of {row_length} tokens does not fit a MindRecord page", mend="lower pack.seq_length")
    pages = 2 + -(-rows_per_shard // (page_size // row)) + rows_per_shard * _RAW_BYTES_A_ROW // page_size
    header_size = _MIN_HEADER
    while header_size < _HEADER_BYTES_FIXED + _HEADER_BYTES_A_PAGE * pages:
        header_size *= 2
    if header_size > _MAX_HEADER:
        raise ConfigError(
            f"a shard of {rows_per_shard} rows is too large", mend="lower output.shard_tokens, or max_doc_bytes"
        )
    return Layout(page_size, header_size)


def largest_row(row_length: int, columns: LayoutName) -> int:
    """The most bytes a row can take in a page."""
    # The row's length, then for each column its length, its count, and values of up to 4 bytes and 2 bits each.
    lengths = (row_length if n == ANY else n for n in column_lengths(columns, row_length).values())
    return 8 + sum(8 + 4 + -(-n // 4) + 4 * n for n in lengths)
