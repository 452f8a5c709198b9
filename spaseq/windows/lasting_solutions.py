"""The new and gone solutions of a window between window events, and of groups between changes.

Solutions of a part of a pattern are events, on which the rest of the pattern is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.vertical_partition import SolutionsPartition, ranges
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.records import record
from spaseq.stateful import Stateful
from spaseq.windows.window_closes import Closes

Solution: TypeAlias = "tuple[str | None, ...]"
Given: TypeAlias = "list[tuple[int, Solution]]"
"""(window event, solution) pairs in the order of window events."""


def as_events(
    closes: Closes,
    places: Int64s,
    pattern: n.Pattern,
    columns: Mapping[str, Int32s],
    lexicon: Lexicon,
) -> SolutionsPartition:
    """The solutions of `pattern`, as codes [r] by variable, as events at window events [r]."""
    size = len(places)
    start, none = np.zeros(size + 1, np.int64), np.zeros(0, np.int32)
    time, k = closes.time[places], closes.k[places]
    names = EventNames.none(size)
    batch = EventBatch("", time, k, names, start, none, none, none, lexicon.base)
    solutions = Solutions(size, np.arange(size, dtype=np.int64), columns, lexicon)
    return SolutionsPartition(batch, lexicon, pattern, solutions)


def texts_of(codes: Int32s, lexicon: Lexicon) -> list[str | None]:
    """The texts [r] of codes, None for unbound; equal ones are one object."""
    used, which = np.unique(codes, return_inverse=True)
    unbound = int(len(used) > 0 and used[0] < 0)
    texts = np.array([None] * unbound + lexicon.take(used[unbound:]), np.object_)
    return texts[which].tolist()  # type: ignore[no-any-return]


def agreeing(
    solutions: EventSolutions, lexicon: Lexicon, partition: Mapping[str, str]
) -> EventSolutions:
    """The solutions that agree with a partition, which they bind; variables by name."""
    columns = dict(solutions.columns)
    agree = np.ones(len(solutions.event), np.bool_)
    for v, value in partition.items():
        code = lexicon.encode([value])[0]
        codes = columns.get(v)
        if codes is not None:
            agree &= (codes < 0) | (codes == code)
        columns[v] = np.full(len(agree), code, np.int32)
    shown = {v: columns[v][agree] for v in sorted(columns)}
    return EventSolutions(solutions.event[agree], shown, lexicon)


@record
class ChangedSolutions:
    """r solutions that a GPM on a window gives, in the order of window events.

    `event` int64 [r] and codes int32 [r] by variable are the solutions; `sizes` int64 [r] are the
    numbers of events in their windows.
    """

    closes: Closes
    event: Int64s
    sizes: Int64s
    columns: Mapping[str, Int32s]
    lexicon: Lexicon


def wanted(
    changes: frozenset[str | None], begin: Int64s, end: Int64s, size: int
) -> tuple[Int64s, Int64s]:
    """The wanted ones of n solutions at `size` window events: (window event, solution) in order.

    A solution is there at the window events from `begin` on and before `end`, int64 [n]; -1 is
    earlier than all of these, `size` later.

    >>> event, solution = wanted(frozenset(["NEW", "GONE"]), np.array([-1, 0]), np.array([1, 2]), 2)
    >>> event.tolist(), solution.tolist()
    ([0, 1], [1, 0])
    """
    every = np.arange(len(begin))
    parts: list[tuple[Int64s, Int64s]] = []
    if None in changes:
        first = np.maximum(begin, 0)
        parts.append((ranges(first, end - first), np.repeat(every, end - first)))
    elif "NEW" in changes:
        parts.append((begin[begin >= 0], every[begin >= 0]))
    if "GONE" in changes:
        parts.append((end[end < size], every[end < size]))
    event, solution = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(event, kind="stable")
    return event[order], solution[order]


class LastingSolutions(Stateful):
    """Solutions that last as long as rows do, of which `changes` are wanted: NEW, GONE, None.

    A solution may be made of several rows, by themselves or together; it is there from the first
    to the last of them.

    >>> held = LastingSolutions(frozenset(["NEW", "GONE"]))
    >>> held.add([("a",), ("a",)], np.array([0, 1]), np.array([4, 5]))
    >>> held.advance(np.array([3, 5, 6]))
    [(0, ('a',)), (2, ('a',))]
    """

    STATE = ("_known", "_which", "_oldest")

    def __init__(self, changes: frozenset[str | None]) -> None:
        self._changes = changes
        self._known: list[Solution] = []
        self._numbers: dict[Solution, int] = {}
        none = np.empty(0, np.int64)
        self._which, self._begin, self._oldest = none, none, none

    def __len__(self) -> int:
        return len(self._which)

    def add(self, solutions: Sequence[Solution], begin: Int64s, oldest: Int64s) -> None:
        """Take r solutions with the window events at which they begin; -1 for earlier ones.

        `oldest` int64 [r] are the first rows that they are made of.
        """
        self._which = np.append(self._which, self._numbered(solutions))
        self._begin = np.append(self._begin, begin)
        self._oldest = np.append(self._oldest, oldest)

    def _numbered(self, solutions: Iterable[Solution]) -> Int64s:
        numbers, known = self._numbers, self._known
        of_solutions = []
        for solution in solutions:
            number = numbers.get(solution)
            if number is None:
                number = numbers[solution] = len(known)
                known.append(solution)
            of_solutions.append(number)
        return np.array(of_solutions, np.int64)

    def advance(self, leave: Int64s) -> Given:
        """The wanted solutions at the next t window events, at which the rows before `leave` have
        left.

        All solutions that begin at one of these have been added.
        """
        size = len(leave)
        if not len(self._which) or not size:
            self._begin -= np.where(self._begin < 0, 0, size)
            return []
        end = np.searchsorted(leave, self._oldest, "right")
        there = np.flatnonzero((self._begin < size) & (self._begin < end))
        order = there[np.lexsort((self._begin[there], self._which[there]))]
        which, begin, end = self._which[order], self._begin[order], end[order]
        self._keep(leave)
        if not len(which):
            return []
        # Ascending numbers for (solution, window event), with room for -1 and t.
        first = which * (size + 2)
        reach = np.maximum.accumulate(first + end)
        starts = np.append(True, (first + begin)[1:] > reach[:-1])
        lasts = np.append(starts[1:], True)
        which, begin = which[starts], begin[starts]
        event, rows = wanted(self._changes, begin, reach[lasts] - which * (size + 2), size)
        known = self._known
        solutions = [known[i] for i in which[rows].tolist()]
        return list(zip(event.tolist(), solutions, strict=True))

    def _keep(self, leave: Int64s) -> None:
        """Keep the solutions whose rows have not left."""
        stays = self._oldest >= leave[-1]
        self._which, self._oldest = self._which[stays], self._oldest[stays]
        self._begin = np.maximum(self._begin[stays] - len(leave), -1)

    def forget(self) -> None:
        """Drop the texts of solutions that have gone, if there are many."""
        if len(self._known) > 2 * len(self._which) + 64:
            self._before_snapshot()

    def _before_snapshot(self) -> None:
        used, self._which = np.unique(self._which, return_inverse=True)
        self._known = [self._known[i] for i in used.tolist()]
        self._number_known()

    def _after_restore(self) -> None:
        self._number_known()
        self._begin = np.full(len(self._which), -1, np.int64)

    def _number_known(self) -> None:
        self._numbers = {solution: i for i, solution in enumerate(self._known)}


@record
class _Changes:
    """m changes of g groups, in order of window events; each group's changes have turns from 1.

    `counts` and `starts` int64 [g] say how many changes a group has, and where they begin in
    `order` int64 [m].
    """

    event: Int64s
    owner: Int64s
    turn: Int64s
    order: Int64s
    starts: Int64s
    counts: Int64s

    @classmethod
    def of(cls, event: Int64s, owner: Int64s, groups: int) -> _Changes:
        """The changes of groups 0 to g - 1 at window events."""
        order = np.argsort(owner, kind="stable")
        counts = np.bincount(owner, minlength=groups)
        starts = np.cumsum(counts) - counts
        turn = np.empty(len(owner), np.int64)
        turn[order] = np.arange(len(owner)) - starts[owner[order]] + 1
        return cls(event, owner, turn, order, starts, counts)

    def events(self, owner: Int64s, turn: Int64s, otherwise: int) -> Int64s:
        """The window events [r] of the changes of some groups; a constant where there is none."""
        there = (turn > 0) & (turn <= self.counts[owner])
        window_events = np.full(len(owner), otherwise, np.int64)
        window_events[there] = self.event[self.order[self.starts[owner[there]] + turn[there] - 1]]
        return window_events


class GroupSolutions(Stateful):
    """The solutions of groups, of which `changes` are wanted: NEW, GONE, None for all."""

    STATE = ("_held",)

    def __init__(self, changes: frozenset[str | None]) -> None:
        self._changes = changes
        self._held: dict[int, tuple[Solution, ...]] = {}  # by group

    def __len__(self) -> int:
        return len(self._held)

    def advance(
        self, size: int, heads: Int64s, found: EventSolutions, lexicon: Lexicon
    ) -> tuple[Int64s, Mapping[str, Int32s]]:
        """The wanted solutions at the next window events, in order: (window event [r], codes [r]).

        `heads` int64 [m, 2] has (window event below `size`, group) of the groups that change, in
        order; `found` has their solutions from then on, each with the index of its change.
        """
        groups = np.unique(heads[:, 1])
        if None in self._changes:
            groups = np.union1d(groups, np.array([*self._held], np.int64))
        changes = _Changes.of(heads[:, 0], np.searchsorted(groups, heads[:, 1]), len(groups))
        held = [(i, own) for i, g in enumerate(groups.tolist()) for own in self._held.get(g, ())]
        before = np.array([i for i, _ in held], np.int64)
        owner = np.append(before, changes.owner[found.event])
        turn = np.append(np.zeros(len(before), np.int64), changes.turn[found.event])
        columns = {
            v: np.append(encoded(lexicon, [own[i] for _, own in held]), codes)
            for i, (v, codes) in enumerate(found.columns.items())
        }
        rows, last = _lasting(_numbered(owner, columns, len(lexicon)), turn)
        owner, columns = owner[rows], {v: codes[rows] for v, codes in columns.items()}
        begin = changes.events(owner, turn[rows], -1)
        end = changes.events(owner, last + 1, size)
        stay = np.flatnonzero((last == changes.counts[owner]) & (last > 0))
        for group in groups[changes.counts > 0].tolist():
            self._held.pop(group, None)
        texts = [texts_of(codes[stay], lexicon) for codes in columns.values()]
        solutions = zip(*texts, strict=True) if texts else [()] * len(stay)
        given = zip(groups[owner[stay]].tolist(), solutions, strict=True)
        for group, some in groupby(given, itemgetter(0)):
            self._held[group] = tuple([solution for _, solution in some])
        event, which = wanted(self._changes, begin, end, size)
        return event, {v: codes[which] for v, codes in columns.items()}

    def renumber(self, places: Int32s) -> None:
        """Give the groups new numbers, by the old ones."""
        self._held = {int(places[group]): solutions for group, solutions in self._held.items()}


def _numbered(owner: Int64s, columns: Mapping[str, Int32s], terms: int) -> Int64s:
    """A number for each distinct solution of a group; the numbers of one group are consecutive."""
    number = owner
    for codes in columns.values():
        _, number = np.unique(number * (terms + 1) + codes + 1, return_inverse=True)
    return number


def _lasting(number: Int64s, turn: Int64s) -> tuple[Indices, Int64s]:
    """(a row of each stretch of turns in which a solution is there, the last of these turns)."""
    order = np.lexsort((turn, number))
    number, turn = number[order], turn[order]
    more = turn[1:] - turn[:-1]  # 0 where a row repeats the one before
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (number[1:] != number[:-1]) | (more > 1)
    ends = np.ones(len(order), np.bool_)
    ends[:-1] = begins[1:]
    return order[begins], turn[ends]
