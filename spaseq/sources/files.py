"""Files, and standard input, as a source: read to their ends, in splits that tasks read at the same
time, or followed.

Files that are followed arrive in directories, or are appended to.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import field, replace
from functools import cache
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.errors import InputError, UsageError
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import STDIN, InputFile, resolve_paths
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.rdf.ranges import (
    ArrivalClock,
    FileRange,
    divide,
    is_divisible,
    is_line_format,
    last_place,
    lines_before,
    places,
    read_files,
    read_range,
    read_stream,
    scan_times,
    size_of,
)
from spaseq.records import record
from spaseq.sources.base import Source, Split, SplitNumbering

_UNPACKED = 20
"""Ratio of a packed file's unpacked size to its size that few files exceed."""


@record
class PathSource(Source):
    """The files of `options.paths`."""

    options: StreamOptions

    @property
    def iri(self) -> str:
        return self.options.iri

    def describe(self) -> str:
        return ", ".join(self.options.paths)

    def check(self) -> None:
        resolve_paths(self.options)

    def size(self) -> int | None:
        try:
            sizes = [(os.stat(f.path), f.path) for f in resolve_paths(self.options)]
        except OSError:  # reading reports the error
            return None
        if not all(stat.S_ISREG(status.st_mode) for status, _ in sizes):
            return None
        return sum(s.st_size * (_UNPACKED if path.endswith(".gz") else 1) for s, path in sizes)

    def keeping(self, predicates: tuple[str, ...] | None) -> Self:
        return replace(self, options=replace(self.options, predicates=predicates))

    def in_batches(self, larger: int) -> Self:
        return replace(self, options=replace(self.options, larger=larger))


SPLIT_BYTES = 32 * 2**20
"""The usual size of a split. The splits of a stream of more than `SPLITS` times this are larger."""

MOST_SPLIT_BYTES = 128 * 2**20
SPLITS = 16

_PEEK_BYTES = 64 * 2**10

_AHEAD = 4  # ranges per thread that are scanned before the first of them is used


@record
class Ties:
    """Numbers of earlier events of the stream at some times (ms, ascending)."""

    times: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    counts: Int64s = field(default_factory=lambda: np.empty(0, np.int64))


@record
class FileSplit(Split):
    """Ranges of files, in order, and how many earlier events have the times that occur in them.

    Without a time scan the ties are not known, nor are the numbers of the ranges' first lines.
    """

    ranges: tuple[FileRange, ...]
    ties: Ties = field(default_factory=Ties)
    numbering: SplitNumbering = SplitNumbering.WHOLE


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
            yield FileSplit(tuple(group), numbering=SplitNumbering.ORDERED)
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
        report = on_bad
        if split.numbering is not SplitNumbering.WHOLE:
            report = _counting_lines(part, on_bad)
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
    """Whether the ranges follow each other in time, judged by their first and last events."""
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


@record
class FileSource(PathSource):
    """The files of `options.paths`, one after the other, each from start to end.

    Files of a directory or glob come in order of name. Names that end in `.gz` are unpacked.
    Workers of a Spark run open the paths themselves.
    """

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return cls(replace(options, paths=given)) if isinstance(given, tuple) else None

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        if split is None:
            return read_stream(self.options, on_bad)

        assert isinstance(split, FileSplit)
        return read_split(split, self.options, on_bad)

    def splits(
        self, pool: Executor, *, split_bytes: int | None = None, time_scan: bool = True
    ) -> Iterable[Split] | None:
        """N-Quads and N-Triples are divided; a small stream, or one with another format, is not."""

        return split_files(self.options, pool, split_bytes, time_scan)

    def followed(self) -> GrowingFiles:

        return GrowingFiles.at(self.options)


WHOLE = -1
"""The `end` of a file that cannot be divided, and has been read."""


class FilePosition(NamedTuple):
    """The position in a file: byte `end`, the next line being number `line`.

    `size` is the end to be read: the file's size when it was found.
    """

    end: int
    line: int
    size: int


class PendingFile(NamedTuple):
    """Bytes begin:end of a file that wait to be read. They sort in the order of reading."""

    modified_ns: int
    path: str
    file: InputFile
    begin: int
    end: int
    line: int
    size: int


@record
class GrowingFiles(PathSource):
    """The files of `options.paths`, whenever they arrive.

    Paths are absolute. A directory must exist; a glob may have no match yet. Names that begin with
    `.` or `_` are left out, as files that are still being written.
    """

    @classmethod
    def at(cls, options: StreamOptions) -> GrowingFiles:
        """The source for these paths, made absolute: they mean the same in every process."""
        return cls(replace(options, paths=tuple(os.path.abspath(p) for p in options.paths)))

    def check(self) -> None:
        self.present()

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        """The events of the files that are there now."""
        counter, arrival = InstantCounter(), ArrivalClock()
        return read_files(self.present(), self.options, on_bad, counter, arrival)

    def followed(self) -> GrowingFiles:
        return self

    def identity(self) -> dict[str, Any]:
        """The parts that must stay the same for a followed run to resume, as JSON values."""
        options = self.options
        return {
            "paths": [os.path.abspath(p) for p in options.paths],
            "time_predicate": options.time_predicate,
            "triples_per_event": options.triples_per_event,
            **({} if options.time_unit == "ms" else {"time_unit": options.time_unit}),
            **({} if options.base is None else {"base": options.base}),
            **({"contexts": own} if (own := options.contexts.identity) else {}),
        }

    def present(self, leave_out: Callable[[str], bool] = lambda path: False) -> list[InputFile]:
        """The files that are there now, but for some of directories, by path.

        Raises:
            InputError: a directory or file does not exist.
        """
        files: list[InputFile] = []
        for path in self.options.paths:
            if has_magic(path) and not os.path.exists(path) and not glob(path, recursive=True):
                continue
            files.extend(resolve_paths(replace(self.options, paths=(path,)), leave_out))
        return [f for f in files if os.path.basename(f.path)[0] not in "._"]

    def sizes(self) -> dict[str, int]:
        """Bytes of each file that is there now, by path."""
        sizes = {}
        for file in self.present():
            with suppress(FileNotFoundError):
                sizes[file.path] = os.stat(file.path).st_size
        return sizes

    def pending(
        self, positions: Mapping[str, FilePosition], settled_ms: float | None = None
    ) -> list[PendingFile]:
        """The unread parts of files, by time of modification, then name.

        A file is read once. If files may be appended to, appended text is read, too, without the
        last event, which may be incomplete. That event waits until text follows it, or until its
        file has settled.

        Args:
            positions: the positions in files, by path.
            settled_ms: a file that has not changed since this time (milliseconds since the epoch)
                has settled; None if files are not appended to.
        """

        def is_read(path: str) -> bool:
            position = positions.get(path)
            if position is None:
                return False
            begin, _, size = position
            return begin == WHOLE or (begin >= size and settled_ms is None)

        waiting = []
        for file in self.present(is_read):
            with suppress(FileNotFoundError):
                pending_file = self._pending(file, positions.get(file.path), settled_ms)
                if pending_file is not None:
                    waiting.append(pending_file)
        return sorted(waiting, key=lambda f: f[:2])

    def _pending(
        self, file: InputFile, position: FilePosition | None, settled_ms: float | None
    ) -> PendingFile | None:
        """The unread part of one file; None if there is none."""
        grows = settled_ms is not None and is_divisible(file)
        begin, line, size = position or FilePosition(0, 1, 0)
        if position is not None and (begin == WHOLE or (begin >= size and not grows)):
            return None
        status = os.stat(file.path)
        end = size if position is not None and not grows else status.st_size
        settled = settled_ms is None or status.st_mtime_ns / 1e6 <= settled_ms
        if grows and begin < end and not settled:
            end = last_place(file, self.options, begin, end)
        if begin < end or not (grows or position):
            return PendingFile(status.st_mtime_ns, file.path, file, begin, end, line, end)
        return None

    def first_bytes(self, waiting: PendingFile, size: int) -> PendingFile:
        """The first events that wait, about `size` bytes; all of a file that is not divisible."""
        if not is_divisible(waiting.file):
            return waiting
        try:
            step = max(size, 1)
            cut = next(places(waiting.file, self.options, waiting.begin, waiting.end, step), None)
        except InputError:  # the file is gone; the task that reads it reports that
            cut = None
        return waiting if cut is None else waiting._replace(end=cut)

    def divide(self, waiting: PendingFile, step: int) -> Sequence[FileRange]:
        """Ranges of about `step` bytes that make up the unread part of a file."""
        if not is_divisible(waiting.file):
            return [FileRange(waiting.file)]
        try:
            return divide(waiting.file, self.options, waiting.begin, waiting.end, step)
        except InputError:  # as above
            return [FileRange(waiting.file, waiting.begin, waiting.end)]


@record
class StdinSource(FileSource):
    """Paths with `-` among them, which is read where it stands.

    Standard input can be read once, and by this process only.
    """

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        if not isinstance(given, tuple) or STDIN not in given:
            return None
        return cls(replace(options, paths=given))

    def describe(self) -> str:
        return "standard input"

    def size(self) -> int | None:
        return None

    def splits(
        self, pool: Executor, *, split_bytes: int | None = None, time_scan: bool = True
    ) -> Iterable[Split] | None:
        return None

    def shared(self, directory: Path) -> Source:
        """Files only: standard input is copied to one."""
        paths = [_copied(directory) if p == STDIN else p for p in self.options.paths]
        return FileSource(replace(self.options, paths=tuple(paths)))

    def followed(self) -> GrowingFiles:
        what = f"stream <{self.iri}>: {self.describe()}"
        raise UsageError(f"{what} cannot be followed on Spark: {self.not_followed}")


def _copied(directory: Path) -> str:
    """Standard input in a new file."""
    handle, path = tempfile.mkstemp(prefix="spaseq-stdin-", suffix=".nq", dir=directory)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path
