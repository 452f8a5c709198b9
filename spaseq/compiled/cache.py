"""Where compiled kernels are kept between runs.

numba wants a writable directory at the moment when it decorates a cached function, so `decorators`
chooses one before it imports numba: the one that `NUMBA_CACHE_DIR` names, else one inside the
package, else one in the user's cache, else a temporary one, which goes when the process ends. Its
name holds a digest of all kernel modules: a compiled kernel contains the functions that it calls,
and numba looks only at the file of the outermost.
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
    """The directory for compiled kernels; it exists and can be written to."""
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
    """The source files of all kernels, at any depth, and of what compiles them."""
    own = Path(__file__).absolute().parent
    return sorted([*own.glob("*.py"), *_PACKAGE.glob("**/kernels/*.py")])


def _sources_digest() -> str:
    """Changes when the source of any kernel does."""
    digest = blake2b(digest_size=6)
    for file in kernel_sources():
        digest.update(file.read_bytes())
    return digest.hexdigest()


def user_cache() -> Path:
    """The directory in which programs of this user keep what can be made again."""
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
