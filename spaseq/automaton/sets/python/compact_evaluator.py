"""The compact evaluator: no blow-up whatever the repetition (CORE, PVLDB 15:9).

For sequences without conditions between events, with alternatives and repetition nested at will.
Time per instant depends on the automaton and the solutions of the instant, neither on the window
nor on how many partial matches there are; memory is a few nodes for each solution in the window.
"""

from __future__ import annotations

from typing import cast

from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import RowsByGpm
from spaseq.automaton.sets.python.active_states import ActiveStates
from spaseq.automaton.sets.python.compact_set import CompactSet, UnionList
from spaseq.automaton.sets.python.determinise import Determinised, DeterminisedState
from spaseq.automaton.sets.python.enumeration import MatchEnumerator
from spaseq.automaton.sets.python.expand import expand
from spaseq.automaton.sets.python.maximal import MaximalAutomaton
from spaseq.automaton.sets.python.shared_evaluator import Static


class CompactKeyState:
    """The active states of the determinised automaton, for one key."""

    __slots__ = ("_automaton", "_table")

    def __init__(self, automaton: Determinised) -> None:
        self._automaton = automaton
        self._table = ActiveStates(automaton.initial)

    def advance(self, matches: CompactSet, start: int, rows: RowsByGpm, gpms: int) -> list[int]:
        """Work off an instant; the roots of the matches that end there."""
        return self._table.advance(matches, start, rows, gpms)

    def lives(self, matches: CompactSet) -> bool:
        """Whether some partial match may still become part of a match."""
        return any(matches.lives(p.nodes[0]) for p in self._table.lists.values())

    def waiting(self) -> list[int]:
        """The nodes that stand for the partial matches that wait."""
        return [node for partial in self._table.lists.values() for node in partial.nodes]

    def snapshot(self) -> object:
        """What a snapshot keeps: the active states by their waits."""
        return [(s.waits, p.nodes, p.merged) for s, p in self._table.lists.items()]

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        for waits, nodes, merged in cast(list[tuple[frozenset[int], list[int], int]], state):
            place = self._automaton.state(waits)
            assert isinstance(place, DeterminisedState)
            self._table.lists[place] = partial = UnionList(nodes)
            partial.merged = merged


def compact(machine: Machine) -> Static:
    """The compact evaluator of a machine's program."""
    automaton = Determinised(expand(machine.program), machine.strategy == "STRICT")
    maximal = MaximalAutomaton(automaton) if machine.strategy == "MAX" else None
    return Static(
        machine,
        MatchEnumerator(machine, maximal),
        lambda: CompactKeyState(automaton),
        automaton.strict,
    )
