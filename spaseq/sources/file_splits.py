"""Divides the files of a bounded stream into splits that tasks read at the same time.

A split needs two numbers about the splits before it: their lines, and their events with the same
time as an event of the split. A time scan of the ranges finds both. A stream that seems to be in
order of time is not scanned: its splits follow each other in time, so only the time at an edge
between two splits occurs on both sides.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import field, replace
from functools import cache
from itertools import islice

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.files import InputFile, resolve_paths
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
from spaseq.records import record
from spaseq.sources.base import Split

SPLIT_BYTES = 32 * 2**20
"""The usual size of a split. The splits of a stream of more than `SPLITS` times this are larger."""

MOST_SPLIT_BYTES = 128 * 2**20
SPLITS = 16

_PEEK_BYTES = 64 * 2**10

_AHEAD = 4  # ranges per thread that are scanned before the first of them is used


@record
class Ties:
    """How many earlier events of the stream have each of some times (ms, ascending)."""

    times: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    counts: Int64s = field(default_factory=lambda: np.empty(0, np.int64))


@record
class FileSplit(Split):
    """Ranges of files, in order, and how many earlier events have the times that occur in them.

    Without a time scan the ties are not known, nor are the numbers of the ranges' first lines.
    """

    ranges: tuple[FileRange, ...]
    ties: Ties = field(default_factory=Ties)
    time_scanned: bool = True


def split_bytes_for(size: int) -> int:
    """The size of the splits of a stream of `size` bytes.

    Every task costs time, so a long stream has larger splits instead of more of them.

    >>> [split_bytes_for(n * 2**20) // 2**20 for n in (10, 512, 1024, 2048, 100_000)]
    [32, 32, 64, 128, 128]
    """
    return min(max(size // SPLITS, SPLIT_BYTES), MOST_SPLIT_BYTES)


def split_files(
    options: StreamOptions, pool: Executor, split_bytes: int | None, time_scan: bool
) -> Iterator[FileSplit]:
    """The splits of a stream's files; see `Source.splits` for the arguments."""
    files = resolve_paths(options)
    whole = FileSplit(tuple(FileRange(file) for file in files))
    if options.arrival_time or not all(map(is_line_format, files)):
        yield whole
        return
    sizes = [size_of(file) for file in files]
    split_bytes = split_bytes or split_bytes_for(sum(sizes))
    if sum(sizes) <= split_bytes:
        yield whole
        return
    groups = list(_ranges(files, sizes, options, split_bytes))
    if not time_scan and _seem_ordered(groups, options):
        for group in groups:
            yield FileSplit(tuple(group), time_scanned=False)
        return
    counter = InstantCounter()
    for scanned in _scanned(groups, options, pool):
        ranges = tuple(part for part, _ in scanned)
        ties = Ties(*counter.skip(np.concatenate([times for _, times in scanned])))
        yield FileSplit(ranges, ties)


def read_split(split: FileSplit, options: StreamOptions, on_bad: OnBad) -> Iterator[EventBatch]:
    """The events of a split. Bad input is reported with its line number in the file."""
    counter = InstantCounter.after(split.ties.times, split.ties.counts)
    arrival = ArrivalClock()
    for part in split.ranges:
        report = on_bad if split.time_scanned else _counting_lines(part, on_bad)
        yield from read_range(part, options, report, counter, arrival)


def _counting_lines(part: FileRange, on_bad: OnBad) -> OnBad:
    """`on_bad` for a range whose first line has an unknown number; the lines before are counted."""

    @cache
    def before() -> int:
        return lines_before(part)

    def report(bad: BadInput) -> None:
        on_bad(bad if bad.line is None else replace(bad, line=bad.line + before()))

    return report


def _ranges(
    files: Iterable[InputFile], sizes: Iterable[int], options: StreamOptions, split_bytes: int
) -> Iterator[list[FileRange]]:
    """The ranges of each split: pieces of a large file, or several small files."""
    group: list[FileRange] = []
    room = split_bytes
    for file, size in zip(files, sizes, strict=True):
        parts = [FileRange(file)]
        if is_divisible(file) and size > split_bytes:
            parts = divide(file, options, 0, size, split_bytes)
        for part in parts:
            length = (size if part.end is None else part.end) - part.begin
            if group and length > room:
                yield group
                group, room = [], split_bytes
            group.append(part)
            room -= length
    if group:
        yield group


def _seem_ordered(groups: Iterable[list[FileRange]], options: StreamOptions) -> bool:
    """Whether the ranges follow each other in time, as far as their first and last events tell."""
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


def _scanned(
    groups: Iterable[list[FileRange]], options: StreamOptions, pool: Executor
) -> Iterator[list[tuple[FileRange, Int64s]]]:
    """Each split's ranges with their first line's number, and the times (ms) of their events."""
    waiting = iter(groups)
    line = 1
    ahead = _AHEAD * (os.cpu_count() or 1)
    while some := list(islice(waiting, ahead)):
        scans = pool.map(scan_times, *zip(*((p, options) for g in some for p in g), strict=True))
        for group in some:
            placed = []
            for part in group:
                scan = next(scans)
                line = line if part.begin else 1
                placed.append((replace(part, line=line), scan.times))
                line += scan.lines
            yield placed
