"""Compiles all kernels ahead of time, and moves compiled kernels between machines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path

from spaseq.compiled.cache import all_compiled, has_kernels
from spaseq.compiled.known_functions import KERNELS
from spaseq.records import record

_PACKAGE_NAME = __package__.partition(".")[0]

WARM_UPS = (
    "spaseq.rdf.warm_up",
    "spaseq.lift.warm_up",
    "spaseq.kb.warm_up",
    "spaseq.gpm.warm_up",
    "spaseq.automaton.warm_up",
    "spaseq.windows.warm_up",
)
"""Modules whose `steps()` call every kernel of a package once and yield its name."""

_BESIDE = ("spaseq.lift.warm_up", "spaseq.kb.warm_up", "spaseq.automaton.warm_up")
"""Modules that compile about as long as the others together, in a separate process."""


@record
class Warmed:
    """A kernel that is ready, and the seconds it took to compile or load."""

    name: str
    seconds: float


def warm(report: Callable[[Warmed], None] | None = None) -> list[Warmed]:
    """Compile every kernel, or load it from the cache, so that later calls do not wait.

    `report` is called for each kernel as soon as it is ready. One call before several processes
    start (Spark's workers, for instance) saves each of them the compilation.
    """
    done: list[Warmed] = []
    for warmed in _all_warmed():
        done.append(warmed)
        if report is not None:
            report(warmed)
    with suppress(OSError):
        all_compiled().touch()
    return done


def compile_all() -> None:
    """Compile every kernel, unless that was done before, so that other processes load them."""
    if not all_compiled().exists():
        warm()


def _all_warmed() -> Iterator[Warmed]:
    with nullcontext() if has_kernels() else _compiling_elsewhere(_BESIDE):
        yield from _warmed(name for name in WARM_UPS if name not in _BESIDE)
    yield from _warmed(_BESIDE)


def _warmed(names: Iterable[str]) -> Iterator[Warmed]:
    for name in names:
        yield from _timed(import_module(name).steps())


@contextmanager
def _compiling_elsewhere(names: Sequence[str]) -> Iterator[None]:
    """Let a second process compile some packages' kernels meanwhile; they are in the cache then."""
    calls = [f"list(__import__({name!r}, fromlist=['steps']).steps())" for name in names]
    other = subprocess.Popen(
        [sys.executable, "-c", "; ".join([f"import sys; sys.path[:] = {sys.path!r}", *calls])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # an error there is an error here, too
    )
    try:
        yield
        other.wait()
    finally:
        other.kill()
        other.wait()


def _timed(steps: Iterator[str]) -> Iterator[Warmed]:
    at = time.perf_counter()
    for name in steps:
        now = time.perf_counter()
        yield Warmed(name, now - at)
        at = time.perf_counter()


def compiled() -> Iterator[tuple[str, Path]]:
    """The cached files of all compiled kernels, each with its name for `adopt`."""
    for package, cache in _places():
        for file in sorted(cache.glob("*.nb[ci]")):
            yield f"{package}/{file.name}", file


def adopt(directory: Path) -> None:
    """Copy kernels that were compiled on another machine into the cache.

    `directory` holds their files under the names from `compiled`. numba's index of a kernel shows
    whether Python, numba and the processor are the same; only then numba uses the kernel. The index
    is copied after the files that it names. Kernels that are in the cache already stay.
    """
    for package, cache in _places():
        for index in sorted((directory / package).glob("*.nbi")):
            if not (cache / index.name).exists():
                for file in (*index.parent.glob(f"{index.stem}.*.nbc"), index):
                    _appear(file, cache / file.name)


def _places() -> list[tuple[str, Path]]:
    """(package, directory of its compiled kernels) of every package that has kernels."""
    for name in WARM_UPS:
        import_module(name)
    ours = [k for k in KERNELS if k.function.__module__.startswith(f"{_PACKAGE_NAME}.")]
    return sorted(
        {
            (k.function.__module__.rpartition(".")[0], Path(k.dispatcher.stats.cache_path))
            for k in ours
        }
    )


def _appear(source: Path, target: Path) -> None:
    """Copy a file so that no other process sees a part of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, unfinished)
    unfinished.replace(target)
