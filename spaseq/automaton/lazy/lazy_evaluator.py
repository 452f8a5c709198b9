"""The lazy evaluator: solutions are stored, and matched when an event arrives that can be a last.

For sequences of `:` and AND: a match is complete when the event that is its last in time arrives,
so nothing is done before. Then the other steps are searched for in what is stored, the rarest first
("Lazy Chain Automata"; `lazy_search` says how). An event of another step costs one append. Memory
is the solutions of one window, and a few times that, however many partial matches they make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spaseq.algebra.answers import Instant
from spaseq.automaton.lazy.buffer import Buffer
from spaseq.automaton.lazy.match_checks import Absent
from spaseq.automaton.lazy.memory import Memory
from spaseq.automaton.lazy.rates import Rates
from spaseq.automaton.lazy.search import Search
from spaseq.automaton.lazy.tree import Tree, TreeEdge
from spaseq.automaton.lazy.window_clock import Clock
from spaseq.automaton.program.partial_order import Pattern, patterns_of
from spaseq.automaton.program.window import Counted
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import NO_VALUES, PartitionMatch, RowsByGpm
from spaseq.automaton.run.runs import Obligation, Row


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where searches for the matches of a pattern start, given a solution of its GPM."""

    pattern: int  # its number
    tree: Tree
    edge: TreeEdge
    gpms: tuple[int, ...]  # of all slots


class LazyProgram:
    """What all partitions of a query share; a snapshot refers to it by number.

    Raises:
        NotReorderable: the sequence must be matched in the order of arrival.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.starts: dict[int, list[Start]] = {}  # by GPM
        self.pending: list[tuple[Absent, ...]] = []  # by pattern: negations in last place
        self.stored: set[int] = set()  # GPMs
        self.size = 0  # slots of the largest pattern, those of negated steps included
        self.rates = Rates()
        for number, pattern in enumerate(patterns_of(machine.program)):
            self._add(number, pattern)

    def _add(self, number: int, pattern: Pattern) -> None:
        everything = frozenset(pattern.own)
        outside = Tree(pattern, self.machine, None)
        pending = tuple(outside.absent(a, everything) for a in pattern.absences if not a.before)
        self.pending.append(pending)
        self.stored.update(_searched(pattern, pattern.last))
        self.size = max(self.size, outside.size)
        for slot in pattern.last:
            tree = Tree(pattern, self.machine, slot)
            edge = tree.edge(frozenset(), slot)
            gpms = tuple(slot.gpm for slot in pattern.slots)
            self.starts.setdefault(edge.gpm, []).append(Start(number, tree, edge, gpms))


def _searched(pattern: Pattern, last: tuple[int, ...]) -> Iterator[int]:
    """The GPMs whose solutions searches look for; the only last step is where they start from."""
    alone = last if len(last) == 1 else ()
    yield from (pattern.slots[i].gpm for i in pattern.own if i not in alone)
    for absence in pattern.absences:
        for inner in absence.patterns:
            yield from _searched(inner, ())


class LazyEvaluator:
    """All run-time state of one partition."""

    __slots__ = ("_buffers", "_clock", "_lazy", "_memory", "_search", "last_time", "suppressed")

    def __init__(self, lazy: LazyProgram) -> None:
        machine = lazy.machine
        clock = Clock(machine.window, machine.keep_instants)
        self.__setstate__((lazy, clock, {gpm: Buffer() for gpm in lazy.stored}))

    def step(self, instant: Instant, rows: RowsByGpm, events: int) -> list[PartitionMatch]:
        """Store the solutions of one instant, and find the matches that they complete."""
        clock = self._clock
        clock.advance(instant, events)
        self.last_time = instant[0]
        for gpm, solutions in rows.items():
            buffer = self._buffers.get(gpm)
            if buffer is not None:
                buffer.add(instant, solutions, clock.expired)
        self._memory.forget(clock.expired, instant)
        if clock.floor >= instant:
            return []  # more events have this instant than the window holds
        starts = self._lazy.starts
        return [f for gpm in rows for s in starts.get(gpm, ()) for f in self._from(s, rows[gpm])]

    def _from(self, start: Start, rows: list[Row]) -> Iterator[PartitionMatch]:
        """The matches that end with some solutions of now at a step."""
        search, (time, k) = self._search, self._clock.now
        search.within(self._clock.floor, (time, k + 1))
        for row in rows:
            for _ in search.completions(start.tree, start.edge, row):
                found = self._found(start, search)
                if self._selected(found):
                    yield found

    def _found(self, start: Start, search: Search) -> PartitionMatch:
        machine, slots = self._lazy.machine, len(start.gpms)
        at = search.at[:slots]
        first, last = min(at), max(at)
        origin = self._clock.measure(first)
        trace = tuple(zip(start.gpms, search.rows[:slots], strict=True))
        absent = self._lazy.pending[start.pattern]
        if not absent:
            return PartitionMatch(first, last, origin, trace, NO_VALUES, NO_VALUES)
        pending = tuple(Obligation(a.negation, last, None) for a in absent)
        assert not isinstance(machine.window, Counted)
        close = machine.window.close(origin)
        return PartitionMatch(
            first, last, origin, trace, NO_VALUES, NO_VALUES, pending, close, start.pattern
        )

    def _selected(self, found: PartitionMatch) -> bool:
        """Whether SELECT STRICT, which needs the instants of the window only, keeps a match."""
        if not self._lazy.machine.keep_instants:
            return True
        return self._clock.consecutive((row[1], row[2]) for _, row in found.trace)

    def holds_pending(self, found: PartitionMatch) -> bool:
        """Whether the negations in last place of a match hold, its window having closed."""
        close, window = found.close, self._lazy.machine.window
        assert close is not None
        end = close + 1 if window.holds(found.origin, close) else close
        pending = self._lazy.pending[found.pattern]
        search = self._search
        search.within(self._clock.expired, (end, -1))
        for slot, (_, row) in enumerate(found.trace):
            search.rows[slot], search.at[slot] = row, (row[1], row[2])
        return not any(search.exists(absent) for absent in pending)

    def is_idle(self, time: int) -> bool:
        """Whether nothing here can matter to events at `time` or later (time windows only)."""
        window = self._lazy.machine.window
        return not isinstance(window, Counted) and time - self.last_time > window.horizon

    def consecutive(self, instants: Iterable[Instant]) -> bool:
        """True: other matches are not given under SELECT STRICT."""
        return True

    def live_runs(self) -> int:
        """How many solutions are stored or kept; no partial match waits."""
        return sum(map(len, self._buffers.values())) + self._memory.size

    def __getstate__(self) -> tuple[LazyProgram, Clock, dict[int, Buffer]]:
        return self._lazy, self._clock, self._buffers  # what memory keeps is found again

    def __setstate__(self, state: tuple[LazyProgram, Clock, dict[int, Buffer]]) -> None:
        lazy, clock, buffers = state
        self._lazy, self._clock, self._buffers = state
        self._memory = Memory(buffers)
        machine = lazy.machine
        self._search = Search(
            buffers, self._memory, clock, lazy.size, machine.work, lazy.rates, machine.order
        )
        self.last_time = clock.now[0]
        self.suppressed = 0  # the limit is applied to what is found here
