"""The queries of a live run: they come and go, fail, and catch up, each at a place in the logs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.chaining import reading_order
from spaseq.runtime.live.answer_log import AnswerLog
from spaseq.runtime.live.catch_up import CatchUp, CatchUps
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.live.past_points import PastPoint, PastPoints
from spaseq.runtime.live.query_changes import (
    ChangeKind,
    ChangeLog,
    Planner,
    QueryChange,
    StandingQuery,
    as_values,
    of_values,
)
from spaseq.runtime.live.replay_points import ReplayPoint
from spaseq.runtime.live.saved_run import SavedRun


class ChangingQueries:
    """The queries that an engine has, and those that catch up before it gets them.

    Attributes:
        by_name: the queries of a set that changes; empty if the queries of the job are all.
        catch_ups: those among them that read the past.
        log: their changes; None if there are none.
        due: the changes that an earlier run has logged, and that must take effect again.
        changed: the number of the next change to take effect.
    """

    def __init__(
        self,
        engine: LiveEngine,
        catch_ups: CatchUps,
        log: ChangeLog | None,
        planner: Planner | None,
        answers: AnswerLog,
        commit_answers: Callable[[], None],
    ) -> None:
        self._engine, self.catch_ups, self.log, self._planner = engine, catch_ups, log, planner
        self._answers, self._commit_answers = answers, commit_answers
        self.by_name: dict[str, StandingQuery] = {}
        self._paused: dict[str, QueryPlan] = {}  # plans of paused queries that were asked for
        self.due: deque[QueryChange] = deque()
        self.changed = 0

    # --- saving and resuming ----------------------------------------------------------------------

    def restore(self, saved: SavedRun) -> None:
        """Go on from the state that an earlier run has saved."""
        self.changed, self.by_name = saved.changes, of_values(saved.queries)
        self.catch_ups.points = PastPoints(saved.points)
        self._engine.restore(saved.engine, self._plans({name for name, *_ in saved.catch_ups}))
        for name, point, *more in saved.catch_ups:
            put_at = more[0] if more else saved.places
            self._begin_catch_up(self.by_name[name], PastPoint(*point), put_at)

    def restore_at(self, point: ReplayPoint) -> None:
        """Go on from a point of the logs: with its queries, of which none has a state yet."""
        self.changed, self.by_name = point.changes, of_values(point.queries)
        self._engine.begin_at(point.streams, self._plans(set()))
        for title, reason in point.failed:
            query = self._engine.queries.query_of(title)
            assert query is not None
            self._engine.queries.fail(query, reason)

    def _plans(self, without: set[str]) -> list[QueryPlan] | None:
        plan = self._planner
        if plan is None:
            return None
        found = self.by_name.values()
        queries = [q for q in found if q.name not in without and not q.is_paused]
        return [*reading_order([plan(query.name, query.text) for query in queries])]

    def read_log(self) -> None:
        """Let the logged changes after the saved state be due."""
        if self.log is not None:
            self.due.extend(self.log.after(self.changed))

    def as_values(self) -> list[Any]:
        """The queries as values that a state can have."""
        return as_values(self.by_name)

    def places_needed(self) -> Iterator[Mapping[str, int]]:
        """By stream, the next record of its log that a query which catches up reads."""
        return (own.places for own in self.catch_ups.values())

    # --- changes ----------------------------------------------------------------------------------

    def change(self, change: QueryChange, plan: QueryPlan | None = None) -> None:
        """Log a change, and let it take effect; `plan` is the query's, if it is known.

        Raises:
            QueryError, UsageError: the query cannot be added. Nothing has changed.
            RunError: the disk is full. Nothing has changed.
        """
        assert self.log is not None
        plan = plan or self._plan(change)
        if plan is not None:
            catching = [own.plan for own in self.catch_ups.values()]
            self._engine.queries.check_plan(plan, catching)
        self.log.append(change)
        self.apply(change, plan)

    def _plan(self, change: QueryChange) -> QueryPlan | None:
        if change.kind not in (ChangeKind.ADDED, ChangeKind.RESTARTED):
            return None
        assert self._planner is not None
        return self._planner(change.query.name, change.query.text)

    def began(self, name: str) -> QueryChange:
        """The change by which a query that is there began, or began anew."""
        assert self.log is not None
        kinds = (ChangeKind.ADDED, ChangeKind.RESTARTED)
        changes = self.log.after(0)
        return next(c for c in reversed(changes) if c.query.name == name and c.kind in kinds)

    def apply(self, change: QueryChange, plan: QueryPlan | None = None) -> None:
        """Let a logged change take effect."""
        name, plan = change.query.name, plan or self._plan(change)
        self.changed = change.index + 1
        if change.kind is not ChangeKind.JOINED:
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
            self.by_name[name] = change.query
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

    def plan_of(self, name: str) -> QueryPlan | None:
        """The plan of a query, whether it has caught up or not."""
        if name in self.catch_ups:
            return self.catch_ups[name].plan
        known = self.by_name.get(name)
        if known is not None and known.is_paused:
            assert self._planner is not None
            if name not in self._paused:
                self._paused[name] = self._planner(name, known.text)
            return self._paused[name]
        query = self._engine.queries.query_of(name)
        return None if query is None else query.plan

    def _begin_catch_up(
        self, query: StandingQuery, start: PastPoint, put_at: Mapping[str, int]
    ) -> None:
        assert self._planner is not None
        plan = self._planner(query.name, query.text)
        self.catch_ups.begin(query, plan, start, put_at)

    def read_on(self, own: CatchUp, until: Mapping[str, int]) -> None:
        """Let a query read on, at most to some places, and log its answers."""
        answers = own.advance(until)
        if own.reads_past:
            self._answers.past[own.plan.identity.title] = own.watermark
        self._answers.add_past(own.plan, answers, own.reads_past)
        self._commit_answers()

    def _join(self, name: str, places: Mapping[str, int]) -> None:
        own = self.catch_ups.pop(name, None)
        if own is None:  # it has failed
            return
        while own.failure is None and own.places != {**own.places, **places}:
            self.read_on(own, places)
        if own.failure is None:
            self._engine.adopt(own.plan, own.snapshot())
        own.close()

    def close(self) -> None:
        """Close the files."""
        for own in self.catch_ups.values():
            own.close()
        if self.log is not None:
            self.log.close()
