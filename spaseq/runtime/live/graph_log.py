"""What the graphs of a live run were first, and the log of how they have changed from outside.

A change counts once it is in the log. Its time says which events see it, so a run that goes on, and
a replay, read all changes first. `base` is the knowledge base before the first change, and
`files.json` the checksums of its files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from spaseq.algebra.graph_changes import GraphChange
from spaseq.errors import RunError
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.kb.knowledge_versions import TimedChange
from spaseq.logs.segment_log import LogNotWritten, LogReader, SegmentLog
from spaseq.rdf.columns.term_tables import ExtendedTerms
from spaseq.records import record
from spaseq.storage.durable_files import write_durably
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain

_BASE, _FILES, _CHANGES = "base", "files.json", "changes"


@record
class LoggedChange:
    """A change of a graph as the log has it.

    Attributes:
        timed: the change.
        accepted: when it was accepted, ms since the epoch.
        files: the checksum of the graph's files, if they have made the change.
        number: its place in the log.
    """

    timed: TimedChange
    accepted: int
    files: str | None = None
    number: int = 0

    def to_bytes(self) -> bytes:
        """The change as a record; `of_bytes` is the inverse."""
        own = self.timed
        given = own.time, own.graph, list(own.change.deleted), list(own.change.inserted)
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


class GraphLog:
    """The changes of a run's graphs on disk, in a directory that must not be open twice.

    Args:
        directory: of the log.
        given: the knowledge base as it is configured. A new directory keeps it.
        files: gives the checksums of its files, by graph.

    Attributes:
        base: the knowledge base before the first change.
        files: the checksum of the files that each graph was last read from.
        changes: all changes, in order.

    Raises:
        RunError: the log is damaged, or cannot be written.
    """

    def __init__(
        self, directory: Path, given: KnowledgeBase, files: Callable[[], Mapping[str, str]]
    ) -> None:
        base, known = directory / _BASE, directory / _FILES
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if not known.exists():  # it is written last
                _saved(given, base)
                write_durably(known, json.dumps({**files()}).encode())
            self.files: dict[str, str] = json.loads(known.read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"cannot use {directory}: {error}") from error
        self.base = _completed(KnowledgeBase.open(base), given)
        self._log = SegmentLog(directory / _CHANGES)
        self.changes = [*self._read()]
        self._last: dict[str, LoggedChange] = {}
        for change in self.changes:
            self._note(change)

    def _note(self, change: LoggedChange) -> None:
        self._last[change.timed.graph] = change
        if change.files is not None:
            self.files[change.timed.graph] = change.files

    def _read(self) -> list[LoggedChange]:
        reader, found = LogReader(self._log, self._log.first), list[LoggedChange]()
        while some := reader.read():
            found += (LoggedChange.of_bytes(data, number) for number, data in some)
        reader.close()
        return found

    def last_of(self, graph: str) -> LoggedChange | None:
        """The last change of a graph."""
        return self._last.get(graph)

    def changed(self) -> list[str]:
        """The graphs that have changed."""
        return [*self._last]

    def append(self, change: LoggedChange) -> LoggedChange:
        """Log a change, which gets its number; LogNotWritten if the disk is full."""
        change = replace(change, number=self._log.end)
        self._log.append([change.to_bytes()])
        try:
            self._log.commit()
        except LogNotWritten:
            self._log.discard()
            raise
        self.changes.append(change)
        self._note(change)
        return change

    def close(self) -> None:
        """Close the file."""
        self._log.close()


def _saved(knowledge: KnowledgeBase, path: Path) -> None:
    """Write a knowledge base; a killed process leaves no half a file."""
    assert not isinstance(knowledge.terms, ExtendedTerms)
    unfinished = path.with_name(f".{path.name}")
    knowledge.save(unfinished)
    unfinished.replace(path)


def _completed(base: KnowledgeBase, given: KnowledgeBase) -> KnowledgeBase:
    """The base with the graphs that are configured now, and the endpoints.

    A graph that is new was empty: its file is a change.
    """
    if base.hash == given.hash:
        return given
    graphs = {iri: base.graphs.get(iri, KbGraph()) for iri in given.graphs}
    return replace(given, terms=base.terms, graphs=graphs, hash=base.hash, file=None)


def first_knowledge(directory: Path) -> KnowledgeBase | None:
    """The knowledge base with which a run began that may go on; None if it keeps none."""
    return KnowledgeBase.open(directory / _BASE) if (directory / _FILES).exists() else None


def first_graphs(directory: Path) -> frozenset[str]:
    """The graphs that a run keeps."""
    found = first_knowledge(directory)
    return frozenset() if found is None else frozenset(found.graphs)
