"""The loop of a live run: messages go into logs, the engine reads the logs, answers go into a log.

A message counts once its log is on disk, and an answer leaves once it is on disk. The state of the
engine is saved at intervals. A run that was killed continues from it: the engine reads the later
messages again, meets the changes of queries at their positions, and drops the answers that the
answer log has already.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from spaseq.algebra.graph_changes import GraphChange
from spaseq.errors import OtherStateError
from spaseq.kb.knowledge_versions import EARLIEST, TimedChange
from spaseq.logs.segment_log import SegmentLog
from spaseq.logs.stream_log import StreamLog
from spaseq.options import StateLimits
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.job import Job, ProcessCounts
from spaseq.runtime.live.acceptance import MessageAcceptance
from spaseq.runtime.live.answer_log import AnswerLog
from spaseq.runtime.live.changing_queries import CatchUps, ChangingQueries
from spaseq.runtime.live.deliveries import Deliveries, SinkSettings
from spaseq.runtime.live.earlier_run import (
    EarlierRun,
    LogRepetition,
    check_knowledge,
    note_of,
    other_logs,
    point_of,
    reaches_of,
)
from spaseq.runtime.live.endpoint_log import EndpointLog
from spaseq.runtime.live.graph_changes import GraphChanges
from spaseq.runtime.live.graph_log import LoggedChange
from spaseq.runtime.live.heartbeats import Heartbeats, RunClock, check_heartbeat, is_below
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import LiveDirectory, Persistence, SavedRun
from spaseq.runtime.live.live_engine import EngineMaker
from spaseq.runtime.live.log_points import LogReading, PastPoint
from spaseq.runtime.live.query_changes import (
    ChangeKind,
    LoopRequests,
    QueryChange,
    StandingQuery,
)
from spaseq.runtime.live.run_views import RunReports, StreamWaits
from spaseq.runtime.pushed import Tolerated
from spaseq.storage.checksums import cut_to, is_regular, size_of

SNAPSHOT_S = 10.0
"""Minimum number of seconds between two saves of the state."""

_SHARE = 20  # a save pays once a restart would repeat work as long as this many saves
_QUIET_S, _QUIET_SHARE = 300.0, 1000
_LAST_ANSWERS_S = 10.0  # how long the end of a run waits for its output
_LOOK_S = 0.2


class LiveLoop:
    """A live run with its logs.

    Only the thread of `run` may call the methods, unless their docstring says otherwise. If queries
    come and go, the failure of a query does not end the run.
    """

    def __init__(
        self,
        job: Job,
        directory: LiveDirectory,
        keeping: Persistence,
        streams: Sequence[LiveStream],
        make: EngineMaker,
        limits: StateLimits,
    ) -> None:
        """`job` gets a knowledge base whose endpoints are logged; `make` makes the engine."""
        self.job, self.directory, self._keeping = job, directory, keeping
        self.endpoints = EndpointLog(directory.endpoints, job.knowledge.services)
        job.knowledge = self.endpoints.used_by(job.knowledge)
        tolerated = Tolerated.NONE if keeping.planner is None else Tolerated.ALL
        self.engine = engine = make(job, streams, limits, tolerated)
        self.knowledge_since = 0  # ms since the epoch; 0 if there was no other knowledge base
        self.streams = {stream.iri: stream for stream in streams}
        self.clock = RunClock(keeping.wall)
        self._heartbeats = Heartbeats(streams, self.clock)
        self.stream_waits = StreamWaits(self.clock.wall)
        sides = keeping.sides.items()
        self._sides = {os.path.abspath(name): file for name, file in sides if is_regular(file)}
        self._work = threading.Event()
        self.requests = LoopRequests(self._work.set)
        self.reports = RunReports(job, keeping.endures)
        self.logs = {iri: StreamLog(directory.stream(iri)) for iri in self.streams}
        self.answers = AnswerLog(directory.answers, job.stats)
        self.queries = ChangingQueries(
            engine,
            CatchUps(job, streams, self.logs, engine.limits),
            None if keeping.planner is None else SegmentLog(directory.changes),
            keeping.planner,
            self.answers,
            self._commit_answers,
        )
        self._saved_at, self._save_s = time.monotonic(), 0.0
        self._worked_s = 0.0  # seconds that a restart would take to repeat the work since then
        self._is_failing = False  # queries fail now, for which the logs are read to their ends
        self.deliveries: Deliveries | None = None
        how = keeping.sync_ms, keeping.endures
        self.acceptance = MessageAcceptance(
            streams, self.logs, self._heartbeats, self.clock, how, self._work.set, self.reports.note
        )
        self.graphs = self._graphs()
        self.reading = LogReading(self.logs, self._resumed())

    def _graphs(self) -> GraphChanges:
        queries = self.queries
        return GraphChanges(
            self._keeping.graphs,
            self.engine,
            self.requests,
            self._change_graph,
            lambda iri: iri in queries.maintained,
            self.clock.wall,
            self.reports.note,
        )

    # --- resuming ---------------------------------------------------------------------------------

    def _resumed(self) -> Mapping[str, int]:
        """Restore the last saved state; return the positions from which the logs are read."""
        others = other_logs(self.answers, self.endpoints, self.queries)
        kept = self._keeping.graphs
        is_whole = kept is None or not kept.log.folded.count
        given = self.directory, self.logs, others, self._keeping.rebuilds, is_whole
        earlier = EarlierRun(*given)
        if earlier.state is not None:
            check_knowledge(earlier.state, self.job.knowledge.hash, self.logs, self.directory.path)
            try:
                self.queries.restore(earlier.state)
            except OtherStateError:  # like one of another format
                earlier = EarlierRun(*given, reads_state=False)
        self._replay, self._points = earlier.replay, earlier.points
        self._saved_answers = self._saved_endpoints = endpoints = 0
        places: Mapping[str, int] = {iri: log.log.first for iri, log in self.logs.items()}
        if earlier.replay is not None:
            places, endpoints = (point := earlier.replay.point).places, point.endpoints
            self._go_on(earlier.replay.to)
            self.queries.restore_at(point)
            self.answers.is_silent = True
        elif earlier.state is not None:
            places, endpoints = earlier.state.places, earlier.state.endpoints
            self._go_on(earlier.state)
        else:
            if earlier.warning is not None:
                self.job.on_note(earlier.warning)
            for file in self._sides.values():
                file.truncate(0)
            if not any(places.values()):
                now = self.engine, self.queries, self.endpoints.log.end
                self._points.add(point_of(places, *now))
        self.endpoints.read_again(endpoints, self.logs)
        self.queries.read_log()
        if earlier.replay is None:
            self.answers.expect_again(self._saved_answers)
        return places

    def _go_on(self, saved: SavedRun) -> None:
        """Take over the counts of an earlier run, and cut files to their sizes then."""
        self.knowledge_since = saved.knowledge_since
        if saved.knowledge != self.job.knowledge.hash:
            self.knowledge_since = int(time.time() * 1000)
        self._saved_answers, self._saved_endpoints = saved.answers, saved.endpoints
        self.answers.answered = Counter(saved.answered)
        for name in saved.sides.keys() & self._sides.keys():
            cut_to(self._sides[name], saved.sides[name])

    def _save(self) -> None:
        """Save the engine's state; drop records that no restart needs."""
        at = time.monotonic()
        self._commit_answers()  # that an earlier commit has not taken
        for file in self._sides.values():
            file.flush()
            os.fsync(file.fileno())
        engine = self.engine.snapshot()
        if self.queries.log is not None:
            point = PastPoint(self.reading.places, self.engine.streams_as_json())
            self.queries.catch_ups.points.add(point)
        saved = SavedRun(
            engine=engine,
            places=self.reading.places,
            answers=self.answers.log.end,
            endpoints=self.endpoints.log.end,
            sides={name: size_of(file) for name, file in self._sides.items()},
            changes=self.queries.changed,
            queries=self.queries.as_values(),
            answered=dict(self.answers.answered),
            points=self.queries.catch_ups.points.as_values(),
            catch_ups=self.queries.catch_ups.starts(),
            knowledge=self.job.knowledge.hash,
            knowledge_since=self.knowledge_since,
        )
        if not self.queries.catch_ups:
            given = self.engine, self.queries, saved.endpoints
            self._points.add(point_of(saved.places, *given))
        self._points.drop(reaches_of(self.engine))
        self.directory.save_note(note_of(saved, self.engine.counts_as_json(), self._points))
        self.directory.save_state(saved.as_value())
        self._saved_answers, self._saved_endpoints = saved.answers, saved.endpoints
        self.endpoints.saved()
        self._drop()
        self._fail(self.engine.check_sizes())
        self._saved_at, self._worked_s = time.monotonic(), 0.0
        self._save_s = self._saved_at - at

    def _drop(self) -> None:
        """Drop records that neither a restart nor a reader needs."""
        before = time.time() - self._keeping.retain_ms / 1000
        point = self._points.first
        reading = [
            self.reading.places,
            *self.queries.places_needed(),
            *([point.places] if point else []),
        ]
        for iri, log in self.logs.items():
            log.log.drop_before(min(places.get(iri, 0) for places in reading), before)
        self.queries.catch_ups.points.drop({iri: log.log.first for iri, log in self.logs.items()})
        taken = self._saved_answers if self.deliveries is None else self.deliveries.next
        ms = self._keeping.answers_ms
        self.answers.drop(
            min(taken, self._saved_answers), before if ms is None else time.time() - ms / 1000
        )
        asked, changed = self._saved_endpoints, self.queries.changed
        if point is not None:
            asked, changed = min(asked, point.endpoints), min(changed, point.changes)
        self.endpoints.log.drop_before(asked, before)
        if self.queries.log is not None:
            self.queries.log.drop_before(changed, before)
        self._fold_graphs()

    def _fold_graphs(self) -> None:
        """Fold old changes of graphs into their base."""
        kept = self._keeping.graphs
        if kept is None:
            return
        until = self._settled()
        if kept.log.fold(until, self.clock.wall() - self._keeping.retain_ms):
            kept.give(self.job)
            self.job.knowledge = self.endpoints.used_by(self.job.knowledge)
            self.engine.queries.drop_values(until - 1)

    def _settled(self) -> int:
        """A time (ms) that no event precedes, of those to come or to be read again by a restart.

        A stream without a watermark counts only if a query reads it.
        """
        queries, catching = self.engine.queries.queries, self.queries.catch_ups
        plans = [*(each.plan for each in queries), *(each.plan for each in catching.values())]
        read = {iri for plan in plans for iri in plan.inputs.streams} & self.streams.keys()
        marks = [(iri, self.engine.watermark(iri)) for iri in self.streams]
        if self._points.first is not None:
            then = self._points.first.watermarks
            marks += [(iri, then.get(iri)) for iri in self.streams]
        if any(mark is None and iri in read for iri, mark in marks):
            return EARLIEST
        times = [mark for _, mark in marks if mark is not None]
        times += [self.queries.by_name[name].since for name in catching]
        return min(times, default=self.clock.wall())

    # --- running ----------------------------------------------------------------------------------

    def run(self, stop: threading.Event, deliver: Callable[[], Deliveries]) -> None:
        """Run until `stop` is set. `deliver` starts the deliveries of the answers."""
        started, process = time.monotonic(), ProcessCounts()
        with ExitStack() as stack:
            stack.callback(self.reports.tell, is_end=True)
            stack.callback(self._close)
            self.deliveries = deliver()
            stack.callback(self._end_deliveries, self.deliveries)
            self._catch_up(stop)
            if self.queries.log is not None and not stop.is_set():
                self.engine.use_settings()
                self._save()  # so that a later run knows the knowledge base and the settings
            if not stop.is_set():
                self.graphs.look_at_files(self._change_graph)
                stack.enter_context(self.graphs.watching())
            accepted = {iri: count.accepted for iri, count in self.engine.counts.items()}
            self.acceptance.judge_from(self.engine.streams_as_json(), accepted)
            stack.callback(self.acceptance.end_sources)
            if not self._keeping.waits:
                self.acceptance.start()
            while not stop.is_set():
                has_taken = self.reports.enduring("messages", self.acceptance.take)
                has_more = self.requests or self.queries.catch_ups or self.reading.waits()
                if not (has_taken or has_more):
                    self._work.wait(self._heartbeats.seconds_left(_LOOK_S))
                    self._work.clear()
                    self.reports.enduring("data directory", self.directory.check)
                self._pass_time()
                self.stream_waits.look(self.engine)
                self.reports.enduring("evaluation", self._advance)
                self.reports.enduring("evaluation of the past", self._advance_catch_ups)
                self.requests.serve()
                self.job.stats.seconds = time.monotonic() - started
                process.add_to(self.job.stats)
                self.job.on_progress(self.job.stats)
                self.deliveries.check()
            if not self._is_behind:
                self._save()

    def replay(self, stop: threading.Event) -> None:
        """Read the present logs to their ends; no source brings anything."""
        with ExitStack() as stack:
            stack.callback(self._close)
            self._catch_up(stop)
            while self.queries.catch_ups and not stop.is_set():
                self._advance_catch_ups()

    def deliveries_to(self, sinks: Mapping[str, SinkSettings]) -> Deliveries:
        """The deliveries to some outputs, for `run`."""
        told = self.reports.note, self._work.set, self._text_of
        return Deliveries(self.directory.path, self.answers.log, sinks, *told)

    def _text_of(self, title: str) -> str:
        """The text of a query; "" if it is gone. Any thread may call this."""
        query = self.queries.by_name.get(title)
        return "" if query is None else query.text

    def wake(self) -> None:
        """Wake the loop; any thread may call this."""
        self._work.set()

    # --- reading and answering --------------------------------------------------------------------

    def _pass_time(self) -> None:
        """Log the heartbeats that are due."""
        if self._heartbeats.may_be_due:
            self.reports.enduring("heartbeats", self._log_heartbeats)

    def _log_heartbeats(self) -> None:
        with self.acceptance.writing:  # no message comes between the decision and the log
            given = self.engine.clocks(), self.engine.watched(), self._reads_since
            self.acceptance.log_heartbeats(self._heartbeats.due(*given))

    def _reads_since(self, iri: str) -> float | None:
        """As `Acceptance.reads_since`; None if the engine has not read all logged messages."""
        return None if self.reading.lag(iri) else self.acceptance.reads_since(iri)

    def give_heartbeat(self, iri: str, time_ms: int) -> None:
        """Log that no event of a stream at or before a time follows.

        Raises:
            UsageError: as from `check_heartbeat`.
            LogNotWritten: the disk is full.
        """
        self._read_all()
        with self.acceptance.writing:
            self._read_all()
            clocks = self.engine.clocks().items()
            own = [(place, clock) for place, clock in clocks if place[0] == iri]
            watermark = self.engine.watermark(iri)
            check_heartbeat(self.streams[iri], time_ms, self.clock.wall(), watermark)
            due = {place: time_ms + 1 for place, clock in own if is_below(clock.watermark, time_ms)}
            self.acceptance.log_heartbeats(due)
            self._heartbeats.hear(due)

    def _read_all(self) -> None:
        """Let the engine read all messages logged so far; more may come meanwhile."""
        ends = self.reading.ends()
        while self.reading.waits(ends):
            self._advance(ends)

    def _catch_up(self, stop: threading.Event) -> None:
        """Read the messages that an earlier run has logged and not evaluated."""
        parts = self.job, self.engine, self.queries, self.answers, self.endpoints
        repetition = LogRepetition(*parts, self.logs, self._advance_visibly)
        if self._replay is not None:
            repetition.make_anew(self._replay, stop)
        if stop.is_set():
            return
        self._replay = None
        repetition.repeat_changes(stop)
        while not stop.is_set() and self.reading.waits():
            self._advance_visibly()
        if not stop.is_set():
            self.answers.caught_up()
            for iri, log in self.logs.items():
                self.clock.saw(iri, log.last_arrival)
            for (iri, _), clock in self.engine.clocks().items():
                stream = self.streams[iri]
                if stream.takes_clock and clock.floor is not None:
                    self.clock.saw(iri, clock.floor + stream.settings.delay_ms)

    def _advance_visibly(self, until: Mapping[str, int] | None = None) -> bool:
        """As `_advance`; then serve read-only requests."""
        has_advanced = self._advance(until)
        self.requests.serve_looks()
        return has_advanced

    def _advance(self, until: Mapping[str, int] | None = None) -> bool:
        """Let the engine read logged messages, and log its answers; return whether there was
        anything.

        With `until`, the logs are read to these positions.
        """
        self.reports.tell()
        self._commit_answers()  # that an earlier commit has not taken
        self.endpoints.begin_batch(self.reading.places)
        read, at = False, time.monotonic()
        for iri, entries in self.reading.entries(self.engine.at_once, until):
            self.engine.take(iri, entries)
            read = True
        if read:
            self._heartbeats.moved()
            self.job.stats.batches += 1
            self.answers.add(self.engine.advance())
            self.endpoints.end_batch(self.reading.places)
            self._worked_s += time.monotonic() - at
            self._commit_answers()
            self._check_waiting()
        if self._is_save_due() and not self._is_behind:
            self._save()
        return read

    def _is_save_due(self) -> bool:
        passed = time.monotonic() - self._saved_at
        pays = self._worked_s >= _SHARE * self._save_s
        return passed > SNAPSHOT_S and (pays or passed > max(_QUIET_S, _QUIET_SHARE * self._save_s))

    def _check_waiting(self) -> None:
        """Fail queries that have exceeded the limit on partial matches.

        If changes are due, an earlier run has logged that they failed.
        """
        if self.queries.due or self._is_failing:
            return
        self._is_failing = True
        try:
            self._fail(self.engine.check_waiting())
        finally:
            self._is_failing = False

    def _fail(self, reasons: Mapping[str, str]) -> None:
        """Fail queries, given by title with the reason."""
        for title, reason in reasons.items():
            self.change(ChangeKind.FAILED, self.queries.by_name[title], reason=reason)

    def _commit_answers(self) -> None:
        """Write the answers that are not on disk yet, after the endpoints' answers for them."""
        self.endpoints.commit()
        if self.answers.commit() and self.deliveries is not None:
            self.deliveries.wake()

    @property
    def _is_behind(self) -> bool:
        """Whether the engine must repeat work of an earlier run."""
        is_behind = self.answers.is_behind or self.endpoints.is_repeating
        return is_behind or self._replay is not None

    # --- changes ----------------------------------------------------------------------------------

    def change(
        self,
        kind: ChangeKind,
        query: StandingQuery,
        plan: QueryPlan | None = None,
        reason: str = "",
        start: PastPoint | None = None,
    ) -> None:
        """Log a change of a query, and apply it after all logged messages.

        `plan` is the plan of the query, if known, and `start` its beginning, if that is in the
        past.

        Raises:
            QueryError, UsageError: the query cannot be added. Nothing has changed.
            RunError: the disk is full. Nothing has changed.
        """
        self._read_all()
        log = self.queries.log
        assert log is not None
        change = QueryChange(kind, query, self.reading.places, reason, start, log.end)
        self.queries.change(change, plan)

    def _change_graph(
        self, iri: str, change: GraphChange, files: str | None, since: int | None
    ) -> LoggedChange:
        """Log a change of a graph; no event that a reader of it has had sees the change.

        Raises:
            UsageError: a reader has had an event at or after `since` (ms).
            RunError: the disk is full. Nothing has changed.
        """
        kept = self._keeping.graphs
        assert kept is not None
        self._read_all()
        with self.acceptance.writing:  # no message comes between the decision and the log
            self._read_all()
            engines = [self.engine, *(each.engine for each in self.queries.catch_ups.values())]
            first, now = max(each.first_change(iri) for each in engines), self.clock.wall()
            timed = TimedChange(kept.time_of(iri, first, now, since), iri, change)
            logged = kept.log.append(LoggedChange(timed, now, files))
        self.job.graph_changes.append(timed)
        for engine in engines:
            engine.change_graph(timed)
        return logged

    # --- queries that begin in the past -----------------------------------------------------------

    def _advance_catch_ups(self) -> None:
        """Let catching-up queries read on; those that have caught up join the others."""
        for name, catch_up in [*self.queries.catch_ups.items()]:
            self.queries.read_on(catch_up, self.reading.places)
            query = self.queries.by_name[name]
            if catch_up.failure is not None:
                self.change(ChangeKind.FAILED, query, reason=catch_up.failure)
            elif catch_up.places == self.reading.places:
                self.change(ChangeKind.JOINED, query)

    # --- the end ----------------------------------------------------------------------------------

    @staticmethod
    def _end_deliveries(deliveries: Deliveries) -> None:
        deliveries.close(_LAST_ANSWERS_S)
        deliveries.check()

    def _close(self) -> None:
        self.requests.close()
        self.acceptance.close()
        self.reading.close()
        for log in self.logs.values():
            log.close()
        self.answers.close()
        self.endpoints.close()
        self.queries.close()
        if self._keeping.graphs is not None:
            self._keeping.graphs.log.close()
