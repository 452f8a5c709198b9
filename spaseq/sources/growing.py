"""Files that grow: files that arrive in directories, or that are appended to.

A followed run does not read this source from start to end. It asks again and again what waits, and
reads ranges of files. `runtime.arrivals.file_source_log` records which batch reads which range.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from glob import glob, has_magic
from typing import Any, NamedTuple

from spaseq.errors import InputError
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.inputs.files import InputFile, resolve_paths
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.ranges import FileRange, divide, is_divisible, last_place, places
from spaseq.rdf.readers import ArrivalClock, read_files
from spaseq.records import record
from spaseq.sources.base import Source, Split
from spaseq.sources.path_source import PathSource

WHOLE = -1
"""The `end` of a file that cannot be divided, and has been read."""


class FilePosition(NamedTuple):
    """How far a file has been read: to byte `end`, the next line being number `line`.

    `size` is how far it was to be read: its size when it was found.
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
    """The files that `options.paths` stand for, whenever they arrive.

    Paths are absolute. A directory must exist; a glob may have no match yet. Names that begin with
    `.` or `_` are left out, as files that are still being written.
    """

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return None  # `followed` of other sources gives it

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
        """What must stay the same for a followed run to resume, as JSON values."""
        options = self.options
        return {
            "paths": [os.path.abspath(p) for p in options.paths],
            "time_predicate": options.time_predicate,
            "triples_per_event": options.triples_per_event,
            **({} if options.time_unit == "ms" else {"time_unit": options.time_unit}),
            **({} if options.base is None else {"base": options.base}),
            **({"contexts": own} if (own := options.contexts.identity) else {}),
        }

    def present(self) -> list[InputFile]:
        """The files that are there now.

        Raises:
            InputError: a directory or file does not exist.
        """
        files: list[InputFile] = []
        for path in self.options.paths:
            if has_magic(path) and not os.path.exists(path) and not glob(path, recursive=True):
                continue
            files.extend(resolve_paths(replace(self.options, paths=(path,))))
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
        """What waits to be read, by time of modification, then name.

        A file is read once. If files may be appended to, what was added since is read too, but for
        the last event, to which more may belong. That event waits until something follows it, or
        until its file has settled.

        Args:
            positions: how far files have been read, by path.
            settled_ms: a file that has not changed since this time (milliseconds since the epoch)
                has settled; None if files are not appended to.
        """
        waiting = []
        for file in self.present():
            with suppress(FileNotFoundError):
                found = self._pending(file, positions.get(file.path), settled_ms)
                if found is not None:
                    waiting.append(found)
        return sorted(waiting, key=lambda f: f[:2])

    def _pending(
        self, file: InputFile, position: FilePosition | None, settled_ms: float | None
    ) -> PendingFile | None:
        """What waits of one file; None if nothing does."""
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
        """Ranges of about `step` bytes that make up what waits of a file."""
        if not is_divisible(waiting.file):
            return [FileRange(waiting.file)]
        try:
            return divide(waiting.file, self.options, waiting.begin, waiting.end, step)
        except InputError:  # as above
            return [FileRange(waiting.file, waiting.begin, waiting.end)]
