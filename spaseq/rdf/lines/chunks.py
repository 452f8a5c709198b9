"""Splitting a file into chunks of whole lines, with each event's quads in one chunk.

So threads can tokenize chunks independently, and no event has terms of two chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from io import FileIO
from typing import IO, Any, TypeAlias, cast

import numpy as np

from spaseq.compiled.arrays import Bytes
from spaseq.errors import InputError
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.lines import last_event_end, last_line_end
from spaseq.rdf.lines.arenas import ArenaPool, ReadArena
from spaseq.rdf.lines.statements import LineChunk, StatementReader, Statements

CHUNK_BYTES = 1 << 23
MAX_CHUNK_BYTES = 1 << 29
"""Largest chunk, and so the largest event: offsets into two such buffers fit into 32 bits."""

Cut: TypeAlias = Callable[[Bytes, int, int], int]
"""(buffer, begin, end) of whole lines -> the last offset where a chunk may end, or `begin`."""

_BOM = b"\xef\xbb\xbf"
_LF = 10
_STEP = 1 << 18  # bytes per read: small, to keep the bytes before damage in a .gz
_FILE_STEP = 1 << 20  # bytes per read of an unpacked file: large, as each may wait for the GIL
_WINDOWS = (1 << 13, 1 << 17)


def line_chunks(data: IO[bytes], file: str, pool: ArenaPool, cut: Cut) -> Iterator[LineChunk]:
    """The chunks of a file; `file` is its name in reports.

    If reading fails midway, the last chunk has the whole lines before the failure, and the fault.

    Raises:
        InputError: an event is too large.
    """
    left: Bytes = np.empty(0, np.uint8)
    size, begin = CHUNK_BYTES, 0
    more, first = True, True
    while more:
        if size > MAX_CHUNK_BYTES:
            raise InputError(f"{file}: more than {size // 2} bytes without the end of an event")
        arena = pool.take(size)
        end, fault = _fill(arena, left, size, data)
        more = fault is None and end == size
        buffer = arena.buffer
        if first:
            begin = len(_BOM) if buffer[: min(end, 3)].tobytes() == _BOM else 0
        stop = end if fault is None and not more else last_line_end(buffer, begin, end)
        if more:
            stop = cut(buffer, begin, stop)
        if stop == begin and more:
            left, size = buffer[:end].copy(), 2 * size
            pool.give_back(arena)
            continue
        left = buffer[stop:end].copy()
        buffer[stop : stop + PAD] = _LF
        if stop > begin or fault is not None:
            yield LineChunk(arena, begin, stop, fault)
        begin, first = 0, False


def _fill(
    arena: ReadArena, left: Bytes, size: int, data: IO[bytes]
) -> tuple[int, Exception | None]:
    """Fill an arena's buffer up to `size` bytes, first with `left` of the chunk before.

    Returns (bytes in the buffer, fewer only at the end of the file or at a fault; the fault).
    """
    end = len(left)
    step = _FILE_STEP if isinstance(getattr(data, "raw", None), FileIO) else _STEP
    arena.buffer[:end] = left
    room = memoryview(arena.buffer)  # type: ignore[arg-type]
    try:
        while end < size:
            count = cast("Any", data).readinto(room[end : min(end + step, size)])
            if not count:
                break
            end += count
    except READ_ERRORS as error:
        return end, error
    return end, None


def after_sized_events(size: int) -> Cut:
    """Cut N-Triples after the last complete event of `size` statements."""
    return lambda buffer, begin, end: last_event_end(buffer, begin, end, size)


def before_graphs(reader: StatementReader) -> Cut:
    """Cut N-Quads before the last named graph that begins, else after the default graph's triples.

    The cut tokenizes the end of the chunk to find the offset, and more of the chunk if necessary.
    """
    own = replace(reader, pool=ArenaPool(1))

    def cut(buffer: Bytes, begin: int, end: int) -> int:
        for window in _WINDOWS:
            start = last_line_end(buffer, begin, max(end - window, begin))
            if start == begin:
                break
            graph = _last_graph(own.read(chunk_of(buffer[start:end], own.pool)))
            if graph:
                return start + graph
        statements = own.read(chunk_of(buffer[begin:end], own.pool))
        graph = _last_graph(statements)
        may_go_on = len(statements) and statements.g[-1] >= 0
        return begin + graph if graph or may_go_on else end

    return cut


def chunk_of(text: Bytes, pool: ArenaPool) -> LineChunk:
    """Whole lines of text as a chunk."""
    arena = pool.take(len(text))
    arena.buffer[: len(text)] = text
    arena.buffer[len(text) : len(text) + PAD] = _LF
    return LineChunk(arena, 0, len(text))


def _last_graph(statements: Statements) -> int:
    """The offset of the last line that begins a named graph, other than line 0; 0 if none does."""
    g = statements.g
    begins = np.flatnonzero((g[1:] != g[:-1]) & (g[1:] >= 0)) + 1
    return int(statements.at[begins[-1]]) if len(begins) else 0
