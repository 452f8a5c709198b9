"""The compact evaluator: partial matches as a set that shares their prefixes (CORE, PVLDB 15:9).

It runs sequences without conditions between events, with alternatives and repetition nested at
will. The time per instant depends on the automaton and on the rows of the instant, but neither on
the window nor on the number of partial matches. Memory is a few nodes for each row in the window.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.window import Counted, is_over
from spaseq.automaton.run.live_states import StateKey, StatePlaces
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import PartitionMatch, RowsByGpm
from spaseq.automaton.run.runs import Row
from spaseq.automaton.run.waiting_runs import Key
from spaseq.automaton.sets.python.active_states import ActiveStates
from spaseq.automaton.sets.python.compact_set import EVER, CompactSet, UnionList
from spaseq.automaton.sets.python.conjunctions import automaton_of
from spaseq.automaton.sets.python.counting import count
from spaseq.automaton.sets.python.determinise import DeterministicAutomaton, DeterministicState
from spaseq.automaton.sets.python.expand import WaitName
from spaseq.automaton.sets.python.live_waits import states_of
from spaseq.automaton.sets.python.match_enumerator import MatchEnumerator
from spaseq.automaton.sets.python.maximal import MaximalAutomaton


class CompactProgram:
    """The deterministic automaton and the settings that all partitions of a query share.

    A snapshot refers to it by number.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.automaton = automaton_of(machine, machine.program)
        maximal = MaximalAutomaton(self.automaton) if machine.strategy == "MAX" else None
        self.enumerator = MatchEnumerator(machine, maximal)
        self.key_columns = [  # by GPM
            tuple(g.variables.index(v) for v in machine.key if v in g.variables)
            for g in machine.gpms
        ]


class CompactEvaluator:
    """All run-time state of one partition, split by the variables that all its events join on."""

    __slots__ = (
        "_active",
        "_matches",
        "_number",
        "_position",
        "_program",
        "_swept",
        "_window",
        "last_time",
        "suppressed",
    )

    def __init__(self, program: CompactProgram) -> None:
        self._program = program
        self._matches = CompactSet()
        # By key: the active states, and the number and time of the last instant with its rows.
        self._active: dict[Key, tuple[ActiveStates[DeterministicState], int, int]] = {}
        self._number = 0  # instants so far
        self._position = 0  # events so far
        self._window: deque[tuple[int, RowsByGpm]] = deque()  # its instants, for SELECT MAX
        self._swept = 0  # keys that the last sweep left
        self.last_time = -(2**63)
        self.suppressed = 0

    # --- one instant --------------------------------------------------------------------------

    def step(self, instant: Instant, rows: RowsByGpm, events: int) -> Iterator[PartitionMatch]:
        """Process the rows of one instant, which `events` events of the partition share."""
        machine, before = self._program.machine, self._matches.end
        self._number += 1
        self.last_time = instant[0]
        start = reach = instant[0]
        if isinstance(machine.window, Counted):
            start = self._position
            self._position = reach = start + events
        self._matches.advance(start, machine.window.earliest(reach))
        rows = _distinct(rows)
        if machine.strategy == "MAX":
            self._remember(start, rows)
        if not machine.key:
            roots = self._advanced((), start, rows)
            machine.work.take_nodes(self._matches.outputs_since(before))
            return self._ended(roots)
        roots = []
        for key, own in self._by_key(rows).items():
            roots += self._advanced(key, start, own)
        machine.work.take_nodes(self._matches.outputs_since(before))
        self._sweep()
        return self._ended(roots)

    def _advanced(self, key: Key, start: int, rows: RowsByGpm) -> list[int]:
        """The roots of a key's matches that end now; `start` is the measure of the instant."""
        automaton = self._program.automaton
        states, number, time = self._active.get(key) or (
            ActiveStates(automaton.initial),
            self._number - 1,
            EVER,
        )
        if number < self._number - 1 and automaton.strict:
            # The instants without rows of this key, which may have the time of the one before.
            states.advance(self._matches, start, {}, automaton.same_time)
        self._active[key] = states, self._number, self.last_time
        seen = automaton.same_time if time == self.last_time else 0
        rows = automaton.lettered(rows)
        for letter in rows:
            seen |= 1 << letter
        roots = states.advance(self._matches, start, rows, seen)
        limit = self._program.machine.waiting
        if limit is not None:
            limit.room -= len(states.lists)
        return roots

    def _ended(self, roots: list[int]) -> Iterator[PartitionMatch]:
        """The matches of some roots that selection and limit leave."""
        if roots:
            enumerator = self._program.enumerator
            suppressed = yield from enumerator.matches(self._matches, roots, self._window)
            self.suppressed += suppressed

    def _by_key(self, rows: RowsByGpm) -> Mapping[Key, dict[int, list[Row]]]:
        by_key: dict[Key, dict[int, list[Row]]] = {}
        for gpm, solutions in rows.items():
            columns = self._program.key_columns[gpm]
            for row in solutions:
                values = row[4]
                own = by_key.setdefault(tuple([values[c] for c in columns]), {})
                own.setdefault(gpm, []).append(row)
        return by_key

    def _remember(self, start: int, rows: RowsByGpm) -> None:
        window = self._window
        window.append((start, rows))
        while window and window[0][0] < self._matches.floor:
            window.popleft()

    def _sweep(self) -> None:
        """Drop keys without partial matches, once they may be half of all keys."""
        if len(self._active) > 2 * self._swept + 64:
            matches = self._matches
            self._active = {k: a for k, a in self._active.items() if a[0].lives(matches)}
            self._swept = len(self._active)

    # --- questions from outside -----------------------------------------------------------------

    def holds_pending(self, match: PartitionMatch) -> bool:
        """True: no match here waits for the close of its window."""
        return True

    def is_idle(self, time: int) -> bool:
        """Whether no state here can affect events at `time` or later (time windows only)."""
        return is_over(self._program.machine.window, self.last_time, time)

    def consecutive(self, instants: Iterable[Instant]) -> bool:
        """True: the automaton itself applies SELECT STRICT."""
        return True

    def live_runs(self, now: Instant) -> int:
        """How many sets of partial matches wait in open windows."""
        floor, window = self._matches.floor, self._program.machine.window
        if not isinstance(window, Counted):
            floor = max(floor, window.earliest(now[0]))
        newest = (u.nodes[0] for a, _, _ in self._active.values() for u in a.lists.values())
        return sum(self._matches.start(node) >= floor for node in newest)

    def live_states(self, places: StatePlaces) -> Counter[StateKey]:
        """How many partial matches wait in each state; takes time linear in the window."""
        waits, found = self._program.automaton.waits, Counter[StateKey]()
        for states, _, _ in self._active.values():
            for state, listed in states.lists.items():
                partial = count(self._matches, listed.nodes)
                for key in {k for name in state.waits for k in states_of(waits, name, places)}:
                    found[key] += partial
        return found

    def partial_matches(self) -> int:
        """The exact number of partial matches; takes time linear in the window."""
        return count(self._matches, self._waiting())

    def _waiting(self) -> list[int]:
        return [node for states, _, _ in self._active.values() for node in states.nodes()]

    def __getstate__(self) -> tuple[dict[str, Any], list[tuple[Key, object, int, int]]]:
        kept = {name: getattr(self, name) for name in self.__slots__ if name != "_active"}
        active = self._active.items()
        return kept, [(key, _snapshot(s), number, time) for key, (s, number, time) in active]

    def __setstate__(self, state: tuple[dict[str, Any], list[tuple[Any, ...]]]) -> None:
        kept, keys = state
        for name, value in kept.items():
            setattr(self, name, value)
        automaton = self._program.automaton
        self._active = {  # older snapshots have no times
            key: (_restored(automaton, own), number, *(time or (EVER,)))
            for key, own, number, *time in keys
        }


def _snapshot(
    states: ActiveStates[DeterministicState],
) -> list[tuple[frozenset[WaitName], Any, int]]:
    """The active states by their waits."""
    return [(state.waits, ul.nodes, ul.merged) for state, ul in states.lists.items()]


def _restored(
    automaton: DeterministicAutomaton, snapshot: list[tuple[frozenset[WaitName], list[int], int]]
) -> ActiveStates[DeterministicState]:
    states = ActiveStates(automaton.initial)
    for waits, nodes, merged in snapshot:
        state = automaton.state(waits)
        assert state is not None
        states.lists[state] = ul = UnionList(nodes)
        ul.merged = merged
    return states


def _distinct(rows: RowsByGpm) -> RowsByGpm:
    """The rows without duplicates, in an order that does not depend on their arrival."""
    if all(len(solutions) == 1 for solutions in rows.values()):
        return rows
    return {gpm: sorted(set(solutions), key=_order) for gpm, solutions in sorted(rows.items())}


def _order(row: Row) -> tuple[int, list[tuple[bool, str]]]:
    return row[0], [(value is not None, value or "") for value in row[4]]
