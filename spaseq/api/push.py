"""The engine in process: the caller pushes events and gets the answers that are certain."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from itertools import chain, count
from pathlib import Path
from secrets import token_hex
from threading import RLock
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, Unpack

from spaseq.algebra.answers import Answer
from spaseq.api.match import Match, PartialMatch, to_datetime
from spaseq.api.prepare import StandingPlanner, load_knowledge, named, plan_queries
from spaseq.api.pushed_streams import PushedEvent, PushedMatcher, PushedStreams
from spaseq.api.queries import QueryInput
from spaseq.errors import BadEvents, SpaseqError, UsageError
from spaseq.kb.graph_updates import given_triples, graph_triples, replacing, updating
from spaseq.kb.knowledge_versions import TimedChange
from spaseq.lang.spelling import suggested
from spaseq.memory import collection_paused
from spaseq.options import KbInput, PushKeywords, RunOptions, check_callback
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.templates import QueryTemplates
from spaseq.rdf.inputs.stream_options import OnBad, warn
from spaseq.rdf.terms.times import TIME_UNITS, Time, format_time, time_ms
from spaseq.runtime.job.binding import stream_names
from spaseq.runtime.pushed import Found, PushedQueries, Tolerated
from spaseq.sources.iterables import Event
from spaseq.stages.unit_stages import StageFactory

_NEVER = -(2**63)

P = ParamSpec("P")
R = TypeVar("R")


class Turn:
    """A lock with an owner: the thread that may call an object now."""

    __slots__ = ("is_taken", "lock")

    def __init__(self) -> None:
        self.lock = RLock()  # the calling thread
        self.is_taken = False


class TakesTurns(Protocol):
    """An object that only one thread at a time may call."""

    _turn: Turn


S = TypeVar("S", bound=TakesTurns)


def one_at_a_time(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a method wait while another thread is in such a method of the object.

    Raises:
        UsageError: the calling thread is already in such a method.
    """

    @wraps(method)
    def call(self: S, /, *arguments: P.args, **options: P.kwargs) -> R:
        turn = self._turn
        with turn.lock:
            if turn.is_taken:
                raise UsageError(
                    f"{method.__qualname__.lstrip('_')} was called inside another call of the same "
                    "object, by a callback or an extension function: call it after that call has "
                    "returned"
                )
            turn.is_taken = True
            try:
                return method(self, *arguments, **options)
            finally:
                turn.is_taken = False

    return call


class Engine:
    """Queries, evaluated as events are pushed: no threads, no timers, no JVM.

    Several threads may call one engine; their calls wait for each other.

    Times never decrease, across all streams. Each call returns the answers that it makes certain:
    they end before the time of the latest event, because other events of that time may follow.
    Answers are ordered by query. A query can read the stream that another one registers.
    `limit_per_event` bounds the answers that end at the same instant (and lie in the same
    partition); `suppressed` counts the others.

    A `with` block closes the engine at its end. Call `close` in the block for the last answers.

    >>> engine = Engine('''
    ...   SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
    ...   WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example/is> "hot" } }''')
    >>> engine.push("S", '<http://example/pan> <http://example/is> "hot" .', 1000)
    []
    >>> [m.bindings["x"].n3() for m in engine.advance(1000)]
    ['<http://example/pan>']
    """

    def __init__(
        self,
        query: QueryInput | Sequence[QueryInput],
        kb: Mapping[str, KbInput] | None = None,
        name: str | None = None,
        *,
        on_bad: OnBad = warn,
        lifts: Mapping[str, str | Path] | None = None,
        **options: Unpack[PushKeywords],
    ) -> None:
        """Compile queries and start them.

        Args:
            query: query text, the `Path` of a query file, or a parsed query; several in a list.
            kb: by graph IRI: a path, an rdflib.Graph, or the URL of a SPARQL endpoint.
            name: the name of a single query in its matches. By default a file's stem, or `query`.
            on_bad: called for each event that lacks an endpoint's answer or exceeds a limit; by
                default the logger `spaseq` warns.
            lifts: by stream: the text of a [lift](lift.md), or the `Path` of its file. Rows, as
                dicts, are pushed to such a stream.
            options: any of `spaseq.options.PushKeywords`.

        Raises:
            QueryError: with all errors of the queries and lifts.
            InputError: a query file, a lift or a knowledge base is missing or does not load.
            UsageError: an option is unknown or contradicts another.
        """
        self._turn = Turn()
        check_callback("on_bad", on_bad)
        chosen = RunOptions.of("Engine", PushKeywords, options)
        templates, planning = QueryTemplates(), chosen.planning
        plans = plan_queries(query, planning, True, templates, chosen.knowledge.kb_changes)
        if name is not None:
            plans = named(plans, name)
        knowledge = load_knowledge(plans, kb or {}, chosen.knowledge)
        self._planner = StandingPlanner(planning, knowledge, templates)
        self._how = how = StageFactory(knowledge, chosen.stages, on_bad)
        with collection_paused():
            self._queries = PushedQueries(plans, how, True, Tolerated.OTHERS)
        self._streams = PushedStreams(chosen.limits, chosen.reading.time_unit)
        self._matcher = PushedMatcher(self._queries, chosen.limits)
        self._set_streams()
        self._streams.lift(lifts or {})
        self._now: int | None = None  # time of the latest event
        # No event at or before `_done`, or below `_floor`, follows.
        self._done = self._floor = _NEVER
        self._closed = False

    def _set_streams(self) -> None:
        """Record the streams of the queries; streams of removed queries stay known."""
        plans = self._plans
        used = {name for plan in plans for name in plan.inputs.stream_names}
        made = {plan.identity.register for plan in plans}
        names = self._streams.names
        gone = {n: iri for n, iri in names.items() if n not in used and iri not in made}
        self._streams.names = gone | stream_names(plans)
        self._matcher.use(self._streams.names.values())
        # The events of one stream have different instants, so each is processed when it comes.
        self._alone = len(plans) == 1 and len(plans[0].inputs.streams) == 1

    def _knows(self, plan: QueryPlan) -> bool:
        """Whether the streams, names and predicates of a query are all known already."""
        names = self._streams.names
        return all(
            names.get(name) == iri and names.get(iri) == iri and self._matcher.reads(plan, iri)
            for name, iri in zip(plan.inputs.stream_names, plan.inputs.streams, strict=True)
        )

    @property
    def _plans(self) -> list[QueryPlan]:
        return [query.plan for query in self._queries.queries]

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, including failed ones."""
        return tuple(plan.identity.title for plan in self._plans)

    @property
    def failed(self) -> dict[str, str]:
        """The reason of each failed query, by name; the other queries have continued."""
        with self._turn.lock:
            queries = [*self._queries.queries]
        return {q.plan.identity.title: q.failure for q in queries if q.failure is not None}

    @one_at_a_time
    def add(self, query: QueryInput, *, name: str | None = None) -> str:
        """Add a query, or replace the query of a name; returns the name.

        The query gets all events that are pushed from now on, and none from before: `,` and
        `WITHIN n EVENTS` count from here. It replaces a query with the same name, whose partial
        matches are lost. If both canonical texts are equal, nothing changes, except that a failed
        query restarts. Matches of a query that registers a stream carry the stream's IRI.

        Args:
            query: query text, the `Path` of a query file, or a parsed query. It may name the graphs
                of the loaded knowledge base, and new streams.
            name: by default a file's stem, or the first free one of `query`, `query2` and so on.

        Raises:
            QueryError: the query has errors.
            InputError: the query file or a graph of the knowledge base is missing.
            UsageError: another query registers the same stream, or queries would read each other's
                streams in a circle. The engine is unchanged.
        """
        self._check_open()
        if name is None:
            name = query.stem if isinstance(query, Path) else self._free_name()
        plan = self._planner(name, query, self._queries.maintained)
        old = self._queries.query_of(name)
        if old is not None and old.failure is None and _same(old.plan, plan):
            return name
        self._queries.add(plan, old)
        if old is None and plan.identity.register is None and self._knows(plan):
            self._alone = False
        else:
            self._set_streams()
        return name

    @one_at_a_time
    def remove(self, name: str) -> None:
        """Remove a query, its partial matches and its answers that are not certain yet.

        Queries that read a stream which it registers stay; that stream has no further events.

        Raises:
            UsageError: no query has this name.
        """
        self._check_open()
        query = self._queries.query_of(name)
        if query is None:
            near = suggested(name, self.queries)
            raise UsageError(
                f"no query is called {name}" + (f", did you mean {near}?" if near else "")
            )
        self._queries.remove(query)
        self._set_streams()

    def _free_name(self) -> str:
        names = chain(["query"], (f"query{number}" for number in count(2)))
        return next(name for name in names if name not in self.queries)

    @property
    def suppressed(self) -> int:
        """Number of answers that `limit_per_event` has suppressed so far."""
        with self._turn.lock:
            return self._queries.suppressed

    @property
    def muted(self) -> dict[str, int]:
        """Number of answers that MUTE has left out so far, by the name of the query."""
        with self._turn.lock:
            return self._queries.muted

    @property
    def latest(self) -> datetime | None:
        """The time of the latest event that was pushed; None before the first."""
        return None if self._now is None else to_datetime(self._now)

    @property
    def filtered(self) -> int:
        """Number of pushed rows that gave no event, because their lift had no solution for them."""
        return self._streams.filtered

    @one_at_a_time
    def push(self, stream: str, graph: Any, time: Time | None = None) -> list[Match]:
        """Push one event of a stream, given the query's name for the stream or its IRI.

        A stream with a lift takes a row (a dict) in place of the graph. Its time is the time that
        the lift makes, or else `time`. Other events need `time`. A row that gives several events is
        taken whole, in order of their times: the first must not go back.

        An event that is refused leaves the engine as it was. A time is a datetime (without a zone:
        UTC), milliseconds as int, ISO 8601 text, `np.datetime64` or a pandas Timestamp.

        Raises:
            UsageError: no query has such a stream, the time is invalid or goes back, or the engine
                is closed.
            InputError: the graph is not RDF, or the row is bad.
            RunError: a query failed at the event, for instance in an extension function.
        """
        self._check_open()
        iri = self._streams.iri(stream)
        before = self._streams.positions
        try:
            events = self._streams.events(iri, graph, time, self._floor)
            if not events:
                return []
            solutions = self._matcher.match_few(iri, events)
        except BaseException:
            self._streams.return_to(before)
            raise
        self._queries.push(solutions)
        self._now = self._floor = now = events[-1][0]
        return self._matches(now - 1, self._alone)

    def push_many(self, batch: Iterable[tuple[str, Event | Mapping[str, Any]]]) -> list[Match]:
        """Push (stream, event) pairs in order of time; returns the certain answers, in order.

        The graph of an event on a stream with a lift is a row (a dict); the event's time counts if
        the lift makes none.

        Raises:
            BadEvents: some events were refused, for a reason that `push` gives. All others were
                taken, and the error has their answers.
            UsageError: the engine is closed.
            RunError: as `push`; no event was taken.
        """
        self._check_open()
        return self._push_many(list(batch))  # a generator may wait for other threads

    @one_at_a_time
    @collection_paused()
    def _push_many(self, given: Sequence[Any]) -> list[Match]:
        self._check_open()
        before = self._streams.positions
        try:
            taken, bad, solutions = self._taken_and_found(given, before)
        except BaseException:
            self._streams.return_to(before)
            raise
        self._queries.push(solutions)
        if taken:
            self._now = self._floor = taken[-1].time
        matches = [] if self._now is None else self._matches(self._now - 1)
        if bad:
            raise BadEvents(bad, matches)
        return matches

    def _taken_and_found(
        self, given: Sequence[Any], before: Sequence[tuple[int, int]]
    ) -> tuple[list[PushedEvent], list[tuple[int, SpaseqError]], Found]:
        """The good events of a batch, (place, error) of each bad one, and the solutions.

        `before` is the state of the lifters before the batch.
        """
        streams, matcher = self._streams, self._matcher
        lifted = streams.lifted(given)
        if lifted is not None:
            taken, bad = streams.taken(given, self._floor, False, lifted)
            solutions = None if bad else matcher.match_if_read(taken, lifted)
            if solutions is not None:
                return taken, bad, solutions
        streams.return_to(before)
        taken, bad = streams.taken(given, self._floor, True, {})
        return taken, bad, matcher.match(taken, {})

    @one_at_a_time
    def update_kb(self, iri: str, change: Any, time: Time | None = None) -> None:
        """Change a graph of the knowledge base from a time on.

        Args:
            iri: the graph, which the engine has loaded.
            change: a SPARQL update as `str`, whose default graph is the graph; or the new contents:
                the `Path` of a file, an rdflib graph or a pyoxigraph dataset.
            time: the time from which the change holds; by default 1 ms after the last pushed event.

        Raises:
            UsageError: there is no such graph, a query maintains it, or an event of this time or
                later was pushed.
            InputError: the update or the file is wrong. The graph is unchanged.
        """
        self._check_open()
        since = self._change_time(iri, time)
        limits = self._how.options.limits
        graph, terms = self._how.versions.last(iri)
        if isinstance(change, str):
            scope = f"{iri}\0{token_hex(8)}"
            difference = updating(graph, terms, change, iri, scope)
        else:
            difference = replacing(graph_triples(graph, terms), given_triples(change, iri, limits))
        self._queries.change_graph(TimedChange(since, iri, difference))

    def _change_time(self, iri: str, time: Time | None) -> int:
        """The time (ms) from which a change of a graph holds; UsageError if it is not possible."""
        known = self._how.knowledge.graphs
        if iri not in known:
            near = suggested(iri, known)
            raise UsageError(
                f"the engine has no graph <{iri}>" + (f", did you mean <{near}>?" if near else "")
            )
        by_plans = (p.changing.graphs for p in self._plans if p.changing is not None)
        if iri in chain(*by_plans, (p.maintained for p in self._plans)):
            raise UsageError(f"<{iri}> is changed by a query, or by kb_changes")
        first = max(self._done, _NEVER if self._now is None else self._now) + 1
        first = max(first, self._how.versions.since(iri))
        if time is None:
            return first
        given = time_ms(time, TIME_UNITS[self._streams.time_unit])
        if given < first:
            raise UsageError(
                f"<{iri}> cannot change at {format_time(given)}: events of that time were pushed, "
                f"or it was changed later; the first time is {format_time(first)}"
            )
        return given

    @one_at_a_time
    def partials(self) -> list[PartialMatch]:
        """The partial matches whose windows have closed since the last call, query by query.

        A window has closed when no event in it can follow. Only an engine made with `partial=True`
        computes partial matches.
        """
        closed = self._queries.partials()
        return [PartialMatch.of(self._plans[n].identity.name, partial) for n, partial in closed]

    @one_at_a_time
    def advance(self, time: Time) -> list[Match]:
        """Assert that no event at or before a time follows; returns the certain answers."""
        self._check_open()
        return self._matches(time_ms(time, TIME_UNITS[self._streams.time_unit]))

    @one_at_a_time
    def close(self) -> list[Match]:
        """End all streams; return the remaining answers. No event can be pushed afterwards."""
        self._check_open()
        self._closed = True
        return self._named(self._queries.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        """Close the engine; warn of answers that the caller did not get."""
        if self._closed or kind is not None:
            self._closed = True
            return
        lost = len(self.close())
        if lost:
            warnings.warn(
                f"{lost} answers came when the engine closed: call close() in the block to get "
                "them",
                RuntimeWarning,
                stacklevel=2,
            )

    def __repr__(self) -> str:
        names = ", ".join(plan.identity.name for plan in self._plans)
        state = "closed, " if self._closed else ""
        return f"<Engine of {names}: {state}streams {', '.join(sorted(self._streams.names))}>"

    def _matches(self, watermark: int, ahead: bool = False) -> list[Match]:
        """The answers that are certain at a watermark; with `ahead`, later events are processed,
        too.
        """
        if watermark <= self._done and not ahead:
            return []
        self._done = watermark
        self._floor = max(self._floor, watermark + 1)
        return self._named(self._queries.advance(watermark, ahead))

    def _named(self, answers: Iterable[tuple[int, Answer]]) -> list[Match]:
        queries = self._queries.queries
        return [Match(queries[number].plan.identity.name, answer) for number, answer in answers]

    def _check_open(self) -> None:
        self._queries.check()
        if self._closed:
            raise UsageError("the engine is closed")


def _same(plan: QueryPlan, other: QueryPlan) -> bool:
    """Whether the canonical texts of two queries are equal."""
    return plan.signature.canonical == other.signature.canonical
