"""Which files of which stream have been taken in which batch, written down before they are read.

A batch, once written, never changes, so that a batch that is run again reads the same files in the
same order. Files are taken once, by name; those found together come in order of modification time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import NamedTuple

from spaseq.rdf.readers import InputFile, StreamOptions, resolve_paths

COMPACT_EVERY = 50
"""Batches between two lists of everything that has been taken."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The files of one batch, by stream, and the time (ms) at which they were found."""

    at: int
    files: tuple[tuple[str, ...], ...]


class Found(NamedTuple):
    """A file that waits to be taken, ordered as files are taken."""

    modified_ns: int
    path: str
    size: int


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


class ArrivalLog:
    """The batches so far, numbered from 1, in files of a directory of their own."""

    def __init__(
        self, directory: Path, streams: Sequence[StreamOptions], max_bytes: int = 64 * 2**20
    ) -> None:
        """`max_bytes` bounds a batch, per stream; a single larger file is still taken."""
        self._directory, self._streams, self._max_bytes = directory, tuple(streams), max_bytes
        self._taken: list[set[str]] = []
        self._upto = -1  # the batch that `_taken` stands at; -1: not read yet
        directory.mkdir(parents=True, exist_ok=True)

    def batch(self, number: int) -> Arrivals:
        """What a batch holds."""
        at, files = json.loads(self._path(number).read_text("utf-8"))
        return Arrivals(at, tuple(tuple(f) for f in files))

    def waiting(self, after: int) -> list[list[Found]]:
        """The files, by stream, that are there and not taken up to batch `after`."""
        self._load(after)
        return [
            _found([f.path for f in present_files(options) if f.path not in taken])
            for options, taken in zip(self._streams, self._taken, strict=True)
        ]

    def take(self, after: int, among: Sequence[frozenset[str]] | None = None) -> int:
        """The number of the batch that follows `after`: one with new files, or `after` if none.

        `among` restricts what may be taken, by stream.
        """
        if self._path(after + 1).exists():
            return after + 1  # written by a run that ended before it could use it
        waiting = self.waiting(after)
        if among is not None:
            pairs = zip(waiting, among, strict=True)
            waiting = [[f for f in files if f.path in allowed] for files, allowed in pairs]
        chosen = [self._bounded(w) for w in waiting]
        if not any(chosen):
            return after
        write_atomically(self._path(after + 1), json.dumps([int(time.time() * 1000), chosen]))
        return after + 1

    def forget(self, before: int) -> None:
        """Remove what is not needed to run the batches from `before` on."""
        compacted = max((c for c in self._compacted() if c <= before), default=0)
        for path in self._directory.glob("[0-9]*.json"):
            number = int(path.name.split(".")[0])
            if number < min(before, compacted):
                path.unlink(missing_ok=True)

    def _bounded(self, files: list[Found]) -> list[str]:
        total, chosen = 0, list[str]()
        for file in files:
            total += file.size
            if chosen and total > self._max_bytes:
                break
            chosen.append(file.path)
        return chosen

    def _load(self, upto: int) -> None:
        if self._upto == -1 or self._upto > upto:
            self._upto = max((c for c in self._compacted() if c <= upto), default=0)
            self._taken = [set() for _ in self._streams]
            if self._upto:
                lists = json.loads(self._path(self._upto, ".taken").read_text("utf-8"))
                self._taken = [set(names) for names in lists]
        for number in range(self._upto + 1, upto + 1):
            for taken, files in zip(self._taken, self.batch(number).files, strict=True):
                taken.update(files)
            self._upto = number
            if number % COMPACT_EVERY == 0:
                self._compact(number)

    def _compact(self, number: int) -> None:
        """List everything taken. A file that is gone cannot be found again, so it is left out."""
        for options, taken in zip(self._streams, self._taken, strict=True):
            taken &= {f.path for f in present_files(options)}
        write_atomically(
            self._path(number, ".taken"), json.dumps([sorted(names) for names in self._taken])
        )

    def _compacted(self) -> list[int]:
        return [int(p.name.split(".")[0]) for p in self._directory.glob("[0-9]*.taken.json")]

    def _path(self, number: int, kind: str = "") -> Path:
        return self._directory / f"{number}{kind}.json"


def _found(paths: Sequence[str]) -> list[Found]:
    """The files that are still there, in order of modification time, then name."""
    found = []
    for path in paths:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        found.append(Found(status.st_mtime_ns, path, status.st_size))
    return sorted(found)
