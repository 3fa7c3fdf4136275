import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dataprep.readers.streams import StreamDamage, chunks

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
CODECS = sorted(COMPRESS)


def numbers(count: int) -> bytes:
    return b"".join(b"line %d of some text\n" % number for number in range(count))


def decoded(codec: str, data: bytes) -> tuple[bytes, str | None]:
    """What was delivered, and the reason of the damage met, if any."""
    parts = []
    try:
        for part in chunks(io.BytesIO(data), "memory", codec):  # type: ignore[arg-type]  codecs are plain strings here
            parts.append(part)
    except StreamDamage as damage:
        return b"".join(parts), damage.reason
    return b"".join(parts), None


@pytest.mark.parametrize("codec", CODECS)
def test_members_one_after_the_other_are_one_stream(codec: str) -> None:
    first, second = numbers(1000), b"the end"
    assert decoded(codec, COMPRESS[codec](first) + COMPRESS[codec](b"") + COMPRESS[codec](second)) == (
        first + second,
        None,
    )


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_larger_than_a_chunk_is_whole(codec: str) -> None:
    data = numbers(200_000)
    assert decoded(codec, COMPRESS[codec](data)) == (data, None)


@pytest.mark.parametrize("codec", CODECS)
def test_no_piece_of_a_highly_compressible_stream_is_larger_than_a_chunk(codec: str) -> None:
    data = COMPRESS[codec](bytes(50 << 20))
    lengths = [len(part) for part in chunks(io.BytesIO(data), "memory", codec)]  # type: ignore[arg-type]  as above
    assert sum(lengths) == 50 << 20
    assert max(lengths) <= 1 << 20


@pytest.mark.parametrize("codec", CODECS)
def test_an_empty_file_is_an_empty_stream(codec: str) -> None:
    assert decoded(codec, b"") == (b"", None)


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_behind_the_end_is_told_after_all_content(codec: str) -> None:
    assert decoded(codec, COMPRESS[codec](b"abc") + b"garbage") == (b"abc", "trailing_garbage")


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_that_is_no_such_stream_is_damaged_from_the_start(codec: str) -> None:
    assert decoded(codec, b'{"text": "plain"}\n') == (b"", "truncated_stream")


def test_zero_padding_behind_gzip_is_legal_and_a_member_may_follow_it() -> None:
    data = gzip.compress(b"a") + bytes(2_000_000) + gzip.compress(b"b") + bytes(512)
    assert decoded("gz", data) == (b"ab", None)


@pytest.mark.parametrize(("zeros", "reason"), [(8, None), (7, "trailing_garbage")])
def test_padding_behind_xz_comes_in_fours(zeros: int, reason: str | None) -> None:
    assert decoded("xz", lzma.compress(b"a") + bytes(zeros)) == (b"a", reason)


def test_padding_behind_zstd_is_garbage_but_a_skippable_frame_is_legal() -> None:
    frame = COMPRESS["zst"](b"a")
    assert decoded("zst", frame + bytes(4)) == (b"a", "trailing_garbage")
    assert decoded("zst", b"\x50\x2a\x4d\x18\x03\x00\x00\x00xyz" + frame) == (b"a", None)


@pytest.mark.parametrize("codec", CODECS)
@given(cut=st.floats(0.001, 0.999))
@settings(max_examples=25, deadline=None)
def test_a_cut_stream_delivers_a_prefix_and_tells_the_cut(codec: str, cut: float) -> None:
    data = numbers(3000)
    packed = COMPRESS[codec](data)
    delivered, reason = decoded(codec, packed[: max(1, int(len(packed) * cut))])
    assert data.startswith(delivered)
    assert reason == "truncated_stream"


@given(place=st.integers(10, 8000), flip=st.integers(1, 255))
@settings(max_examples=100, deadline=None)
def test_a_damaged_gzip_delivers_all_that_zlib_decodes_before_the_damage(place: int, flip: int) -> None:
    data = numbers(3000)
    packed = bytearray(gzip.compress(data, mtime=0))
    place = min(place, len(packed) - 1)
    before = zlib.decompressobj(31).decompress(bytes(packed[:place]))
    packed[place] ^= flip
    delivered, reason = decoded("gz", bytes(packed))
    assert delivered.startswith(before)
    assert reason == "truncated_stream"


@pytest.mark.parametrize("codec", ["gz", "zst", "xz"])
def test_a_wrong_checksum_costs_no_content(codec: str) -> None:
    data = numbers(500)
    packed = bytearray(COMPRESS[codec](data))
    # gzip: CRC before the length; zstd: the frame's last four bytes; xz: the block check before index and footer.
    packed[{"gz": -8, "zst": -1, "xz": -26}[codec]] ^= 1
    delivered, reason = decoded(codec, bytes(packed))
    assert (delivered, reason) == (data, "truncated_stream")


def test_damage_in_the_second_member_leaves_the_first() -> None:
    first, second = numbers(100_000), bytearray(bz2.compress(numbers(50_000)))
    second[len(second) // 2] ^= 0xFF
    delivered, reason = decoded("bz2", bz2.compress(first) + second)
    assert delivered.startswith(first)
    assert reason == "truncated_stream"
