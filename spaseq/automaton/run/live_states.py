"""The numbers of partial matches in each state of a program, and of solutions of its GPMs.

No code here runs for each event. The state of the evaluators is read on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Edge, Program
from spaseq.automaton.run.matches import PartitionKey
from spaseq.records import record

StateKey: TypeAlias = tuple[int, int]
"""The id of an automaton of the program, and the number of a state in it."""


Wanted: TypeAlias = Callable[[PartitionKey], bool]
"""Whether the partial matches of a partition count."""


@record
class LiveStates:
    """The states of the present partial matches of a query.

    `waiting` counts partial matches by the state that they have reached. A partial match that is in
    several states at once counts in each; a match that waits for the close of its window counts
    where it ends. `taken` counts, by GPM, the solutions that partial matches or matches have taken
    since the process began; it is None for a selection of partitions.
    """

    program: Program
    waiting: Mapping[StateKey, int]
    taken: Mapping[int, int] | None


class StatePlaces:
    """The source and the target state of each edge of a program, by edge id.

    A first edge inside a bracket leads from the state before the bracket.
    """

    def __init__(self, program: Program) -> None:
        self.source: dict[int, StateKey] = {}
        self.target: dict[int, StateKey] = {}
        self._ends: dict[int, list[StateKey]] = {}
        self._end_of: dict[int, StateKey] = {}  # by GPM
        self._whole = program.automaton.id
        before = dict[int, StateKey]()  # by automaton of an operand
        for automaton in sequence_automata(program.automaton):
            first = before.get(automaton.id, (automaton.id, 0))
            for number, state in enumerate(automaton.states):
                if state.acceptances:
                    self._ends.setdefault(automaton.id, []).append((automaton.id, number))
                for edge in state.edges:
                    self.source[edge.id] = (automaton.id, number) if number else first
                    self.target[edge.id] = automaton.id, edge.target
                    if automaton.id == self._whole and automaton.states[edge.target].acceptances:
                        for gpm in _last_gpms(edge):
                            self._end_of.setdefault(gpm, (automaton.id, edge.target))
                    for operand in operands(edge):
                        before.setdefault(operand.id, self.source[edge.id])

    def end(self, gpm: int) -> StateKey:
        """The state in which a match ends whose last solution is of a GPM."""
        return self._end_of.get(gpm, self._ends[self._whole][0])

    def ends(self, automaton: Automaton) -> list[StateKey]:
        """The states in which an automaton accepts."""
        return self._ends.get(automaton.id, [])


def sequence_automata(automaton: Automaton) -> Iterator[Automaton]:
    """An automaton and the automata of the brackets in it, each once."""
    seen, todo = {automaton.id}, [automaton]
    for each in todo:  # grows while it is walked
        yield each
        for state in each.states:
            for edge in state.edges:
                for operand in operands(edge):
                    if operand.id not in seen:
                        seen.add(operand.id)
                        todo.append(operand)


def operands(edge: Edge) -> tuple[Automaton, ...]:
    """The automata of the operands of the bracket that an edge takes."""
    return edge.label.operands if isinstance(edge.label, BracketLabel) else ()


def _last_gpms(edge: Edge) -> Iterator[int]:
    """The GPMs of the last solutions that an edge may take."""
    if not isinstance(edge.label, BracketLabel):
        yield edge.label.gpm
    for operand in operands(edge):
        for state in operand.states:
            for inner in state.edges:
                if operand.states[inner.target].acceptances:
                    yield from _last_gpms(inner)
