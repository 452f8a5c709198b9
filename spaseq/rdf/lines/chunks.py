"""Splitting a file into chunks of whole lines, with each event's quads in one chunk.

So threads can tokenize chunks independently, and no event has terms of two chunks. Lines and events
that exceed a limit are not kept in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import FileIO
from typing import IO, Any, cast

import numpy as np

from spaseq.compiled.arrays import Bytes
from spaseq.limits import Limits
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.lines import last_event_end, last_line_end
from spaseq.rdf.lines.arenas import LASTING_BYTES, ArenaPool, ReadArena
from spaseq.rdf.lines.statements import (
    DroppedLines,
    LineChunk,
    StatementReader,
    Statements,
    removed_bytes,
    shown_bytes,
)
from spaseq.text_patterns import possessive

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
        """Handle lines of more than `most` bytes in which no event ends.

        Returns the offset of a forced end of the chunk, and the skip of the event after it. If that
        is None, the lines after the offset are no event.
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
        offset: int = last_event_end(buffer, begin, end, self._size)
        return offset

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
        offset, row_graph = begin, None
        for start, statements in self.pieces(buffer, begin, end):
            if not len(statements):
                continue
            first = _graph(statements, 0)
            if graph := _last_graph(statements):
                offset = start + graph
            elif start > begin and first is not None and first != row_graph:
                offset = start + int(statements.at[0])
            row_graph = _graph(statements, len(statements) - 1)
        return offset if offset > begin or row_graph is not None else end

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


def _first_true(truths: np.ndarray[tuple[int], np.dtype[np.bool_]], start: int) -> int:
    """The first index from `start` on with a true value, or the length."""
    places = np.flatnonzero(truths[start:])
    return start + int(places[0]) if len(places) else len(truths)


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


CHUNK_BYTES = 1 << 23
MAX_CHUNK_BYTES = 1 << 29
"""Largest chunk: offsets into two such buffers fit into 32 bits."""

_BOM = b"\xef\xbb\xbf"
_NUL = 0
_STEP = 1 << 18  # bytes per read, also of an unpacked .gz
_FILE_STEP = 1 << 20  # bytes per read of an unpacked file: large, as each may wait for the GIL


class LineChunks:
    """The chunks of one file.

    Chunks are `larger` times as large as usual. If reading fails midway, the last chunk has the
    whole lines before the failure, and the fault.
    """

    def __init__(
        self, data: IO[bytes], pool: ArenaPool, cut: Cut, limits: Limits, larger: int = 1
    ) -> None:
        self._data, self._size = data, larger * CHUNK_BYTES
        self._pool = pool
        self._cut = cut
        self._limits = limits
        self._line_bytes = min(limits.line_bytes, MAX_CHUNK_BYTES // 4)
        self._event_bytes = min(limits.event_bytes, MAX_CHUNK_BYTES // 2)
        self._most = self._event_bytes + self._line_bytes + _FILE_STEP
        self._taken = 0  # bytes read from the file
        self._left: Bytes = np.empty(0, np.uint8)  # read, but not in a chunk yet
        self._long: dict[int, int] = {}  # offsets and sizes of the shortened lines in `left`
        self._more = True
        self._fault: Exception | None = None
        self._skip: EventSkip | None = None  # of the event that is skipped at present
        self._dropped: DroppedLines | None = None  # before the next chunk

    def __iter__(self) -> Iterator[LineChunk]:
        size, first = self._size, True
        while self._more:
            arena = self._pool.take(size)
            buffer = arena.buffer
            end = self._fill(arena, size)
            begin = len(_BOM) if first and buffer[: min(end, 3)].tobytes() == _BOM else 0
            is_all = not self._more and self._fault is None
            whole = end if is_all else last_line_end(buffer, begin, end)
            begin = self._after_skipped(buffer, begin, whole)
            stop, following = self._stop(buffer, begin, whole)
            long = self._keep(buffer, stop, end)
            buffer[stop : stop + PAD] = _LF
            reports = self._fault is not None or self._dropped is not None
            if stop > begin or (reports and (following is not None or not self._more)):
                offset = self._taken - len(self._left) - removed_bytes(self._long)
                dropped, goes_on = self._dropped, self._more and stop == whole
                yield LineChunk(arena, begin, stop, self._fault, long, dropped, offset, goes_on)
                self._dropped = None
            else:
                self._pool.give_back(arena)
            del arena, buffer
            self._dropped = following or self._dropped
            grows = stop == begin and self._skip is None
            kept = max(min(size, LASTING_BYTES), len(self._left))
            size, first = min(2 * size, self._most) if grows else kept, False

    def _stop(self, buffer: Bytes, begin: int, whole: int) -> tuple[int, DroppedLines | None]:
        """The end of a chunk of the whole lines `begin:whole`, and the lines dropped after it."""
        if not self._more or begin == whole:
            return whole, None
        stop = self._cut.last(buffer, begin, whole)
        if stop > begin or whole - begin <= self._event_bytes:
            return stop, None
        stop, self._skip = self._cut.without_end(buffer, begin, whole, self._event_bytes)
        if self._skip is None:
            return stop, DroppedLines()
        return stop, DroppedLines(long_event(self._limits), self._skip.text)

    def _keep(self, buffer: Bytes, stop: int, end: int) -> dict[int, int]:
        """Keep `stop:end` for the next chunk; returns the shortened lines before `stop`."""
        self._left = buffer[stop:end].copy()
        long, self._long = self._long, {at - stop: n for at, n in self._long.items() if at >= stop}
        return long

    def _after_skipped(self, buffer: Bytes, begin: int, whole: int) -> int:
        """The offset after the lines of an event that is skipped."""
        if self._skip is None:
            return begin
        assert self._dropped is not None
        for start, statements in self._cut.pieces(buffer, begin, whole):
            row = self._skip.end_in(statements)
            if row is not None:
                self._skip = None
                self._dropped.lines += int(statements.line[row])
                return start + int(statements.at[row])
            self._dropped.lines += statements.lines
        return whole

    def _fill(self, arena: ReadArena, size: int) -> int:
        """Fill an arena's buffer up to about `size` bytes, first with the remaining bytes.

        Returns the bytes in the buffer. A line that exceeds its limit before its end is read is
        shortened: a NUL and its first bytes replace it.
        """
        end = len(self._left)
        arena.buffer[:end] = self._left
        end = self._read(arena.buffer, end, size)
        while self._more:
            line = last_line_end(arena.buffer, 0, end)
            if end - line <= self._line_bytes:
                break
            end = self._read(arena.buffer, self._shorten(arena.buffer, line, end), size)
        return end

    def _read(self, buffer: Bytes, end: int, size: int) -> int:
        """Read until the buffer has `size` bytes, after the first `end`; returns their number."""
        step = _FILE_STEP if isinstance(getattr(self._data, "raw", self._data), FileIO) else _STEP
        room = memoryview(buffer)  # type: ignore[arg-type]
        try:
            while self._more and end < size:
                count = cast("Any", self._data).readinto(room[end : min(end + step, size)])
                self._more = count > 0
                self._taken += count
                end += count
        except READ_ERRORS as error:
            self._more, self._fault = False, error
        return end

    def _shorten(self, buffer: Bytes, line: int, end: int) -> int:
        """Shorten the line at `line:end`, and read to its end; returns the bytes in the buffer."""
        size = end - line
        shown = shown_bytes(size)
        buffer[line + 1 : line + 1 + shown] = buffer[line : line + shown].copy()
        buffer[line] = _NUL
        start = line + 1 + shown
        stop = -1
        while stop < 0 and (end := self._read(buffer, start, start + _STEP)) > start:
            text = buffer[start:end].tobytes()
            ends = [at for at in (text.find(b"\n"), text.find(b"\r")) if at >= 0]
            stop = min(ends, default=-1)
            size += len(text) if stop < 0 else stop
        self._long[line] = size
        if stop < 0:
            return start
        rest = buffer[start + stop : end].copy()
        buffer[start : start + len(rest)] = rest
        return start + len(rest)
