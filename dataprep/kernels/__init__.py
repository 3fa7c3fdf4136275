"""Compiled loops over (uint8 data, offsets): one decorator, one cache on disk, one way to load them all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TypeVar, cast

import xxhash

Function = TypeVar("Function", bound=Callable[..., object])

# Every kernel module, in the order warm() loads them.
MODULES = ("clean", "counts", "fold", "integers", "pack", "spell")


def _source_digest() -> str:
    # numba freezes the constants a kernel imports but only watches the kernel's own file; a folder a version of all
    # the sources keeps an upgraded or edited package from running the old machine code.
    digest = xxhash.xxh3_64()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _cache_homes() -> Iterator[Path]:
    yield Path(__file__).parent / "__pycache__"
    user_cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME", "/") + "/.cache"
    yield Path(user_cache) / "dataprep"
    yield Path(tempfile.gettempdir()) / f"dataprep-{os.getuid()}"


def _usable(directory: Path) -> bool:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
    except OSError:
        return False
    # The cache holds machine code: a folder that someone else prepared is never trusted.
    return status.st_uid == os.getuid() and not directory.is_symlink() and os.access(directory, os.W_OK | os.X_OK)


def cache_directory() -> Path:
    """Choose where compiled kernels are kept: beside the sources, else the user's cache, else a private temporary."""
    name = f"kernels-{_source_digest()}"
    for home in _cache_homes():
        if _usable(home) and _usable(home / name):
            return home / name
    return Path(tempfile.mkdtemp(prefix="dataprep-kernels-"))


# Set in the environment, so that worker processes share the folder; a choice already made there is respected.
if not os.environ.get("NUMBA_CACHE_DIR"):
    os.environ["NUMBA_CACHE_DIR"] = str(cache_directory())

import numba  # noqa: E402  numba reads the setting above when it is imported

numba.config.reload_config()  # type: ignore[no-untyped-call]  # numba has no types


def kernel(function: Function) -> Function:
    """Compile a function at its first call: cached on disk, without the GIL, without bounds checks."""
    compiled = numba.njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")(function)
    return cast(Function, compiled)


def warm() -> None:
    """Compile or load every kernel, so that a parent does it once before its workers start."""
    for name in MODULES:
        import_module(f"{__name__}.{name}").warm()
