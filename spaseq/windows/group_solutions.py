"""The solutions of groups from one change of a group to its next, and what is new or gone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.records import record
from spaseq.windows.lasting_solutions import Solution, wanted
from spaseq.windows.solution_events import texts_of


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


class GroupSolutions:
    """The solutions of groups, of which `changes` are wanted: NEW, GONE, None for all."""

    def __init__(self, changes: frozenset[str | None]) -> None:
        self._changes = changes
        self._held: dict[int, tuple[Solution, ...]] = {}  # by group

    def __len__(self) -> int:
        return len(self._held)

    def advance(
        self, size: int, heads: Int64s, found: EventSolutions, lexicon: Lexicon
    ) -> tuple[Int64s, Mapping[str, Int32s]]:
        """What is wanted at the next window events, in order: (window event [r], codes [r]).

        `heads` int64 [m, 2] has (window event below `size`, group) of the groups that change, in
        order; `found` has their solutions from then on, each with the place of its change.
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

    def snapshot(self) -> list[Any]:
        """The state, for `restore`."""
        return [[group, *solutions] for group, solutions in self._held.items()]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        self._held = {group: tuple(map(tuple, solutions)) for group, *solutions in state}


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
