"""Compiled kernels: where they are kept between runs, and compiling all of them ahead of time.

numba wants a writable directory at the moment a cached function is decorated. Every module with
kernels takes its decorators from here, so that the directory is chosen before the first of them:
the one that `NUMBA_CACHE_DIR` names, else one inside the package, else one in the user's cache,
else a temporary one, which goes when the process ends. Its name holds a digest of all kernel
modules, because a compiled kernel contains the functions it calls, and numba looks only at the file
of the outermost.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

WARM_UPS = (
    "spaseq.rdf.warm_up",
    "spaseq.kb.warm_up",
    "spaseq.gpm.warm_up",
    "spaseq.automaton.warm_up",
)
"""Modules whose `steps()` call every kernel of a package once, yielding its name after each."""

KERNELS: list[Any] = []
"""All kernels of the modules imported so far, as numba's dispatchers."""

_PACKAGE = Path(__file__).parent


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


def _sources_digest() -> str:
    """Changes when the source of any kernel does."""
    digest = blake2b(digest_size=6)
    for file in (Path(__file__), *sorted(_PACKAGE.glob("*/kernels/*.py"))):
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


if "NUMBA_CACHE_DIR" not in os.environ:
    os.environ["NUMBA_CACHE_DIR"] = str(cache_directory())

import numba  # noqa: E402  reads the variable when it is imported
from numba.core import event, types  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

if not numba.config.CACHE_DIR:  # it was imported before
    numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]


def kernel(function: F) -> F:
    """A function that is called from Python: compiled, kept on disk, run without the GIL.

    Where it runs through rows or terms and can be given its arrays, a `lean_kernel` is faster.
    """
    KERNELS.append(numba.njit(function, cache=True, nogil=True, error_model="numpy"))
    return cast("F", KERNELS[-1])


def lean_kernel(function: F) -> F:
    """A `kernel` that allocates nothing and returns no array, and so counts no references.

    numba counts the references to arrays by atomic operations wherever it cannot prove that they
    cancel out, as around calls in `while` loops; for the tokenizer that was two thirds of its time.
    """
    KERNELS.append(numba.njit(function, cache=True, nogil=True, error_model="numpy", _nrt=False))
    return cast("F", KERNELS[-1])


_PART = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def part(function: F) -> F:
    """A function that only kernels call; it is compiled into each of them.

    Like a `lean_kernel` it allocates nothing and returns no array.
    """
    return cast("F", numba.njit(function, **_PART))


def inlined(function: F) -> F:
    """A `part` whose body replaces its calls: for what is called once or more per byte or term."""
    return cast("F", numba.njit(function, forceinline=True, **_PART))


@intrinsic  # type: ignore[untyped-decorator]
def natural(context: Any, number: Any) -> Any:
    """The same integer as int64, of which the compiler is told that it is not negative: as an index
    it need not be counted from the end then, which it is checked for otherwise, at every use."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        builder.assume(builder.icmp_signed(">=", value, value.type(0)))
        return value

    return number(number), generate


@intrinsic  # type: ignore[untyped-decorator]
def assume(context: Any, condition: Any) -> Any:
    """Tell the compiler that something holds: that an array has so many columns, say, which makes
    its places shifts and sums instead of products."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.assume(arguments[0])
        return context.get_dummy_value()

    return types.none(types.boolean), generate


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    """Says why a run that is the first in its installation takes so long to begin."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        if not self._said:
            self._said = True
            logging.getLogger("spaseq").warning(
                "spaseq: compiling kernels, once for this installation (see `spaseq warm`)"
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _FirstCompilation())


@dataclass(frozen=True, slots=True)
class Warmed:
    """A kernel that is ready, and how long it took to compile or to load it."""

    name: str
    seconds: float


def warm(report: Callable[[Warmed], None] | None = None) -> list[Warmed]:
    """Compile every kernel, or load it if it has been compiled before; calls to them do not wait.

    `report` hears of each kernel as soon as it is ready. Where several processes are about to start
    (Spark's workers), one call before that saves each of them the compilation.
    """
    done: list[Warmed] = []
    for name in WARM_UPS:
        for warmed in _timed(import_module(name).steps()):
            done.append(warmed)
            if report is not None:
                report(warmed)
    return done


def _timed(steps: Iterator[str]) -> Iterator[Warmed]:
    at = time.perf_counter()
    for name in steps:
        now = time.perf_counter()
        yield Warmed(name, now - at)
        at = time.perf_counter()


def compiled() -> Iterator[tuple[str, Path]]:
    """The files of all compiled kernels that are kept here, with their names for `adopt`."""
    for package, place in _places():
        for file in sorted(place.glob("*.nb[ci]")):
            yield f"{package}/{file.name}", file


def adopt(directory: Path) -> None:
    """Keep kernels that were compiled elsewhere, in files of a directory as `compiled` names them.

    They are used where Python, numba and the processor are the same; numba's index of a kernel,
    which is copied after what it points to, tells them apart. Kernels kept here already stay.
    """
    for package, place in _places():
        for index in sorted((directory / package).glob("*.nbi")):
            if not (place / index.name).exists():
                for file in (*index.parent.glob(f"{index.stem}.*.nbc"), index):
                    _appear(file, place / file.name)


def _places() -> list[tuple[str, Path]]:
    """(package, the directory of its compiled kernels) of every package that has kernels."""
    for name in WARM_UPS:
        import_module(name)
    own = [k for k in KERNELS if k.py_func.__module__.startswith(f"{__package__}.")]
    return sorted(
        {(k.py_func.__module__.rpartition(".")[0], Path(k.stats.cache_path)) for k in own}
    )


def _appear(source: Path, target: Path) -> None:
    """Copy a file so that nobody sees half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, unfinished)
    unfinished.replace(target)
