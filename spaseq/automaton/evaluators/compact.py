"""The compact evaluator: no blow-up whatever the repetition (CORE, PVLDB 15:9).

For sequences without conditions between events, with alternatives and repetition nested at will.
Time per instant depends on the automaton and the solutions of the instant, neither on the window
nor on how many partial matches there are; memory is a few nodes for each solution in the window.
"""

from __future__ import annotations

from typing import cast

from spaseq.automaton.evaluators.base import Rows
from spaseq.automaton.evaluators.compact_set import CompactSet, UnionList
from spaseq.automaton.evaluators.determinise import Determinised, State
from spaseq.automaton.evaluators.emission import Emission
from spaseq.automaton.evaluators.expand import expand
from spaseq.automaton.evaluators.maximal import MaximalAutomaton
from spaseq.automaton.evaluators.structured import Static
from spaseq.automaton.evaluators.table import Table
from spaseq.automaton.machine import Machine


class CompactProgress:
    """The active states of the determinised automaton, for one key."""

    __slots__ = ("_automaton", "_table")

    def __init__(self, automaton: Determinised) -> None:
        self._automaton = automaton
        self._table = Table(automaton.initial)

    def advance(self, matches: CompactSet, start: int, rows: Rows, gpms: int) -> list[int]:
        """Work off an instant; the roots of the matches that end there."""
        return self._table.advance(matches, start, rows, gpms)

    def lives(self, matches: CompactSet) -> bool:
        """Whether some partial match may still become part of a match."""
        return any(matches.lives(p.nodes[0]) for p in self._table.lists.values())

    def waiting(self) -> list[int]:
        """The nodes that stand for the partial matches that wait."""
        return [node for partial in self._table.lists.values() for node in partial.nodes]

    def state(self) -> object:
        """What a snapshot keeps: the active states by their waits."""
        return [(s.waits, p.nodes, p.merged) for s, p in self._table.lists.items()]

    def take_up(self, state: object) -> None:
        """Go on from what `state` gave."""
        for waits, nodes, merged in cast(list[tuple[frozenset[int], list[int], int]], state):
            place = self._automaton.state(waits)
            assert isinstance(place, State)
            self._table.lists[place] = partial = UnionList(nodes)
            partial.merged = merged


def compact(machine: Machine) -> Static:
    """The compact evaluator of a machine's program."""
    automaton = Determinised(expand(machine.program), machine.strategy == "STRICT")
    maximal = MaximalAutomaton(automaton) if machine.strategy == "MAX" else None
    return Static(
        machine,
        Emission(machine, maximal),
        lambda: CompactProgress(automaton),
        automaton.strict,
    )
