"""Splitting a file into chunks of whole lines, with each event's quads in one chunk.

So threads can tokenize chunks independently, and no event has terms of two chunks. Lines and events
that exceed a limit are not kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import FileIO
from typing import IO, Any, cast

import numpy as np

from spaseq.compiled.arrays import Bytes
from spaseq.limits import Limits
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.lines import last_line_end
from spaseq.rdf.lines.arenas import LASTING_BYTES, ArenaPool, ReadArena
from spaseq.rdf.lines.cuts import Cut, EventSkip
from spaseq.rdf.lines.statements import DroppedLines, LineChunk, removed_bytes, shown_bytes

CHUNK_BYTES = 1 << 23
MAX_CHUNK_BYTES = 1 << 29
"""Largest chunk: offsets into two such buffers fit into 32 bits."""

_BOM = b"\xef\xbb\xbf"
_NUL = 0
_LF = 10
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
        self._line_bytes = min(limits.line_bytes, MAX_CHUNK_BYTES // 4)
        self._event_bytes = min(limits.event_bytes, MAX_CHUNK_BYTES // 2)
        self._most = self._event_bytes + self._line_bytes + _FILE_STEP
        self._too_long = long_event(limits)
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
                place = self._taken - len(self._left) - removed_bytes(self._long)
                dropped, goes_on = self._dropped, self._more and stop == whole
                yield LineChunk(arena, begin, stop, self._fault, long, dropped, place, goes_on)
                self._dropped = None
            else:
                self._pool.give_back(arena)
            del arena, buffer
            self._dropped = following or self._dropped
            grows = stop == begin and self._skip is None
            kept = max(min(size, LASTING_BYTES), len(self._left))
            size, first = min(2 * size, self._most) if grows else kept, False

    def _stop(self, buffer: Bytes, begin: int, whole: int) -> tuple[int, DroppedLines | None]:
        """Where a chunk of the whole lines `begin:whole` ends, and what is dropped after it."""
        if not self._more or begin == whole:
            return whole, None
        stop = self._cut.last(buffer, begin, whole)
        if stop > begin or whole - begin <= self._event_bytes:
            return stop, None
        stop, self._skip = self._cut.without_end(buffer, begin, whole, self._event_bytes)
        if self._skip is None:
            return stop, DroppedLines()
        return stop, DroppedLines(self._too_long, self._skip.text)

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
        """Fill an arena's buffer up to about `size` bytes, first with what is left.

        Returns the bytes in the buffer. A line that exceeds its limit before its end is read is
        shortened: a NUL and its first bytes stand for it.
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
