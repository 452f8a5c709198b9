"""What one task of stage 1 reads of a stream: ranges of its files, and what came before them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, chdir, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.options import RANGE_BYTES
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.files import STDIN, InputFile, resolve_paths
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.ranges import (
    FileRange,
    divide,
    is_divisible,
    is_line_format,
    lines_before,
    read_range,
    scan_times,
    size_of,
)
from spaseq.rdf.readers import ArrivalClock

MOST_RANGE_BYTES = 128 * 2**20
PIECES = 16
"""A task reads about `RANGE_BYTES`; more in a stream of more than `PIECES` times as many."""

_PEEK_BYTES = 64 * 2**10

_AHEAD = 4  # ranges that are time_scanned at a time, per thread


def paths_from(directory: str | None) -> AbstractContextManager[object]:
    """Where relative paths start from `directory`, if this machine has it.

    Spark keeps worker processes for later tasks, and names the files that it ships relative to
    where an executor started: a worker goes back there.
    """
    return nullcontext() if directory is None or not os.path.isdir(directory) else chdir(directory)


@dataclass(frozen=True, slots=True)
class Ties:
    """Earlier events of the stream at the times (ms, ascending) of some later ones."""

    times: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    counts: Int64s = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class InputSplit:
    """Ranges of one stream, in order. `number` is the work's place among those of a run.

    If no time scan came before, what precedes the split is not known: its events of the first time
    are numbered too low, and so are its lines.
    """

    number: int
    stream: int
    parts: tuple[FileRange, ...]
    ties: Ties = field(default_factory=Ties)
    time_scanned: bool = True


def bounded_works(
    streams: Sequence[StreamOptions], range_bytes: int | None = None, time_scanned: bool = True
) -> list[InputSplit]:
    """All that there is to read, in pieces of about `range_bytes`.

    If that is not given, the pieces of a long stream are larger, because every task costs
    computing.

    N-Quads and N-Triples are divided. To number events of equal time, and lines, their ranges are
    read once for times alone; where a stream is small, or has a file in another format, one task
    reads all of it. `time_scanned=False` leaves out the scan for streams that seem to be in order
    of time; `tie_numbering` makes up for it.
    """
    works: list[InputSplit] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, options in enumerate(streams):
            for parts, ties in _of_stream(options, range_bytes, pool, time_scanned):
                known = ties is not None
                works.append(InputSplit(len(works), number, parts, ties or Ties(), known))
    return works


def read_work(work: InputSplit, options: StreamOptions, on_bad: OnBad) -> Iterator[EventBatch]:
    """The events of a work, numbered as those of the whole stream if it was time_scanned; lines are
    always numbered as those of their file."""
    counter = InstantCounter.after(work.ties.times, work.ties.counts)
    arrival = ArrivalClock()
    for part in work.parts:
        report = on_bad if work.time_scanned else _counting_lines(part, on_bad)
        yield from read_range(part, options, report, counter, arrival)


def _counting_lines(part: FileRange, on_bad: OnBad) -> OnBad:
    """`on_bad` for bad input of a range of which it is not known how many lines are before it."""

    @cache
    def before() -> int:
        return lines_before(part)

    def report(bad: BadInput) -> None:
        on_bad(bad if bad.line is None else replace(bad, line=bad.line + before()))

    return report


def range_bytes_for(size: int) -> int:
    """Into pieces of how many bytes a stream of `size` bytes is divided.

    >>> [range_bytes_for(n * 2**20) // 2**20 for n in (10, 512, 1024, 2048, 100_000)]
    [32, 32, 64, 128, 128]
    """
    return min(max(size // PIECES, RANGE_BYTES), MOST_RANGE_BYTES)


def _of_stream(
    options: StreamOptions, range_bytes: int | None, pool: Executor, time_scanned: bool
) -> Iterator[tuple[tuple[FileRange, ...], Ties | None]]:
    """The ranges of works, with the ties of those that need no survey or have had one."""
    files = resolve_paths(options)
    whole = tuple(FileRange(file) for file in files)
    if options.arrival_time or not all(is_line_format(f) and f.path != STDIN for f in files):
        yield whole, Ties()
        return
    sizes = [size_of(file) for file in files]
    range_bytes = range_bytes or range_bytes_for(sum(sizes))
    if sum(sizes) <= range_bytes:
        yield whole, Ties()
        return
    groups = list(_ranges(files, sizes, options, range_bytes))
    if not time_scanned and _seem_ordered(groups, options):
        yield from ((tuple(group), None) for group in groups)
        return
    counter = InstantCounter()
    for group in _surveyed(groups, options, pool):
        parts = tuple(part for part, _ in group)
        yield parts, Ties(*counter.skip(np.concatenate([times for _, times in group])))


def _ranges(
    files: Iterable[InputFile], sizes: Iterable[int], options: StreamOptions, range_bytes: int
) -> Iterator[list[FileRange]]:
    """The ranges of all files, small ones together."""
    group: list[FileRange] = []
    room = range_bytes
    for file, size in zip(files, sizes, strict=True):
        parts = [FileRange(file)]
        if is_divisible(file) and size > range_bytes:
            parts = divide(file, options, 0, size, range_bytes)
        for part in parts:
            length = (size if part.end is None else part.end) - part.begin
            if group and length > room:
                yield group
                group, room = [], range_bytes
            group.append(part)
            room -= length
    if group:
        yield group


def _seem_ordered(groups: Iterable[list[FileRange]], options: StreamOptions) -> bool:
    """Whether no range has, close to its ends, a time before one at the end of another before."""
    end: int | None = None
    for part in (part for group in groups for part in group):
        size = size_of(part.file) if part.end is None else part.end
        head = replace(part, end=min(part.begin + _PEEK_BYTES, size))
        tail = replace(part, begin=max(part.begin, size - _PEEK_BYTES), end=size)
        first, last = (scan_times(peek, options).times for peek in (head, tail))
        if end is not None and len(first) and first.min() < end:
            return False
        end = max((int(t.max()) for t in (first, last) if len(t)), default=end)
    return True


def _surveyed(
    groups: Iterable[list[FileRange]], options: StreamOptions, pool: Executor
) -> Iterator[list[tuple[FileRange, Int64s]]]:
    """Ranges with the number of their first line, and the times of their events."""
    waiting = iter(groups)
    line = 1
    ahead = _AHEAD * (os.cpu_count() or 1)
    while some := list(islice(waiting, ahead)):
        found = pool.map(scan_times, *zip(*((p, options) for g in some for p in g), strict=True))
        for group in some:
            placed = []
            for part in group:
                known = next(found)
                line = line if part.begin else 1
                placed.append((replace(part, line=line), known.times))
                line += known.lines
            yield placed
