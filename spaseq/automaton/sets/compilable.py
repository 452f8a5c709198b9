"""Which sequences the kernels of sets can run, decided from the plan alone."""

from __future__ import annotations

from spaseq.automaton.batch.not_compilable import NotCompilable
from spaseq.automaton.program.window import Counted, Window

_MOST_GPMS = 62
"""The kernels keep a set of GPMs in the bits of an int64."""


def check_sets(gpms: int, partition: tuple[str, ...], window: Window, strategy: str) -> None:
    """Check that the kernels of sets can run a sequence that the sets in Python can run.

    Raises:
        NotCompilable: they cannot.
    """
    if gpms > _MOST_GPMS:
        raise NotCompilable(f"it has more than {_MOST_GPMS} GPMs")
    if partition and isinstance(window, Counted):
        raise NotCompilable("events are counted by partition")
    if strategy == "MAX":
        raise NotCompilable("SELECT MAX looks at all solutions of the window")
