"""The engine in process: the caller pushes events and gets the answers that are certain."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from spaseq.algebra.answers import Answer
from spaseq.api.match import Match, PartialMatch
from spaseq.api.prepare import StandingPlanner, load_knowledge, named, plan_queries
from spaseq.api.queries import QueryInput
from spaseq.errors import BadEvents, InputError, SpaseqError, UsageError
from spaseq.lang.spelling import suggested
from spaseq.options import KbInput, PushKeywords, RunOptions
from spaseq.plan.predicates import stream_predicates
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.templates import QueryTemplates
from spaseq.rdf.in_memory.program_events import triples_of
from spaseq.rdf.inputs.bad_input import OnBad, warn
from spaseq.rdf.terms.program_times import Time, time_ms
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.times import LIMIT_MS
from spaseq.records import record
from spaseq.runtime.job.binding import stream_names
from spaseq.runtime.pushed import Found, PushedQueries, Tolerated
from spaseq.runtime.unit_stages import Evaluation
from spaseq.sources.iterables import Event

if TYPE_CHECKING:
    from spaseq.lift.pushed_rows import LiftedMany, RowLifter
    from spaseq.rdf.in_memory.text_events import TextEvents

_FEW = 16
"""Up to this many events of a stream are matched one by one, which is faster than as a batch."""


class Engine:
    """Queries, evaluated as events are pushed: no threads, no timers, no JVM.

    Times never decrease, across all streams. Each call returns the answers that it makes certain:
    they end before the time of the latest event, because other events of that time may follow.
    The answers come query by query. A query can read the stream that another one registers.
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
            QueryError: the queries or a lift have errors; all are in it.
            InputError: a query file, a lift or a knowledge base is missing or does not load.
            UsageError: an option is unknown or contradicts another.
        """
        chosen = RunOptions.of("Engine", PushKeywords, options)
        templates, planning = QueryTemplates(), chosen.planning
        plans = plan_queries(query, planning, pushed=True, templates=templates)
        if name is not None:
            plans = named(plans, name)
        knowledge = load_knowledge(plans, kb or {}, chosen.knowledge)
        self._planner = StandingPlanner(planning, knowledge, templates)
        how = Evaluation(knowledge, chosen.stages, on_bad)
        self._queries = PushedQueries(plans, how, True, Tolerated.OTHERS)
        self._names: dict[str, str] = {}
        self._set_streams()
        self._lifters: dict[str, RowLifter] = {}
        if lifts:
            from spaseq.lift.pushed_rows import RowLifter  # other engines do not import lifts

            for name, lift in lifts.items():
                iri = self._iri(name)
                self._lifters[iri] = RowLifter(iri, lift, chosen.limits)
        self._now: int | None = None  # time of the latest event
        # No event at or before `_done`, or below `_floor`, follows.
        self._done = self._floor = -(2**63)
        self._limits, self._closed = chosen.limits, False

    def _set_streams(self) -> None:
        """Take note of the streams of the queries; those of queries that have gone stay known."""
        plans = self._plans
        used = {name for plan in plans for name in plan.inputs.stream_names}
        made = {plan.identity.register for plan in plans}
        gone = {n: iri for n, iri in self._names.items() if n not in used and iri not in made}
        self._names = gone | stream_names(plans)
        self._counters = {iri: self._queries.counter(iri) for iri in self._names.values()}
        self._texts: dict[str, TextEvents] = {}
        # The events of one stream have different instants, so each is processed when it comes.
        self._alone = len(plans) == 1 and len(plans[0].inputs.streams) == 1

    def _knows(self, plan: QueryPlan) -> bool:
        """Whether a query has no other streams or names, and looks at no other predicates."""
        for name, iri in zip(plan.inputs.stream_names, plan.inputs.streams, strict=True):
            if self._names.get(name) != iri or self._names.get(iri) != iri:
                return False
            kept = self._texts[iri].predicates if iri in self._texts else None
            wanted = stream_predicates((plan,), iri)
            if kept is not None and (wanted is None or not kept.issuperset(wanted)):
                return False
        return True

    @property
    def _plans(self) -> list[QueryPlan]:
        return [query.plan for query in self._queries.queries]

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, those that have failed among them."""
        return tuple(plan.identity.title for plan in self._plans)

    @property
    def failed(self) -> dict[str, str]:
        """The reason of each query that has failed, by name; the others have gone on without it."""
        queries = self._queries.queries
        return {q.plan.identity.title: q.failure for q in queries if q.failure is not None}

    def add(self, query: QueryInput, *, name: str | None = None) -> str:
        """Take another query, or another text for a name; returns the name.

        The query gets all events that are pushed from now on, and none from before: `,` and
        `WITHIN n EVENTS` count from here. A query that has the name goes, with its partial matches,
        unless its canonical text is the same. Then nothing changes, except that one that has failed
        begins anew. Matches of a query that registers a stream carry the stream's IRI as ever.

        Args:
            query: query text, the `Path` of a query file, or a parsed query. It may name the graphs
                of the knowledge base that the engine has loaded, and streams of its own.
            name: by default a file's stem, or the first free one of `query`, `query2` and so on.

        Raises:
            QueryError: the query has errors.
            InputError: the query file or a graph of the knowledge base is missing.
            UsageError: another query registers the same stream, or queries would read each other's
                streams in a circle. Nothing has changed.
        """
        self._check_open()
        if name is None:
            name = query.stem if isinstance(query, Path) else self._free_name()
        plan = self._planner(name, query)
        old = self._queries.query_of(name)
        if old is not None and old.failure is None and _same(old.plan, plan):
            return name
        self._queries.add(plan, old)
        if old is None and plan.identity.register is None and self._knows(plan):
            self._alone = False
        else:
            self._set_streams()
        return name

    def remove(self, name: str) -> None:
        """Forget a query, its partial matches and its answers that are not certain yet.

        Queries that read a stream which it registers stay, and the stream is silent.

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
        """How many answers `limit_per_event` has suppressed so far."""
        return self._queries.suppressed

    @property
    def filtered(self) -> int:
        """How many pushed rows were no events, because their lift had no solution for them."""
        return sum(lifter.filtered for lifter in self._lifters.values())

    def push(self, stream: str, graph: Any, time: Time | None = None) -> list[Match]:
        """Push one event of a stream, which is named by the query's name for it or its IRI.

        A stream with a lift takes a row, a dict, in place of the graph. Its time is the one that
        the lift makes, or else `time`. Other events need `time`.

        An event that is refused leaves the engine as it was. A time is a datetime (without a zone:
        UTC), milliseconds as int, ISO 8601 text, `np.datetime64` or a pandas Timestamp.

        Raises:
            UsageError: no query has such a stream, the time is no time or goes back, or the
                engine is closed.
            InputError: the graph is not RDF, or the row is bad.
            RunError: a query failed at the event, for instance in an extension function.
        """
        self._check_open()
        iri = self._iri(stream)
        event = self._event(iri, graph, time)
        if event is None:
            return []
        now, name, triples = event
        counter = self._counters[iri]
        position = counter.position
        try:
            found = self._queries.match_event(iri, (now, counter.next(now)), name, triples)
        except BaseException:
            counter.return_to(position)
            raise
        self._queries.push(found)
        self._now = self._floor = now
        return self._matches(now - 1, self._alone)

    def _event(
        self, iri: str, given: Any, time: Time | None
    ) -> tuple[int, str | None, list[Triple]] | None:
        """The event that is pushed: its time, name and triples; None if a lift leaves it out."""
        lifter = self._lifters.get(iri)
        if lifter is not None:
            event = lifter.event(given, None if time is None else time_ms(time))
            if event is not None:
                self._checked(event[0])
            lifter.rows += 1
            return event
        if time is None:
            raise UsageError("an event needs a time: push(stream, graph, time)")
        return self._checked(time), None, triples_of(given, self._limits)

    def push_many(self, batch: Iterable[tuple[str, Event | Mapping[str, Any]]]) -> list[Match]:
        """Push (stream, event) pairs in order of time; returns the certain answers, in order.

        A stream with a lift has rows, which are dicts, or the graphs of events whose times count
        if the lift makes none.

        Raises:
            BadEvents: some events were refused, for a reason that `push` gives. All others were
                taken, and the error has their answers.
            UsageError: the engine is closed.
            RunError: as `push`; no event was taken.
        """
        self._check_open()
        given = list(batch)
        with self._rows_counted():
            taken, bad, found = self._taken_and_found(given)
        self._queries.push(found)
        if taken:
            self._now = self._floor = taken[-1].time
        matches = [] if self._now is None else self._matches(self._now - 1)
        if bad:
            raise BadEvents(bad, matches)
        return matches

    def _taken_and_found(
        self, given: Sequence[Any]
    ) -> tuple[list[_Pushed], list[tuple[int, SpaseqError]], Found]:
        """The good events of a batch, place and error of each bad one, and the solutions."""
        before = [(lifter, lifter.position) for lifter in self._lifters.values()]
        lifted = self._lifted(given)
        if lifted is not None:
            taken, bad = self._taken(given, False, lifted)
            found = None if bad else self._found_if_read(taken, lifted)
            if found is not None:
                return taken, bad, found
        for lifter, position in before:
            lifter.return_to(position)
        taken, bad = self._taken(given, True, {})
        return taken, bad, self._found(taken, {})

    def _lifted(self, given: Sequence[Any]) -> dict[str, LiftedMany] | None:
        """The events of all rows among the items, by stream; None if one needs a closer look."""
        rows: dict[str, list[Any]] = {}
        if self._lifters:
            for item in given:
                iri = self._names.get(item[0]) if _is_pair(item) else None
                if iri in self._lifters:
                    rows.setdefault(iri, []).append(item[1])
        found = {}
        for iri, own in rows.items():
            many = self._lifters[iri].events(own) if len(given) > _FEW else None
            if many is None:
                return None
            found[iri] = many
        return found

    def _taken(
        self, given: Sequence[Any], parsed: bool, lifted: Mapping[str, LiftedMany]
    ) -> tuple[list[_Pushed], list[tuple[int, SpaseqError]]]:
        """The good events of a batch; place and error of each bad one.

        With `parsed`, graphs become triples, so that bad ones are found. Of streams that are
        `lifted` already, the times of the rows are known.
        """
        times = {iri: iter(many.times) for iri, many in lifted.items()}
        taken: list[_Pushed] = []
        bad: list[tuple[int, SpaseqError]] = []
        floor = self._floor
        for place, item in enumerate(given):
            try:
                stream, event = _pair(item)
                iri = self._iri(stream)
                if iri in self._lifters:
                    pushed = self._row(iri, event, floor, times.get(iri))
                elif isinstance(event, Event):
                    time = _not_before(floor, event.time)
                    triples = triples_of(event.graph, self._limits) if parsed else None
                    pushed = _Pushed(iri, time, event.iri, event.graph, triples)
                else:
                    raise UsageError(f"stream {stream} has no lift, so it takes no rows")
            except SpaseqError as error:
                bad.append((place, error))
            else:
                if pushed is not None:
                    floor = pushed.time
                    taken.append(pushed)
        return taken, bad

    def _row(
        self, iri: str, given: Any, floor: int, times: Iterator[int | None] | None
    ) -> _Pushed | None:
        """The event of a row; None if it has no solution."""
        if times is not None:
            time = next(times)
            return None if time is None else _Pushed(iri, _not_before(floor, time), None, None, [])
        lifter, own = self._lifters[iri], None
        position = lifter.position
        if isinstance(given, Event):
            given, own = given.graph, time_ms(given.time)
        try:
            event = lifter.event(given, own)
            if event is not None:
                _not_before(floor, event[0])
        except SpaseqError:
            lifter.return_to(position)
            raise
        lifter.rows += 1
        return None if event is None else _Pushed(iri, event[0], event[1], None, event[2])

    @contextmanager
    def _rows_counted(self) -> Iterator[None]:
        """If the context raises, its rows have not been counted."""
        before = [(lifter, lifter.position) for lifter in self._lifters.values()]
        try:
            yield
        except BaseException:
            for lifter, position in before:
                lifter.return_to(position)
            raise

    def _found_if_read(
        self, taken: Sequence[_Pushed], lifted: Mapping[str, LiftedMany]
    ) -> Found | None:
        """The solutions of events; None if a graph is not RDF."""
        try:
            return self._found(taken, lifted)
        except InputError:
            return None

    def _found(self, taken: Sequence[_Pushed], lifted: Mapping[str, LiftedMany]) -> Found:
        """The solutions of events, stream by stream."""
        events_of: dict[str, list[_Pushed]] = {}
        for event in taken:
            events_of.setdefault(event.stream, []).append(event)
        found: Found = []
        with self._counted(*events_of):
            for iri, events in events_of.items():
                if iri in lifted:
                    for batch in lifted[iri].batches:
                        numbered = batch.with_k(self._counters[iri].assign(batch.time))
                        found += self._queries.match_batch(numbered)
                elif len(events) > _FEW and all(event.is_text for event in events):
                    texts = [(event.time, event.name, event.graph) for event in events]
                    found += self._queries.match_batch(self._reader(iri).batch(texts))
                else:
                    found += self._found_in_each(iri, events)
        return found

    def _found_in_each(self, iri: str, events: Sequence[_Pushed]) -> Found:
        counter, found = self._counters[iri], []
        graphs = [
            triples_of(e.graph, self._limits) if e.triples is None else e.triples for e in events
        ]
        for event, triples in zip(events, graphs, strict=True):
            instant = event.time, counter.next(event.time)
            found += self._queries.match_event(iri, instant, event.name, triples)
        return found

    @contextmanager
    def _counted(self, *streams: str) -> Iterator[None]:
        """If the context raises, its events have not been counted."""
        positions = [self._counters[iri].position for iri in streams]
        try:
            yield
        except BaseException:
            for iri, position in zip(streams, positions, strict=True):
                self._counters[iri].return_to(position)
            raise

    def _reader(self, iri: str) -> TextEvents:
        if iri not in self._texts:
            from spaseq.rdf.in_memory.text_events import (
                TextEvents,  # numba, which single events do without
            )

            predicates = stream_predicates(self._plans, iri)
            self._texts[iri] = TextEvents(iri, self._counters[iri], predicates, self._limits)
        return self._texts[iri]

    def partials(self) -> list[PartialMatch]:
        """The partial matches whose windows have closed since the last call, query by query.

        A window has closed when no event of its time can follow. The engine looks for partial
        matches if it was made with `partial=True`; otherwise there are none.
        """
        found = self._queries.partials()
        return [PartialMatch.of(self._plans[n].identity.name, partial) for n, partial in found]

    def advance(self, time: Time) -> list[Match]:
        """Promise that no event at or before a time follows; returns the certain answers."""
        self._check_open()
        return self._matches(time_ms(time))

    def close(self) -> list[Match]:
        """End all streams; the remaining answers. No event can be pushed afterwards."""
        self._check_open()
        self._closed = True
        return self._named(self._queries.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        """Close the engine; warns of answers that nobody took."""
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
        return f"<Engine of {names}: {state}streams {', '.join(sorted(self._names))}>"

    def _matches(self, watermark: int, ahead: bool = False) -> list[Match]:
        """The certain answers by a watermark; with `ahead`, later events are processed, too."""
        if watermark <= self._done and not ahead:
            return []
        self._done = watermark
        self._floor = max(self._floor, watermark + 1)
        return self._named(self._queries.advance(watermark, ahead))

    def _named(self, answers: Iterable[tuple[int, Answer]]) -> list[Match]:
        queries = self._queries.queries
        return [Match(queries[number].plan.identity.name, answer) for number, answer in answers]

    def _iri(self, stream: str) -> str:
        iri = self._names.get(stream)
        if iri is None:
            known = ", ".join(sorted(self._names))
            raise UsageError(f"the query reads no stream {stream}; streams: {known}")
        return iri

    def _checked(self, time: Time) -> int:
        if type(time) is int and self._floor <= time < LIMIT_MS:  # the usual case
            return time
        return _not_before(self._floor, time)

    def _check_open(self) -> None:
        self._queries.check()
        if self._closed:
            raise UsageError("the engine is closed")


@record
class _Pushed:
    """An event of a batch; `triples` is its graph, if that has been read."""

    stream: str  # IRI
    time: int  # ms
    name: str | None
    graph: Any
    triples: list[Triple] | None

    @property
    def is_text(self) -> bool:
        """Whether the kernel can read the graph."""
        return self.triples is None and isinstance(self.graph, str)


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _pair(item: object) -> tuple[str, Event | Mapping[str, Any]]:
    """The (stream, event) pair that an item of a batch is."""
    match item:
        case (str() as stream, Event() as event) if event.iri is None or isinstance(event.iri, str):
            return stream, event
        case (str() as stream, Mapping() as row):
            return stream, row
    raise UsageError(f"a batch has (stream, spaseq.Event) pairs, not {repr(item)[:100]}")


def _not_before(floor: int, when: Time) -> int:
    """A time in ms; UsageError if it is none, or before `floor`."""
    time = time_ms(when)
    if time < floor:
        raise UsageError(f"time {time} ms goes back: the engine stands at {floor} ms")
    return time


def _same(plan: QueryPlan, other: QueryPlan) -> bool:
    """Whether the canonical texts of two queries are equal."""
    return plan.identity.canonical == other.identity.canonical
