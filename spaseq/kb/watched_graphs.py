"""The files of a knowledge base and of graphs, watched for changes to load."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from spaseq.errors import InputError, SpaseqError
from spaseq.kb.graph_updates import file_triples
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import KbCache, load_kb
from spaseq.kb.quads import OxigraphStore, sources_at
from spaseq.kb.service_address import is_url
from spaseq.limits import Limits
from spaseq.options import KbInput, ServiceOptions
from spaseq.rdf.terms.term import Triple
from spaseq.records import record

FileStates: TypeAlias = tuple[tuple[str, int, int, int], ...]
"""(path, modification time in ns, size, inode) of each file."""


class KbWatch:
    """Checks the files of a knowledge base at intervals and loads them again if they have changed.

    It loads a change only if two checks in a row see the same files, so that it does not read a
    file while another program writes it.
    """

    def __init__(
        self,
        sources: Sequence[tuple[str | None, KbInput]],
        services: ServiceOptions,
        cache: KbCache,
        every_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch the sources, which `load_kb` has just loaded, every `every_s` seconds."""
        self._sources, self._services, self._cache = sources, services, cache
        self._paths = [s for _, s in sources if isinstance(s, str | PathLike)]
        self._every_s, self._clock = every_s, clock
        self._next = clock() + every_s
        self._known = self._latest = self._state()

    def poll(self) -> KnowledgeBase | None:
        """The new knowledge base if it has changed since the last call, else None.

        Raises:
            InputError: the changed files cannot be loaded; raised once per change.
        """
        if self._clock() < self._next:
            return None
        self._next = self._clock() + self._every_s
        before, self._latest = self._latest, self._state()
        if self._latest == self._known or self._latest != before:
            return None
        self._known = self._latest
        return load_kb(self._sources, self._services, self._cache)

    def _state(self) -> FileStates:
        states = []
        for path in self._paths:
            for file in files_of(path):
                try:
                    status = file.stat()
                except OSError:
                    continue
                states.append((str(file), status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(states)


def files_of(path: str | PathLike[str]) -> list[Path]:
    """The files at a path, with the files of a store; none at an address."""
    if isinstance(path, str) and is_url(path):
        return []
    try:
        sources = sources_at(path)
    except InputError:  # loading will report it
        return []
    files: list[Path] = []
    for source in sources:
        source_path = Path(source.path)
        files += source_path.iterdir() if isinstance(source, OxigraphStore) else [source_path]
    return files


@record
class KeptGraph:
    """How a graph of a run is kept.

    Attributes:
        paths: the files that it was read from.
        watched: whether a change of these is a change of the graph.
        writable: whether requests may change it.
    """

    paths: tuple[str, ...] = ()
    watched: bool = True
    writable: bool = False


class WatchedGraph:
    """The files of one graph.

    Args:
        iri: the graph.
        paths: its files.
        checksum: of the files at the last reading of the graph; None before the first.
        most_bytes: maximum size of all files together.
        limits: limits of reading.
    """

    def __init__(
        self,
        iri: str,
        paths: Sequence[str],
        checksum: str | None,
        most_bytes: int,
        limits: Limits,
    ) -> None:
        self.iri, self._paths, self._checksum = iri, paths, checksum
        self._most, self._limits = most_bytes, limits
        self._seen: FileStates | None = None  # at the last full check
        self._latest: FileStates | None = None
        self.problem = ""

    def changed(self, at_once: bool = False) -> tuple[str, list[Triple]] | None:
        """The checksum and the triples of files that have changed; None if they have not.

        A change counts when two calls have seen the same files, unless `at_once`: a program may
        still be writing. `problem` is the reason why changed files cannot be read; the caller
        clears it.
        """
        before, self._latest = self._latest, _states(self._paths)
        if self._latest == self._seen or not (at_once or self._latest == before):
            return None
        self._seen = self._latest
        try:
            content = self._read()
        except (SpaseqError, OSError) as error:
            self.problem = f"{error}; the graph stays as it was"
            return None
        if content is None:
            self.problem = ""
        return content

    def forget(self) -> None:
        """Let the next call of `changed` return the files again; the caller could not use them."""
        self._seen = self._checksum = None

    def _read(self) -> tuple[str, list[Triple]] | None:
        size = sum(size for _, _, size, _ in self._seen or ())
        if size > self._most:
            raise InputError(f"{', '.join(self._paths)}: more than {self._most:,} bytes (max_kb)")
        checksum = checksum_of(self._paths)
        if checksum == self._checksum:
            return None
        read = (file_triples(path, self.iri, self._limits) for path in self._paths)
        triples = list(chain.from_iterable(read))
        self._checksum = checksum
        return checksum, triples


def checksum_of(paths: Iterable[str]) -> str:
    """SHA-256 over the contents of files; InputError if one cannot be read."""
    digest = hashlib.sha256()
    for path in paths:
        files = [file for file in files_of(path) if file.is_file()]
        if not files:
            raise InputError(f"{path}: there is no such file")
        for file in sorted(files):
            digest.update(f"{file.name}\n".encode())
            with file.open("rb") as data:
                digest.update(hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()


def _states(paths: Sequence[str]) -> FileStates:
    states = []
    for path in paths:
        for file in files_of(path):
            try:
                status = os.stat(file)
            except OSError:
                continue
            states.append((str(file), status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(states)


def watched_graphs(
    graphs: Mapping[str, KeptGraph],
    checksums: Mapping[str, str],
    most_bytes: int,
    limits: Limits,
    may_change: Callable[[str], bool],
) -> Iterator[WatchedGraph]:
    """The graphs whose files are watched; `may_change` says which may change at all."""
    for iri, kept in graphs.items():
        if kept.watched and kept.paths and may_change(iri):
            yield WatchedGraph(iri, kept.paths, checksums.get(iri), most_bytes, limits)


def kept_graphs(sources: Iterable[tuple[str | None, object]]) -> dict[str, KeptGraph]:
    """The named graphs among the sources of a knowledge base that come from files."""
    by_graph: dict[str, tuple[str, ...]] = {}
    for iri, source in sources:
        if iri is not None and isinstance(source, str | os.PathLike) and not is_url(str(source)):
            by_graph[iri] = (*by_graph.get(iri, ()), str(source))
    return {iri: KeptGraph(paths) for iri, paths in by_graph.items()}
