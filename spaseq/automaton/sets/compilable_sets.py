"""Which sequences sets and their kernels can run, decided from the plan alone."""

from __future__ import annotations

from spaseq.automaton.batch.no_kernel import NoKernel
from spaseq.automaton.program.nfa import BracketLabel, Program
from spaseq.automaton.program.window import Counted, Window
from spaseq.automaton.sets.python.expand import expand

_MOST_GPMS = 62
"""The kernels keep a set of GPMs in the bits of an int64."""


def check_waits(program: Program) -> None:
    """Check that sets, in Python or in a kernel, have room for the waits of a program.

    Raises:
        TooManyWaits: they have not.
    """
    if any(isinstance(edge.label, BracketLabel) for edge in program.edges):
        expand(program)


def check_sets(gpms: int, streams: int, partition: tuple[str, ...], window: Window) -> None:
    """Check that the kernels of sets can run a sequence that the sets in Python can run.

    `streams` is 1 unless SELECT MAX tells apart solutions of one GPM by their streams.

    Raises:
        NoKernel: they cannot.
    """
    if gpms * streams > _MOST_GPMS:
        told_apart = " on streams that SELECT MAX tells apart" if streams > 1 else ""
        raise NoKernel(f"it has more than {_MOST_GPMS} GPMs{told_apart}")
    if partition and isinstance(window, Counted):
        raise NoKernel("events are counted by partition")
