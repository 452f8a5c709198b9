"""A run whose queries come and go; `spaseq serve` and `spaseq run --queries` use it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, TextIO, TypeVar

from spaseq.automaton.run.live_states import LiveStates
from spaseq.errors import UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.scan import comments_of
from spaseq.logs.messages import Message
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.job.job import Job, LateEvent, Stats
from spaseq.runtime.live.answer_log import AnswerIndex
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.deliveries import SinkSettings
from spaseq.runtime.live.delivery import DeliveryView
from spaseq.runtime.live.graph_changes import (
    GraphChanges,
    open_graphs,
)
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import LiveDirectory, StandingOptions
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.live.live_loop import LiveLoop
from spaseq.runtime.live.partition_clocks import GivenEvents
from spaseq.runtime.live.query_changes import ChangeKind, Planner, QueryChange, StandingQuery
from spaseq.runtime.live.run_views import QueryView, QueryWaits, StreamView, waits_of
from spaseq.sinks.base import open_lines
from spaseq.sinks.jsonl import BadInputLines, LateEventLines

T = TypeVar("T")

Outcome = Literal["added", "replaced", "told", "unchanged"]
"""The result of `put`. `told`: only comments have changed, or the query is paused."""

_USUAL = StandingOptions()


class UnknownQuery(UsageError):
    """There is no query with this name."""


class StandingRun:
    """Streams in logs, changing queries, and answers in a log; a separate thread evaluates.

    ```python
    run = StandingRun(Path("state"), streams, Job((), (), knowledge), planner, sinks)
    run.start()
    run.put("jam", text)
    run.stop()
    ```

    All methods but `start` and `stop` may be called from any thread; those that change something
    return when the change is on disk.

    Args:
        directory: has the logs and the state; a run continues the earlier run of its directory.
        streams: all streams; streams without a source get messages by `accept`.
        job: the knowledge base of all queries, their options, and the callbacks; it has no queries
            and no streams. Bad input and late events go to files in the directory, if `sides` is
            not given.
        planner: plans a query's text under a name.
        sinks: the outputs of the answers, by name.
        options: the options of the run.
        sides: the files that callbacks of the job write, by path, open for appending.
    """

    def __init__(
        self,
        directory: Path,
        streams: Sequence[LiveStream],
        job: Job,
        planner: Planner,
        sinks: Mapping[str, SinkSettings],
        options: StandingOptions = _USUAL,
        sides: Mapping[str, TextIO] | None = None,
    ) -> None:
        self._path, self._streams, self._sinks = directory, list(streams), sinks
        self._planner, self._options = planner, options
        self._iris = {stream.name: stream.iri for stream in streams}
        self._own_sides = sides is None
        if sides is None:
            job.on_bad, job.on_late = self._take_bad, self._take_late
        self._job, self._stop = job, threading.Event()
        self._stack = ExitStack()
        self._failure: BaseException | None = None
        self._sides = dict(sides or {})

    @property
    def directory(self) -> Path:
        """The directory of the logs and the state."""
        return self._path

    # --- beginning and end ------------------------------------------------------------------------

    def start(self, sources: bool = True) -> None:
        """Restore the earlier run of the directory, and begin.

        Without `sources`, the sources bring messages only after `start_sources`. So the first
        queries see all messages.

        Raises:
            UsageError: the directory is of another kind of run, or its knowledge base has changed
                while it has events that no query has seen.
            RunError: it cannot be read, or another run uses it.
        """
        job, options = self._job, self._options
        directory = LiveDirectory.open(self._path, {"queries": "a set that changes"})
        with ExitStack() as stack:
            stack.callback(directory.release)
            if options.record is not None:
                directory.write(*options.record)
            for name in ("bad.jsonl", "late.jsonl") if self._own_sides else ():
                file = open_lines(str(self._path / name), os.O_APPEND)
                self._sides[str(self._path / name)] = file
                stack.callback(file.close)
            graphs = open_graphs(directory.graphs, job, options.most_kb, options.on_files)
            kept = replace(options, planner=self._planner, sides=self._sides)
            kept = replace(kept, waits=not sources, graphs=graphs)
            given = self._streams, options.engine, options.limits
            self._loop = LiveLoop(job, directory, kept, *given)
            self._stack = stack.pop_all()
        self._thread = threading.Thread(target=self._run, name="evaluation", daemon=True)
        self._thread.start()

    def start_sources(self) -> None:
        """Start the sources, after `start(sources=False)`."""
        self._loop.requests.call(self._loop.acceptance.start)

    def _run(self) -> None:
        try:
            self._loop.run(self._stop, lambda: self._loop.deliveries_to(self._sinks))
        except BaseException as error:
            self._failure = error

    def wait(self, seconds: float) -> bool:
        """Wait until the run fails, its only end by itself; return whether it has failed."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def stopping(self) -> bool:
        """Whether the run is about to end."""
        return self._stop.is_set()

    @property
    def has_ended(self) -> bool:
        """Whether the run has failed."""
        return self._failure is not None

    def begin_stop(self) -> None:
        """Let the run end soon; waiting requests get a RunError."""
        self._stop.set()
        self._loop.wake()

    def stop(self) -> None:
        """Save the state and end; raise the error of a failed run."""
        self.begin_stop()
        self._thread.join()
        self._stack.close()
        if self._failure is not None:
            raise self._failure

    # --- queries ----------------------------------------------------------------------------------

    def put(
        self, name: str, text: str, since_ms: int | None = None, plan: QueryPlan | None = None
    ) -> Outcome:
        """Add a query, or replace the query of its name.

        It gets the events that are accepted from now on; with `since_ms` all logged events from
        that time on, too. If its canonical text equals that of the present query, nothing changes.
        `plan` is its plan, if known.

        Raises:
            HistoryGone: events since then may have been dropped from the logs.
            QueryError: it has errors.
            UsageError: another query registers the same stream, or queries would read each other's
                streams in a circle.
            InputError: the knowledge base lacks a graph that it names.
            RunError: the disk is full, or the run has ended.
        """
        plan = plan or self._planned(name, text)
        return self._loop.requests.call(partial(self._put, name, text, plan, since_ms))

    def _planned(self, name: str, text: str) -> QueryPlan:
        return self._planner(name, text, self.maintained)

    def _put(self, name: str, text: str, plan: QueryPlan, since_ms: int | None) -> Outcome:
        old = self._loop.queries.plan_of(name)
        known = self._loop.queries.by_name.get(name)
        if old is not None and known is not None:
            is_same = old.signature.canonical == plan.signature.canonical
            if is_same and comments_of(known.text) == comments_of(text):
                return "unchanged"
            if is_same or known.is_paused:
                self._loop.change(ChangeKind.TOLD, known._replace(text=text))
                return "told"
        start = None
        if since_ms is not None:
            queries = self._loop.queries
            start = queries.catch_ups.point(plan, queries.maintained, since_ms)
        query = StandingQuery(name, text, _now() if since_ms is None else since_ms)
        self._loop.change(ChangeKind.ADDED, query, plan, start=start)
        return "added" if old is None else "replaced"

    def tried(
        self, name: str, text: str, since_ms: int | None, most: int, seconds: float
    ) -> tuple[list[LoggedAnswer], bool]:
        """The answers of a query on trial over the logged events; nothing is stored or sent.

        Args:
            name: of the query.
            text: its text.
            since_ms: it takes no event before this time; None: all logged events.
            most: maximum number of answers.
            seconds: maximum running time.

        Returns:
            The answers, and whether there may be more.

        Raises:
            HistoryGone, QueryError, UsageError, InputError: as from `put`.
        """
        plan, end = self._planned(name, text), time.monotonic() + seconds
        queries = self._loop.queries
        trial, ends = self._loop.requests.look(
            lambda: queries.catch_ups.trial(plan, queries.maintained, since_ms)
        )
        answers: list[LoggedAnswer] = []
        with closing(trial):
            while trial.places != ends and len(answers) <= most and time.monotonic() < end:
                answers += [LoggedAnswer.of(plan, answer) for answer in trial.advance(ends)]
                if trial.failure is not None:
                    raise UsageError(f"query {name} fails: {trial.failure}")
            return answers[:most], trial.places != ends or len(answers) > most

    def remove(self, name: str) -> None:
        """Remove a query, with its partial matches; its answers stay readable for a while.

        Raises:
            UnknownQuery: there is none with this name.
            RunError: as from `put`.
        """
        self._loop.requests.call(lambda: self._loop.change(ChangeKind.REMOVED, self._known(name)))

    def enable(self, name: str, is_enabled: bool) -> bool:
        """Pause a query, or restart a paused one; return whether that changed anything.

        A paused query gets no events, and has no partial matches. It stays paused over restarts.

        Raises:
            UnknownQuery: there is none with this name.
            UsageError: another query registers the same stream by now.
            RunError: as from `put`.
        """
        return self._loop.requests.call(partial(self._enable, name, is_enabled))

    def _enable(self, name: str, is_enabled: bool) -> bool:
        query = self._known(name)
        if query.is_paused != is_enabled:
            return False
        if is_enabled:
            query = query._replace(since=_now(), is_paused=False)
            self._loop.change(ChangeKind.ADDED, query)
        else:
            self._loop.change(ChangeKind.PAUSED, query._replace(is_paused=True))
        return True

    def restart(self, name: str) -> None:
        """Restart a failed query.

        Raises:
            UnknownQuery: there is none with this name.
            UsageError: it runs, or is paused.
            RunError: as from `put`.
        """
        self._loop.requests.call(partial(self._restart, name))

    def _restart(self, name: str) -> None:
        query, running = self._known(name), self._loop.engine.queries.query_of(name)
        if running is None or running.failure is None:
            raise UsageError(f"query {name} {'is paused' if query.is_paused else 'runs'}")
        self._loop.change(ChangeKind.RESTARTED, query._replace(since=_now()))

    def _known(self, name: str) -> StandingQuery:
        query = self._loop.queries.by_name.get(name)
        if query is None:
            raise UnknownQuery(f"there is no query {name}")
        return query

    def queries(self) -> list[QueryView]:
        """All queries, by name."""
        return self._loop.requests.look(
            lambda: [self._view(name) for name in sorted(self._loop.queries.by_name)]
        )

    def texts(self) -> dict[str, str]:
        """The texts of all queries, by name."""
        queries = self._loop.queries.by_name
        return self._loop.requests.look(lambda: {q.name: q.text for q in queries.values()})

    def plans(self) -> dict[str, QueryPlan]:
        """The plans of all queries that can be planned, by name."""
        queries = self._loop.queries

        def found() -> dict[str, QueryPlan]:
            plans = {name: queries.plan_of(name) for name in queries.by_name}
            return {name: plan for name, plan in plans.items() if plan is not None}

        return self._loop.requests.look(found)

    @property
    def maintained(self) -> Collection[str]:
        """The graphs (IRIs) that queries maintain."""
        return self._loop.queries.maintained

    def query(self, name: str) -> QueryView:
        """A query; UnknownQuery if there is none with this name."""
        return self._loop.requests.look(lambda: self._view(self._known(name).name))

    def given_streams(self) -> set[str]:
        """The IRIs of the run's streams, and of the streams that its queries register."""
        registered = {plan.identity.register for plan in self.plans().values()}
        return {stream.iri for stream in self._streams} | {iri for iri in registered if iri}

    def live_states(self, name: str) -> LiveStates | None:
        """The states of the partial matches of a query.

        None if it has failed. UnknownQuery if there is none with this name.
        """

        def states(engine: LiveEngine) -> LiveStates | None:
            self._known(name)
            query = engine.queries.query_of(name)
            if query is None or query.failure is not None:
                return None
            return engine.queries.unit(query).live_states(query)

        return self.look(states)

    def waits(self, name: str) -> QueryWaits | None:
        """The waits of a query; None if it has failed or catches up.

        UnknownQuery if there is none with this name.
        """

        def found(engine: LiveEngine) -> QueryWaits | None:
            self._known(name)
            query = engine.queries.query_of(name)
            return None if query is None or query.failure else waits_of(engine, query)

        return self.look(found)

    def waiting(self) -> list[tuple[str, str, int]]:
        """(query, stream, since) of each query that has waited for a stream for a minute."""
        return self._loop.requests.look(self._loop.stream_waits.long)

    def look(self, do: Callable[[LiveEngine], T]) -> T:
        """Call a read-only function of the engine between two batches; return its result."""
        return self._loop.requests.look(lambda: do(self._loop.engine))

    def _view(self, name: str) -> QueryView:
        queries, plan = self._loop.queries, self._loop.queries.plan_of(name)
        assert plan is not None
        answered, muted = self._loop.answers.answered[name], self.stats.muted
        withheld = sum(sink.withheld.get(name, 0) for sink in self.sinks())
        counts = answered, muted.get(plan.identity.title, 0), withheld
        return QueryView.of(queries.by_name[name], plan, self._loop.engine, counts)

    @property
    def answers(self) -> AnswerIndex:
        """The logged answers of all queries."""
        return self._loop.answers.index

    @property
    def knowledge_since(self) -> int:
        """The time (ms) when the run began with this knowledge base; 0 if there has been no other
        one.
        """
        return self._loop.knowledge_since

    @property
    def graphs(self) -> GraphChanges:
        """The graphs that may change."""
        return self._loop.graphs

    def knowledge_at(self, time: int) -> KnowledgeBase:
        """The knowledge base at a time (ms), with its external changes."""
        return self.graphs.knowledge_at(time)

    # --- streams ----------------------------------------------------------------------------------

    def accept(
        self,
        stream: str,
        messages: Sequence[Message],
        events: GivenEvents | None = None,
        wakes: bool = True,
    ) -> int:
        """Log messages of a stream without a source; they are on disk when this returns.

        Args:
            stream: its name.
            messages: `UNNUMBERED`.
            events: their events. Their marks are kept with the messages, see `marks`.
            wakes: whether the run reads them at once; else the caller calls `wake` after its reply.

        Returns:
            The number of late events.

        Raises:
            UsageError: there is no such stream, or it has a source.
            RunError: the disk is full, or the run has ended. Nothing was accepted.
        """
        iri = self._iris.get(stream)
        if iri is None:
            raise UsageError(f"there is no stream {stream}")
        if self._loop.streams[iri].source.connector() is not None:
            raise UsageError(f"stream {stream} has a source, so nothing can be posted to it")
        return self._loop.acceptance.accept(iri, messages, events or GivenEvents(), wakes)

    def wake(self) -> None:
        """Let the run read the accepted messages."""
        self._loop.wake()

    def heartbeat(self, stream: str, time_ms: int) -> None:
        """Log that no event of a stream at or before a time (ms) follows.

        Raises:
            HeartbeatTooFar: the time is too far ahead of the clock.
            UsageError: it is behind the stream's watermark, or the stream's times are the clock's.
            RunError: the disk is full, or the run has ended.
        """
        iri = self._iris[stream]
        self._loop.requests.call(lambda: self._loop.give_heartbeat(iri, time_ms))

    def marks(self, stream: str) -> dict[str, str]:
        """The last text of each mark of a stream's messages."""
        return self._loop.requests.look(lambda: self._loop.logs[self._iris[stream]].marks)

    def streams(self) -> list[StreamView]:
        """All streams, in their order in the configuration."""
        engine, lag, logged = self._loop.engine, self._loop.reading.lag, self._loop.acceptance

        def views() -> list[StreamView]:
            iris = ((stream, stream.iri) for stream in self._streams)
            return [StreamView.of(s, engine, lag(iri), logged.accepted(iri)) for s, iri in iris]

        return self._loop.requests.look(views)

    def began(self, name: str) -> QueryChange:
        """The time when a query was last added or restarted.

        Raises:
            UnknownQuery: there is none with this name.
        """
        return self._loop.requests.look(partial(self._loop.queries.began, self._known(name).name))

    def records(self, stream: str, begin: int = 0, end: int | None = None) -> list[Message]:
        """The messages of a stream that are still logged, in order.

        With `begin` and `end`, which are positions of a query, the messages between them.
        """
        log = self._loop.logs[self._iris[stream]]
        return log.messages(max(begin, log.log.first), end)

    def newest_records(self, stream: str, most_bytes: int) -> Iterator[list[Message]]:
        """The last messages of a stream; see `StreamLog.newest_messages`."""
        return self._loop.logs[self._iris[stream]].newest_messages(most_bytes)

    # --- health -----------------------------------------------------------------------------------

    @property
    def stats(self) -> Stats:
        """Counts of this run so far."""
        return self._job.stats

    def sinks(self) -> list[DeliveryView]:
        """The progress of each output."""
        deliveries = self._loop.deliveries
        return [] if deliveries is None else deliveries.views()

    def problems(self) -> list[str]:
        """The present failures; empty if there are none."""
        if self._failure is not None:
            return [f"the run has ended: {self._failure}"]
        fails = [f"{what}: {reason}" for what, reason in [*self._loop.reports.problems.items()]]
        fails += [f"stream {name}: {why}" for name, why in self._loop.acceptance.problems().items()]
        fails += self.graphs.problems()
        clock = self._loop.clock.problem()
        fails += [f"clock: {clock}"] if clock else []
        fails += [f"sink {view.name}: {view.problem}" for view in self.sinks() if view.problem]
        failed = (view for view in self.queries() if view.state == "failed")
        return [*fails, *(f"query {view.name} has failed: {view.reason}" for view in failed)]

    def _take_bad(self, bad: BadInput) -> None:
        BadInputLines(self._sides[str(self._path / "bad.jsonl")]).write(bad)

    def _take_late(self, late: LateEvent) -> None:
        lines = LateEventLines(self._sides[str(self._path / "late.jsonl")])
        lines.write(late.stream, late.event, late.time, late.lateness_ms)


def _now() -> int:
    return int(time.time() * 1000)
