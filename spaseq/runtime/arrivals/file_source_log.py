"""What of which stream has been taken in which batch, written down before it is read.

A batch, once written, never changes, so that a batch that is run again reads the same bytes in the
same order, with the same judgement on lateness. Files found together come in order of modification
time. A file is taken once, by name; if files are said to grow, what has been added since is taken,
but for the last event, to which more may belong.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from spaseq.errors import InputError, RunError
from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.ranges import FileRange, divide, is_divisible, last_place, places, scan_times
from spaseq.rdf.readers import InputFile, StreamOptions, resolve_paths
from spaseq.runtime.arrivals.stream_clock import StreamClock, raise_idle

COMPACT_EVERY = 50
"""Batches between two lists of everything that has been taken."""

_PIECES = 2  # of a large batch, per core

WHOLE = -1
"""How far a file that cannot be divided has been taken."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A range taken in a batch; where the stream stood before it; how many lines it has.

    `size` is the file's when it was found, all of which is to be taken.
    """

    part: FileRange
    clock: StreamClock
    lines: int
    size: int


@dataclass(frozen=True, slots=True)
class StreamArrivals:
    """What a batch has of one stream.

    `clock` is where the stream stands after it; `since` when (ms) it last had new input.
    """

    taken: tuple[FileSlice, ...]
    clock: StreamClock
    since: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A batch, by stream, the time (ms) at which it was found, and the name of the knowledge base
    that was current then."""

    at: int
    streams: tuple[StreamArrivals, ...]
    knowledge: str = ""


class PendingFile(NamedTuple):
    """Bytes begin:end of a file that wait to be taken, ordered as they are taken."""

    modified_ns: int
    path: str
    file: InputFile
    begin: int
    end: int
    line: int
    size: int


Bounds: TypeAlias = Sequence[Mapping[str, int]]
"""By stream and path: how far a file may be taken."""


def write_atomically(path: Path, text: str) -> None:
    """The whole text or nothing, whenever the process is killed."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


def present_files(options: StreamOptions) -> list[InputFile]:
    """The files of a stream that are there now; a glob may have no match yet.

    Names that begin with `.` or `_` are left out, as files that are still being written.
    """
    files: list[InputFile] = []
    for path in options.paths:
        if has_magic(path) and not os.path.exists(path) and not glob(path, recursive=True):
            continue
        files.extend(resolve_paths(replace(options, paths=(path,))))
    return [f for f in files if os.path.basename(f.path)[0] not in "._"]


_CURRENT = "knowledge"


class FileSourceLog:
    """The batches so far, numbered from 1, in files of a directory of their own."""

    def __init__(
        self,
        directory: Path,
        streams: Sequence[StreamOptions],
        settings: FileSourceSettings | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._directory, self._streams = directory, tuple(streams)
        self._settings = settings or FileSourceSettings()
        self._wall = wall
        self._started = int(wall() * 1000)
        self._taken: list[
            dict[str, list[int]]
        ] = []  # path -> [bytes or WHOLE, following line, size]
        self._upto = -1  # the batch that `_taken` stands at; -1: not read yet
        self.behind = False  # whether the last batch that was planned left something that was there
        directory.mkdir(parents=True, exist_ok=True)

    def batch(self, number: int) -> Arrivals:
        """What a batch holds.

        Raises:
            RunError: the log is damaged.
        """
        path = self._path(number)
        try:
            at, streams, knowledge = json.loads(path.read_text("utf-8"))
            return Arrivals(at, tuple(_stream_of(s) for s in streams), knowledge)
        except (OSError, ValueError) as error:
            raise RunError(f"the checkpoint is damaged: {path}: {error}") from error

    def use_knowledge(self, name: str) -> None:
        """From now on new batches are read with this knowledge base."""
        write_atomically(self._directory / _CURRENT, name)

    def knowledge_in_use(self) -> set[str]:
        """The knowledge bases that may still be read."""
        found = {self._current()}
        for path in self._directory.glob("[0-9]*.json"):
            if path.stem.isdigit():
                try:
                    found.add(self.batch(int(path.stem)).knowledge)
                except RunError:
                    if path.exists():  # it has not just been forgotten, by the source's process
                        raise
        return found

    def _current(self) -> str:
        path = self._directory / _CURRENT
        return path.read_text("utf-8") if path.exists() else ""

    def clocks(self, number: int) -> list[StreamClock]:
        """Where the streams stand after a batch."""
        return [s.clock for s in self._standing(number).streams]

    def waiting(self, after: int) -> list[list[PendingFile]]:
        """What is there, by stream, and not taken up to batch `after`."""
        self._load(after)
        pairs = zip(self._streams, self._taken, strict=True)
        return [self._found(options, taken) for options, taken in pairs]

    def bounds(self) -> Bounds:
        """How far what is there now goes, for `take`."""
        return [_sizes(present_files(options)) for options in self._streams]

    def take(self, after: int, among: Bounds | None = None, max_bytes: float | None = None) -> int:
        """The number of the batch that follows `after`, or `after` if there is nothing new.

        `among` restricts what may be taken; `max_bytes` overrides the setting.
        """
        if self._path(after + 1).exists():
            return after + 1  # written by a run that ended before it could use it
        waiting = self.waiting(after)
        if among is not None:
            pairs = zip(waiting, among, strict=True)
            waiting = [[_within(f, b[f.path]) for f in w if f.path in b] for w, b in pairs]
        limit = self._settings.max_bytes if max_bytes is None else max_bytes
        chosen = [
            self._bounded(options, found, limit)
            for options, found in zip(self._streams, waiting, strict=True)
        ]
        self.behind = chosen != waiting
        before = self._standing(after)
        at = int(self._wall() * 1000)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            streams = [
                self._stream(options, found, stood, at, pool)
                for options, found, stood in zip(self._streams, chosen, before.streams, strict=True)
            ]
        raised = self._raise_idle(streams, at)
        if not raised and not any(s.taken for s in streams):
            return after
        entry = [at, [_stream_json(s) for s in streams], self._current()]
        write_atomically(self._path(after + 1), json.dumps(entry))
        return after + 1

    def forget(self, before: int) -> None:
        """Remove what is not needed to run the batches from `before` on."""
        compacted = max((c for c in self._compacted() if c <= before), default=0)
        for path in self._directory.glob("[0-9]*.json"):
            number = int(path.name.split(".")[0])
            if number < min(before, compacted):
                path.unlink(missing_ok=True)

    def _standing(self, number: int) -> Arrivals:
        """A batch, or what stands before the first."""
        if number:
            return self.batch(number)
        fresh = [
            StreamArrivals((), StreamClock(self._settings.delay_ms), self._started)
            for _ in self._streams
        ]
        return Arrivals(self._started, tuple(fresh))

    # --- what is there ----------------------------------------------------------------------------

    def _found(self, options: StreamOptions, taken: Mapping[str, list[int]]) -> list[PendingFile]:
        """What waits in files that are still there, by modification time, then name."""
        found = []
        for file in present_files(options):
            known = taken.get(file.path)
            grows = self._settings.growing and is_divisible(file)
            begin, line, size = known or (0, 1, 0)
            if known is not None and (begin == WHOLE or (begin >= size and not grows)):
                continue
            try:
                status = os.stat(file.path)
            except FileNotFoundError:
                continue
            end = size if known is not None and not grows else status.st_size
            if grows and begin < end and not self._is_settled(status):
                end = last_place(file, options, begin, end)
            if begin < end or not (grows or known):
                found.append(
                    PendingFile(status.st_mtime_ns, file.path, file, begin, end, line, end)
                )
        return sorted(found, key=lambda f: f[:2])

    def _is_settled(self, status: os.stat_result) -> bool:
        return self._wall() * 1000 - status.st_mtime_ns / 1e6 >= self._settings.settle_ms

    # --- what is taken ----------------------------------------------------------------------------

    def _stream(
        self,
        options: StreamOptions,
        chosen: list[PendingFile],
        stood: StreamArrivals,
        at: int,
        pool: ThreadPoolExecutor,
    ) -> StreamArrivals:
        clock = StreamClock.of_json(stood.clock.as_json())
        total = sum(f.end - f.begin for f in chosen)
        # A task costs computing, so that a large batch is not divided further than need be.
        step = max(self._settings.range_bytes, total // (_PIECES * (os.cpu_count() or 1)))
        ranges = [part for found in chosen for part in self._ranges(options, found, step)]
        taken = []
        surveys = pool.map(scan_times, ranges, [options] * len(ranges))
        following = {f.path: f.line for f in chosen}
        sizes = {f.path: f.size for f in chosen}
        for part, known in zip(ranges, surveys, strict=True):
            line = following[part.file.path]
            following[part.file.path] = line + known.lines
            before, size = clock.before(known.times), sizes[part.file.path]
            taken.append(FileSlice(replace(part, line=line), before, known.lines, size))
            clock.pass_over(known.times)
        return StreamArrivals(tuple(taken), clock, at if taken else stood.since)

    def _bounded(
        self, options: StreamOptions, waiting: list[PendingFile], limit: float
    ) -> list[PendingFile]:
        total, chosen = 0, list[PendingFile]()
        for found in waiting:
            left, size = limit - total, found.end - found.begin
            if size > left:
                if chosen:
                    break
                found = _first_bytes(found, options, int(left))
            total += size
            chosen.append(found)
        return chosen

    def _ranges(self, options: StreamOptions, found: PendingFile, step: int) -> list[FileRange]:
        if not is_divisible(found.file):
            return [FileRange(found.file)]
        try:
            return divide(found.file, options, found.begin, found.end, step)
        except InputError:  # it is gone; whoever reads it will say so
            return [FileRange(found.file, found.begin, found.end)]

    def _raise_idle(self, streams: Sequence[StreamArrivals], at: int) -> bool:
        """Let the watermarks of idle streams follow those of the others; whether one has risen."""
        idle_ms = self._settings.idle_ms
        if idle_ms is None:
            return False
        return raise_idle((s.clock, at - s.since >= idle_ms) for s in streams)

    # --- what has been taken ----------------------------------------------------------------------

    def _load(self, upto: int) -> None:
        compacted = max((c for c in self._compacted() if c <= upto), default=0)
        if not compacted <= self._upto <= upto:
            self._upto = compacted
            self._taken = [{} for _ in self._streams]
            if self._upto:
                self._taken = json.loads(self._path(self._upto, ".taken").read_text("utf-8"))
        for number in range(self._upto + 1, upto + 1):
            for taken, stream in zip(self._taken, self.batch(number).streams, strict=True):
                for t in stream.taken:
                    end = WHOLE if t.part.end is None else t.part.end
                    taken[t.part.file.path] = [end, t.part.line + t.lines, t.size]
            self._upto = number
            if number % COMPACT_EVERY == 0:
                self._compact(number)

    def _compact(self, number: int) -> None:
        """List everything taken. A file that is gone cannot be found again, so it is left out."""
        for i, options in enumerate(self._streams):
            present = {f.path for f in present_files(options)}
            self._taken[i] = {p: t for p, t in self._taken[i].items() if p in present}
        write_atomically(self._path(number, ".taken"), json.dumps(self._taken))

    def _compacted(self) -> list[int]:
        return [int(p.name.split(".")[0]) for p in self._directory.glob("[0-9]*.taken.json")]

    def _path(self, number: int, kind: str = "") -> Path:
        return self._directory / f"{number}{kind}.json"


def _sizes(files: Sequence[InputFile]) -> dict[str, int]:
    """The bytes of those files that are still there."""
    sizes = {}
    for file in files:
        with suppress(FileNotFoundError):
            sizes[file.path] = os.stat(file.path).st_size
    return sizes


def _within(found: PendingFile, end: int) -> PendingFile:
    return found._replace(end=min(found.end, end))


def _first_bytes(found: PendingFile, options: StreamOptions, size: int) -> PendingFile:
    """The first events of a file, about so many bytes; all of it if it cannot be divided."""
    if not is_divisible(found.file):
        return found
    try:
        cut = next(places(found.file, options, found.begin, found.end, max(size, 1)), None)
    except InputError:  # it is gone; whoever reads it will say so
        cut = None
    return found if cut is None else found._replace(end=cut)


def _stream_json(stream: StreamArrivals) -> list[Any]:
    taken = [
        [
            t.part.file.path,
            t.part.file.format.value,
            t.part.begin,
            t.part.end,
            t.part.line,
            t.lines,
            t.size,
            t.clock.as_json(),
        ]
        for t in stream.taken
    ]
    return [taken, stream.clock.as_json(), stream.since]


def _stream_of(value: list[Any]) -> StreamArrivals:
    taken, clock, since = value
    return StreamArrivals(tuple(_taken_of(t) for t in taken), StreamClock.of_json(clock), since)


def _taken_of(value: list[Any]) -> FileSlice:
    path, form, begin, end, line, lines, size, clock = value
    part = FileRange(InputFile(path, Format(form)), begin, end, line)
    return FileSlice(part, StreamClock.of_json(clock), lines, size)
