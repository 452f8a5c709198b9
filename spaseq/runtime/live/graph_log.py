"""The first graphs of a live run, and the log of their external changes.

A change counts once it is in the log. Its time says which events see it, so a run that continues,
and a replay, read all changes first. `base` is the knowledge base before the first change, and
`files.json` the checksums of its files.

A new base absorbs old changes that no query needs. The base is a file whose name has the number of
its changes. It counts once `folded.json` names it. Then the old base is removed, and so are the
segments of the log with these changes. A process that is killed leaves one base that counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from spaseq.algebra.graph_changes import GraphChange
from spaseq.errors import RunError
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.kb.knowledge_versions import EARLIEST, LATEST, KnowledgeVersions, TimedChange
from spaseq.logs.segment_log import SegmentLog
from spaseq.records import record
from spaseq.storage.checksums import (
    read_json,
    sync_directory,
    sync_file,
    with_checksum_line,
    write_durably,
)
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain

FOLD_BYTES = 2**22
"""Size of a segment of the log; a base absorbs no fewer bytes."""

_BASE, _FILES, _CHANGES, _FOLDED = "base", "files.json", "changes", "folded.json"


@record
class LoggedChange:
    """A change of a graph in the log.

    Attributes:
        timed: the change.
        accepted: time of acceptance, ms since the epoch.
        files: the checksum of the graph's files, if they have made the change.
        number: its position in the log.
    """

    timed: TimedChange
    accepted: int
    files: str | None = None
    number: int = 0

    def to_bytes(self) -> bytes:
        """The change as a record; `of_bytes` is the inverse."""
        timed = self.timed
        given = timed.time, timed.graph, list(timed.change.deleted), list(timed.change.inserted)
        return dump_plain([*given, self.accepted, self.files])

    @classmethod
    def of_bytes(cls, data: bytes, number: int) -> LoggedChange:
        """The inverse of `to_bytes`; RunError if a later version wrote it."""
        try:
            time, graph, deleted, inserted, accepted, files = load_plain(data)
            change = GraphChange(tuple(map(tuple, deleted)), tuple(map(tuple, inserted)))
            return cls(TimedChange(time, graph, change), accepted, files, number)
        except BROKEN as error:
            raise RunError(f"the log of graphs cannot be read: {error}") from error


@record
class FoldedChanges:
    """The changes that are in the base.

    Attributes:
        count: their number.
        hash: of the knowledge base before the first; it stays the run's.
        files: the checksum of the files that each graph was then read from.
        last: the last change of each graph, without its triples.
    """

    count: int
    hash: str
    files: Mapping[str, str]
    last: Mapping[str, LoggedChange]

    @property
    def until(self) -> int:
        """The time (ms) of the latest of them: earlier values of graphs are not known any more."""
        return max((change.timed.time for change in self.last.values()), default=EARLIEST)

    @property
    def base(self) -> str:
        """The file name of the base."""
        return f"{_BASE}-{self.count}" if self.count else _BASE

    def as_json(self) -> list[Any]:
        """The record as JSON values; `of_json` is the inverse."""
        last = {g: [c.timed.time, c.accepted, c.number] for g, c in self.last.items()}
        return [self.count, self.hash, {**self.files}, last]

    @classmethod
    def of_json(cls, value: list[Any]) -> FoldedChanges:
        """The inverse of `as_json`."""
        count, known, files, last = value
        return cls(count, known, files, {g: _emptied(g, *fields) for g, fields in last.items()})

    @classmethod
    def read(cls, directory: Path) -> FoldedChanges:
        """The folded changes of a log's directory.

        Raises:
            RunError: the files are damaged.
        """
        if (directory / _FOLDED).exists():
            return read_json(directory / _FOLDED, cls.of_json)
        try:
            files = json.loads((directory / _FILES).read_bytes())
            return cls(0, KnowledgeBase.open(directory / _BASE).hash, files, {})
        except (OSError, ValueError) as error:
            raise RunError(f"cannot use {directory}: {error}") from error


def _emptied(graph: str, time: int, accepted: int, number: int) -> LoggedChange:
    """A change without its triples."""
    return LoggedChange(TimedChange(time, graph, GraphChange((), ())), accepted, None, number)


class GraphLog:
    """The changes of a run's graphs on disk, in a directory that must not be open twice.

    Args:
        directory: of the log.
        given: the configured knowledge base. A new directory stores it.
        files: returns the checksums of its files, by graph.

    Attributes:
        directory: of the log.
        folded: the changes that are in the base.
        base: the knowledge base before all other changes.
        files: the checksum of the files that each graph was last read from.
        changes: all other changes, in order.

    Raises:
        RunError: the log is damaged, or cannot be written.
    """

    def __init__(
        self, directory: Path, given: KnowledgeBase, files: Callable[[], Mapping[str, str]]
    ) -> None:
        self.directory, self._given = directory, given
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if not (directory / _FILES).exists():  # written last
                _saved(given, directory / _BASE)
                write_durably(directory / _FILES, json.dumps({**files()}).encode())
            self.folded = FoldedChanges.read(directory)
            self._tidy()
        except OSError as error:
            raise RunError(f"cannot use {directory}: {error}") from error
        self.base = self._opened()
        self.files: dict[str, str] = {**self.folded.files}
        self._log = SegmentLog(directory / _CHANGES, FOLD_BYTES)
        if not self._log.first <= self.folded.count <= self._log.end:
            raise RunError(f"{self._log.directory} does not go with {directory / _FOLDED}")
        self._log.drop_before(self.folded.count)
        given_changes = self._log.records(self.folded.count)
        self.changes = [LoggedChange.of_bytes(data, number) for number, data in given_changes]
        self._last = {**self.folded.last}
        for change in self.changes:
            self._note(change)

    def _tidy(self) -> None:
        """Remove bases that do not count."""
        for path in self.directory.iterdir():
            if path.name.lstrip(".").startswith(_BASE) and path.name != self.folded.base:
                with suppress(OSError):  # Windows keeps open files, until the next start
                    path.unlink()

    def _opened(self) -> KnowledgeBase:
        """The base with the configured graphs and endpoints.

        A new graph was empty: its file is a change.
        """
        base, given = KnowledgeBase.open(self.directory / self.folded.base), self._given
        if not self.folded.count and base.hash == given.hash:
            return given
        graphs = {iri: base.graphs.get(iri, KbGraph()) for iri in given.graphs}
        known = self.folded.hash
        return replace(given, terms=base.terms, graphs=graphs, hash=known, file=None)

    def _note(self, change: LoggedChange) -> None:
        self._last[change.timed.graph] = change
        if change.files is not None:
            self.files[change.timed.graph] = change.files

    # --- old changes ------------------------------------------------------------------------------

    def fold(self, until: int, before: int) -> bool:
        """Fold old changes into the base, if they are worth it; return whether any were folded.

        Args:
            until: no query needs a value that a change at or before this time (ms) replaced.
            before: but a reader may want it if the change was accepted at or after this time (ms).

        Raises:
            RunError: the disk is full. Nothing has changed.
        """
        old = 0
        while old < len(self.changes) and _is_old(self.changes[old], until, before):
            old += 1
        count, size = self._log.whole_before(self.folded.count + old)
        if size < _worth(self.directory / self.folded.base):
            return False
        new = self.changes[: count - self.folded.count]
        files, last = {**self.folded.files}, {**self.folded.last}
        for change in new:
            timed = change.timed
            last[timed.graph] = _emptied(timed.graph, timed.time, change.accepted, change.number)
            if change.files is not None:
                files[timed.graph] = change.files
        folded = FoldedChanges(count, self.folded.hash, files, last)
        try:
            base = KnowledgeBase.open(self.directory / self.folded.base)
            versions = KnowledgeVersions(base, (change.timed for change in new))
            versions.drop(LATEST)
            _saved(versions.whole(), self.directory / folded.base)
            data = with_checksum_line(json.dumps(folded.as_json())).encode()
            write_durably(self.directory / _FOLDED, data)
        except OSError as error:
            raise RunError(f"cannot write {self.directory}: {error}") from error
        self.folded, self.changes = folded, self.changes[len(new) :]
        self.base = self._opened()
        self._log.drop_before(count)
        self._tidy()
        return True

    # --- changes ----------------------------------------------------------------------------------

    def last_of(self, graph: str) -> LoggedChange | None:
        """The last change of a graph."""
        return self._last.get(graph)

    def changed(self) -> list[str]:
        """The graphs that have changed."""
        return [*self._last]

    def append(self, change: LoggedChange) -> LoggedChange:
        """Log a change, which gets its number; LogNotWritten if the disk is full."""
        change = replace(change, number=self._log.end)
        self._log.write([change.to_bytes()])
        self.changes.append(change)
        self._note(change)
        return change

    def close(self) -> None:
        """Close the file."""
        self._log.close()


def _worth(base: Path) -> int:
    """Minimum bytes of changes for a new base: an eighth of the base's size, or more."""
    return max(FOLD_BYTES, base.stat().st_size // 8)


def _is_old(change: LoggedChange, until: int, before: int) -> bool:
    return change.timed.time <= until and change.accepted < before


def _saved(knowledge: KnowledgeBase, path: Path) -> None:
    """Write a knowledge base; a killed process leaves no incomplete file."""
    unfinished = path.with_name(f".{path.name}")
    knowledge.save(unfinished)
    sync_file(unfinished)
    unfinished.replace(path)
    sync_directory(path.parent)


def folded_so_far(directory: Path) -> bytes:
    """A mark that differs after each fold of changes into the base of a log."""
    path = directory / _FOLDED
    return path.read_bytes() if path.exists() else b""


def first_graphs(directory: Path) -> frozenset[str]:
    """The first values of the graphs of a run that may continue."""
    if not (directory / _FILES).exists():
        return frozenset()
    base = FoldedChanges.read(directory).base
    return frozenset(KnowledgeBase.open(directory / base).graphs)


def first_hash(directory: Path) -> str | None:
    """The hash of the knowledge base with which such a run began; None if none is stored."""
    return FoldedChanges.read(directory).hash if (directory / _FILES).exists() else None
