"""All partitions of one query: rows in the order of instants in, matches out.

It keeps the partitions, hands each its rows one instant at a time, and holds back the matches that
end in an absence until their window has closed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TypeAlias

import numpy as np

from spaseq.algebra.answers import Instant
from spaseq.automaton.evaluators import partitions
from spaseq.automaton.run.evaluator import FoundMatch, PartitionEvaluator
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.machine import GpmColumns, Machine
from spaseq.automaton.run.matches import REMEMBERED, PartitionKey, Parts, SequenceMatch, match_of
from spaseq.automaton.run.runs import Row
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch

Entry: TypeAlias = tuple[int, int, int, int, PartitionKey, Row | None]
"""(time, k, stream, GPM or BARE, partition, row): one solution, or one event without any."""


def entries_of(
    rows: SolutionBatch, gpms: Sequence[GpmColumns], partition: Sequence[str]
) -> Iterator[Entry]:
    """Solutions in the order of instants, as Python objects."""
    n = len(rows)
    values: list[tuple[str | None, ...] | None] = [None] * n
    for number, gpm in enumerate(gpms):
        mine = np.flatnonzero(rows.gpm == number)
        columns = [rows.texts(v, mine) for v in gpm.variables]
        tuples = zip(*columns, strict=True) if columns else iter([()] * len(mine))
        for i, solution in zip(mine.tolist(), tuples, strict=True):
            values[i] = solution
    keys = [rows.texts(v) for v in partition]
    stream, time = rows.stream.tolist(), rows.time.tolist()
    k, numbers, event = rows.k.tolist(), rows.gpm.tolist(), rows.event.to_pylist()
    for i in rows.rows():
        row = values[i]
        assert row is not None or numbers[i] == BARE
        taken = None if row is None else (stream[i], time[i], k[i], event[i], row)
        yield time[i], k[i], stream[i], numbers[i], tuple([c[i] for c in keys]), taken


def entries_of_events(
    events: Iterable[EventRows], gpms: Sequence[GpmColumns], partition: Sequence[str]
) -> list[Entry]:
    """The same of events that came one by one."""
    found: list[Entry] = []
    for event in sorted(events, key=lambda e: (e.time, e.k, e.stream)):
        for gpm, row in event.taken():
            if gpm == BARE:
                found.append((event.time, event.k, event.stream, BARE, (), None))
                continue
            variables, values = gpms[gpm].variables, row[4]
            key = tuple([values[variables.index(v)] for v in partition])
            found.append((event.time, event.k, event.stream, gpm, key, row))
    return found


class PartitionSequencer:
    """The sequence of one query over all its partitions."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._parts = Parts(machine)
        self._part = lru_cache(REMEMBERED)(self._parts.of)
        self._begin = partitions(machine)
        self._partitions: dict[PartitionKey, PartitionEvaluator] = {}
        self._pending: list[tuple[int, int, PartitionKey, FoundMatch]] = []  # heap by close
        self._pended = 0
        self._swept = 0
        self.suppressed = 0  # matches that the limit kept back in the evaluator

    def run(self, rows: SolutionBatch, watermark: int) -> Iterator[SequenceMatch]:
        """Work off rows that are none later than the watermark (ms).

        Afterwards nothing at or before the watermark may follow.
        """
        entries = entries_of(rows, self._machine.gpms, self._machine.partition)
        return self._run(entries, watermark)

    def run_events(self, events: Sequence[EventRows], watermark: int) -> Iterator[SequenceMatch]:
        """The same for a few events that came one by one."""
        entries = entries_of_events(events, self._machine.gpms, self._machine.partition)
        return self._run(entries, watermark)

    def _run(self, entries: Iterable[Entry], watermark: int) -> Iterator[SequenceMatch]:
        for time, group in groupby(entries, key=lambda e: e[0]):
            yield from self._closed(time - 1)
            for k, instant in groupby(group, key=lambda e: e[1]):
                yield from self._instant((time, k), instant)
            if len(self._partitions) > 2 * self._swept + 64:
                self._sweep(time)
        yield from self._closed(watermark)

    def close(self) -> Iterator[SequenceMatch]:
        """All streams have ended: every window closes."""
        yield from self._closed(None)

    def partition(self, key: PartitionKey) -> PartitionEvaluator:
        """The state of one partition; it begins if it has had no events."""
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = self._begin()
        return partition

    def consecutive(self, key: PartitionKey, instants: Iterable[Instant]) -> bool:
        """Whether instants of a match follow each other without another one of its partition."""
        return self._partitions[key].consecutive(instants)

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        return self._partitions, self._pending, self._pended, self._swept, self.suppressed

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        assert isinstance(state, tuple)
        self._partitions, self._pending, self._pended, self._swept, self.suppressed = state

    def live_runs(self) -> int:
        """How many runs wait, over all partitions."""
        return sum(p.live_runs() for p in self._partitions.values())

    def _instant(
        self, instant: tuple[int, int], entries: Iterable[Entry]
    ) -> Iterator[SequenceMatch]:
        parts: dict[PartitionKey, tuple[dict[int, list[Row]], set[int]]] = {}
        for _, _, stream, gpm, key, row in entries:
            rows, streams = parts.setdefault(key, ({}, set()))
            streams.add(stream)
            if row is not None:
                rows.setdefault(gpm, []).append(row)
        for key, (rows, streams) in parts.items():
            partition = self.partition(key)
            for found in partition.step(instant, rows, len(streams)):
                if found.close is None:
                    yield self._match(found)
                else:
                    self._pended += 1
                    heapq.heappush(self._pending, (found.close, self._pended, key, found))
            self.suppressed += partition.suppressed
            partition.suppressed = 0

    def _closed(self, until: int | None) -> Iterator[SequenceMatch]:
        """Matches whose windows have closed by a time, and whose absences held."""
        while self._pending and (until is None or self._pending[0][0] <= until):
            _, _, key, found = heapq.heappop(self._pending)
            if self._partitions[key].holds_pending(found):
                yield self._match(found)

    def _match(self, found: FoundMatch) -> SequenceMatch:
        parts = [*map(self._part, found.trace)]
        # Steps of one repetition that join have one value together, which the parts do not tell.
        lists = found.lists or self._parts.lists(parts)
        return match_of((parts, found.origin, lists, found.close))

    def _sweep(self, time: int) -> None:
        waiting = {key for _, _, key, _ in self._pending}
        for key, partition in list(self._partitions.items()):
            if key not in waiting and partition.is_idle(time):
                del self._partitions[key]
        self._swept = len(self._partitions)
