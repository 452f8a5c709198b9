"""The directory that keeps compiled kernels between runs.

numba needs a writable directory when it decorates a cached function, so `decorators` chooses one
before it imports numba. The choice is the directory that `NUMBA_CACHE_DIR` names, else one in the
user's cache, else one inside the package, else a temporary one, removed when the process ends. A
directory that other users can write to is skipped: compiled kernels are code. The names in it
contain a digest of all kernel modules and of the versions of Python and numba, so installations
with equal kernels share them, and others do not replace them. Kernels with checks have a separate
digest.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from spaseq.compiled import mode
from spaseq.storage.directories import NotPrivate, check_private, private_directory

_PACKAGE = Path(__file__).absolute().parents[1]
_LOGGER = logging.getLogger("spaseq")


def choose_cache_directory() -> str:
    """Set `NUMBA_CACHE_DIR` unless it names a usable directory already, and return it."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if not given or not _is_usable(Path(given), "NUMBA_CACHE_DIR: "):
        os.environ["NUMBA_CACHE_DIR"] = str(cache_directory())
    return os.environ["NUMBA_CACHE_DIR"]


def has_kernels() -> bool:
    """Whether kernels have been compiled before."""
    try:
        kernels = Path(choose_cache_directory()).glob(f"*-{kernels_digest()}/*.nbi")
        return next(kernels, None) is not None
    except OSError:
        return False


def all_compiled() -> Path:
    """The file that says that all kernels have been compiled."""
    return Path(choose_cache_directory()) / f"all-{kernels_digest()}"


def cache_directory() -> Path:
    """The directory for compiled kernels, which exists and is writable."""
    name = "kernels"
    users = user_cache()
    if users is not None and _is_usable(users / "spaseq" / name, levels=2):
        return users / "spaseq" / name
    if _is_usable(_PACKAGE / "__pycache__" / name):
        return _PACKAGE / "__pycache__" / name
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
    found = list[Path]()
    for folder, inner, names in os.walk(_PACKAGE):  # twice as fast as `glob`
        inner[:] = [name for name in inner if name != "__pycache__"]
        place = Path(folder)
        if place == _PACKAGE / "compiled" or "kernels" in place.relative_to(_PACKAGE).parts:
            found += [place / name for name in names if name.endswith(".py")]
    return sorted(found)


@cache
def kernels_digest() -> str:
    """Digest of the names and contents of all kernel sources, and of Python's and numba's versions.

    numba alone would compare only the file of the outermost function, but a compiled kernel
    contains all functions that it calls.
    """
    digest = blake2b(mode.CHECKED.encode() if mode.checked() else b"", digest_size=6)
    digest.update(str(sys.implementation.cache_tag).encode() + _numba_version())
    for file in kernel_sources():
        digest.update(f"{file.relative_to(_PACKAGE)}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _numba_version() -> bytes:
    """The file with numba's version; importing numba, or all metadata, would take longer."""
    numba = find_spec("numba")
    assert numba is not None and numba.origin is not None
    return Path(numba.origin).with_name("_version.py").read_bytes()


def user_cache() -> Path | None:
    """The cache directory of this user; None for a user without a home."""
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    given = os.environ.get(variable, "")
    if os.path.isabs(given):
        return Path(given)
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and no entry for this user
        return None
    if not home.is_absolute():
        return None
    parts = {"win32": (), "darwin": ("Library", "Caches")}
    return home.joinpath(*parts.get(sys.platform, (".cache",)))


def _is_usable(directory: Path, told: str = "", levels: int = 1) -> bool:
    """Whether this process can write to a directory and others cannot; if they can, say so."""
    try:
        private_directory(directory, levels)
        if directory.stat().st_mode & 0o077:  # else no file inside can be reached
            for entry in os.scandir(directory):  # numba makes a directory for each package
                if entry.is_dir():
                    check_private(Path(entry))
        with tempfile.TemporaryFile(dir=directory):
            return True
    except NotPrivate as error:
        _LOGGER.warning("spaseq: %s%s; kernels are kept elsewhere", told, error)
        return False
    except OSError:
        return False
