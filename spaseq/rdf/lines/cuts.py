"""Where a chunk of a file may end: between two events.

If no event ends within the limit, the text is no event, or the event is too long and is skipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from spaseq.compiled.arrays import Bytes
from spaseq.possessive import possessive
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.lines import last_event_end, last_line_end
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.statements import LineChunk, StatementReader, Statements

_LF = 10
_WINDOWS = (1 << 13, 1 << 17)
_PIECE = 1 << 23
_LINE = possessive(rb"[^\r\n]*+(?:\r\n|\r|\n)?+")


class EventSkip(ABC):
    """Skips the rest of an event that is too long, statement by statement."""

    text = ""
    """The event, as a report shows it."""

    @abstractmethod
    def end_in(self, statements: Statements) -> int | None:
        """The row of the next statements that is not of the event any more; None if all are."""


class Cut(ABC):
    """Finds places between two events in whole lines, which are `begin:end` of a buffer."""

    @abstractmethod
    def last(self, buffer: Bytes, begin: int, end: int) -> int:
        """The last offset where a chunk may end, or `begin`."""

    @abstractmethod
    def without_end(
        self, buffer: Bytes, begin: int, end: int, most: int
    ) -> tuple[int, EventSkip | None]:
        """What to do with lines of more than `most` bytes in which no event ends.

        Returns the offset where a chunk ends all the same, and how to skip the event after it. If
        that is None, the lines after the offset are no event.
        """

    @abstractmethod
    def read(self, text: Bytes) -> Statements:
        """The statements of whole lines."""

    def pieces(self, buffer: Bytes, begin: int, end: int) -> Iterator[tuple[int, Statements]]:
        """Offset and statements of each piece of whole lines; the pieces have bounded sizes."""
        size = _PIECE
        while begin < end:
            stop = end if end - begin <= size else last_line_end(buffer, begin, begin + size)
            if stop == begin:
                size *= 2
                continue
            yield begin, self.read(buffer[begin:stop])
            begin, size = stop, _PIECE


@dataclass(slots=True)
class AfterLines(Cut):
    """A chunk may end after any line, as the text has no events."""

    def last(self, buffer: Bytes, begin: int, end: int) -> int:
        return end

    def without_end(
        self, buffer: Bytes, begin: int, end: int, most: int
    ) -> tuple[int, EventSkip | None]:
        return end, None

    def read(self, text: Bytes) -> Statements:
        raise NotImplementedError


class AfterSizedEvents(Cut):
    """Cuts N-Triples after the last complete event of `size` statements."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._reader = StatementReader(False, ArenaPool(1), only_constants=True)

    def last(self, buffer: Bytes, begin: int, end: int) -> int:
        place: int = last_event_end(buffer, begin, end, self._size)
        return place

    def without_end(
        self, buffer: Bytes, begin: int, end: int, most: int
    ) -> tuple[int, EventSkip | None]:
        return begin, _SizedSkip(self._size)

    def read(self, text: Bytes) -> Statements:
        return self._reader.read(chunk_of(text, self._reader.pool))


@dataclass(slots=True)
class _SizedSkip(EventSkip):
    left: int  # statements of the event

    def end_in(self, statements: Statements) -> int | None:
        if len(statements) > self.left:
            return self.left
        self.left -= len(statements)
        return None


class BeforeGraphs(Cut):
    """Cuts N-Quads before the last named graph that begins, else after the default graph's triples.

    It tokenizes the end of the chunk to find the offset, and more of the chunk if necessary.
    """

    def __init__(self, reader: StatementReader) -> None:
        """Cut chunks for `reader`, with arenas that are not the reader's."""
        self._reader = replace(reader, pool=ArenaPool(1))

    def read(self, text: Bytes) -> Statements:
        return self._reader.read(chunk_of(text, self._reader.pool))

    def last(self, buffer: Bytes, begin: int, end: int) -> int:
        for window in _WINDOWS:
            start = last_line_end(buffer, begin, max(end - window, begin))
            if start == begin:
                break
            graph = _last_graph(self.read(buffer[start:end]))
            if graph:
                return start + graph
        place, row_graph = begin, None
        for start, statements in self.pieces(buffer, begin, end):
            if not len(statements):
                continue
            first = _graph(statements, 0)
            if graph := _last_graph(statements):
                place = start + graph
            elif start > begin and first is not None and first != row_graph:
                place = start + int(statements.at[0])
            row_graph = _graph(statements, len(statements) - 1)
        return place if place > begin or row_graph is not None else end

    def without_end(
        self, buffer: Bytes, begin: int, end: int, most: int
    ) -> tuple[int, EventSkip | None]:
        first = last = begin
        graph: str | None = None
        for start, statements in self.pieces(buffer, begin, end):
            named = np.flatnonzero(statements.g >= 0)
            if graph is None and len(named):
                graph = _graph(statements, int(named[0]))
                first = start + int(statements.at[named[0]])
            if len(statements):
                last = start + int(statements.at[-1])
        line = _LINE.match(buffer, last, end)  # type: ignore[call-overload]
        last = line.end()
        if graph is None or last - first <= most:
            return last, None
        return first, _GraphSkip(graph)


@dataclass(slots=True)
class _GraphSkip(EventSkip):
    """Skips the quads of a graph, and the timestamps right after them."""

    text: str
    in_graph: bool = True

    def end_in(self, statements: Statements) -> int | None:
        graph = int(statements.terms.find([self.text])[0])
        row, rows = 0, len(statements)
        if self.in_graph:
            row = _first_true((statements.g != graph) | (graph < 0), 0)
            self.in_graph = row == rows
        row = _first_true((statements.g >= 0) | (statements.s != graph) | (graph < 0), row)
        return row if row < rows else None


def _first_true(found: np.ndarray[tuple[int], np.dtype[np.bool_]], start: int) -> int:
    """The first index from `start` on with a true value, or the length."""
    places = np.flatnonzero(found[start:])
    return start + int(places[0]) if len(places) else len(found)


def chunk_of(text: Bytes, pool: ArenaPool) -> LineChunk:
    """Whole lines of text as a chunk."""
    arena = pool.take(len(text))
    arena.buffer[: len(text)] = text
    arena.buffer[len(text) : len(text) + PAD] = _LF
    return LineChunk(arena, 0, len(text))


def _graph(statements: Statements, row: int) -> str | None:
    """The name of the graph of a row; None for the default graph."""
    code = int(statements.g[row])
    return statements.terms[code] if code >= 0 else None


def _last_graph(statements: Statements) -> int:
    """The offset of the last line that begins a named graph, other than line 0; 0 if none does."""
    g = statements.g
    begins = np.flatnonzero((g[1:] != g[:-1]) & (g[1:] >= 0)) + 1
    return int(statements.at[begins[-1]]) if len(begins) else 0
