"""The graphs of a live run that change externally: by their files, and by requests.

The requesting thread computes a change from the present graph. Then the run's thread gives it a
time after every event that a reader of the graph was given, logs it, and passes it to the engine.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from spaseq.algebra.graph_changes import GraphChange
from spaseq.errors import RunError, SpaseqError, UsageError
from spaseq.kb.changing_graph import ChangingGraph
from spaseq.kb.graph_updates import graph_triples, replacing
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.kb.knowledge_versions import EARLIEST, LATEST, KnowledgeVersions, TimedChange
from spaseq.kb.watched_graphs import KeptGraph, WatchedGraph, checksum_of, watched_graphs
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.term_tables import ExtendedTerms, TermTable
from spaseq.rdf.inputs.stream_options import ignore
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.graph_log import FoldedChanges, GraphLog, LoggedChange
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.live.query_changes import LoopRequests
from spaseq.stages.maintained_graphs import GraphPast, GraphThen

MOST_BYTES = 10**9
"""Default maximum size of the files of a graph."""

_LOOK_S = 0.5
_AHEAD_MS = 60_000


class NoSuchGraph(UsageError):
    """The run has no graph of this name."""


class GraphGone(UsageError):
    """The value of a graph at a time is not kept any more."""


@dataclass(frozen=True, slots=True)
class GraphView:
    """The value of a graph at some time.

    Attributes:
        iri: its name.
        version: the number of its last change; -1 before the first.
        since: the time of that change, ms; None for the first value.
        graph, terms: its triples.
    """

    iri: str
    version: int
    since: int | None
    graph: KbGraph = field(repr=False)
    terms: TermTable = field(repr=False)

    def __len__(self) -> int:
        return sum(map(len, self.graph.values()))

    @property
    def tag(self) -> str:
        """The entity tag of this value of the graph."""
        return str(self.version + 1)

    def triples(self) -> Iterator[Triple]:
        """Its triples."""
        return graph_triples(self.graph, self.terms)


OnFiles = Callable[[GraphView, GraphView], None]


@dataclass(frozen=True, slots=True)
class KeptGraphs:
    """The stored graphs of a run.

    Attributes:
        log: their changes.
        graphs: the configuration of each, by name.
        most_bytes: maximum size of the files of a graph.
        limits: limits of reading.
        on_files: called for each change by files, with the graph before and after.
    """

    log: GraphLog
    graphs: Mapping[str, KeptGraph]
    most_bytes: int = MOST_BYTES
    limits: Limits = DEFAULT_LIMITS
    on_files: OnFiles = ignore

    @property
    def base(self) -> KnowledgeBase:
        """The knowledge base before the changes."""
        return self.log.base

    def give(self, job: Job) -> None:
        """Set the base and the changes of a job, without graphs that are no longer configured."""
        known = self.base.graphs
        job.knowledge, job.graphs_since = self.base, self.log.folded.until
        job.graph_changes = [each.timed for each in self.log.changes if each.timed.graph in known]

    def time_of(self, iri: str, first: int, now: int, since: int | None) -> int:
        """The time (ms) of the next change of a graph.

        Args:
            iri: the graph.
            first: a time after all events that its readers have had.
            now: the time of the clock.
            since: the requested time; None: now.

        Raises:
            UsageError: the requested time is too early.
        """
        last = self.log.last_of(iri)
        first = first if last is None else max(first, last.timed.time)
        if since is not None and since < first:
            raise UsageError(
                f"<{iri}> cannot change at {format_time(since)}: a reader was given an event of "
                "that time or later, or it was changed later; the first time is "
                f"{format_time(first)}"
            )
        return max(first, now) if since is None else since


class _Kept(NamedTuple):
    """The values of a graph in a log at some moment."""

    base: KnowledgeBase
    changes: list[LoggedChange]
    folded: FoldedChanges

    def versions(self, time: int) -> KnowledgeVersions:
        """The value at a time (ms)."""
        until_then = (change.timed for change in self.changes if change.timed.time <= time)
        value = KnowledgeVersions(self.base, (e for e in until_then if e.graph in self.base.graphs))
        value.drop(time)
        return value


def _view_of(iri: str, then: GraphThen) -> GraphView:
    return GraphView(iri, then.count - 1, then.since, then.graph, then.terms)


Accepting = Callable[[str, GraphChange, "str | None", "int | None"], LoggedChange]
"""Logs a change of a graph, with the checksum of its files, and the time (ms) of its effect."""


class GraphChanges:
    """The graphs of a run; any thread may call the methods.

    Args:
        kept: the stored graphs, which change externally; None if there are none.
        engine: evaluates the queries; it knows the values, and the graphs that queries maintain.
        requests: to the run's thread.
        accept: called in the run's thread.
        is_maintained: whether a query maintains a graph.
        wall: the clock, ms.
        note: called with a note for the user.
    """

    def __init__(
        self,
        kept: KeptGraphs | None,
        engine: LiveEngine,
        requests: LoopRequests,
        accept: Accepting,
        is_maintained: Callable[[str], bool],
        wall: Callable[[], int],
        note: Callable[[str], None],
    ) -> None:
        self._kept, self._engine = kept, engine
        self._requests, self._accept = requests, accept
        self._is_maintained, self._wall, self._note = is_maintained, wall, note
        self._changed = ignore if kept is None else kept.on_files
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._watched: list[WatchedGraph] = []
        if kept is not None:
            log, given = kept.log, (kept.most_bytes, kept.limits)
            self._watched += watched_graphs(kept.graphs, log.files, *given, self._may_change)
        self._end = threading.Event()
        self._then: tuple[tuple[int, ...], KnowledgeBase] | None = None  # the last value asked for

    def _may_change(self, iri: str) -> bool:
        kept = self._kept
        return kept is not None and iri in kept.base.graphs and iri not in kept.base.endpoints

    # --- reading ----------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The graphs of the run."""
        maintained = self._requests.look(lambda: {*self._engine.queries.graphs})
        others = () if self._kept is None else self._kept.base.graphs
        return sorted(maintained.union(filter(self._may_change, others)))

    def how(self, iri: str) -> KeptGraph:
        """The configuration of a graph; NoSuchGraph if there is none of this name."""
        if self._kept is not None and self._may_change(iri):
            return self._kept.graphs.get(iri, KeptGraph(watched=False))
        if self._requests.look(lambda: iri in self._engine.queries.graphs):
            return KeptGraph(watched=False)
        raise NoSuchGraph(f"there is no graph <{iri}>")

    def _past(self, iri: str) -> GraphPast | None:
        """The recent values of a graph that queries maintain; None for others."""

        def past() -> GraphPast | None:
            graph = self._engine.queries.graphs.get(iri)
            return None if graph is None else graph.past()

        return self._requests.look(past)

    def is_maintained(self, iri: str) -> bool:
        """Whether a query maintains a graph."""
        return self._requests.look(lambda: self._is_maintained(iri))

    def view(self, iri: str) -> GraphView:
        """A graph after all its changes; NoSuchGraph if there is none of this name."""
        self.how(iri)
        past = self._past(iri)
        then = None if past is None else past.at(LATEST)
        if then is not None:
            return _view_of(iri, then)
        return self._requests.look(lambda: self._view(iri))

    def _view(self, iri: str) -> GraphView:
        assert self._kept is not None
        last = self._kept.log.last_of(iri)
        graph = self._engine.versions.last(iri)
        if last is None:
            return GraphView(iri, -1, None, *graph)
        return GraphView(iri, last.number, last.timed.time, *graph)

    def at(self, iri: str, time: int, retain_ms: int) -> GraphView:
        """The value of a graph at a time (ms).

        Raises:
            NoSuchGraph: there is none of this name.
            GraphGone: it was replaced longer ago than `retain_ms`.
        """
        self.how(iri)
        gone = f"what <{iri}> was at {format_time(time)} is not kept any more"
        past = self._past(iri)
        if past is not None:
            of_then = past.at(time)
            if of_then is None:
                raise GraphGone(gone)
            return _view_of(iri, of_then)
        kept = self._requests.look(self._all)
        known, last = [e for e in kept.changes if e.timed.graph == iri], kept.folded.last.get(iri)
        number = sum(change.timed.time <= time for change in known)
        is_gone = number < len(known) and known[number].accepted < self._wall() - retain_ms
        if is_gone or (last is not None and time < last.timed.time):
            raise GraphGone(gone)
        then = kept.versions(time).last(iri)
        last = known[number - 1] if number else last
        if last is None:
            return GraphView(iri, -1, None, *then)
        return GraphView(iri, last.number, last.timed.time, *then)

    def knowledge_at(self, time: int) -> KnowledgeBase:
        """The knowledge base at a time (ms); GraphGone if it is not kept any more."""
        kept, pasts = self._requests.look(lambda: (self._all(), self._pasts()))
        maintained = {iri: past.at(time) for iri, past in pasts.items()}
        if time < kept.folded.until or None in maintained.values():
            raise GraphGone(f"what the graphs were at {format_time(time)} is not kept any more")
        count = sum(own.timed.time <= time for own in kept.changes)
        then = kept.folded.count, len(kept.changes), count
        if self._then is None or self._then[0] != then:
            self._then = then, kept.versions(time).at(time)
        base = self._then[1]
        terms, graphs = ExtendedTerms(base.terms), {**base.graphs}
        for iri, own in maintained.items():
            assert own is not None
            graph = ChangingGraph(terms, {})
            graph.restore([*graph_triples(own.graph, own.terms)])
            graphs[iri] = graph.relations()
        return replace(base, terms=terms, graphs=graphs)

    def _pasts(self) -> dict[str, GraphPast]:
        return {iri: graph.past() for iri, graph in self._engine.queries.graphs.items()}

    def held_until(self, iri: str, triple: Triple, time: int) -> int | None:
        """The time (ms) at which a triple of a graph was removed; None if it was not."""
        past = self._past(iri)
        if past is not None:
            return past.held_until(triple, time)
        for change in self._requests.look(self._all).changes:
            timed = change.timed
            if timed.graph == iri and timed.time > time and triple in timed.change.deleted:
                return timed.time
        return None

    def _all(self) -> _Kept:
        if self._kept is None:
            return _Kept(self._engine.versions.at(EARLIEST), [], FoldedChanges(0, "", {}, {}))
        log = self._kept.log
        return _Kept(log.base, [*log.changes], log.folded)

    # --- changing ---------------------------------------------------------------------------------

    def change(
        self,
        iri: str,
        make: Callable[[GraphView], GraphChange],
        since: int | None = None,
        files: str | None = None,
    ) -> tuple[GraphView, GraphView]:
        """Change a graph; the change is on disk when this returns.

        Args:
            iri: its name.
            make: computes the change from the present graph, which stays locked meanwhile.
            since: the time (ms) of its effect; None: now.
            files: the checksum of the files that make the change.

        Returns:
            The graph before and after. They are equal if there was nothing to change.

        Raises:
            NoSuchGraph: there is none of this name.
            UsageError: a reader of the graph has had an event of this time or a later one.
            RunError: the disk is full, or the run has ended.
        """
        with self._turns[iri]:
            before = self.view(iri)
            change = make(before)
            if not (change.deleted or change.inserted or files):
                return before, before
            self._requests.call(lambda: self._accept(iri, change, files, since))
            return before, self.view(iri)

    def far_ahead(self, view: GraphView) -> str:
        """The time of a change, if it is much later than now; else ""."""
        if view.since is None or view.since <= self._wall() + _AHEAD_MS:
            return ""
        return f"<{view.iri}> changes at {format_time(view.since)}: events of that time have come"

    # --- files ------------------------------------------------------------------------------------

    def look_at_files(self, accept: Accepting) -> None:
        """Apply edits of files while no process watched them.

        Only the run's thread may call this, before others come. `accept` logs a change.
        """
        for files in self._watched:
            content = files.changed(at_once=True)
            if content is not None and not self._is_maintained(files.iri):
                checksum, triples = content
                before = self._view(files.iri)
                accept(files.iri, replacing(before.triples(), triples), checksum, None)
                self._changed(before, self._view(files.iri))
                self._note(f"<{files.iri}> has changed with its files")
            self._tell(files, "")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the files in another thread."""
        thread = threading.Thread(target=self._watch, name="graphs", daemon=True)
        if self._watched:
            thread.start()
        try:
            yield
        finally:
            self._end.set()

    def _watch(self) -> None:
        while not self._end.wait(_LOOK_S):
            for graph in self._watched:
                before = graph.problem
                try:
                    self._look(graph)
                except RunError as error:
                    if self._end.is_set():
                        return
                    graph.problem = f"<{graph.iri}>: {error}"
                self._tell(graph, before)

    def _look(self, graph: WatchedGraph) -> None:
        content = graph.changed()
        if content is None:
            return
        if self.is_maintained(graph.iri):
            graph.problem = ""
            return
        checksum, triples = content
        try:
            before, after = self.change(
                graph.iri, lambda now: replacing(now.triples(), triples), files=checksum
            )
        except SpaseqError:
            graph.forget()  # to be tried again
            raise
        graph.problem = ""
        self._changed(before, after)
        self._note(self.far_ahead(after) or f"<{graph.iri}> has changed with its files")

    def _tell(self, graph: WatchedGraph, before: str) -> None:
        if graph.problem and graph.problem != before:
            self._note(f"graph <{graph.iri}>: {graph.problem}")

    def problems(self) -> list[str]:
        """Files that cannot be read, and changes far ahead of the clock."""
        problems = [f"graph <{own.iri}>: {own.problem}" for own in self._watched if own.problem]
        logged = () if self._kept is None else self._kept.log.changed()
        changed = (iri for iri in logged if self._may_change(iri))
        ahead = (self.far_ahead(self.view(iri)) for iri in changed)
        return [*problems, *filter(None, ahead)]


def open_graphs(
    directory: Path,
    job: Job,
    most_bytes: int = MOST_BYTES,
    on_files: OnFiles = ignore,
    instead: Collection[str] = (),
) -> KeptGraphs | None:
    """The stored graphs of a run; the job gets their first values and their changes.

    None if no graph of the job may change. The graphs `instead` have the job's values, not the
    logged ones.

    Raises:
        InputError: a file is gone, and the directory is new.
        RunError: the directory is damaged, or cannot be written.
    """
    if not job.graphs and not directory.exists():
        return None

    def checksums() -> dict[str, str]:
        return {iri: checksum_of(graph.paths) for iri, graph in job.graphs.items() if graph.paths}

    given, log = job.knowledge, GraphLog(directory, job.knowledge, checksums)
    kept = KeptGraphs(log, job.graphs, most_bytes, given.services.limits, on_files)
    kept.give(job)
    for iri in instead:
        was, now = (
            graph_triples(own.graphs.get(iri, KbGraph()), own.terms) for own in (kept.base, given)
        )
        changes = (change for change in job.graph_changes if change.graph != iri)
        job.graph_changes = [TimedChange(EARLIEST, iri, replacing(was, now)), *changes]
    return kept
