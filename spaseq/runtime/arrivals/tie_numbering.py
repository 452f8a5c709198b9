"""Numbering of events of equal time across input splits, or parts of a stream, of independent
tasks.

Each task numbers its events as if none came before. If the splits of a stream follow each other in
time, that is wrong only for the time at which one ends and the next begins. So every split reports
its first and its last time, and stage 2 adds the missing counts. Stage 2 detects splits that
overlap. Parts that may overlap give *tie tables*: their distinct times, each with its number of
events. Stage 2 merges the tables of all parts. An event comes after the events of its time in parts
with smaller numbers.

Until then a number is *provisional*, which its sign says: -1 - k. Blank nodes have no answer labels
before the numbers are final, as the labels depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.translate import EVENT
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.gpm.solution_rows import may_be_blank, renamed_in_event
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.rdf.events.instants import TimeCounts
from spaseq.rdf.terms.term import UNNUMBERED, numbered_term
from spaseq.records import record
from spaseq.storage.safe_pickles import dump_plain, load_plain


def provisional(events: Iterable[EventBatch]) -> Iterator[EventBatch]:
    """The same events, with provisional numbers."""
    return (batch.with_k(-1 - batch.k) for batch in events)


def after(
    rows: SolutionBatch, earlier_events: TimeCounts | None, streams: Sequence[str]
) -> SolutionBatch:
    """Solutions on events with provisional numbers, with final ones.

    Args:
        rows: the solutions.
        earlier_events: number of events of each time in earlier parts.
        streams: the IRIs of the streams that the rows name by number.
    """
    own = np.maximum(rows.k, -1 - rows.k)  # a state of an earlier version has k itself
    more = 0 if earlier_events is None else earlier_events.of(rows.time)
    return numbered(rows, (own + more).astype(np.int32), streams)


def numbered(rows: SolutionBatch, k: Int32s, streams: Sequence[str]) -> SolutionBatch:
    """Solutions with the final numbers k [n] of their events, and labels of blank nodes."""
    values = dict(rows.values)
    for variable, column in rows.values.items():
        of_event = variable == EVENT
        waits = _has_unnumbered(column) if of_event else may_be_blank(column.terms)
        if not waits.any():
            continue
        texts, renamed = column.objects(), renamed_in_event if of_event else numbered_term
        bound = np.flatnonzero(column.codes >= 0)
        for row in bound[waits[column.codes[bound]]].tolist():
            instant = streams[rows.stream[row]], int(rows.time[row]), int(k[row])
            texts[row] = renamed(*instant, texts[row])
        values[variable] = TermColumn.of(texts.tolist())
    return replace(rows, k=k, values=values)


def _has_unnumbered(column: TermColumn) -> Bools:
    found: Bools = pc.match_substring(column.terms, UNNUMBERED).to_numpy(zero_copy_only=False)
    return found


@dataclass(slots=True)
class TimeExtent:
    """The first and the last time (ms) in a split, each with its number of events."""

    stream: int
    split: int
    first: int | None = None
    last: int | None = None
    at_first: int = 0
    at_last: int = 0

    def watch(self, events: Iterator[EventBatch]) -> Iterator[EventBatch]:
        """Pass batches through, and count their times."""
        for batch in events:
            if len(batch):
                self._add(batch.time)
            yield batch

    def _add(self, times: Int64s) -> None:
        low, high = int(times.min()), int(times.max())
        if self.first is None or low < self.first:
            self.first, self.at_first = low, 0
        if self.last is None or high > self.last:
            self.last, self.at_last = high, 0
        self.at_first += int(np.count_nonzero(times == self.first))
        self.at_last += int(np.count_nonzero(times == self.last))

    def data(self) -> bytes:
        """The extent as bytes."""
        known = self.stream, self.split, self.first, self.last, self.at_first, self.at_last
        return dump_plain(known)

    @classmethod
    def of(cls, data: bytes) -> TimeExtent:
        """The inverse of `data`."""
        return cls(*load_plain(data))


class Overlap(Exception):
    """A split has events before the end of an earlier split of its stream."""


def earlier(extents: Iterable[TimeExtent]) -> dict[int, TimeCounts]:
    """By split: the number of events of earlier splits at its first time, if there are some.

    Raises:
        Overlap: the splits of a stream do not follow each other in time.

    >>> earlier([TimeExtent(0, 0, 10, 20, 1, 3), TimeExtent(0, 1, 20, 30, 2, 1)])[1].pairs
    [(20, 3)]
    """
    by_split: dict[int, TimeCounts] = {}
    ends: dict[int, tuple[int, int]] = {}  # by stream: the last time so far, and how many have it
    for one in sorted(extents, key=lambda e: e.split):
        if one.first is None or one.last is None:
            continue
        end, count = ends.get(one.stream, (one.first, 0))
        if one.first < end:
            raise Overlap
        tied = count if one.first == end else 0
        if tied:
            by_split[one.split] = TimeCounts.of_pairs([(end, tied)])
        ends[one.stream] = one.last, one.at_last + (tied if one.last == one.first else 0)
    return by_split


_TABLE_TIMES = 2**16
"""Maximum number of times in a table."""

_ENOUGH = 2**20
"""Approximate number of times that are merged together."""


@record
class TieTable:
    """Distinct times of a part of a stream, ascending [n] ms, and the number of events at each."""

    stream: int
    part: int
    times: Int64s
    counts: Int64s

    def data(self) -> bytes:
        """The table as bytes: few, if most times follow each other in equal steps."""
        steps = np.diff(self.times, prepend=np.int64(0))
        columns = (_packed(steps), _packed(self.counts))
        return dump_plain((self.stream, self.part, len(self.times), *columns))

    @classmethod
    def of(cls, data: bytes) -> TieTable:
        """The inverse of `data`."""
        stream, part, size, steps, counts = load_plain(data)
        return cls(stream, part, np.cumsum(_unpacked(steps, size)), _unpacked(counts, size))


def _packed(numbers: Int64s) -> bytes:
    """Numbers as bytes: all lowest bytes first, and so on, which compresses best."""
    planes = numbers.astype("<i8").view(np.uint8).reshape(-1, 8).T.tobytes()
    packed: bytes = pa.compress(planes, codec="zstd", asbytes=True)
    return packed


def _unpacked(data: bytes, size: int) -> Int64s:
    planes = pa.decompress(data, 8 * size, codec="zstd", asbytes=True)
    numbers = np.frombuffer(planes, np.uint8).reshape(8, size).T.copy().view("<i8")
    return numbers.reshape(size).astype(np.int64)


@dataclass(slots=True)
class PartTimes:
    """The times of the events of one part of a stream."""

    stream: int
    part: int
    _times: list[Int64s] = field(default_factory=list)

    def watch(self, events: Iterator[EventBatch]) -> Iterator[EventBatch]:
        """Pass batches through, and keep their times."""
        for batch in events:
            if len(batch):
                self._times.append(batch.time.copy())
            yield batch

    def tables(self) -> Iterator[TieTable]:
        """The tables of the events so far, in order of time."""
        if not self._times:
            return
        times = np.concatenate(self._times)
        if (times[1:] > times[:-1]).all():
            counts = np.ones(len(times), np.int64)
        else:
            times, counts = np.unique(times, return_counts=True)
        for start in range(0, len(times), _TABLE_TIMES):
            some = slice(start, start + _TABLE_TIMES)
            yield TieTable(self.stream, self.part, times[some], counts[some])


@dataclass(slots=True)
class TieMerge:
    """Merges tables, which come in order of their first times. It keeps only the ties."""

    _held: list[TieTable] = field(default_factory=list)
    _size: int = 0
    _found: dict[int, list[TimeCounts]] = field(default_factory=dict)

    def add(self, table: TieTable) -> None:
        """Take a table. The next ones begin no earlier."""
        if self._size >= _ENOUGH:
            self._merge(int(table.times[0]))
        self._held.append(table)
        self._size += len(table.times)

    def ties(self) -> dict[int, TimeCounts]:
        """By part: the number of events of earlier parts at each of its times, where there are
        some.
        """
        self._merge(None)
        return {
            part: TimeCounts(
                np.concatenate([t.times for t in ties]), np.concatenate([t.counts for t in ties])
            )
            for part, ties in self._found.items()
        }

    def _merge(self, until: int | None) -> None:
        """Find the ties of all times before one; later ones stay."""
        streams: dict[int, list[TieTable]] = {}
        later: list[TieTable] = []
        for table in self._held:
            cut = len(table.times) if until is None else int(np.searchsorted(table.times, until))
            if cut:
                earlier = replace(table, times=table.times[:cut], counts=table.counts[:cut])
                streams.setdefault(table.stream, []).append(earlier)
            if cut < len(table.times):
                rest = replace(table, times=table.times[cut:], counts=table.counts[cut:])
                later.append(rest)
        for tables in streams.values():
            for part, ties in _ties(tables):
                self._found.setdefault(part, []).append(ties)
        self._held, self._size = later, sum(len(t.times) for t in later)


def _ties(tables: list[TieTable]) -> Iterator[tuple[int, TimeCounts]]:
    """The ties of each part, among tables of one stream that have all events of their times."""
    if len({table.part for table in tables}) == 1:
        return
    times = np.concatenate([table.times for table in tables])
    counts = np.concatenate([table.counts for table in tables])
    parts = np.concatenate([np.full(len(t.times), t.part, np.int32) for t in tables])
    order = np.lexsort((parts, times))
    times, counts, parts = times[order], counts[order], parts[order]
    before = _sum_before(times, counts)
    tied = before > 0
    times, before, parts = times[tied], before[tied], parts[tied]
    for part in np.unique(parts).tolist():
        of_part = parts == part
        yield part, TimeCounts(times[of_part], before[of_part])


def _sum_before(times: Int64s, counts: Int64s) -> Int64s:
    """For each entry, the sum of the counts of earlier entries with its time; times ascend."""
    total = np.cumsum(counts) - counts
    fresh = np.ones(len(times), np.bool_)
    fresh[1:] = times[1:] != times[:-1]
    first: Int32s = np.maximum.accumulate(np.where(fresh, np.arange(len(times)), 0))
    return np.asarray(total - total[first], np.int64)
