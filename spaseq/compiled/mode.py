"""Whether kernels are compiled, with checks or without, or interpreted as Python functions.

Compiling takes seconds for each large kernel, once for an installation. For a few hundred events
the same functions give the same answers in less time without it. A run that knows that its input is
small therefore asks for the interpreter. A process that has once compiled kernels keeps using them:
later input may be large.

Kernels that are compiled with checks raise IndexError instead of reading or writing outside an
array. They take several times as long, and are for tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from spaseq.records import record

VARIABLE = "SPASEQ_KERNELS"
"""The environment variable that settles the question: `compiled`, `interpreted` or `checked`."""

COMPILED, INTERPRETED, CHECKED = "compiled", "interpreted", "checked"

COMPILING_SECONDS = 2.0
"""Seconds in interpreted kernels after which the rest is compiled: small input may need long."""

LOADING_SECONDS = 0.2
"""The same, once kernels have been compiled: numba loads in less."""

INTERPRETED_STEPS = 2**17
"""Approximate number of steps after which an interpreted kernel returns, if it can resume."""

_chosen = os.environ.get(VARIABLE)
_seconds = 0.0
_most_seconds = COMPILING_SECONDS

compilation_listeners: list[Callable[[float], object]] = []
"""They are called with the seconds of each compilation, in the thread that waited for it."""


@record
class Mode:
    """The mode of a process, for others that work with it."""

    name: str

    def take(self) -> None:
        """Call kernels in this mode from now on, as far as this process still can."""
        if self.name == INTERPRETED:
            interpret()
        else:
            compile_from_now_on()


def current() -> Mode:
    """The mode of this process."""
    return Mode(_chosen or COMPILED)


def interpreted() -> bool:
    """Whether kernels are interpreted now."""
    return _chosen == INTERPRETED


def checked() -> bool:
    """Whether compiled kernels check that they stay inside their arrays."""
    return os.environ.get(VARIABLE) == CHECKED


def interpret(most_seconds: float = COMPILING_SECONDS) -> None:
    """Interpret kernels from now on for some seconds, unless some are compiled already."""
    global _chosen, _most_seconds
    _most_seconds = most_seconds
    if _chosen is None:
        _chosen = INTERPRETED


def compile_from_now_on() -> None:
    """Compile kernels that are called from now on. The environment variable goes before."""
    global _chosen
    if VARIABLE not in os.environ:
        _chosen = COMPILED


def note_interpreted(seconds: float) -> None:
    """Count the time of an interpreted kernel."""
    global _seconds
    _seconds += seconds
    if _seconds > _most_seconds:
        compile_from_now_on()


def note_compilation(seconds: float) -> None:
    """Tell the listeners the time of a compilation."""
    for listener in compilation_listeners:
        listener(seconds)


def steps(compiled: int) -> int:
    """Maximum steps of a kernel in one call: `compiled`, or fewer if it is interpreted."""
    return min(compiled, INTERPRETED_STEPS) if interpreted() else compiled
