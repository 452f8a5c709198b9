"""The queries of a live run: they come, go, fail and catch up, each at a position in the logs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from spaseq.algebra.answers import Answer
from spaseq.errors import InputError, OtherStateError, UsageError
from spaseq.kb.knowledge_versions import EARLIEST
from spaseq.logs.segment_log import SegmentLog
from spaseq.logs.stream_log import StreamLog
from spaseq.options import StateLimits
from spaseq.plan.changing_graphs import reading_kept
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.binding import asks_endpoints
from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.job.unit_graph import reading_order
from spaseq.runtime.live.answer_log import AnswerLog
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import SavedRun
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.live.log_points import (
    HistoryGone,
    LogReading,
    PastPoint,
    PastPoints,
    ReplayPoint,
)
from spaseq.runtime.live.partition_clocks import LoggedBefore
from spaseq.runtime.live.query_changes import (
    ChangeKind,
    Planner,
    QueryChange,
    StandingQuery,
    as_values,
    changes_after,
    of_values,
)
from spaseq.runtime.pushed import Tolerated

_AT_ONCE = 2**18  # bytes of a log that are read before others have their turn


class CatchUp:
    """A query that reads the past, on its way to the end of the logs.

    Args:
        job: the job of the run.
        plan: the query.
        streams: all streams of the run.
        logs: their logs.
        start: the point where it begins.
        limits: limits of its state.
        since: it takes no event before this time (ms).

    Attributes:
        put_at: the next record of each stream's log when the query was put.
        reads_past: whether all records that it has read were logged before the query was put.
    """

    def __init__(
        self,
        job: Job,
        plan: QueryPlan,
        streams: Sequence[LiveStream],
        logs: Mapping[str, StreamLog],
        start: PastPoint,
        limits: StateLimits,
        since: int,
    ) -> None:
        self.plan, self.start, self.reads_past = plan, start, True
        self.put_at: Mapping[str, int] = {}
        own_job = Job((plan,), (), job.knowledge, job.options, stats=Stats())
        own_job.graph_changes = [*job.graph_changes]
        self.engine = LiveEngine(own_job, streams, limits, Tolerated.ALL, since)
        if start.streams:
            self.engine.restore_streams(start.streams)
        places = {iri: min(start.places.get(iri, 0), log.log.end) for iri, log in logs.items()}
        self.reading = LogReading(logs, places)

    @property
    def places(self) -> dict[str, int]:
        """The next record that it reads of each stream's log."""
        return self.reading.places

    @property
    def failure(self) -> str | None:
        """The reason why it cannot continue."""
        return self.engine.queries.queries[0].failure

    def advance(self, until: Mapping[str, int]) -> Sequence[Answer]:
        """Read a batch, at most to some positions; return the answers."""
        places = self.places
        self.reads_past = any(places.get(iri, 0) < end for iri, end in self.put_at.items())
        if self.reads_past:
            until = {
                iri: min(until.get(iri, place), max(place, self.put_at.get(iri, 0)))
                for iri, place in places.items()
            }
        for iri, entries in self.reading.entries(_AT_ONCE, until):
            self.engine.take(iri, entries)
        answers = [answer for _, answer in self.engine.advance()]
        for reason in self.engine.check_waiting().values():
            self.engine.queries.fail(self.engine.queries.queries[0], reason)
        return answers

    def logged_before(self) -> LoggedBefore:
        """The events that it has read."""
        return LoggedBefore.of(self.engine.streams_read(self.plan.inputs.streams))

    def close(self) -> None:
        """Close the files."""
        self.reading.close()


class CatchUps(dict[str, CatchUp]):
    """The queries that have not caught up, by name, and the points where others can begin."""

    def __init__(
        self,
        job: Job,
        streams: Sequence[LiveStream],
        logs: Mapping[str, StreamLog],
        limits: StateLimits,
    ) -> None:
        super().__init__()
        self._job, self._streams, self._logs, self._limits = job, streams, logs, limits
        self.points = PastPoints()

    def point(self, plan: QueryPlan, maintained: set[str], since: int) -> PastPoint:
        """The point where a query must begin to see all events from a time (ms) on.

        Raises:
            HistoryGone: some of them may have been dropped from the logs, or the values that its
                graphs had then.
            UsageError: it reads a stream that another query registers, or a graph that another one
                maintains, or uses an endpoint.
        """
        self._check(plan, maintained)
        if since < self._graphs_since(plan):
            raise HistoryGone("what graphs were at that time is not kept any more")
        point = self.points.before(since, plan.inputs.streams)
        if point is not None:
            return point
        if any(log.log.first for log in self._logs.values()):
            raise HistoryGone("events of that time may have been dropped from the logs")
        return self.first(plan, maintained)

    def first(self, plan: QueryPlan, maintained: set[str]) -> PastPoint:
        """The present beginning of the logs; UsageError as from `point`."""
        self._check(plan, maintained)
        return PastPoint({iri: log.log.first for iri, log in self._logs.items()}, [])

    def _check(self, plan: QueryPlan, maintained: set[str]) -> None:
        if asks_endpoints(plan, self._job.knowledge):
            raise UsageError(
                f"query {plan.identity.title} cannot begin in the past: it asks an endpoint, which "
                "need not answer as it would have answered then. Add it without from"
            )
        kept = sorted(maintained.intersection(plan.inputs.kbs))
        if kept:
            raise UsageError(
                f"query {plan.identity.title} cannot begin in the past: no log keeps how queries "
                f"changed the graph <{kept[0]}>. Add it without from: it finds the graph as it is"
            )
        for iri in plan.inputs.streams:
            if iri not in self._logs:
                raise UsageError(
                    f"query {plan.identity.title} cannot begin in the past: no log keeps the "
                    f"events of the stream <{iri}>"
                )

    def begin(
        self, query: StandingQuery, plan: QueryPlan, start: PastPoint, put_at: Mapping[str, int]
    ) -> None:
        """Let a query read from a point on; `put_at` is as for `CatchUp`."""
        self[query.name] = self.made(plan, start, query.since, put_at)

    def made(
        self, plan: QueryPlan, start: PastPoint, since: int, put_at: Mapping[str, int]
    ) -> CatchUp:
        """A query that reads from a point on, and is not recorded here."""
        given = self._job, plan, self._streams, self._logs, start, self._limits
        catch_up = CatchUp(*given, since)
        catch_up.put_at = put_at
        return catch_up

    def trial(
        self, plan: QueryPlan, maintained: set[str], since: int | None
    ) -> tuple[CatchUp, dict[str, int]]:
        """A query on trial, and the present ends of the logs; it begins as from `point`.

        Without `since` it reads all that is logged, from the time on when all its graphs are known.
        """
        given = plan, maintained
        start = self.first(*given) if since is None else self.point(*given, since)
        ends = {iri: log.log.end for iri, log in self._logs.items()}
        first = self._graphs_since(plan) if since is None else since
        return self.made(plan, start, first, {}), ends

    def _graphs_since(self, plan: QueryPlan) -> int:
        """The time (ms) from which all graphs of a query are known."""
        return self._job.graphs_since if plan.inputs.kbs else EARLIEST

    def starts(self) -> list[Any]:
        """The points where each query began, and was put, as values for a state."""
        return [(name, tuple(query.start), dict(query.put_at)) for name, query in self.items()]


class ChangingQueries:
    """The queries of an engine, and those that catch up before it gets them.

    Attributes:
        by_name: the queries of a changing set; empty if the job has all queries.
        catch_ups: the queries among them that read the past.
        log: their changes; None if there are none.
        due: the logged changes of an earlier run that must take effect again.
        changed: the number of the next change to take effect.
    """

    def __init__(
        self,
        engine: LiveEngine,
        catch_ups: CatchUps,
        log: SegmentLog | None,
        planner: Planner | None,
        answers: AnswerLog,
        commit_answers: Callable[[], None],
    ) -> None:
        self._engine, self.catch_ups, self.log, self._planner = engine, catch_ups, log, planner
        self._answers, self._commit_answers = answers, commit_answers
        self.by_name: dict[str, StandingQuery] = {}
        self._paused: dict[str, QueryPlan] = {}  # plans of paused queries, cached
        self.due: deque[QueryChange] = deque()
        self.changed = 0

    # --- saving and resuming ----------------------------------------------------------------------

    def restore(self, saved: SavedRun) -> None:
        """Restore the saved state of an earlier run.

        Raises:
            OtherStateError: a query's state is of an incompatible version. Nothing has changed.
            RunError: the state is damaged.
        """
        self.changed, self.by_name = saved.changes, of_values(saved.queries)
        try:
            self._engine.restore(saved.engine, self._plans({name for name, *_ in saved.catch_ups}))
        except OtherStateError:
            self.changed, self.by_name = 0, {}
            raise
        self._restore_past()
        self.catch_ups.points = PastPoints(PastPoint(*values) for values in saved.points)
        for name, point, *more in saved.catch_ups:
            put_at = more[0] if more else saved.places
            self._begin_catch_up(self.by_name[name], PastPoint(*point), put_at)

    def _restore_past(self) -> None:
        past = {name: query.past for name, query in self.by_name.items()}
        self._answers.past = {n: LoggedBefore.of_json(p) for n, p in past.items() if p is not None}

    def restore_at(self, point: ReplayPoint) -> None:
        """Restore a point of the logs: its queries, of which none has a state yet."""
        self.changed, self.by_name = point.changes, of_values(point.queries)
        self._restore_past()
        self._engine.begin_at(point.streams, self._plans(set()))
        for title, reason in point.failed:
            query = self._engine.queries.query_of(title)
            assert query is not None
            self._engine.queries.fail(query, reason)

    def _plans(self, without: set[str]) -> list[QueryPlan] | None:
        plan = self._planner
        if plan is None:
            return None
        planned, late, known = dict[str, QueryPlan](), list[StandingQuery](), set[str]()
        for query in self.by_name.values():
            try:
                made = plan(query.name, query.text, {*known, *query.graphs})
                planned[query.name] = reading_kept(made, query.graphs)
            except InputError:  # a later one may maintain the graph that it reads
                late.append(query)
            else:
                known |= _maintained([made])
        running = {q.name for q in self.by_name.values() if not q.is_paused} - without
        late = [query for query in late if query.name in running]
        planned.update((q.name, plan(q.name, q.text, known)) for q in late)
        return [*reading_order([made for name, made in planned.items() if name in running])]

    def read_log(self) -> None:
        """Load the logged changes after the saved state; they become due."""
        if self.log is not None:
            self.due.extend(changes_after(self.log, self.changed))

    def as_values(self) -> list[Any]:
        """The queries as values for a state."""
        kept, by_name = self._engine.queries.maintained, {**self.by_name}
        for query in self._engine.queries.queries:
            makers = () if query.plan.changing is None else query.plan.changing.makers
            name = query.plan.identity.title
            if name in by_name and not kept.issuperset(makers):
                by_name[name] = by_name[name]._replace(graphs=[*makers])
        return as_values(by_name)

    def places_needed(self) -> Iterator[Mapping[str, int]]:
        """By stream: the next record of its log that some catching-up query reads."""
        return (catch_up.places for catch_up in self.catch_ups.values())

    # --- changes ----------------------------------------------------------------------------------

    def change(self, change: QueryChange, plan: QueryPlan | None = None) -> None:
        """Log a change, and apply it; `plan` is the plan of the query, if known.

        Raises:
            QueryError, UsageError: the query cannot be added. Nothing has changed.
            RunError: the disk is full. Nothing has changed.
        """
        assert self.log is not None
        plan = plan or self._plan(change)
        if plan is not None:
            catching = [catch_up.plan for catch_up in self.catch_ups.values()]
            self._engine.queries.check_plan(plan, catching)
        self.log.write([change.to_bytes()])
        self.apply(change, plan)

    def _plan(self, change: QueryChange) -> QueryPlan | None:
        if change.kind not in (ChangeKind.ADDED, ChangeKind.RESTARTED):
            return None
        assert self._planner is not None
        return self._planner(change.query.name, change.query.text, self.maintained)

    def began(self, name: str) -> QueryChange:
        """The change by which a present query began, or restarted."""
        assert self.log is not None
        kinds = (ChangeKind.ADDED, ChangeKind.RESTARTED)
        changes = changes_after(self.log)
        return next(c for c in reversed(changes) if c.query.name == name and c.kind in kinds)

    def apply(self, change: QueryChange, plan: QueryPlan | None = None) -> None:
        """Apply a logged change."""
        name, plan = change.query.name, plan or self._plan(change)
        self.changed = change.index + 1
        if change.kind not in (ChangeKind.JOINED, ChangeKind.TOLD):
            self._answers.past.pop(name, None)
        if change.kind is ChangeKind.JOINED:
            self._join(name, change.places)
            return
        if change.kind is ChangeKind.TOLD:
            was = self.by_name[name]
            self.by_name[name] = was._replace(text=change.query.text)
            self._paused.pop(name, None)
            return
        self._paused.pop(name, None)
        catching = self.catch_ups.pop(name, None)
        if catching is not None:
            catching.close()
        if change.kind is ChangeKind.FAILED:
            if catching is not None:
                self._engine.add(catching.plan)
            query = self._engine.queries.query_of(name)
            assert query is not None
            self._engine.queries.fail(query, change.reason)
        elif plan is not None and change.start is None:
            self._engine.add(plan)
            self.by_name[name] = change.query._replace(past=None)
        else:
            query = self._engine.queries.query_of(name)
            if query is not None:
                self._engine.remove(query)
            self.by_name.pop(name, None)
            if change.kind is ChangeKind.PAUSED:
                self.by_name[name] = change.query
            if change.start is not None:
                self.by_name[name] = change.query
                self._begin_catch_up(change.query, change.start, change.places)

    # --- queries that begin in the past -----------------------------------------------------------

    @property
    def maintained(self) -> set[str]:
        """The graphs that queries maintain, catching-up ones included."""
        return self._engine.queries.maintained | _maintained(
            catch_up.plan for catch_up in self.catch_ups.values()
        )

    def plan_of(self, name: str) -> QueryPlan | None:
        """The plan of a query, whether it has caught up or not."""
        if name in self.catch_ups:
            return self.catch_ups[name].plan
        known = self.by_name.get(name)
        if known is not None and known.is_paused:
            assert self._planner is not None
            if name not in self._paused:
                self._paused[name] = self._planner(name, known.text, self.maintained)
            return self._paused[name]
        query = self._engine.queries.query_of(name)
        return None if query is None else query.plan

    def _begin_catch_up(
        self, query: StandingQuery, start: PastPoint, put_at: Mapping[str, int]
    ) -> None:
        assert self._planner is not None
        plan = self._planner(query.name, query.text, self.maintained)
        self.catch_ups.begin(query, plan, start, put_at)

    def read_on(self, catch_up: CatchUp, until: Mapping[str, int]) -> None:
        """Let a query read on, at most to some positions, and log its answers."""
        answers = catch_up.advance(until)
        if catch_up.reads_past:
            name, before = catch_up.plan.identity.title, catch_up.logged_before()
            self._answers.past[name] = before
            self.by_name[name] = self.by_name[name]._replace(past=before.as_json())
        self._answers.add_past(catch_up.plan, answers, catch_up.reads_past)
        self._commit_answers()

    def _join(self, name: str, places: Mapping[str, int]) -> None:
        catching_up = self.catch_ups.pop(name, None)
        if catching_up is None:  # it has failed
            return
        while catching_up.failure is None and catching_up.places != {
            **catching_up.places,
            **places,
        }:
            self.read_on(catching_up, places)
        if catching_up.failure is None:
            self._engine.adopt(catching_up.plan, catching_up.engine.queries)
        catching_up.close()

    def close(self) -> None:
        """Close the files."""
        for catch_up in self.catch_ups.values():
            catch_up.close()
        if self.log is not None:
            self.log.close()


def _maintained(plans: Iterable[QueryPlan]) -> set[str]:
    """The graphs that queries maintain."""
    return {plan.maintained for plan in plans if plan.maintained is not None}
