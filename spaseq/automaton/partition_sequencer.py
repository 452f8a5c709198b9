"""The sequencer in Python: runs the sequence of a query partition by partition.

It takes rows in the order of instants, passes each partition its rows one instant at a time, and
holds back a match with a negation in last place until the window of the match has closed.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias
from zlib import crc32

import numpy as np

from spaseq import thresholds
from spaseq.algebra.answers import Instant
from spaseq.automaton.program.nfa import GpmColumns
from spaseq.automaton.registers.python.register_evaluator import RegisterEvaluator, value_of
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates, StateKey, StatePlaces, Wanted
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import (
    PartitionKey,
    PartitionMatch,
    SequenceMatch,
    SolutionReader,
    match_of,
)
from spaseq.automaton.run.runs import Row, Run
from spaseq.automaton.run.waiting_limit import Member, WaitingLimit
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.stateful import Stateful

Entry: TypeAlias = tuple[int, int, int, int, PartitionKey, Row | None]
"""(time, k, stream, GPM or BARE, partition, row): a solution, or an event without solutions."""


def entries_of(
    rows: SolutionBatch, gpms: Sequence[GpmColumns], partition: Sequence[str]
) -> Iterator[Entry]:
    """The rows of a batch as entries, in the order of instants."""
    n = len(rows)
    values: list[tuple[str | None, ...] | None] = [None] * n
    for number, gpm in enumerate(gpms):
        mine = np.flatnonzero(rows.gpm == number)
        columns = [rows.texts(v, mine) for v in gpm.variables]
        tuples = zip(*columns, strict=True) if columns else iter([()] * len(mine))
        for i, solution in zip(mine.tolist(), tuples, strict=True):
            values[i] = solution
    keys = [*zip(*[rows.texts(v) for v in partition], strict=True)] if partition else [()] * n
    stream, time = rows.stream.tolist(), rows.time.tolist()
    k, numbers, event = rows.k.tolist(), rows.gpm.tolist(), rows.event.texts()
    for i in rows.rows():
        values_of_gpm = values[i]
        assert values_of_gpm is not None or numbers[i] == BARE
        row = None if values_of_gpm is None else (stream[i], time[i], k[i], event[i], values_of_gpm)
        yield time[i], k[i], stream[i], numbers[i], keys[i], row


def entries_of_events(
    events: Iterable[EventRows], gpms: Sequence[GpmColumns], partition: Sequence[str]
) -> list[Entry]:
    """The rows of single events as entries, in the order of instants."""
    entries: list[Entry] = []
    for event in sorted(events, key=lambda e: (e.time, e.k, e.stream)):
        for gpm, row in event.rows():
            if gpm == BARE:
                entries.append((event.time, event.k, event.stream, BARE, row[4], None))
                continue
            variables, values = gpms[gpm].variables, row[4]
            key = tuple([values[variables.index(v)] for v in partition])
            entries.append((event.time, event.k, event.stream, gpm, key, row))
    return entries


class PartitionSequencer(Stateful):
    """The sequence of one query over all its partitions."""

    STATE = ("_partitions", "_pending", "_pended", "_swept", "_now")

    suppressed = 0  # the engine applies the limit to the matches

    def __init__(self, machine: Machine, split: tuple[str, ...] = ()) -> None:
        """Each partition is split into buckets by the variables `split`, which all steps bind."""
        self._machine, self.split = machine, split
        self._variables = *machine.partition, *split
        self._reader = SolutionReader(machine)
        self._read = lru_cache(thresholds.current.remembered_solutions)(self._reader.of)
        ends = [e for s in machine.program.automaton.states for e in s.acceptances]
        self._may_wait = any(e.negations or e.exits for e in ends)
        self._partitions: dict[PartitionKey, RegisterEvaluator] = {}
        self._pending: list[tuple[int, int, PartitionKey, PartitionMatch]] = []  # heap by close
        self._pended = 0  # number of matches that have been pending so far
        self._swept = 0  # number of partitions that the last sweep left
        self._now: Instant = -(2**63), 0  # the last instant

    def run(self, rows: SolutionBatch, watermark: int) -> Iterator[SequenceMatch]:
        """Process rows, none of which is later than the watermark (ms).

        Afterwards nothing at or before the watermark may follow.
        """
        machine = self._machine
        entries = entries_of(rows, machine.gpms, self._variables)
        return self._run(entries, watermark)

    def run_events(self, events: Sequence[EventRows], watermark: int) -> Iterator[SequenceMatch]:
        """Process the rows of a few single events, like `run`."""
        entries = entries_of_events(events, self._machine.gpms, self._variables)
        return self._run(entries, watermark)

    def _run(self, entries: Iterable[Entry], watermark: int) -> Iterator[SequenceMatch]:
        limit = self._machine.waiting
        for instant, group in groupby(entries, key=itemgetter(0, 1)):
            time = instant[0]
            if self._pending and self._pending[0][0] < time:
                yield from self._closed(time - 1)
            yield from self._instant(instant, group)
            self._now = instant
            if limit is not None and limit.room < 0:
                self._check(limit, instant)
                if limit.is_over:
                    return
            if len(self._partitions) > 2 * self._swept + 64:
                self._sweep(time)
        yield from self._closed(watermark)

    def key_of(self, values: PartitionKey) -> PartitionKey:
        """The key of the values of PARTITION BY and of `split`: the latter become a bucket."""
        if not self.split:
            return values
        own = len(self._machine.partition)
        return *values[:own], _bucket_of(values[own:])

    def _own(self, key: PartitionKey) -> PartitionKey:
        """The values of PARTITION BY of a split partition."""
        return key[: len(self._machine.partition)]

    def close(self) -> Iterator[SequenceMatch]:
        """Close every window: all streams have ended."""
        yield from self._closed(None)

    def partition(self, key: PartitionKey) -> RegisterEvaluator:
        """The evaluator of one partition, made at the partition's first event."""
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = RegisterEvaluator(self._machine)
        return partition

    def wait(self, key: PartitionKey, match: PartitionMatch) -> None:
        """Let a match of a partition wait for the close of its window."""
        assert match.close is not None
        self._pended += 1
        heapq.heappush(self._pending, (match.close, self._pended, key, match))

    @property
    def next_close(self) -> int | None:
        """The time (ms) before which no match comes without further rows; None: none comes."""
        return self._pending[0][0] if self._pending else None

    def live_runs(self) -> int:
        """Number of waiting partial matches, or sets of them, over all partitions."""
        return sum(p.live_runs(self._now) for p in self._partitions.values())

    def count_waiting(self) -> None:
        """Give the limit the number of waiting partial matches, or sets of them."""
        if self._machine.waiting is not None:
            counts = self._waiting(self._machine.waiting)
            self._machine.waiting.learn(counts.total(), lambda: counts)

    def _waiting(self, limit: WaitingLimit) -> Counter[Member]:
        """Number of waiting partial matches of each member."""
        counts = Counter[Member]()
        for key, partition in self._partitions.items():
            if limit.variable is None:
                counts[limit.member(self._own(key))] += partition.live_runs(self._now)
            else:
                counts += partition.live_runs_by(limit.variable, self._now)
        return counts

    def _check(self, limit: WaitingLimit, instant: Instant) -> None:
        """Check the limit on waiting partial matches; drop the members that exceed it."""
        counts = self._waiting(limit)
        over = limit.check(instant, counts.total(), lambda: counts)
        if not over or limit.is_over:
            return
        if limit.variable is not None:
            self._drop(limit.variable, over)
            return
        gone = [key for key in self._partitions if limit.member(self._own(key)) in over]
        self._pending = [
            match for match in self._pending if limit.member(self._own(match[2])) not in over
        ]
        heapq.heapify(self._pending)
        for key in gone:
            del self._partitions[key]

    def _drop(self, variable: str, members: Collection[Member]) -> None:
        """Drop the partial matches that bind a variable to some members."""
        self._pending = [p for p in self._pending if self._first(p[3], variable) not in members]
        heapq.heapify(self._pending)
        for partition in self._partitions.values():
            partition.drop(variable, members)

    def _first(self, match: PartitionMatch, variable: str) -> str | None:
        """The term of a single variable in the first solution of a match."""
        return dict(self._read(match.trace[0]).singles).get(variable)

    def live_states(self, wanted: Wanted | None = None) -> LiveStates:
        """The states of the partial matches, for all partitions or for wanted ones."""
        program = self._machine.program
        places, waiting = StatePlaces(program), Counter[StateKey]()
        carried = self._machine.carried if wanted is not None else None
        for key, partition in self._partitions.items():
            if wanted is not None and carried is not None:
                is_wanted = partial(_is_wanted, wanted, carried)
                waiting.update(partition.live_states(places, is_wanted))
            elif wanted is None or wanted(self._own(key)):
                waiting.update(partition.live_states(places))
        for _, _, key, match in self._pending:
            own = self._own(key) if carried is None else (self._first(match, carried),)
            if wanted is None or wanted(own):
                waiting[places.end(match.trace[-1][0])] += 1
        return LiveStates(program, +waiting, self._machine.counts.taken_so_far(wanted))

    def _instant(self, instant: Instant, entries: Iterable[Entry]) -> Iterator[SequenceMatch]:
        by_partition: dict[PartitionKey, tuple[dict[int, list[Row]], set[int]]] = {}
        for _, _, stream, gpm, values, row in entries:
            key = self.key_of(values)
            known = by_partition.get(key)
            if known is None:
                known = by_partition[key] = {}, set()
            known[1].add(stream)
            if row is not None:
                known[0].setdefault(gpm, []).append(row)
        for key, (rows, streams) in by_partition.items():
            partition = self.partition(key)
            matches = partition.step(instant, rows, len(streams))
            if self._may_wait:
                matches = _without_later_twins(matches)
            for match in matches:
                if match.close is None:
                    yield self._match(match)
                else:
                    self.wait(key, match)

    def _closed(self, until: int | None) -> Iterator[SequenceMatch]:
        """The pending matches whose windows have closed by a time and whose negations hold."""
        if self._machine.waiting is not None:
            until = self._machine.waiting.until(until)
        while self._pending and (until is None or self._pending[0][0] <= until):
            _, _, key, match = heapq.heappop(self._pending)
            if self._partitions[key].holds_pending(match):
                yield self._match(match)

    def _match(self, match: PartitionMatch) -> SequenceMatch:
        solutions = [*map(self._read, match.trace)]
        # Steps of one repetition that join share one value. Only the evaluator knows that.
        lists = match.lists or self._reader.lists(solutions)
        return match_of((solutions, match.origin, lists, match.close))

    def _sweep(self, time: int) -> None:
        """Drop the partitions that can affect no further match."""
        waiting = {key for _, _, key, _ in self._pending}
        for key, partition in list(self._partitions.items()):
            if key not in waiting and partition.is_idle(time):
                del self._partitions[key]
        self._swept = len(self._partitions)


_BUCKETS = 1024
"""Buckets of a partition that is split. An evaluator for each key would take 4 KB."""


@lru_cache(4096)
def _bucket_of(values: PartitionKey) -> str:
    return str(crc32("\n".join(value or "" for value in values).encode()) % _BUCKETS)


def _is_wanted(wanted: Wanted, variable: str, run: Run) -> bool:
    return wanted((value_of(run, variable),))


def _without_later_twins(matches: Iterable[PartitionMatch]) -> list[PartitionMatch]:
    """Drop waiting matches if an equal match does not wait."""
    all_matches = list(matches)
    ended = {m.trace: m for m in all_matches if m.close is None}
    if not ended:
        return all_matches
    return [m for m in all_matches if m.close is None or not _are_twins(m, ended.get(m.trace))]


def _are_twins(match: PartitionMatch, other: PartitionMatch | None) -> bool:
    return other is not None and (match.singles, match.lists) == (other.singles, other.lists)
