"""The lazy evaluator: stores solutions, and searches when an event can complete a match.

It runs sequences of `:` and AND. A match is complete when its last event arrives, so the evaluator
does nothing before. Then it searches the stored solutions for the other steps, the rarest first
("Lazy Chain Automata"; `search` has the details). An event of another step costs one append. Memory
is a few times the solutions of one window, whatever the number of partial matches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spaseq.algebra.answers import Instant
from spaseq.automaton.lazy.check_cache import CheckCache
from spaseq.automaton.lazy.input_buffer import InputBuffer
from spaseq.automaton.lazy.pass_rates import PassRates
from spaseq.automaton.lazy.search import Search
from spaseq.automaton.lazy.tree import Tree
from spaseq.automaton.lazy.tree_nodes import AbsenceCheck, TreeEdge
from spaseq.automaton.lazy.window_clock import WindowClock
from spaseq.automaton.program.partial_order import Pattern, patterns_of
from spaseq.automaton.program.window import Counted, is_over
from spaseq.automaton.run.live_states import StateKey, StatePlaces
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import NO_VALUES, PartitionMatch, RowsByGpm
from spaseq.automaton.run.runs import Obligation, Row


@dataclass(frozen=True, slots=True, eq=False)
class SearchStart:
    """Where a search for the matches of a pattern starts, given a solution of its last step."""

    pattern: int  # its number
    tree: Tree
    edge: TreeEdge
    gpms: tuple[int, ...]  # by step


class LazyProgram:
    """The patterns and trees that all partitions of a query share.

    A snapshot refers to it by number.

    Raises:
        NotReorderable: the sequence must be matched in the order of arrival.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.starts: dict[int, list[SearchStart]] = {}  # by GPM
        self.pending: list[tuple[AbsenceCheck, ...]] = []  # by pattern: negations in last place
        self.stored: set[int] = set()  # GPMs
        self.size = 0  # steps of the largest pattern, negated steps included
        self.rates = PassRates()
        for number, pattern in enumerate(patterns_of(machine.program)):
            self._add(number, pattern)

    def _add(self, number: int, pattern: Pattern) -> None:
        everything = frozenset(pattern.own)
        outside = Tree(pattern, self.machine, None)
        pending = tuple(outside.absent(a, everything) for a in pattern.absences if not a.before)
        self.pending.append(pending)
        self.stored.update(_searched(pattern, pattern.last))
        self.size = max(self.size, outside.size)
        for step in pattern.last:
            tree = Tree(pattern, self.machine, step)
            edge = tree.edge(frozenset(), step)
            gpms = tuple(step.gpm for step in pattern.steps)
            self.starts.setdefault(edge.gpm, []).append(SearchStart(number, tree, edge, gpms))


def _searched(pattern: Pattern, last: tuple[int, ...]) -> Iterator[int]:
    """The GPMs whose solutions searches read; not that of the only last step, where they start."""
    alone = last if len(last) == 1 else ()
    yield from (pattern.steps[i].gpm for i in pattern.own if i not in alone)
    for absence in pattern.absences:
        for inner in absence.patterns:
            yield from _searched(inner, ())


class LazyEvaluator:
    """All run-time state of one partition."""

    __slots__ = ("_buffers", "_cache", "_clock", "_lazy", "_search", "last_time", "suppressed")

    def __init__(self, lazy: LazyProgram) -> None:
        machine = lazy.machine
        clock = WindowClock(machine.window, machine.keep_instants)
        self.__setstate__((lazy, clock, {gpm: InputBuffer() for gpm in lazy.stored}))

    def step(self, instant: Instant, rows: RowsByGpm, events: int) -> list[PartitionMatch]:
        """Store the solutions of one instant, and return the matches that they complete."""
        clock, limit = self._clock, self._lazy.machine.waiting
        clock.advance(instant, events)
        self.last_time = instant[0]
        for gpm, solutions in rows.items():
            self._lazy.machine.work.taken[gpm] += len(solutions)
            buffer = self._buffers.get(gpm)
            if buffer is not None:
                buffer.add(instant, solutions, clock.expired)
                if limit is not None:
                    limit.room -= len(solutions)
        self._cache.forget(clock.expired, instant)
        if clock.floor >= instant:
            return []  # more events have this instant than the window holds
        starts = self._lazy.starts
        return [m for gpm in rows for s in starts.get(gpm, ()) for m in self._from(s, rows[gpm])]

    def _from(self, start: SearchStart, rows: list[Row]) -> Iterator[PartitionMatch]:
        """The matches that end now with some solutions of a step."""
        search, (time, k) = self._search, self._clock.now
        search.within(self._clock.floor, (time, k + 1))
        for row in rows:
            for _ in search.completions(start.tree, start.edge, row):
                match = self._match(start, search)
                if self._selected(match):
                    yield match

    def _match(self, start: SearchStart, search: Search) -> PartitionMatch:
        machine, steps = self._lazy.machine, len(start.gpms)
        at = search.at[:steps]
        first, last = min(at), max(at)
        origin = self._clock.measure(first)
        trace = tuple(zip(start.gpms, search.rows[:steps], strict=True))
        absent = self._lazy.pending[start.pattern]
        if not absent:
            return PartitionMatch(first, last, origin, trace, NO_VALUES, NO_VALUES)
        pending = tuple(Obligation(a.negation, last, None) for a in absent)
        assert not isinstance(machine.window, Counted)
        close = machine.window.close(origin)
        return PartitionMatch(
            first, last, origin, trace, NO_VALUES, NO_VALUES, pending, close, start.pattern
        )

    def _selected(self, match: PartitionMatch) -> bool:
        """Whether SELECT STRICT keeps a match; it needs only the instants of the window."""
        if not self._lazy.machine.keep_instants:
            return True
        return self._clock.consecutive((row[1], row[2]) for _, row in match.trace)

    def holds_pending(self, match: PartitionMatch) -> bool:
        """Whether the negations in last place of a match hold, now that its window has closed."""
        close, window = match.close, self._lazy.machine.window
        assert close is not None
        end = close + 1 if window.holds(match.origin, close) else close
        pending = self._lazy.pending[match.pattern]
        search = self._search
        search.within(self._clock.expired, (end, -1))
        for step, (_, row) in enumerate(match.trace):
            search.rows[step], search.at[step] = row, (row[1], row[2])
        return not any(search.exists(absence.ways) for absence in pending)

    def is_idle(self, time: int) -> bool:
        """Whether no state here can affect events at `time` or later (time windows only)."""
        return is_over(self._lazy.machine.window, self.last_time, time)

    def consecutive(self, instants: Iterable[Instant]) -> bool:
        """True: `step` returns no other matches under SELECT STRICT."""
        return True

    def live_runs(self, now: Instant) -> int:
        """How many solutions in open windows are stored; no partial match waits."""
        expired = self._clock.expired_at(now)
        return sum(buffer.since(expired) for buffer in self._buffers.values())

    def live_states(self, places: StatePlaces) -> Counter[StateKey]:
        """How many solutions are stored for the step that leads to each state."""
        stored = Counter[StateKey]()
        for gpm, buffer in self._buffers.items():
            for edge in self._lazy.machine.edges_of.get(gpm, {}).values():
                if edge.id in places.target:
                    stored[places.target[edge.id]] = len(buffer)
        return stored

    def __getstate__(self) -> tuple[LazyProgram, WindowClock, dict[int, InputBuffer]]:
        return self._lazy, self._clock, self._buffers  # searches fill the cache again

    def __setstate__(self, state: tuple[LazyProgram, WindowClock, dict[int, InputBuffer]]) -> None:
        lazy, clock, buffers = state
        self._lazy, self._clock, self._buffers = state
        self._cache = CheckCache(buffers)
        machine = lazy.machine
        self._search = Search(
            buffers, self._cache, clock, lazy.size, machine.work, lazy.rates, machine.order
        )
        self.last_time = clock.now[0]
        self.suppressed = 0  # the answer stage applies the limit
