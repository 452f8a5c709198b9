"""Which events of N-Quads have lost a quad to a malformed line: these are bad as a whole.

A malformed line belongs to the event next to it whose graph it names. If no name can be read from
it, it may belong to the event before it and to the one after it.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.kernels.event_ranges import TIME_PREDICATE
from spaseq.rdf.lines.statements import Statements


class LostQuads:
    """Finds the events of one file that have lost a quad, chunk by chunk."""

    def __init__(self) -> None:
        self._ahead: set[str | None] = set()  # names of malformed lines before the next event

    def find(self, statements: Statements, earlier: str | None) -> tuple[Int64s, bool]:
        """Rows of named graphs, one or more of each event that has lost a quad, ascending.

        `earlier` is the graph of the last event before the statements; the second value says
        whether that event has lost a quad, too.
        """
        lost = [bad for bad in statements.bad if bad.may_be_quad]
        if not lost and not self._ahead:
            return np.empty(0, np.int64), False
        sides = _Sides(statements, earlier)
        sides.begin(self._ahead)
        self._ahead = self._ahead if not len(sides.named) else set()
        for bad in lost:
            if bad.graph is None:
                sides.both(bad.line)
            else:
                sides.called(bad.graph, bad.line)
        self._ahead |= sides.ahead
        return np.array(sorted(sides.found), np.int64), sides.is_earlier


class _Sides:
    """The events on both sides of malformed lines.

    `found` has rows of events that have lost a quad, `ahead` the names of lines that may belong to
    the next chunk's first event, and `is_earlier` says whether the event before has lost one.
    """

    def __init__(self, statements: Statements, earlier: str | None) -> None:
        rows = statements
        is_time = (rows.g < 0) & (rows.p == TIME_PREDICATE)
        self._statements, self._earlier = statements, earlier
        # the graph that a row is of, or gives a time
        self._owner = np.where(is_time, rows.s, rows.g)
        self._owned = np.flatnonzero((rows.g >= 0) | is_time)
        self.named = np.flatnonzero(rows.g >= 0)
        self.found: set[int] = set()
        self.ahead: set[str | None] = set()
        self.is_earlier = False

    def begin(self, names: set[str | None]) -> None:
        """Find the first event, if lines before the chunk name it or have no name."""
        if len(self.named) and (None in names or self._graph(self.named[0]) in names):
            self.found.add(int(self.named[0]))

    def called(self, graph: str, line: int) -> None:
        """Find the event of a graph on one side of a line."""
        lines = self._statements.line[self.named]
        after = int(np.searchsorted(lines, line))
        if after and self._graph(self.named[after - 1]) == graph:
            self.found.add(int(self.named[after - 1]))
        elif not after and graph == self._earlier:
            self.is_earlier = True
        elif after == len(self.named):
            self.ahead.add(graph)
        elif self._graph(self.named[after]) == graph:
            self.found.add(int(self.named[after]))

    def both(self, line: int) -> None:
        """Find the events on both sides of a line without a name.

        The time of an event is a part of it.
        """
        lines = self._statements.line[self._owned]
        after = int(np.searchsorted(lines, line))
        if after:
            self._of(int(self._owned[after - 1]))
        else:
            self.is_earlier = True
        if after < len(lines):
            self._of(int(self._owned[after]))
        else:
            self.ahead.add(None)

    def _of(self, row: int) -> None:
        """Find the event of a row of a named graph, or the one right beside whose time it is."""
        code, place = self._owner[row], int(np.searchsorted(self.named, row))
        for side in (place, place - 1):
            if 0 <= side < len(self.named) and self._statements.g[self.named[side]] == code:
                self.found.add(int(self.named[side]))
                return
        graph = self._statements.terms[int(code)]
        if place == 0 and graph == self._earlier:
            self.is_earlier = True
        elif place == len(self.named):
            self.ahead.add(graph)

    def _graph(self, row: np.int64) -> str:
        return self._statements.terms[int(self._statements.g[row])]
