"""The directory that keeps compiled kernels between runs.

numba needs a writable directory when it decorates a cached function, so `decorators` chooses one
before it imports numba. The choice is the directory that `NUMBA_CACHE_DIR` names, else one inside
the package, else one in the user's cache, else a temporary one, removed when the process ends. The
directory's name contains a digest of all kernel modules. numba alone would compare only the file of
the outermost function, but a compiled kernel contains all functions that it calls.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from hashlib import blake2b
from pathlib import Path

_PACKAGE = Path(__file__).absolute().parents[1]


def choose_cache_directory() -> str:
    """Set `NUMBA_CACHE_DIR` unless it is set already, and return it."""
    if "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(cache_directory())
    return os.environ["NUMBA_CACHE_DIR"]


def cache_directory() -> Path:
    """The directory for compiled kernels, which exists and is writable."""
    name = f"kernels-{_sources_digest()}"
    for place in (_PACKAGE / "__pycache__", user_cache() / "spaseq"):
        if _is_writable(place / name):
            return place / name
    return _temporary_directory()


def _temporary_directory() -> Path:
    path, owner = Path(tempfile.mkdtemp(prefix="spaseq-kernels-")), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return path


def kernel_sources() -> list[Path]:
    """The source files in all `kernels` folders, at any depth, and in `spaseq.compiled`."""
    compiled = (_PACKAGE / "compiled").glob("*.py")
    return sorted([*compiled, *_PACKAGE.glob("**/kernels/**/*.py")])


def _sources_digest() -> str:
    """A digest of the names and contents of all kernel sources."""
    digest = blake2b(digest_size=6)
    for file in kernel_sources():
        digest.update(f"{file.relative_to(_PACKAGE)}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def user_cache() -> Path:
    """The cache directory of this user."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False
