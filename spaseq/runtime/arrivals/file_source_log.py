"""Write-ahead log of the files that each micro-batch of a followed run reads.

A batch is logged before a task reads it, and never changes. So a batch that is run again reads the
same bytes in the same order, and finds the same late events. The state of the queries can be
rebuilt from the batches, which are kept as long as it depends on their events.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from spaseq.options import FileSourceSettings
from spaseq.rdf.ranges import FileRange, TimeScan, scan_times
from spaseq.runtime.arrivals.arrived_batch import (
    ArrivedBatch,
    FileSlice,
    StreamArrivals,
    arrived_splits,
    bytes_of,
)
from spaseq.runtime.arrivals.batch_files import BatchFiles
from spaseq.runtime.arrivals.log_depth import Depth
from spaseq.runtime.arrivals.passing_time import raise_silent
from spaseq.runtime.arrivals.stream_clock import Horizon, StreamClock, horizons
from spaseq.sources.files import WHOLE, FilePosition, GrowingFiles, PendingFile
from spaseq.storage.checksums import read_json, write_json

COMPACT_EVERY = 50
"""Number of batches after which the log lists the position in every file."""

_RANGES_PER_CORE = 2  # of a large batch
_LEAST_RANGE = 4 * 2**20  # bytes for which a task pays off

Sizes: TypeAlias = Sequence[Mapping[str, int]]
"""By stream and path: the byte up to which a file may be read."""

_CURRENT = "knowledge"
_NO_TIMES = np.empty(0, np.int64)


class FileSourceLog:
    """The batches so far, numbered from 1, in files of one directory.

    Args:
        directory: the log's directory, which is created.
        streams: the followed streams; always the same ones in the same order.
        settings: limits of a batch, and the rules of time.
        wall: the clock, in seconds since the epoch.
        depths: how far back the state of the queries depends on events.
    """

    def __init__(
        self,
        directory: Path,
        streams: Sequence[GrowingFiles],
        settings: FileSourceSettings | None = None,
        wall: Callable[[], float] = time.time,
        depths: Sequence[Depth] = (),
    ) -> None:
        self._directory, self._streams = directory, tuple(streams)
        self._settings = settings or FileSourceSettings()
        self._wall, self._depths = wall, depths
        self._batches = BatchFiles(directory)
        self._needed: int | None = None  # the state depends on what comes after; None: not sought
        self._listed: set[int] | None = None
        self._started = int(wall() * 1000)
        self._positions: list[dict[str, FilePosition]] = []  # by stream and path
        self._upto = -1  # the last batch that `_positions` includes; -1: they are not loaded
        self.has_backlog = False  # whether the batch planned last left input that was there
        directory.mkdir(parents=True, exist_ok=True)

    def batch(self, number: int) -> ArrivedBatch:
        """The input of a batch.

        Raises:
            RunError: the log is damaged.
        """
        return self._batches.batch(number)

    def use_knowledge(self, name: str) -> None:
        """Use this knowledge base for new batches."""
        write_json(self._directory / _CURRENT, name)

    def knowledge_in_use(self) -> set[str]:
        """The knowledge bases of the current batch and of all that may be run again."""
        return {self.current_knowledge(), *self._batches.knowledge()}

    def current_knowledge(self) -> str:
        """The knowledge base for new batches."""
        path = self._directory / _CURRENT
        return read_json(path, str) if path.exists() else ""

    def clocks(self, number: int) -> list[StreamClock]:
        """The clock of each stream after a batch."""
        return [s.clock for s in self._batch_or_start(number).streams]

    def sizes(self) -> Sizes:
        """The present sizes of all files; a limit for `plan_batch`."""
        return [stream.sizes() for stream in self._streams]

    def pending(self, after: int) -> list[list[PendingFile]]:
        """The files, or parts of files, that are unread after a batch, by stream."""
        self._load(after)
        settled_ms = None
        if self._settings.growing:
            settled_ms = self._wall() * 1000 - self._settings.settle_ms
        pairs = zip(self._streams, self._positions, strict=True)
        return [stream.pending(positions, settled_ms) for stream, positions in pairs]

    def plan_batch(
        self, after: int, upto: Sizes | None = None, max_bytes: float | None = None
    ) -> int:
        """Log the input of the batch that follows `after`.

        Args:
            after: the number of the last batch, 0 for none.
            upto: limits of the positions in files; files without one are not read.
            max_bytes: maximum bytes of each stream, instead of the settings' limit.

        Returns:
            The number of the batch; `after` if there is nothing new.
        """
        if self._batches.has(after + 1):
            return after + 1  # a run that has ended wrote it and did not use it
        waiting = self.pending(after)
        if upto is not None:
            pairs = zip(waiting, upto, strict=True)
            waiting = [[_cut(f, sizes[f.path]) for f in w if f.path in sizes] for w, sizes in pairs]
        limit = self._settings.max_bytes if max_bytes is None else max_bytes
        chosen = [_within(*pair, limit) for pair in zip(self._streams, waiting, strict=True)]
        self.has_backlog = chosen != waiting
        at = int(self._wall() * 1000)
        before = self._batch_or_start(after)
        streams = self._arrivals(chosen, before, at)
        risen = self._raise_idle(streams, at, before.at)
        if not risen and not any(s.slices for s in streams):
            return after
        batch = ArrivedBatch(at, tuple(streams), self.current_knowledge())
        self._batches.write(after + 1, batch)
        return after + 1

    def forget(self, before: int) -> None:
        """Remove the entries that neither batches from `before` on need nor the state after it.

        Those that are left are packed.
        """
        if self._needed is None:
            self._needed = self.begin()
        while self._needed < before and self.reaches_back(self._needed + 1, before):
            self._needed += 1
        listed = self._compacted().copy()  # another thread may add to it
        compacted = max((c for c in listed if c <= before), default=0)
        self._batches.remove(min(before, compacted, self._needed))
        self._batches.pack(before)
        for number in [c for c in listed if c < compacted]:
            self._taken_path(number).unlink(missing_ok=True)
            self._compacted().discard(number)

    # --- rebuilding the state ---------------------------------------------------------------------

    def begin(self) -> int:
        """The first batch after which the log has all batches; 0 if it has all there ever were."""
        first = self._batches.first() or 1
        return 0 if first == 1 else first

    def reaches_back(self, begin: int, upto: int) -> bool:
        """Whether the state after batch `upto` depends on no event up to batch `begin`."""
        if not begin or not self._depths:
            return True
        then, now = self.batch(begin), self.batch(upto)
        iris = [stream.iri for stream in self._streams]
        counts = [(a.accepted, b.accepted) for a, b in zip(then.streams, now.streams, strict=True)]
        if any(d.events is not None for d in self._depths) and any(None in c for c in counts):
            return False
        latest = dict(zip(iris, (s.clock.latest for s in then.streams), strict=True))
        marks = dict(zip(iris, (s.clock.watermark for s in now.streams), strict=True))
        before = {iri: a or 0 for iri, (a, _) in zip(iris, counts, strict=True)}
        accepted = {iri: b or 0 for iri, (_, b) in zip(iris, counts, strict=True)}
        return all(d.reach(marks, accepted).is_after(latest, before) for d in self._depths)

    def repeated(self, after: int, last: int, most: float) -> int:
        """The last batch of a repetition of the batches after `after`, at most `last`.

        They share a knowledge base and have about `most` bytes at most.
        """
        number, first = after + 1, self.batch(after + 1)
        size = bytes_of(arrived_splits([first]))
        while number < last:
            following = self.batch(number + 1)
            size += bytes_of(arrived_splits([following]))
            if size > most or following.knowledge != first.knowledge:
                break
            number += 1
        return number

    def _batch_or_start(self, number: int) -> ArrivedBatch:
        """A batch; for 0, the start of the run."""
        if number:
            return self.batch(number)
        fresh = [
            StreamArrivals((), StreamClock(self._settings.delay_ms), self._started, 0)
            for _ in self._streams
        ]
        return ArrivedBatch(self._started, tuple(fresh))

    # --- the input of a batch ---------------------------------------------------------------------

    def _arrivals(
        self, chosen: Sequence[list[PendingFile]], before: ArrivedBatch, at: int
    ) -> list[StreamArrivals]:
        """The chosen files as the arrivals of a batch that is planned now, at `at` (ms)."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            pairs = zip(self._streams, chosen, strict=True)
            scanned = [self._scanned(stream, files, pool) for stream, files in pairs]
        ahead = horizons(
            at,
            [last.clock.latest for last in before.streams],
            [np.concatenate([_NO_TIMES, *(scan.times for _, scan in scans)]) for scans in scanned],
            self._settings.max_ahead_ms,
        )
        given = zip(chosen, scanned, before.streams, ahead, strict=True)
        return [_stream_arrivals(*stream, at) for stream in given]

    def _scanned(
        self, stream: GrowingFiles, chosen: list[PendingFile], pool: ThreadPoolExecutor
    ) -> list[tuple[FileRange, TimeScan]]:
        """The chosen files divided into ranges, each scanned for its times."""
        total = sum(f.end - f.begin for f in chosen)
        # Each core has a task, and none many, as each costs time.
        cores = os.cpu_count() or 1
        small = min(self._settings.range_bytes, max(total // cores, _LEAST_RANGE))
        step = max(small, total // (_RANGES_PER_CORE * cores))
        ranges: list[FileRange] = [part for f in chosen for part in stream.divide(f, step)]
        scans = pool.map(scan_times, ranges, [stream.options] * len(ranges))
        return list(zip(ranges, scans, strict=True))

    def _raise_idle(self, streams: Sequence[StreamArrivals], at: int, before: int) -> bool:
        """Raise the watermarks of idle streams; whether one has risen."""
        idle_ms = self._settings.idle_ms
        if idle_ms is None:
            return False
        clocks = [(s.clock, at - s.since >= idle_ms) for s in streams]
        return raise_silent(clocks, at, before, self._settings)

    # --- positions in files -----------------------------------------------------------------------

    def _load(self, upto: int) -> None:
        """Bring `_positions` to the positions after a batch."""
        compacted = max((c for c in self._compacted() if c <= upto), default=0)
        if not compacted <= self._upto <= upto:
            self._upto = compacted
            self._positions = [{} for _ in self._streams]
            if self._upto:
                self._positions = read_json(self._taken_path(self._upto), _positions_of)
        for number in range(self._upto + 1, upto + 1):
            for positions, stream in zip(self._positions, self.batch(number).streams, strict=True):
                for s in stream.slices:
                    end = WHOLE if s.range.end is None else s.range.end
                    following = s.range.line + s.lines
                    positions[s.range.file.path] = FilePosition(end, following, s.size)
            self._upto = number
            if number % COMPACT_EVERY == 0:
                self._compact(number)

    def _compact(self, number: int) -> None:
        """List all positions. A file that is gone cannot be found again, so it is left out."""
        for i, stream in enumerate(self._streams):
            present = {f.path for f in stream.present()}
            self._positions[i] = {p: t for p, t in self._positions[i].items() if p in present}
        write_json(self._taken_path(number), self._positions)
        self._compacted().add(number)

    def _compacted(self) -> set[int]:
        """The batches after which the positions were listed."""
        if self._listed is None:
            there = self._directory.glob("[0-9]*.taken.json")
            self._listed = {int(path.name.partition(".")[0]) for path in there}
        return self._listed

    def _taken_path(self, number: int) -> Path:
        return self._directory / f"{number}.taken.json"


def _positions_of(value: list[dict[str, list[int]]]) -> list[dict[str, FilePosition]]:
    """The positions by stream and path, from JSON values."""
    return [{path: FilePosition(*numbers) for path, numbers in stream.items()} for stream in value]


def _stream_arrivals(
    chosen: list[PendingFile],
    scanned: Sequence[tuple[FileRange, TimeScan]],
    last: StreamArrivals,
    horizon: Horizon,
    at: int,
) -> StreamArrivals:
    """The slices of one stream's files, and its clock after them."""
    clock, accepted = StreamClock.of_json(last.clock.as_json()), last.accepted
    following = {f.path: f.line for f in chosen}
    sizes = {f.path: f.size for f in chosen}
    slices = []
    for part, scan in scanned:
        path = part.file.path
        line = following[path]
        following[path] = line + scan.lines
        times = scan.times[horizon.admits(clock.latest, scan.times)]
        numbered, before = replace(part, line=line), clock.before(times)
        slices.append(FileSlice(numbered, before, scan.lines, sizes[path], horizon))
        in_time = clock.pass_over(times, at)
        accepted = None if accepted is None else accepted + in_time
    return StreamArrivals(tuple(slices), clock, at if slices else last.since, accepted)


def _cut(file: PendingFile, end: int) -> PendingFile:
    """The unread part of a file, up to the byte `end`."""
    return file._replace(end=min(file.end, end))


def _within(stream: GrowingFiles, waiting: list[PendingFile], limit: float) -> list[PendingFile]:
    """The first of the unread files, up to `limit` bytes."""
    total, chosen = 0, list[PendingFile]()
    for file in waiting:
        left, size = limit - total, file.end - file.begin
        if size > left:
            if chosen:
                break
            file = stream.first_bytes(file, int(left))
        total += size
        chosen.append(file)
    return chosen
