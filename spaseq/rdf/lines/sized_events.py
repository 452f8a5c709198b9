"""Events of n statements each from N-Triples, one chunk of a file at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.quad_block import MALFORMED
from spaseq.rdf.events.open_event import OpenEvent, left_over
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.kernels.event_ranges import sized_events
from spaseq.rdf.lines.line_batches import LineBatches, times_of
from spaseq.rdf.lines.statements import Statements


class SizedEvents:
    """The events of one N-Triples file. Only its last chunk may end within an event.

    A malformed line counts as one of the n statements. n malformed lines are not an event.
    """

    def __init__(
        self,
        batches: LineBatches,
        file: str,
        size: int,
        arrival: Callable[[], int] | None,
        on_bad: OnBad,
    ) -> None:
        self._batches = batches
        self._file = file
        self._size = size
        self._arrival = arrival
        self._on_bad = on_bad

    def add(self, statements: Statements, line: int, is_cut: bool) -> Iterator[EventBatch]:
        """The events of the next chunk, whose first line has the number `line`."""
        count = len(statements) // self._size
        first = np.arange(count, dtype=np.int64) * self._size
        read = (statements.s[: count * self._size] != MALFORMED).reshape(count, self._size)
        first = first[read.any(axis=1)]
        if self._arrival is None:
            first, time = self._timed(statements, line, first)
        else:
            time = np.array([self._arrival() for _ in first], np.int64)
        names = [None] * len(first)
        yield from self._batches.batches(statements, line, first, first + self._size, time, names)
        left = len(statements) - count * self._size
        if left and not is_cut:
            where = line + int(statements.line[-left])
            self._on_bad(left_over(self._file, where, left, self._size))

    def finish(self, is_cut: bool) -> Iterator[EventBatch]:
        """Nothing: each chunk's events are complete."""
        return iter(())

    def _timed(self, statements: Statements, line: int, first: Int64s) -> tuple[Int64s, Int64s]:
        """(first rows, times) of the events with a time; reports the other events."""
        size = self._size
        ms, timed, unreadable = sized_events(size, len(statements), times_of(statements))
        event = first // size
        for i in np.flatnonzero(~timed[event]).tolist():
            row, time = int(first[i]), int(unreadable[event[i]])
            untimed = OpenEvent("", row, row + size, line + int(statements.line[row]))
            if time >= 0:
                untimed.unreadable = statements.terms[int(statements.o[time])]
            self._on_bad(untimed.complaint(self._file))
        kept = timed[event]
        return first[kept], ms[event][kept]
