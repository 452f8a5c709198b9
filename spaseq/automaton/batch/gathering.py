"""The solutions that matches take: kept as columns, and turned into matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from spaseq.automaton.batch.row_store import Chunk, RowStore
from spaseq.automaton.run.event_rows import Taken
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import (
    NO_LISTS,
    REMEMBERED,
    Part,
    PartitionKey,
    Parts,
    SequenceMatch,
    match_of,
    partition_of,
)
from spaseq.compiled.arrays import Bytes, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import distinct

PIECE = 2048
"""Matches are read so many solutions at a time, or the fewer that one more match leaves."""


@dataclass(slots=True)
class Matched:
    """m matches as numbers of solutions, one match behind the other; the columns of `ends` [m, 2 or
    more] say where each ends, and the measure at which it begins."""

    rows: Int64s
    ends: Int64s


class Gathering:
    """The solutions of one query that partial matches have taken, and those of the batch."""

    def __init__(self, machine: Machine) -> None:
        variables = tuple(sorted({v for g in machine.gpms for v in g.variables}))
        self.store = RowStore(machine.gpms, variables)
        self._parts, self._partition = Parts(machine), machine.partition
        streams = machine.streams
        self._by_iri = np.array([sorted(streams).index(iri) for iri in streams], np.int64)
        self._batch: Chunk | dict[int, Taken] | None = None  # a dict: came one by one
        self._known: dict[int, Part] = {}  # of some solutions that came one by one

    def begin(self, rows: SolutionBatch | Sequence[Taken], number: int) -> None:
        """A batch of solutions, numbered from `number` on."""
        if not isinstance(rows, SolutionBatch):
            self._batch = dict(enumerate(rows, number))
            return
        rows = replace(rows, numbers={})
        self._batch = Chunk(np.arange(number, number + len(rows)), rows)

    def end(self, taken: Bytes) -> None:
        """Keep those of the batch that have been taken, for which `taken` [n] is 1."""
        assert self._batch is not None
        if isinstance(self._batch, dict):
            known = self._known
            for (number, row), is_taken in zip(self._batch.items(), taken.tolist(), strict=True):
                if is_taken:
                    self.store.add_row(number, row)
                    if number not in known:  # now, so that the event that ends a match need not
                        known[number] = self._parts.of(row)
            if len(known) > REMEMBERED:
                self._known = dict(islice(known.items(), len(known) - REMEMBERED // 2, None))
            self._batch = None
            return
        kept = np.flatnonzero(taken.view(np.bool_))
        whole = len(kept) == len(taken)
        self.store.add(self._batch if whole else self._batch.part(kept))
        self._batch = None

    def rows(self, numbers: Int64s) -> dict[int, Taken]:
        """Solutions with their GPMs, by number."""
        if isinstance(self._batch, dict):
            return self.store.taken(set(numbers.tolist()), self._batch)
        return self.store.rows(distinct(numbers), self._batch)

    def ranks(self, numbers: Int64s) -> Int64s:
        """The places of solutions, given by number, ascending, in the order of positions (LANGUAGE
        section 5): equal for those of one event."""
        positions = self.store.positions(numbers, self._batch)
        positions[:, 2] = self._by_iri[positions[:, 2]]
        order = np.lexsort((positions[:, 2], positions[:, 1], positions[:, 0]))
        new = (np.diff(positions[order], axis=0) != 0).any(axis=1)
        rank = np.zeros(len(numbers), np.int64)
        rank[order[1:]] = np.cumsum(new)
        return rank

    def matches(self, matched: Matched) -> Iterator[SequenceMatch]:
        """Matches with their bindings, one after the other; to be asked for before `end`."""
        numbers, begin = matched.rows.tolist(), 0
        known = self._parts_of(numbers, matched.rows)
        parts, lists, grouped = [known[n] for n in numbers], NO_LISTS, self._parts.grouped
        for end, origin, *_ in matched.ends.tolist():
            own = parts[begin:end]
            if grouped:
                lists = self._parts.lists(own)
            yield match_of((own, origin, lists, None))
            begin = end

    def _parts_of(self, numbers: list[int], array: Int64s) -> dict[int, Part]:
        part_of, batch = self._parts.of, self._batch
        if isinstance(batch, dict):
            known = self._known
            new = [n for n in numbers if n not in known]
            if new:
                known.update((n, part_of(one)) for n, one in self.store.taken(new, batch).items())
            return known
        single, columns = self.store.pieces(distinct(array), batch)
        found = {n: part_of(one) for n, one in single.items()}
        for some, rows in columns:
            found.update(zip(some.tolist(), self._parts.of_columns(rows), strict=True))
        return found

    def partition_of(self, taken: Taken) -> PartitionKey:
        """The partition of a solution, given with its GPM."""
        return partition_of(self._parts.of(taken), self._partition)

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        return self.store.snapshot()

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        self.store.restore(state)
        self._known.clear()
