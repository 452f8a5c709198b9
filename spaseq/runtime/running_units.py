"""The running units over live streams: which may have answers, and when.

Of many queries, the triples that their patterns need say which of them an event may concern. Of a
thousand standing queries an event concerns a few. Asking each takes a millisecond and more, so
units that wait for rows, or for a time, sleep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import chain
from typing import TypeAlias

from spaseq import thresholds
from spaseq.algebra.needs import Need
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.gpm.single_event.event_graph import EventGraph
from spaseq.plan.families import family_key
from spaseq.runtime.arrivals.passing_time import Watched
from spaseq.runtime.job.unit_graph import UnitGraph
from spaseq.runtime.pushed_units import PushedQuery, PushedUnit
from spaseq.stages.sequence import EVER


class PossibleUnits:
    """An index of the units that read a stream, by the triples of an event.

    Each pattern stands under its triple that the fewest other patterns need.
    """

    def __init__(self, iri: str, units: Sequence[PushedUnit]) -> None:
        """`units` read the stream `iri`; they are in reading order."""
        self._iri, self._units = iri, list[PushedUnit]()
        self._always: list[int] = []  # numbers of units that each event may concern
        self._patterns: dict[Need, list[tuple[int, frozenset[Need]]]] = {}
        known = [unit.needs(iri) for unit in units]
        self._uses = Counter(need for own in known for some in own or () for need in some)
        for unit, own in zip(units, known, strict=True):
            self._add(unit, own)

    def add(self, unit: PushedUnit) -> None:
        """Add a unit after all others."""
        own = unit.needs(self._iri)
        self._uses.update(need for some in own or () for need in some)
        self._add(unit, own)

    def _add(self, unit: PushedUnit, own: Iterable[frozenset[Need]] | None) -> None:
        number = len(self._units)
        self._units.append(unit)
        if own is None:
            self._always.append(number)
            return
        for some in own:
            rarest = min(some, key=lambda need: (self._uses[need], need[0], need[1] or ""))
            self._patterns.setdefault(rarest, []).append((number, some))

    def of(self, graph: EventGraph) -> list[PushedUnit]:
        """The units that may have solutions of an event, in reading order."""
        marks: set[Need] = {(p, o) for _, p, o in graph.triples}
        marks.update([(p, None) for _, p, _ in graph.triples])
        found = {*self._always}
        patterns = self._patterns
        for mark in marks:
            if mark in patterns:
                found.update([number for number, some in patterns[mark] if some <= marks])
        return [self._units[number] for number in sorted(found)]


Sources: TypeAlias = "frozenset[str]"
"""The streams for which a unit waits, as `UnitGraph.sources` has them."""


class AwakeUnits:
    """The numbers of units that may have work. Units that wake during iteration follow in turn."""

    def __init__(self) -> None:
        self._numbers = set[int]()
        self._coming: list[int] = []  # a heap
        self._last: int | None = None  # the one that was read last; None if none is read

    def add(self, number: int) -> None:
        """Record that a unit is awake."""
        if number not in self._numbers:
            self._numbers.add(number)
            if self._last is not None and number > self._last:
                heappush(self._coming, number)

    def discard(self, number: int) -> None:
        """Record that a unit sleeps."""
        self._numbers.discard(number)

    def each(self) -> Iterator[int]:
        """The numbers, in order."""
        self._coming = coming = sorted(self._numbers)
        while coming:
            self._last = heappop(coming)
            yield self._last
        self._last = None


class RunningUnits(UnitGraph[PushedUnit]):
    """The units of the queries that have not failed.

    Units sleep until rows come to them, or until the time of their next work. `families` are the
    units that further queries may join, `partial` the units that give partial matches.
    """

    def __init__(self, units: Iterable[PushedUnit]) -> None:
        self._possible: dict[str, PossibleUnits] = {}  # by stream, once requested
        self._alone: Counter[object] | None = None  # see `alone`
        self.families, self.partial = list[PushedUnit](), list[PushedUnit]()
        self._awake = AwakeUnits()
        self._asleep: dict[Sources, list[tuple[int, int]]] = {}  # heaps of (time, number)
        self._alarms: list[int] = []  # of each unit the time in its heap, EVER if it is in none
        super().__init__(units)

    def add(self, unit: PushedUnit) -> None:
        super().add(unit)
        number = len(self) - 1
        self._alarms.append(EVER)
        self._awake.add(number)
        if unit.sequence.on_wake is not None:
            unit.sequence.on_wake()  # the graph before this one gets no more calls
        unit.sequence.on_wake = partial(self._awake.add, number)
        if unit.plan.levels:
            self.partial.append(unit)
        if unit.is_family:
            self.families.append(unit)
        elif self._alone is not None:
            self._alone[family_key(unit.plan)] += 1
        for iri in unit.plan.inputs.streams:
            if iri in self._possible:
                self._possible[iri].add(unit)

    def grown(self, family: PushedUnit) -> None:
        """Record that a family has a new member."""
        for iri in family.plan.inputs.streams:
            self._possible.pop(iri, None)

    def awake(self, watermark_of: Callable[[Sources], int]) -> Iterator[tuple[PushedUnit, int]]:
        """The units that have rows, or whose time has come, each with its watermark (ms).

        They are in reading order. Each must be advanced to its watermark before the next one is
        taken, as it may wake others.
        """
        for sources, alarms in self._asleep.items():
            self._wake(alarms, watermark_of(sources))
        sources_of = self.sources()
        for number in self._awake.each():
            unit = self._units[number]
            sources = sources_of[unit]
            watermark = watermark_of(sources)
            yield unit, watermark
            if unit.sequence.next_due > watermark and not unit.holding:
                self._awake.discard(number)
                if unit.sequence.next_due < self._alarms[number]:
                    self._set_alarm(self._asleep.setdefault(sources, []), number)

    def _wake(self, alarms: list[tuple[int, int]], watermark: int) -> None:
        """Wake the units whose time has come."""
        while alarms and alarms[0][0] <= watermark:
            time, number = heappop(alarms)
            if self._alarms[number] != time:
                continue
            self._alarms[number], due = EVER, self._units[number].sequence.next_due
            if due <= watermark:
                self._awake.add(number)
            elif due < EVER:  # it has woken and sleeps again, for longer
                self._set_alarm(alarms, number)

    def _set_alarm(self, alarms: list[tuple[int, int]], number: int) -> None:
        """Set the time at which a sleeping unit wakes; an early alarm is then set again."""
        time = self._alarms[number] = self._units[number].sequence.next_due
        heappush(alarms, (time, number))

    def alone(self, key: object) -> int:
        """Number of single queries that have a `family_key`."""
        if self._alone is None:
            alone = (unit.plan for unit in self if not unit.is_family)
            self._alone = Counter(map(family_key, alone))
        return self._alone[key]

    def concerned(self, iri: str, graph: EventGraph) -> Sequence[PushedUnit]:
        """The units that may have solutions of an event of a stream."""
        units: Sequence[PushedUnit] = self._readers.get(iri, ())
        if len(units) < thresholds.current.template_queries:
            return units
        if iri not in self._possible:
            self._possible[iri] = PossibleUnits(iri, units)
        return self._possible[iri].of(graph)

    def watched(self, marks: Mapping[str, int]) -> Watched:
        """The queries that wait for time, given the watermarks of streams; see `due`."""
        due = self.due(marks)
        groups = {
            sources
            for sources, units in self.groups().items()
            if any(unit.sequence.waits_after(due[unit]) for unit in units)
        }
        return Watched(groups, frozenset(chain.from_iterable(groups)))


class UnitCounts:
    """The counts of left-out answers, and the exceeded limits, of the units that were advanced."""

    def __init__(self) -> None:
        self.suppressed, self.muted = 0, dict[str, int]()
        self.exceeded: dict[PushedQuery, Excess] = {}
        self._of_unit: dict[PushedUnit, int] = {}
        self._advanced = set[PushedUnit]()

    def note(self, unit: PushedUnit) -> None:
        """Record that a unit is advanced, or new."""
        self._advanced.add(unit)

    def counted(self) -> UnitCounts:
        """The counts now."""
        for unit in self._advanced:
            suppressed = unit.sequence.suppressed
            self.suppressed += suppressed - self._of_unit.get(unit, 0)
            self._of_unit[unit] = suppressed
            self.muted.update(unit.sequence.muted)
            self.exceeded.update(unit.exceeded())
        self._advanced.clear()
        return self
