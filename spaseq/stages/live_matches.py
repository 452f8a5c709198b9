"""The matches of all levels in the window, with a test for partial matches.

A match is a partial match if it lacks the last step, and no other match agrees with its single
bindings and has a larger trace, or an equal trace and more steps (docs/meaning.md, Partial
matches). This is equivalent to both rules of that page, because a match with a larger trace is a
partial match itself, or is part of one or of an answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from operator import lt
from typing import TypeAlias

from spaseq import thresholds
from spaseq.algebra.answers import TraceItem
from spaseq.automaton.run.matches import Binding, SequenceMatch

Trace: TypeAlias = tuple[TraceItem, ...]


class LiveMatch:
    """A match of some level, whose steps number `level`."""

    __slots__ = ("_events", "_singles", "is_alive", "level", "match", "rows", "trace")

    def __init__(self, level: int, match: SequenceMatch) -> None:
        self.level, self.match = level, match
        trace = tuple([solution.item for solution in match.solutions])
        if not all(map(lt, trace, trace[1:])):
            trace = tuple(sorted({*trace}))
        self.trace: Trace = trace
        self.is_alive = True
        self.rows: tuple[int, ...] = ()  # the numbers of its rows, if `NumberedLevels` found it
        self._singles: frozenset[Binding] | None = None
        self._events: frozenset[TraceItem] | None = None

    @property
    def singles(self) -> frozenset[Binding]:
        """The bindings of its single variables."""
        if self._singles is None:
            solutions = self.match.solutions
            self._singles = frozenset([pair for solution in solutions for pair in solution.singles])
        return self._singles

    @property
    def events(self) -> frozenset[TraceItem]:
        """Its trace as a set."""
        if self._events is None:
            self._events = frozenset(self.trace)
        return self._events

    def is_above(self, other: LiveMatch) -> bool:
        """Whether the other match is no partial match because of this one."""
        larger = len(self.trace) - len(other.trace)
        return (
            (larger > 0 or (larger == 0 and self.level > other.level))
            and other.events <= self.events
            and other.singles <= self.singles
        )

    def is_like(self, other: LiveMatch) -> bool:
        """Whether a match of the same trace is the same match."""
        return (
            self.level == other.level
            and self.singles == other.singles
            and self.match.lists == other.match.lists
        )


class LiveMatches:
    """The matches that are not known to be part of another match.

    `starters` are the possible GPMs of the first event of a match. A match above another one
    contains the other's first event, so the index has the events of these GPMs.
    """

    def __init__(self, starters: Collection[str]) -> None:
        self._starters = frozenset(starters)
        self._by_trace: dict[Trace, list[LiveMatch]] = {}
        self._by_event: dict[TraceItem, dict[LiveMatch, None]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[LiveMatch]:
        return chain.from_iterable(self._by_trace.values())

    def add(self, match: LiveMatch) -> None:
        """Add a match, and drop most of the matches that are part of it.

        Only matches with the same first events are examined. `is_partial` finds the rest.
        """
        trace = match.trace
        lengths: Iterable[int] = range(1, len(trace))
        if len(trace) > thresholds.current.short_traces:
            lengths = (len(trace) - 1,)
        for length in lengths:
            self._drop_below(match, trace[:length])
        self._drop_below(match, trace)
        if any(match.is_like(other) for other in self._by_trace.get(trace, ())):
            match.is_alive = False  # another derivation of the same match
            return
        self._by_trace.setdefault(trace, []).append(match)
        self._size += 1
        for event in trace:
            if event.gpm in self._starters:
                self._by_event.setdefault(event, {})[match] = None

    def _drop_below(self, match: LiveMatch, trace: Trace) -> None:
        known = self._by_trace.get(trace)
        if known is not None:
            for other in [each for each in known if match.is_above(each)]:
                self.remove(other)

    def remove(self, match: LiveMatch) -> None:
        """Forget a match."""
        match.is_alive = False
        self._size -= 1
        same = self._by_trace[match.trace]
        same.remove(match)
        if not same:
            del self._by_trace[match.trace]
        for event in match.trace:
            if event.gpm in self._starters:
                having = self._by_event[event]
                del having[match]
                if not having:
                    del self._by_event[event]

    def is_partial(self, match: LiveMatch) -> bool:
        """Whether no other match is above this one."""
        return not any(other.is_above(match) for other in self._by_event[match.trace[0]])
