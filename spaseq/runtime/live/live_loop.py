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
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TextIO, TypeVar

from spaseq.algebra.answers import Answer
from spaseq.errors import RunError, SpaseqError, UsageError
from spaseq.kb.service_failure import RetryCount
from spaseq.logs.segment_log import LogNotWritten, LogReader, SegmentLog
from spaseq.logs.stream_log import Message, MessageReader, StreamLog
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.chaining import reading_order
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.answer_index import AnswerIndex
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.catch_up import CatchUp
from spaseq.runtime.live.deliveries import Deliveries, SinkSettings
from spaseq.runtime.live.idle_streams import IdleStreams
from spaseq.runtime.live.intakes import StreamIntake
from spaseq.runtime.live.live_directory import LiveDirectory
from spaseq.runtime.live.live_engine import LiveEngine, LiveStream
from spaseq.runtime.live.past_points import HistoryGone, PastPoint, PastPoints
from spaseq.runtime.live.query_changes import (
    ChangeKind,
    ChangeLog,
    Planner,
    QueryChange,
    StandingQuery,
    as_values,
    of_values,
)
from spaseq.sinks.answer_ids import answer_id
from spaseq.storage.output_sizes import cut_to, is_regular, size_of

T = TypeVar("T")

SNAPSHOT_S = 10.0
"""The state is saved this often, or less often if that took more than a twentieth of the time."""

_SHARE = 20
_AT_ONCE = 4 * 2**20  # bytes of a log that the engine reads before its answers leave
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
        waits: whether sources bring messages only after `start_intakes`.
    """

    planner: Planner | None = None
    sides: Mapping[str, TextIO] = field(default_factory=dict)
    sync_ms: int = 0
    retain_ms: int = 0
    endures: bool = False
    waits: bool = False


@dataclass(slots=True)
class _Posted:
    """Messages that somebody waits to be logged."""

    iri: str
    messages: Sequence[Message]
    done: Future[None] = field(default_factory=Future)


class LiveLoop:
    """A run with its logs. `_behind` are the logged answers that the engine will give again.

    `queries` are the queries of a set that changes, by name. `problems` are what fails now, by what
    it is. Only the thread of `run` may call methods without a remark.
    """

    def __init__(
        self,
        job: Job,
        engine: LiveEngine,
        streams: Sequence[LiveStream],
        directory: LiveDirectory,
        keeping: Persistence = Persistence(),
    ) -> None:
        self.job, self.engine, self.directory, self._keeping = job, engine, directory, keeping
        self.streams = {stream.iri: stream for stream in streams}
        self._idle = IdleStreams({s.iri: s.settings.idle_ms for s in streams})
        sides = keeping.sides.items()
        self._sides = {os.path.abspath(name): file for name, file in sides if is_regular(file)}
        self._work = threading.Event()
        self._notes: deque[str] = deque()
        self._requests: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._looks: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._posted: deque[_Posted] = deque()
        self._door, self._ended = threading.Lock(), False  # of the two queues
        self._held: dict[str, list[Message]] = {}  # messages of sources that no commit has taken
        self.problems: dict[str, str] = {}
        self.queries: dict[str, StandingQuery] = {}
        self.answered: Counter[str] = Counter()  # answers so far, by title
        self.logs = {iri: StreamLog(directory.stream(iri)) for iri in self.streams}
        self.answers = SegmentLog(directory.answers)
        self.index = AnswerIndex(self.answers)
        self._changes = None if keeping.planner is None else ChangeLog(directory.changes)
        self._past = PastPoints()
        self._catching: dict[str, CatchUp] = {}
        self._saved_at, self._save_s, self._committed_at = time.monotonic(), 0.0, 0.0
        self.deliveries: Deliveries | None = None
        self._intakes: dict[str, StreamIntake] = {}
        self._readers, self._behind = self._resumed()

    # --- resuming ---------------------------------------------------------------------------------

    def _resumed(self) -> tuple[dict[str, MessageReader], Counter[str]]:
        """The readers of the logs, from the last saved state on, and the answers after it."""
        state = self.directory.state()
        places: dict[str, int] = {}
        self._saved_answers = changed = 0
        if state is not None:
            engine, places_then, self._saved_answers, sizes, changed, queries, answered, *past = (
                state
            )
            places = dict(places_then)
            self.queries, self.answered = of_values(queries), Counter(dict(answered))
            self._past, starts, knowledge = PastPoints(past[0]), past[1], past[2]
            self.engine.restore(engine, self._plans([name for name, _ in starts]))
            for name, point in starts:
                self._begin_catch_up(self.queries[name], PastPoint(*point))
            for name, size in sizes:
                if name in self._sides:
                    cut_to(self._sides[name], size)
        else:
            for file in self._sides.values():
                file.truncate(0)
        self._due = deque(() if self._changes is None else self._changes.after(changed))
        self._changed = changed  # the index of the next change to take effect
        readers = {iri: log.reader(places.get(iri, 0)) for iri, log in self.logs.items()}
        if state is not None and knowledge != self.job.knowledge.hash:
            self._check_read(places)
        behind: Counter[str] = Counter()
        reader = LogReader(self.answers, self._saved_answers)
        while some := reader.read():
            behind.update(LoggedAnswer.of_bytes(record).id for _, record in some)
        reader.close()
        return readers, behind

    def _check_read(self, places: Mapping[str, int]) -> None:
        """UsageError if there are messages that the knowledge base of an earlier run is for."""
        if any(places.get(iri, 0) < log.log.end for iri, log in self.logs.items()):
            raise UsageError(
                f"{self.directory.path}: the knowledge base has changed, and the run before this "
                "one was killed before it had evaluated all messages. Start it with the knowledge "
                "base as it was, stop it, and then change the knowledge base"
            )

    def _plans(self, without: Sequence[str]) -> list[QueryPlan] | None:
        plan = self._keeping.planner
        if plan is None:
            return None
        queries = [query for query in self.queries.values() if query.name not in without]
        return [*reading_order([plan(query.name, query.text) for query in queries])]

    def _save(self) -> None:
        """Save the engine's state; drop what no restart needs."""
        at = time.monotonic()
        for file in self._sides.values():
            file.flush()
            os.fsync(file.fileno())
        sizes = [(name, size_of(file)) for name, file in self._sides.items()]
        state = [self.engine.snapshot(), [*self._places().items()], self.answers.end, sizes]
        state += [self._changed, as_values(self.queries), [*self.answered.items()]]
        if self._changes is not None:
            self._past.add(PastPoint(self._places(), self.engine.streams_as_json()))
        starts = [(name, tuple(own.start)) for name, own in self._catching.items()]
        state += [self._past.as_values(), starts, self.job.knowledge.hash]
        self.directory.save_state(state)
        self._saved_answers = self.answers.end
        self._drop()
        for title, reason in self.engine.check_limits().items():
            self.change(ChangeKind.FAILED, self.queries[title], reason=reason)
        self._saved_at = time.monotonic()
        self._save_s = self._saved_at - at

    def _drop(self) -> None:
        """Drop what neither a restart nor a reader needs."""
        before = time.time() - self._keeping.retain_ms / 1000
        reading = [self._places(), *(own.places for own in self._catching.values())]
        for iri, log in self.logs.items():
            log.log.drop_before(min(places[iri] for places in reading), before)
        self._past.drop({iri: log.log.first for iri, log in self.logs.items()})
        taken = self._saved_answers if self.deliveries is None else self.deliveries.next
        self.answers.drop_before(min(taken, self._saved_answers), before)
        self.index.forget_before(self.answers.first)
        if self._changes is not None:
            self._changes.log.drop_before(self._changed, before)

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
            if self._changes is not None and not stop.is_set():
                self.engine.use_settings()
                self._save()  # so that a later run knows the knowledge base and the settings
            stack.callback(self._end_intakes)
            if not self._keeping.waits:
                self.start_intakes()
            while not stop.is_set():
                found = self._enduring("the disk", self._accept) or self._requests or self._looks
                if not found and not self._catching:
                    self._work.wait(_LOOK_S)
                    self._work.clear()
                self._pass_idle()
                self._enduring("the disk", self._advance)
                self._enduring("the disk", self._advance_catch_ups)
                self._do(self._requests)
                self._do(self._looks)
                self.job.stats.seconds = time.monotonic() - started
                self.job.stats.repeated += repeats.take()
                self.job.on_progress(self.job.stats)
                self.deliveries.check()
            if not self._behind:
                self._save()
        self._tell()

    def deliveries_to(self, sinks: Mapping[str, SinkSettings]) -> Deliveries:
        """What carries the answers to some outputs, for `run`."""
        return Deliveries(self.directory.path, self.answers, sinks, self.note, self._work.set)

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

    def start_intakes(self) -> None:
        """Let the sources bring messages; the thread of `run` calls it, once."""
        for iri, stream in self.streams.items():
            connector = stream.source.connector()
            if connector is not None:
                log, wake = self.logs[iri], self._work.set
                again = stream.source.connector if self._keeping.endures else None
                self._intakes[iri] = StreamIntake(connector, log, wake, self.note, again)

    # --- messages ---------------------------------------------------------------------------------

    def accept(self, iri: str, messages: Sequence[Message]) -> None:
        """Log `UNNUMBERED` messages of a stream; they are on disk when this returns.

        Any thread may call it.

        Raises:
            RunError: the disk is full or fails, or the run ends. Nothing is in the log.
        """
        posted = _Posted(iri, messages)
        with self._door:
            self._check_open()
            self._posted.append(posted)
        self._work.set()
        posted.done.result()

    def _check_open(self) -> None:
        if self._ended:
            raise RunError("the run has ended")

    def _accept(self) -> bool:
        """Log what the sources have brought and what was posted; whether there was anything."""
        self._wait_for_sync()
        arrival = int(time.time() * 1000)
        for iri, intake in self._intakes.items():
            messages = intake.drain()
            if messages:
                self._held.setdefault(iri, []).extend(messages)
        posted = [self._posted.popleft() for _ in range(len(self._posted))]
        iris = dict.fromkeys([*self._held, *(each.iri for each in posted)])
        failures: list[LogNotWritten] = []
        for iri in iris:
            own = [each for each in posted if each.iri == iri]
            failure: LogNotWritten | None = None
            try:
                self._commit(iri, own, arrival)
                self._held.pop(iri, None)
                if iri in self._intakes:
                    self._intakes[iri].committed()
            except LogNotWritten as error:
                self.logs[iri].discard()
                failure = error
                failures.append(error)
            for each in own:
                each.done.set_exception(failure) if failure else each.done.set_result(None)
        if failures:
            raise failures[0]
        return bool(iris)

    def source_problems(self) -> dict[str, str]:
        """Why sources have failed, by the name of their stream."""
        return {
            self.streams[iri].name: intake.problem
            for iri, intake in list(self._intakes.items())
            if intake.problem
        }

    def _commit(self, iri: str, posted: Sequence[_Posted], arrival: int) -> None:
        log, messages = self.logs[iri], self._held.get(iri, [])
        if iri in self._intakes:
            log.note_partitions(self._intakes[iri].partitions)
        log.append(messages, arrival)
        for each in posted:
            log.append(each.messages, arrival)
        log.commit()
        heard = {message.partition for message in messages} | {0 for each in posted}
        self._idle.hear({(iri, partition) for partition in heard})

    def _wait_for_sync(self) -> None:
        """Let messages come together, so that few commits are enough."""
        rest = self._committed_at + self._keeping.sync_ms / 1000 - time.monotonic()
        if rest > 0:
            time.sleep(rest)
        self._committed_at = time.monotonic()

    def _pass_idle(self) -> None:
        """Log that the watermarks of idle streams rise."""
        if self._waits():  # a stream that is not read to its end is not idle
            return
        risen = self._idle.risen(self.engine.clocks())
        for (iri, partition), to in risen.items():
            self.logs[iri].note_raised(partition, to)
            self._enduring("the disk", self.logs[iri].commit)

    # --- reading and answering --------------------------------------------------------------------

    def _catch_up(self, stop: threading.Event) -> None:
        """Read what an earlier run has logged and not evaluated."""
        while not stop.is_set() and self._due:
            if not self._advance(self._due[0].places):
                self._apply(self._due.popleft())
            self._do(self._looks)
        while not stop.is_set() and self._waits():
            self._advance()
            self._do(self._looks)
        if not stop.is_set():
            self._behind.clear()

    def _waits(self) -> bool:
        return any(self._readers[iri].next < log.log.end for iri, log in self.logs.items())

    def _advance(self, until: Mapping[str, int] | None = None) -> bool:
        """Let the engine read what is logged, and log its answers; whether there was anything.

        With `until`, the logs are read to these places.
        """
        self._tell()
        self._commit_answers([])  # that an earlier commit has not taken
        read = False
        for iri, reader in self._readers.items():
            end = None if until is None else until.get(iri, reader.next)
            entries = reader.read(_AT_ONCE, end)
            if entries:
                self.engine.take(iri, entries)
                read = True
        if read:
            self.job.stats.batches += 1
            self._log_answers()
        self._save_if_due()
        return read

    def _log_answers(self) -> None:
        found = []
        for plan, answer in self.engine.advance():
            logged = _logged(plan, answer)
            self.answered[logged.title] += 1
            if self._behind and self._behind[logged.id]:
                self._behind -= Counter((logged.id,))  # and without what is used up
                continue
            self.job.stats.matches += 1
            found.append(logged)
        self._commit_answers(found)

    def _commit_answers(self, found: list[LoggedAnswer]) -> None:
        """Log answers, and those that an earlier call could not log."""
        self._unlogged = [*self._unlogged, *found]
        if not self._unlogged:
            return
        first = self.answers.append([answer.to_bytes() for answer in self._unlogged])
        try:
            self.answers.commit()
        except LogNotWritten:
            self.answers.discard()
            raise
        self.index.add(first, self._unlogged)
        self._unlogged = []
        if self.deliveries is not None:
            self.deliveries.wake()

    _unlogged: Sequence[LoggedAnswer] = ()

    def _save_if_due(self) -> None:
        due = max(SNAPSHOT_S, _SHARE * self._save_s)
        if time.monotonic() - self._saved_at > due and not self._behind:
            self._save()

    # --- changes ----------------------------------------------------------------------------------

    def call(self, do: Callable[[], T]) -> T:
        """Let the loop's thread do something between two batches. Any other thread may call it.

        Raises:
            RunError: the run has ended.
        """
        return self._hand_in(self._requests, do)

    def look(self, do: Callable[[], T]) -> T:
        """The same for what changes nothing; it is done also while an earlier run's log is read."""
        return self._hand_in(self._looks, do)

    def _hand_in(
        self, queue: deque[tuple[Callable[[], Any], Future[Any]]], do: Callable[[], T]
    ) -> T:
        done: Future[T] = Future()
        with self._door:
            self._check_open()
            queue.append((do, done))
        self._work.set()
        return done.result()

    @staticmethod
    def _do(queue: deque[tuple[Callable[[], Any], Future[Any]]]) -> None:
        while queue:
            do, done = queue.popleft()
            try:
                done.set_result(do())
            except BaseException as error:
                done.set_exception(error)

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
        assert self._changes is not None
        change = QueryChange(kind, query, self._places(), reason, start, self._changes.log.end)
        plan = plan or self._plan(change)
        if plan is not None:
            self.engine.queries.check_plan(plan)
        self._changes.append(change)
        self._apply(change, plan)

    def _plan(self, change: QueryChange) -> QueryPlan | None:
        if change.kind not in (ChangeKind.ADDED, ChangeKind.RESTARTED):
            return None
        assert self._keeping.planner is not None
        return self._keeping.planner(change.query.name, change.query.text)

    def _apply(self, change: QueryChange, plan: QueryPlan | None = None) -> None:
        name, plan = change.query.name, plan or self._plan(change)
        self._changed = change.index + 1
        if change.kind is ChangeKind.JOINED:
            self._join(name, change.places)
            return
        catching = self._catching.pop(name, None)
        if catching is not None:
            catching.close()
        if change.kind is ChangeKind.FAILED:
            if catching is not None:
                self.engine.add(catching.plan)
            query = self.engine.queries.query_of(name)
            assert query is not None
            self.engine.queries.fail(query, change.reason)
        elif plan is not None and change.start is None:
            self.engine.add(plan)
            self.queries[name] = change.query
        else:
            query = self.engine.queries.query_of(name)
            if query is not None:
                self.engine.remove(query)
            self.queries.pop(name, None)
            if change.start is not None:
                self.queries[name] = change.query
                self._begin_catch_up(change.query, change.start, plan)

    # --- queries that begin in the past -----------------------------------------------------------

    def past_point(self, plan: QueryPlan, since: int) -> PastPoint:
        """Where a query begins that is to see all events from a time (ms) on.

        Raises:
            HistoryGone: some of them may have been dropped from the logs.
            UsageError: it reads a stream that another query registers.
        """
        for iri in plan.inputs.streams:
            if iri not in self.logs:
                raise UsageError(
                    f"query {plan.identity.title} cannot begin in the past: no log keeps the "
                    f"events of the stream <{iri}>"
                )
        point = self._past.before(since, plan.inputs.streams)
        if point is not None:
            return point
        if any(log.log.first for log in self.logs.values()):
            raise HistoryGone("events of that time may have been dropped from the logs")
        return PastPoint(dict.fromkeys(self.logs, 0), [])

    def _begin_catch_up(
        self, query: StandingQuery, start: PastPoint, plan: QueryPlan | None = None
    ) -> None:
        if plan is None:
            assert self._keeping.planner is not None
            plan = self._keeping.planner(query.name, query.text)
        streams = [*self.streams.values()]
        own = CatchUp(self.job, plan, streams, self.logs, start, query.since)
        self._catching[query.name] = own

    def plan_of(self, name: str) -> QueryPlan | None:
        """The plan of a query, whether it has caught up or not."""
        if name in self._catching:
            return self._catching[name].plan
        query = self.engine.queries.query_of(name)
        return None if query is None else query.plan

    def is_catching_up(self, name: str) -> bool:
        """Whether a query still reads events of the past."""
        return name in self._catching

    def _advance_catch_ups(self) -> None:
        """Let queries read on that have not caught up; those that have join the others."""
        for name, own in [*self._catching.items()]:
            self._read_on(own, self._places())
            if own.failure is not None:
                self.change(ChangeKind.FAILED, self.queries[name], reason=own.failure)
            elif own.places == self._places():
                self.change(ChangeKind.JOINED, self.queries[name])

    def _read_on(self, own: CatchUp, until: Mapping[str, int]) -> None:
        found = [_logged(own.plan, answer) for answer in own.advance(until)]
        # After a restart, or under a name that had another text, the log may have some already.
        fresh = [logged for logged in found if not self.index.has(logged.title, logged.id)]
        for logged in fresh:
            self.answered[logged.title] += 1
        self.job.stats.matches += len(fresh)
        self._commit_answers(fresh)

    def _join(self, name: str, places: Mapping[str, int]) -> None:
        own = self._catching.pop(name, None)
        if own is None:  # it has failed
            return
        while own.failure is None and own.places != {**own.places, **places}:
            self._read_on(own, places)
        if own.failure is None:
            self.engine.adopt(own.plan, own.snapshot())
        own.close()

    # --- the end ----------------------------------------------------------------------------------

    def _tell(self) -> None:
        """Pass on the notes of other threads."""
        while self._notes:
            self.job.on_note(self._notes.popleft())

    def _end_intakes(self) -> None:
        for intake in self._intakes.values():
            intake.stop()
        for intake in self._intakes.values():
            intake.join()

    @staticmethod
    def _end_deliveries(deliveries: Deliveries) -> None:
        deliveries.close(_LAST_ANSWERS_S)
        deliveries.check()

    def _close(self) -> None:
        for own in self._catching.values():
            own.close()
        with self._door:
            self._ended = True
        ended = RunError("the run has ended")
        for queue in (self._requests, self._looks):
            while queue:
                queue.popleft()[1].set_exception(ended)
        while self._posted:
            self._posted.popleft().done.set_exception(ended)
        for iri, log in self.logs.items():
            self._readers[iri].close()
            log.close()
        self.answers.close()
        if self._changes is not None:
            self._changes.close()


def _logged(plan: QueryPlan, answer: Answer) -> LoggedAnswer:
    """An answer of a query for the log."""
    identity = plan.identity
    name = answer_id(identity.name, identity.canonical, answer)
    return LoggedAnswer(identity.title, identity.name, name, answer, int(time.time() * 1000))
