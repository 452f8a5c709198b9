"""Which sequences sets and their kernels can run, decided from the plan alone."""

from __future__ import annotations

from spaseq.automaton.program.nfa import BracketLabel, NoKernel, Program
from spaseq.automaton.program.window import Counted, Window
from spaseq.automaton.sets.python.expand import expand

_MOST_GPMS = 62
"""The kernels keep a set of GPMs in the bits of an int64."""

_MOST_LETTERS = 61
"""The same for pairs of a GPM and a stream, beside one more bit."""


def check_waits(program: Program) -> None:
    """Check that sets, in Python or in a kernel, have room for the waits of a program.

    Raises:
        TooManyWaits: they lack the room.
    """
    if any(isinstance(edge.label, BracketLabel) for edge in program.edges):
        expand(program)


def has_conjunctions(program: Program) -> bool:
    """Whether a program has brackets with `&` or AND."""
    labels = (edge.label for edge in program.edges)
    return any(isinstance(label, BracketLabel) and label.kind != "|" for label in labels)


def check_letters(program: Program, gpms: int, streams: int, compares: bool) -> None:
    """Check that the kernels of sets have room for the solutions of one instant.

    `compares`: SELECT MAX distinguishes solutions of one GPM by their streams.

    Raises:
        NoKernel: they lack the room.
    """
    if has_conjunctions(program):
        if gpms * streams > _MOST_LETTERS:
            raise NoKernel(f"its GPMs and streams make more than {_MOST_LETTERS} pairs")
    elif gpms * (streams if compares else 1) > _MOST_GPMS:
        told_apart = " on streams that SELECT MAX tells apart" if compares and streams > 1 else ""
        raise NoKernel(f"it has more than {_MOST_GPMS} GPMs{told_apart}")


def check_sets(partition: tuple[str, ...], window: Window) -> None:
    """Check that the kernels of sets can run a sequence that the sets in Python can run.

    Raises:
        NoKernel: they cannot.
    """
    if partition and isinstance(window, Counted):
        raise NoKernel("events are counted by partition")
