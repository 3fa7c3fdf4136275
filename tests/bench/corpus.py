"""The text to measure on: every JSONL file of a folder is a corpus, cut to a size and compressed anew."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
import zstandard

_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")


@dataclass(frozen=True, slots=True)
class Corpus:
    """A named JSONL file whose records hold their text in `text`."""

    name: str
    path: Path


def find_corpora(folder: Path) -> list[Corpus]:
    """The corpora of a folder by name; other files are left alone."""
    found = []
    for path in sorted(folder.iterdir()):
        suffix = next((suffix for suffix in _SUFFIXES if path.name.endswith(suffix)), None)
        if suffix and path.is_file():
            found.append(Corpus(path.name.removesuffix(suffix), path))
    return found


def cut(corpus: Corpus, folder: Path, size: int) -> Corpus:
    """Copy the first lines of a corpus, about `size` bytes, into `folder` as NAME.jsonl.zst."""
    copy = Corpus(corpus.name, folder / f"{corpus.name}.jsonl.zst")
    taken = 0
    with _lines(corpus.path) as lines, _compressed(copy.path) as file:
        for line in lines:
            if taken >= size:
                break
            file.write(line)
            taken += len(line)
    return copy


def multiplied(corpora: Sequence[Corpus], folder: Path, size: int) -> Corpus:
    """Write the corpora over and over, about `size` bytes, every copy of a text with a suffix of its own."""
    grown = Corpus(f"{size // 10**6} MB", folder / f"grown-{size}.jsonl.zst")
    taken, copy = 0, 0
    with _compressed(grown.path) as file:
        while taken < size:
            before = taken
            for line in _suffixed(corpora, copy):
                taken += file.write(line)
                if taken >= size:
                    break
            if taken == before:
                raise ValueError("the corpora hold no text to multiply")
            copy += 1
    return grown


def _suffixed(corpora: Sequence[Corpus], copy: int) -> Iterator[bytes]:
    for corpus in corpora:
        with _lines(corpus.path) as lines:
            for line in lines:
                record = msgspec.json.decode(line)
                changed = {"id": f"{record['id']}-{copy}", "text": f"{record['text']} {copy}"}
                yield msgspec.json.encode(changed) + b"\n"


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[bytes]]:
    with path.open("rb") as raw:
        if path.suffix == ".gz":
            with gzip.open(raw) as plain:
                yield iter(plain)
        elif path.suffix == ".zst":
            yield _zst_lines(raw)
        else:
            yield iter(raw)


def _zst_lines(raw: BinaryIO) -> Iterator[bytes]:
    rest = b""
    for chunk in zstandard.ZstdDecompressor().read_to_iter(raw, read_size=1 << 20):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest + b"\n"


@contextmanager
def _compressed(path: Path) -> Iterator[BinaryIO]:
    with zstandard.open(path, "wb", cctx=zstandard.ZstdCompressor(level=3)) as file:
        yield cast(BinaryIO, file)
