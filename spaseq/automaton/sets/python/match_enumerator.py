"""Enumerates the matches of a compact set that end now, under the selection and the limit."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TypeAlias

from spaseq.automaton.program.selection import Position, select
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import PartitionMatch, RowsByGpm
from spaseq.automaton.run.runs import Row
from spaseq.automaton.sets.python.compact_set import CompactSet
from spaseq.automaton.sets.python.counting import count
from spaseq.automaton.sets.python.maximal import MaximalAutomaton
from spaseq.automaton.sets.python.preferred import preferred

FEW = 32
"""Up to this many matches are compared one by one; more are selected without enumeration."""

_Path: TypeAlias = tuple[int, list[tuple[int, Row]]]
"""A match as the measure of its first event and its (GPM, row) pairs."""


class MatchEnumerator:
    """Enumerates the matches of one query; its partitions share it."""

    def __init__(self, machine: Machine, maximal: MaximalAutomaton | None) -> None:
        self._machine = machine
        self._maximal = maximal

    def matches(
        self, matches: CompactSet, roots: list[int], window: Iterable[tuple[int, RowsByGpm]]
    ) -> Generator[PartitionMatch, None, int]:
        """Yield the selected matches of some roots; return how many the limit suppresses.

        The matches are read one by one, because there may be any number of them. `window` holds the
        instants of the window that ends now, with their measures; only SELECT MAX reads it.
        """
        limit = self._machine.limit
        if self._machine.strategy not in ("ALL", "STRICT"):  # the automaton itself is strict
            few = [*islice(matches.enumerate(roots), FEW + 1)]
            if len(few) <= FEW:
                selected = self._few_selected(few)
                within = selected[:limit]
                yield from self._partition_matches(within)
                return len(selected) - len(within)
            matches, roots = self._selected(matches, roots, window)
        paths = matches.enumerate(roots)
        yield from self._partition_matches(islice(paths, limit))
        if limit is None or next(paths, None) is None:
            return 0
        return count(matches, roots) - limit

    def _few_selected(self, paths: list[_Path]) -> list[_Path]:
        streams, strategy = self._machine.streams, self._machine.strategy

        def positions(path: _Path) -> frozenset[Position]:
            return frozenset(((row[1], row[2]), streams[row[0]]) for _, row in path[1])

        return select(paths, strategy, positions, lambda instants: True)

    def _selected(
        self, matches: CompactSet, roots: list[int], window: Iterable[tuple[int, RowsByGpm]]
    ) -> tuple[CompactSet, list[int]]:
        match self._machine.strategy:
            case "NEXT" | "LAST" as strategy:
                return preferred(matches, roots, strategy, self._machine.streams)
            case _:
                assert self._maximal is not None
                return self._maximal.matches(window)

    def _partition_matches(self, paths: Iterable[_Path]) -> Iterator[PartitionMatch]:
        for origin, trace in paths:
            first, last = trace[0][1], trace[-1][1]
            yield PartitionMatch((first[1], first[2]), (last[1], last[2]), origin, tuple(trace))
