"""Greedy loops in last place in the register kernel: matches wait for the close of their windows.

A match that leaves such a loop early is no match if the loop repeats once more in its window. So it
waits at an edge along which no solution is taken, and is stopped like a run that waits to leave a
greedy loop elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from spaseq.automaton.batch.no_kernel import NoKernel
from spaseq.automaton.program.alternatives import AlternativeEdge
from spaseq.automaton.program.nfa import Acceptance, Automaton, Program, State


def accepts_at_once(state: State) -> bool:
    """Whether a match is complete in a state, whatever comes."""
    return any(not end.exits for end in state.acceptances)


def closing_ends(automaton: Automaton) -> Iterator[tuple[int, Acceptance]]:
    """The ways to accept that wait for the close of the window, each with its state.

    A match that is complete at once in the same state does not wait.
    """
    for number, state in enumerate(automaton.states):
        if not accepts_at_once(state):
            yield from ((number, end) for end in state.acceptances)


def check_closings(automaton: Automaton, takes: Sequence[tuple[int, AlternativeEdge]]) -> None:
    """Check that no match both waits for the close of its window and is complete before.

    `takes` are the edges that take one solution, each with its source.

    Raises:
        NoKernel: there may be one, which counts as complete.
    """
    states = automaton.states
    targets: dict[int, dict[int, set[int]]] = {}  # by source and GPM
    for source, taking in takes:
        by_gpm = targets.setdefault(source, {})
        by_gpm.setdefault(taking.take.gpm, set()).add(taking.edge.target)
    seen = {(0, 0)}
    todo = [(0, 0)]
    for one, other in todo:  # grows while it is walked; the states that equal traces may reach
        waits = states[other].acceptances and not accepts_at_once(states[other])
        if waits and accepts_at_once(states[one]):
            raise NoKernel("a match may end both within its greedy loop and after all of it")
        beside = targets.get(other, {})
        for gpm, ends in targets.get(one, {}).items():
            pairs = set(product(ends, beside.get(gpm, ()))) - seen
            seen |= pairs
            todo += pairs


def without_greedy_ends(program: Program) -> Program:
    """The program without the greedy loops that its matches leave in last place."""
    states = [
        replace(state, acceptances=tuple(replace(end, exits=()) for end in state.acceptances))
        for state in program.automaton.states
    ]
    return replace(program, automaton=replace(program.automaton, states=tuple(states)))
