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
from spaseq.windows.window_rows import renumbered

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
    solutions: EventSolutions, lexicon: Lexicon, partition: Mapping[str, Int32s]
) -> EventSolutions:
    """The solutions that agree with the partitions of their events, which they bind.

    `partition` has the codes of the events by variable. Variables are in order of names.
    """
    columns = dict(solutions.columns)
    agree = np.ones(len(solutions.event), np.bool_)
    for v, values in partition.items():
        own, codes = values[solutions.event], columns.get(v)
        if codes is not None:
            agree &= (codes < 0) | (codes == own)
        columns[v] = own
    shown = {v: columns[v][agree] for v in sorted(columns)}
    return EventSolutions(solutions.event[agree], shown, lexicon)


@record
class ChangedSolutions:
    """r solutions that a GPM on a window gives, in the order of `closes`.

    `event` int64 [r] and codes int32 [r] by variable are the solutions; `sizes` int64 [r] are the
    numbers of events in their windows.
    """

    closes: Closes
    event: Int64s
    sizes: Int64s
    columns: Mapping[str, Int32s]
    lexicon: Lexicon


def wanted(
    changes: frozenset[str | None], begin: Int64s, end: Int64s, bounds: tuple[Int64s, Int64s]
) -> tuple[Int64s, Int64s]:
    """The wanted ones of n solutions at window events: (window event, solution) in order.

    A solution is there at the window events from `begin` on and before `end`, int64 [n]. `bounds`
    int64 [n] are the first window event of its partition, and the one after the last. A `begin`
    before the first is earlier than all of these.

    >>> changes, bounds = frozenset(["NEW", "GONE"]), (np.array([0, 0]), np.array([2, 2]))
    >>> event, solution = wanted(changes, np.array([-1, 0]), np.array([1, 2]), bounds)
    >>> event.tolist(), solution.tolist()
    ([0, 1], [1, 0])
    """
    every = np.arange(len(begin))
    first, after = bounds
    parts: list[tuple[Int64s, Int64s]] = []
    if None in changes:
        there = np.maximum(begin, first)
        parts.append((ranges(there, end - there), np.repeat(every, end - there)))
    elif "NEW" in changes:
        parts.append((begin[begin >= first], every[begin >= first]))
    if "GONE" in changes:
        parts.append((end[end < after], every[end < after]))
    event, solution = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(event, kind="stable")
    return event[order], solution[order]


def runs_of(partition: Int64s) -> tuple[Int64s, Int64s]:
    """(the first window event of each partition, the one after its last), of those in a row."""
    begins = np.append(True, partition[1:] != partition[:-1])[: len(partition)]
    first = np.flatnonzero(begins)
    return first, np.append(first[1:], len(partition))[: len(first)]


class LastingSolutions(Stateful):
    """Solutions that last as long as rows do, of which `changes` are wanted: NEW, GONE, None.

    A solution of a partition may be made of several rows, by themselves or together; it is there
    from the first to the last of them.

    >>> held, none = LastingSolutions(frozenset(["NEW", "GONE"])), np.zeros(3, np.int64)
    >>> held.add([("a",), ("a",)], np.array([7, 7]), np.array([0, 1]), np.array([4, 5]))
    >>> leave = np.array([3, 5, 6])
    >>> held.advance(Closes(np.array([7, 7, 7]), none, none, none, none, leave), 0, 3)
    [(0, ('a',)), (2, ('a',))]
    """

    STATE = ("_known", "_held")

    def __init__(self, changes: frozenset[str | None]) -> None:
        self._changes = changes
        self._known: list[Solution] = []
        self._numbers: dict[Solution, int] = {}
        self._held: dict[int, Int64s] = {}
        """By partition [3, r]: solutions, where they begin, the first rows they are made of."""
        self._size = 0
        self._begun = set[int]()  # partitions with solutions that begin at a window event

    def has(self, partition: int) -> bool:
        """Whether a partition has solutions."""
        return partition in self._held

    def size(self, partition: int) -> int:
        """Number of solutions of a partition."""
        return self._held[partition].shape[1] if partition in self._held else 0

    def add(
        self, solutions: Sequence[Solution], partition: Int64s, begin: Int64s, oldest: Int64s
    ) -> None:
        """Take r solutions of partitions with the window events at which they begin.

        `oldest` int64 [r] are the first rows that they are made of.
        """
        if not len(partition):
            return
        order = np.argsort(partition, kind="stable")
        table = np.array([self._numbered(solutions), begin, oldest])[:, order]
        partition = partition[order]
        first, after = runs_of(partition)
        for number, start, end in zip(partition[first].tolist(), first, after, strict=True):
            self._hold(number, table[:, start:end])
            self._begun.add(number)

    def _hold(self, partition: int, more: Int64s) -> None:
        known = self._held.get(partition)
        self._held[partition] = more if known is None else np.append(known, more, axis=1)
        self._size += more.shape[1]

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

    def advance(self, closes: Closes, done: int, reached: int) -> Given:
        """The wanted solutions at the window events from `done` on and before `reached`.

        All solutions that begin at one of these have been added.
        """
        partition, leave = closes.partition[done:reached], closes.leave[done:reached]
        first, after = runs_of(partition)
        found = list[tuple[int, Int64s]]()
        for i, number in enumerate(partition[first].tolist()):
            if number in self._held:
                held = self._held[number]
                found.append((i, held))
                self._keep(number, held[:, held[2] >= leave[after[i] - 1]])
        if not found:
            return []
        turn = np.repeat([i for i, _ in found], [held.shape[1] for _, held in found])
        which, begin, oldest = np.concatenate([held for _, held in found], axis=1)
        bounds = first[turn], after[turn]
        begin = np.maximum(begin - done, bounds[0] - 1)
        end = _ends(leave, first, after, turn, oldest)
        there = np.flatnonzero((begin < bounds[1]) & (begin < end))
        order = there[np.lexsort((begin[there], which[there]))]
        if not len(order):
            return []
        which, begin, end = which[order], begin[order], end[order]
        # Ascending numbers for (solution, window event), with room for -1 and t.
        base = which * (len(leave) + 2)
        reach = np.maximum.accumulate(base + end)
        starts = np.append(True, (base + begin)[1:] > reach[:-1])
        end = reach[np.append(starts[1:], True)] - base[starts]
        rows = order[starts]
        event, chosen = wanted(
            self._changes, begin[starts], end, (bounds[0][rows], bounds[1][rows])
        )
        solutions = [self._known[i] for i in which[starts][chosen].tolist()]
        return list(zip((done + event).tolist(), solutions, strict=True))

    def without(self, partition: int, event: int) -> Given:
        """Drop all solutions of a partition; the wanted ones, which a window event has lost."""
        held = self._held.get(partition)
        if held is None:
            return []
        self._keep(partition, held[:, :0])
        if "GONE" not in self._changes:
            return []
        return [(event, self._known[i]) for i in np.unique(held[0, held[1] < event]).tolist()]

    def _keep(self, partition: int, stays: Int64s) -> None:
        """Let a partition have only some of its solutions."""
        self._size += stays.shape[1] - self._held.pop(partition).shape[1]
        if stays.shape[1]:
            self._held[partition] = stays

    def forget(self) -> None:
        """All window events are over; drop the texts of solutions that have gone, if many have."""
        for partition in self._begun & self._held.keys():
            self._held[partition][1] = -1
        self._begun.clear()
        if len(self._known) > 2 * self._size + 64:
            self._before_snapshot()

    def renumber_partitions(self, places: Int32s) -> None:
        """Give the partitions new numbers, by the old ones."""
        self._held = {int(places[partition]): held for partition, held in self._held.items()}

    def renumber_rows(self, places: Int64s, first: int) -> None:
        """Give the rows the numbers of `WindowRows.without_left`."""
        for held in self._held.values():
            held[2] = renumbered(held[2], places, first)

    def _before_snapshot(self) -> None:
        tables = [*self._held.values()]
        used, which = np.unique(
            np.concatenate([np.empty(0, np.int64), *(held[0] for held in tables)]),
            return_inverse=True,
        )
        ends = np.cumsum([held.shape[1] for held in tables])
        for held, numbers in zip(tables, np.split(which, ends[:-1]) if tables else (), strict=True):
            held[0] = numbers
        self._known = [self._known[i] for i in used.tolist()]
        self._number_known()

    def _after_restore(self) -> None:
        self._size = sum(held.shape[1] for held in self._held.values())
        self._number_known()

    def _number_known(self) -> None:
        self._numbers = {solution: i for i, solution in enumerate(self._known)}


def _ends(leave: Int64s, first: Int64s, after: Int64s, turn: Int64s, oldest: Int64s) -> Int64s:
    """The window event [r] of its partition's turn at which each `oldest` row has left."""
    least = int(leave.min())
    span = int(leave.max()) - least + 2
    turns = np.repeat(np.arange(len(first)), after - first)
    rows = turn * span + np.clip(oldest - least, -1, span - 1)
    return np.searchsorted(turns * span + leave - least, rows, "right")


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

    def events(self, owner: Int64s, turn: Int64s, otherwise: Int64s) -> Int64s:
        """The window events [r] of the changes of some groups; `otherwise` where there is none."""
        there = (turn > 0) & (turn <= self.counts[owner])
        window_events = otherwise.copy()
        window_events[there] = self.event[self.order[self.starts[owner[there]] + turn[there] - 1]]
        return window_events


class GroupSolutions(Stateful):
    """The solutions of groups, of which `changes` are wanted: NEW, GONE, None for all."""

    STATE = ("_held",)

    def __init__(self, changes: frozenset[str | None]) -> None:
        self._changes = changes
        self._held: dict[int, dict[int, tuple[Solution, ...]]] = {}  # by partition and group

    def has(self, partition: int) -> bool:
        """Whether a partition has solutions."""
        return partition in self._held

    def last_in(self, partition: Int64s) -> bool:
        """Whether solutions are wanted at the next window events although no group changes."""
        if None not in self._changes:
            return False
        return not self._held.keys().isdisjoint(np.unique(partition).tolist())

    def advance(
        self, partition: Int64s, heads: Int64s, found: EventSolutions, lexicon: Lexicon
    ) -> tuple[Int64s, Mapping[str, Int32s]]:
        """The wanted solutions at the next window events, in order: (window event [r], codes [r]).

        `partition` int64 [t] has the partitions of the window events, those of each in a row.
        `heads` int64 [m, 2] has (window event, group) of the groups that change, in order; `found`
        has their solutions from then on, each with the index of its change.
        """
        first, after = runs_of(partition)
        turns = np.searchsorted(first, heads[:, 0], "right") - 1  # of partitions
        numbers = partition[first].tolist()
        groups, at = np.unique(heads[:, 1], return_index=True)
        turn_of = turns[at]
        if None in self._changes:
            held_in = [(turn, g) for turn, p in enumerate(numbers) for g in self._held.get(p, ())]
            more = np.array(held_in, np.int64).reshape(-1, 2)
            groups, at = np.unique(np.append(groups, more[:, 1]), return_index=True)
            turn_of = np.append(turn_of, more[:, 0])[at]
        changes = _Changes.of(heads[:, 0], np.searchsorted(groups, heads[:, 1]), len(groups))
        held = [
            (i, own)
            for i, (group, turn) in enumerate(zip(groups.tolist(), turn_of.tolist(), strict=True))
            for own in self._held.get(numbers[turn], {}).get(group, ())
        ]
        before = np.array([i for i, _ in held], np.int64)
        owner = np.append(before, changes.owner[found.event])
        turn = np.append(np.zeros(len(before), np.int64), changes.turn[found.event])
        columns = {
            v: np.append(encoded(lexicon, [own[i] for _, own in held]), codes)
            for i, (v, codes) in enumerate(found.columns.items())
        }
        rows, last = _lasting(_numbered(owner, columns, len(lexicon)), turn)
        owner, columns = owner[rows], {v: codes[rows] for v, codes in columns.items()}
        bounds = first[turn_of[owner]], after[turn_of[owner]]
        begin = changes.events(owner, turn[rows], bounds[0] - 1)
        end = changes.events(owner, last + 1, bounds[1])
        stay = np.flatnonzero((last == changes.counts[owner]) & (last > 0))
        changed = changes.counts > 0
        self._drop([numbers[i] for i in turn_of[changed].tolist()], groups[changed].tolist())
        texts = [texts_of(codes[stay], lexicon) for codes in columns.values()]
        solutions = zip(*texts, strict=True) if texts else [()] * len(stay)
        owners = owner[stay].tolist()
        for i, some in groupby(zip(owners, solutions, strict=True), itemgetter(0)):
            held_by = self._held.setdefault(numbers[turn_of[i]], {})
            held_by[int(groups[i])] = tuple([solution for _, solution in some])
        event, which = wanted(self._changes, begin, end, bounds)
        return event, {v: codes[which] for v, codes in columns.items()}

    def _drop(self, partitions: Sequence[int], groups: Sequence[int]) -> None:
        for partition, group in zip(partitions, groups, strict=True):
            held = self._held.get(partition)
            if held is not None and held.pop(group, None) is not None and not held:
                del self._held[partition]

    def renumber_groups(self, places: Int32s) -> None:
        """Give the groups new numbers, by the old ones."""
        for partition, held in self._held.items():
            self._held[partition] = {int(places[group]): own for group, own in held.items()}

    def renumber_partitions(self, places: Int32s) -> None:
        """Give the partitions new numbers, by the old ones."""
        self._held = {int(places[partition]): held for partition, held in self._held.items()}


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
