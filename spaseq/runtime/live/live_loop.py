"""The loop of a live run: messages go into logs, the engine reads the logs, answers go into a log.

A message counts once its log is on disk, and an answer leaves once it is on disk. The state of the
engine is saved now and then. A run that was killed goes on from it: the engine reads the messages
after it again, meets the changes of queries at their places, and drops the answers that the answer
log has already.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

from spaseq.errors import SpaseqError, UsageError
from spaseq.kb.service_failure import RetryCount
from spaseq.logs.stream_log import MessageReader, StreamLog
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.acceptance import MessageAcceptance
from spaseq.runtime.live.answer_log import AnswerLog
from spaseq.runtime.live.catch_up import CatchUps
from spaseq.runtime.live.changing_queries import ChangingQueries
from spaseq.runtime.live.deliveries import Deliveries, SinkSettings
from spaseq.runtime.live.endpoint_log import EndpointLog, place_of
from spaseq.runtime.live.idle_streams import IdleStreams
from spaseq.runtime.live.live_directory import LiveDirectory
from spaseq.runtime.live.live_engine import EngineLost, LiveEngine, LiveStream
from spaseq.runtime.live.loop_requests import LoopRequests
from spaseq.runtime.live.past_points import PastPoint
from spaseq.runtime.live.query_changes import (
    ChangeKind,
    ChangeLog,
    Planner,
    QueryChange,
    StandingQuery,
)
from spaseq.runtime.live.saved_run import SavedRun
from spaseq.storage.output_sizes import cut_to, is_regular, size_of

T = TypeVar("T")

SNAPSHOT_S = 10.0
"""The state is saved this often, or less often if that took more than a twentieth of the time."""

_SHARE = 20
_LAST_ANSWERS_S = 10.0  # how long the end of a run waits for its output
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Persistence:
    """What a loop keeps, besides its logs, and for how long.

    Attributes:
        planner: plans the queries of an earlier run, whose set may have changed; None if the
            queries of the job are all.
        sides: further output files, open for appending, by path; a resumed run cuts them to what
            they were when the state was saved.
        sync_ms: the least time between two commits of the logs.
        retain_ms: how long messages and answers that nobody needs any more stay in the logs.
        endures: whether failures, of a disk or a broker, are problems that may pass rather than
            the end.
        waits: whether sources bring messages only after `acceptance.start`.
    """

    planner: Planner | None = None
    sides: Mapping[str, TextIO] = field(default_factory=dict)
    sync_ms: int = 0
    retain_ms: int = 0
    endures: bool = False
    waits: bool = False


class LiveLoop:
    """A run with its logs.

    `problems` are what fails now, by what it is. Only the thread of `run` may call methods without
    a remark.
    """

    def __init__(
        self,
        job: Job,
        engine: LiveEngine,
        streams: Sequence[LiveStream],
        directory: LiveDirectory,
        endpoints: EndpointLog,
        keeping: Persistence = Persistence(),
    ) -> None:
        self.job, self.engine, self.directory, self._keeping = job, engine, directory, keeping
        self._endpoints = endpoints
        self.knowledge_since = 0  # ms since the epoch; 0 if there was no other knowledge base
        self.streams = {stream.iri: stream for stream in streams}
        self._idle = IdleStreams({s.iri: s.settings.idle_ms for s in streams})
        sides = keeping.sides.items()
        self._sides = {os.path.abspath(name): file for name, file in sides if is_regular(file)}
        self._work = threading.Event()
        self._notes: deque[str] = deque()
        self.requests = LoopRequests(self._work.set)
        self.problems: dict[str, str] = {}
        self.logs = {iri: StreamLog(directory.stream(iri)) for iri in self.streams}
        self.answers = AnswerLog(directory.answers, job.stats)
        self.queries = ChangingQueries(
            engine,
            CatchUps(job, streams, self.logs, engine.limits),
            None if keeping.planner is None else ChangeLog(directory.changes),
            keeping.planner,
            self.answers,
            self._commit_answers,
        )
        self._saved_at, self._save_s = time.monotonic(), 0.0
        self._is_failing = False  # queries fail now, for which the logs are read to their ends
        self.deliveries: Deliveries | None = None
        how = keeping.sync_ms, keeping.endures
        self.acceptance = MessageAcceptance(
            streams, self.logs, self._idle, how, self._work.set, self.note
        )
        self._readers = self._resumed()

    # --- resuming ---------------------------------------------------------------------------------

    def _resumed(self) -> dict[str, MessageReader]:
        """The readers of the logs, from the last saved state on."""
        places: Mapping[str, int] = {}
        self._saved_answers = self._saved_endpoints = 0
        state = self.directory.state()
        if state is None:
            for file in self._sides.values():
                file.truncate(0)
        else:
            saved = SavedRun.of_value(state)
            places = saved.places
            self._restore(saved)
        self._endpoints.read_again(self._saved_endpoints, self.logs)
        self.queries.read_log()
        self.answers.expect_again(self._saved_answers)
        return {iri: log.reader(places.get(iri, 0)) for iri, log in self.logs.items()}

    def _restore(self, saved: SavedRun) -> None:
        """Go on from the state that an earlier run has saved."""
        self.knowledge_since = saved.knowledge_since
        if saved.knowledge != self.job.knowledge.hash:
            self._check_read(saved.places)
            self.knowledge_since = int(time.time() * 1000)
        self._saved_answers, self._saved_endpoints = saved.answers, saved.endpoints
        self.answers.answered = Counter(saved.answered)
        self.queries.restore(saved)
        for name, size in saved.sides.items():
            if name in self._sides:
                cut_to(self._sides[name], size)

    def _check_read(self, places: Mapping[str, int]) -> None:
        """UsageError if there are messages that the knowledge base of an earlier run is for."""
        if any(places.get(iri, 0) < log.log.end for iri, log in self.logs.items()):
            raise UsageError(
                f"{self.directory.path}: the knowledge base has changed, and the run before this "
                "one was killed before it had evaluated all messages. Start it with the knowledge "
                "base as it was, stop it, and then change the knowledge base"
            )

    def _save(self) -> None:
        """Save the engine's state; drop what no restart needs."""
        at = time.monotonic()
        self._commit_answers()  # that an earlier commit has not taken
        for file in self._sides.values():
            file.flush()
            os.fsync(file.fileno())
        engine = self.engine.snapshot()
        if self.queries.log is not None:
            point = PastPoint(self._places(), self.engine.streams_as_json())
            self.queries.catch_ups.points.add(point)
        saved = SavedRun(
            engine=engine,
            places=self._places(),
            answers=self.answers.log.end,
            endpoints=self._endpoints.end,
            sides={name: size_of(file) for name, file in self._sides.items()},
            changes=self.queries.changed,
            queries=self.queries.as_values(),
            answered=dict(self.answers.answered),
            points=self.queries.catch_ups.points.as_values(),
            catch_ups=self.queries.catch_ups.starts(),
            knowledge=self.job.knowledge.hash,
            knowledge_since=self.knowledge_since,
        )
        self.directory.save_state(saved.as_value())
        self._saved_answers, self._saved_endpoints = saved.answers, saved.endpoints
        self._endpoints.saved()
        self._drop()
        self._fail(self.engine.check_sizes())
        self._saved_at = time.monotonic()
        self._save_s = self._saved_at - at

    def _drop(self) -> None:
        """Drop what neither a restart nor a reader needs."""
        before = time.time() - self._keeping.retain_ms / 1000
        reading = [self._places(), *self.queries.places_needed()]
        for iri, log in self.logs.items():
            log.log.drop_before(min(places[iri] for places in reading), before)
        self.queries.catch_ups.points.drop({iri: log.log.first for iri, log in self.logs.items()})
        taken = self._saved_answers if self.deliveries is None else self.deliveries.next
        self.answers.drop(min(taken, self._saved_answers), before)
        self._endpoints.drop_before(self._saved_endpoints, before)
        if self.queries.log is not None:
            self.queries.log.log.drop_before(self.queries.changed, before)

    def _places(self) -> dict[str, int]:
        return {iri: reader.next for iri, reader in self._readers.items()}

    # --- running ----------------------------------------------------------------------------------

    def run(self, stop: threading.Event, deliver: Callable[[], Deliveries]) -> None:
        """Run until `stop` is set. `deliver` starts what carries the answers to their outputs."""
        started, repeats = time.monotonic(), RetryCount()
        with ExitStack() as stack:
            stack.callback(self._close)
            self.deliveries = deliver()
            stack.callback(self._end_deliveries, self.deliveries)
            self._catch_up(stop)
            if self.queries.log is not None and not stop.is_set():
                self.engine.use_settings()
                self._save()  # so that a later run knows the knowledge base and the settings
            stack.callback(self.acceptance.end_sources)
            if not self._keeping.waits:
                self.acceptance.start()
            while not stop.is_set():
                found = self._enduring("messages", self.acceptance.take)
                if not (found or self.requests or self.queries.catch_ups):
                    self._work.wait(_LOOK_S)
                    self._work.clear()
                self._pass_idle()
                self._enduring("evaluation", self._advance)
                self._enduring("evaluation of the past", self._advance_catch_ups)
                self.requests.serve()
                self.job.stats.seconds = time.monotonic() - started
                self.job.stats.repeated += repeats.take()
                self.job.on_progress(self.job.stats)
                self.deliveries.check()
            if not self._is_behind:
                self._save()
        self._tell()

    def deliveries_to(self, sinks: Mapping[str, SinkSettings]) -> Deliveries:
        """What carries the answers to some outputs, for `run`."""
        return Deliveries(self.directory.path, self.answers.log, sinks, self.note, self._work.set)

    def wake(self) -> None:
        """Say that there is something to do; any thread may."""
        self._work.set()

    def lag(self, iri: str) -> int:
        """How many records of a stream's log the engine has not read."""
        return self.logs[iri].log.end - self._readers[iri].next

    def note(self, text: str) -> None:
        """Tell the user something soon; any thread may."""
        self._notes.append(text)

    def _enduring(self, what: str, do: Callable[[], T]) -> T | None:
        """Do something; if it fails, and the run endures that, it is a problem until it goes."""
        try:
            found = do()
        except EngineLost:
            raise
        except SpaseqError as error:
            if not self._keeping.endures:
                raise
            if self.problems.get(what) != str(error):
                self.job.on_note(f"{what}: {error}")
            self.problems[what] = str(error)
            time.sleep(_LOOK_S)
            return None
        self.problems.pop(what, None)
        return found

    # --- reading and answering --------------------------------------------------------------------

    def _pass_idle(self) -> None:
        """Log that the watermarks of idle streams rise."""
        if self._waits():  # a stream that is not read to its end is not idle
            return
        risen = self._idle.risen(self.engine.clocks())
        for (iri, partition), to in risen.items():
            self.logs[iri].note_raised(partition, to)
            self._enduring("idle streams", self.logs[iri].commit)

    def _catch_up(self, stop: threading.Event) -> None:
        """Read what an earlier run has logged and not evaluated."""
        while not stop.is_set() and (self.queries.due or self._endpoints.next_repeated):
            if self._repeats_first():
                self._repeat(stop)
            elif not self._advance(self.queries.due[0].places):
                self.queries.apply(self.queries.due.popleft())
            self.requests.serve_looks()
        while not stop.is_set() and self._waits():
            self._advance()
            self.requests.serve_looks()
        if not stop.is_set():
            self.answers.caught_up()

    def _repeats_first(self) -> bool:
        """Whether a batch is to be repeated before the next change of queries."""
        batch = self._endpoints.next_repeated
        if batch is None or not self.queries.due:
            return batch is not None
        return place_of(batch.before, self.logs) < place_of(self.queries.due[0].places, self.logs)

    def _repeat(self, stop: threading.Event) -> None:
        """Evaluate a batch again that has asked endpoints, with what they answered."""
        batch = self._endpoints.next_repeated
        assert batch is not None
        while self._advance(batch.before):
            if stop.is_set():
                return
        self._endpoints.begin_repeating()
        self._advance(batch.after)
        self._endpoints.end_repeating()

    def _waits(self) -> bool:
        return any(self._readers[iri].next < log.log.end for iri, log in self.logs.items())

    def _advance(self, until: Mapping[str, int] | None = None) -> bool:
        """Let the engine read what is logged, and log its answers; whether there was anything.

        With `until`, the logs are read to these places.
        """
        self._tell()
        self._commit_answers()  # that an earlier commit has not taken
        self._endpoints.begin_batch(self._places())
        read = False
        for iri, reader in self._readers.items():
            end = None if until is None else until.get(iri, reader.next)
            entries = reader.read(self.engine.at_once, end)
            if entries:
                self.engine.take(iri, entries)
                read = True
        if read:
            self.job.stats.batches += 1
            self._log_answers()
            self._check_waiting()
        self._save_if_due()
        return read

    def _check_waiting(self) -> None:
        """Let queries fail that have had too many partial matches.

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
        """Let queries fail, given by title with the reason."""
        for title, reason in reasons.items():
            self.change(ChangeKind.FAILED, self.queries.by_name[title], reason=reason)

    def _log_answers(self) -> None:
        self.answers.add(self.engine.advance())
        self._endpoints.end_batch(self._places())
        self._commit_answers()

    def _commit_answers(self) -> None:
        """Write the answers that are not on disk yet, after what endpoints said for them."""
        self._endpoints.commit()
        if self.answers.commit() and self.deliveries is not None:
            self.deliveries.wake()

    def _save_if_due(self) -> None:
        due = max(SNAPSHOT_S, _SHARE * self._save_s)
        if time.monotonic() - self._saved_at > due and not self._is_behind:
            self._save()

    @property
    def _is_behind(self) -> bool:
        """Whether there are logged answers, or batches, that the engine must repeat."""
        return self.answers.is_behind or self._endpoints.is_repeating

    # --- changes ----------------------------------------------------------------------------------

    def change(
        self,
        kind: ChangeKind,
        query: StandingQuery,
        plan: QueryPlan | None = None,
        reason: str = "",
        start: PastPoint | None = None,
    ) -> None:
        """Log a change of a query, and let it take effect after all that is logged.

        `plan` is the query's, if it is known, and `start` where it begins, if that is in the past.

        Raises:
            QueryError, UsageError: the query cannot be added. Nothing has changed.
            RunError: the disk is full. Nothing has changed.
        """
        while self._waits():
            self._advance()
        log = self.queries.log
        assert log is not None
        change = QueryChange(kind, query, self._places(), reason, start, log.log.end)
        self.queries.change(change, plan)

    # --- queries that begin in the past -----------------------------------------------------------

    def _advance_catch_ups(self) -> None:
        """Let queries read on that have not caught up; those that have join the others."""
        for name, own in [*self.queries.catch_ups.items()]:
            self.queries.read_on(own, self._places())
            query = self.queries.by_name[name]
            if own.failure is not None:
                self.change(ChangeKind.FAILED, query, reason=own.failure)
            elif own.places == self._places():
                self.change(ChangeKind.JOINED, query)

    # --- the end ----------------------------------------------------------------------------------

    def _tell(self) -> None:
        """Pass on the notes of other threads."""
        while self._notes:
            self.job.on_note(self._notes.popleft())

    @staticmethod
    def _end_deliveries(deliveries: Deliveries) -> None:
        deliveries.close(_LAST_ANSWERS_S)
        deliveries.check()

    def _close(self) -> None:
        self.requests.close()
        self.acceptance.close()
        for iri, log in self.logs.items():
            self._readers[iri].close()
            log.close()
        self.answers.close()
        self._endpoints.close()
        self.queries.close()
