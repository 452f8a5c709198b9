"""Events of n statements each from N-Triples, one chunk of a file at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.event_names import EventNames
from spaseq.rdf.columns.quad_block import MALFORMED
from spaseq.rdf.events.open_event import LOST_QUAD, OpenEvent, left_over
from spaseq.rdf.events.time_terms import TimeTerms
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.kernels.event_ranges import sized_events
from spaseq.rdf.lines.line_batches import LineBatches, times_of
from spaseq.rdf.lines.statements import Statements


class SizedEvents:
    """The events of one N-Triples file. Only its last chunk may end within an event.

    A malformed line counts as one of the n statements, and makes their event bad. n malformed lines
    are not an event. `times` read the times of events, or give those of arrival.
    """

    def __init__(
        self,
        batches: LineBatches,
        file: str,
        size: int,
        times: TimeTerms | Callable[[], int],
        on_bad: OnBad,
    ) -> None:
        self._batches = batches
        self._file = file
        self._size = size
        self._times = times
        self._on_bad = on_bad

    def add(self, statements: Statements, line: int, is_cut: bool) -> Iterator[EventBatch]:
        """The events of the next chunk, whose first line has the number `line`."""
        count = len(statements) // self._size
        first = np.arange(count, dtype=np.int64) * self._size
        read = (statements.s[: count * self._size] != MALFORMED).reshape(count, self._size)
        whole = read.all(axis=1)
        first = first[read.any(axis=1)]
        if isinstance(self._times, TimeTerms):
            first, time = self._timed(statements, line, first, self._times)
            time = time[whole[first // self._size]]
            first = self._whole(statements, line, first, whole)
        else:
            first = self._whole(statements, line, first, whole)
            time = np.array([self._times() for _ in first], np.int64)
        names = EventNames.none(len(first))
        yield from self._batches.batches(statements, line, first, first + self._size, time, names)
        left = len(statements) - count * self._size
        if left and not is_cut:
            where = line + int(statements.line[-left])
            self._on_bad(left_over(self._file, where, left, self._size))

    def finish(self, is_cut: bool) -> Iterator[EventBatch]:
        """Nothing: each chunk's events are complete."""
        return iter(())

    def _whole(self, statements: Statements, line: int, first: Int64s, whole: Bools) -> Int64s:
        """The first rows of events that have lost nothing; reports the others."""
        kept = whole[first // self._size]
        for row in first[~kept].tolist():
            where = line + int(statements.line[row])
            self._on_bad(BadInput(self._file, where, LOST_QUAD))
        return first[kept]

    def _timed(
        self, statements: Statements, line: int, first: Int64s, times: TimeTerms
    ) -> tuple[Int64s, Int64s]:
        """(first rows, times) of the events with a time; reports the other events."""
        size = self._size
        ms, timed, unreadable = sized_events(size, len(statements), times_of(statements, times))
        event = first // size
        for i in np.flatnonzero(~timed[event]).tolist():
            row, time = int(first[i]), int(unreadable[event[i]])
            untimed = OpenEvent("", row, row + size, line + int(statements.line[row]))
            if time >= 0:
                untimed.unreadable = statements.terms[int(statements.o[time])]
            self._on_bad(untimed.complaint(self._file))
        kept = timed[event]
        return first[kept], ms[event][kept]
