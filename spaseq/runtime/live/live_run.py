"""A live run: messages go into logs, the engine reads the logs, answers go into a log and out.

A message counts once its log is on disk, and an answer leaves once it is on disk. The state of the
engine is saved now and then. A run that was killed goes on from it: the engine reads the messages
after it again, and the answers that the answer log has already are dropped.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TextIO

from spaseq.errors import UsageError
from spaseq.kb.service_failure import RetryCount
from spaseq.logs.segment_log import LogReader, SegmentLog
from spaseq.logs.stream_log import MessageReader, StreamLog
from spaseq.options import FollowOptions
from spaseq.runtime.job.interrupts import until_interrupted
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.deliveries import Deliveries, SinkSettings
from spaseq.runtime.live.delivery import Terms
from spaseq.runtime.live.idle_streams import IdleStreams
from spaseq.runtime.live.intakes import StreamIntake
from spaseq.runtime.live.live_directory import LiveDirectory
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.sinks.answer_ids import answer_id
from spaseq.sources.broker_stream import BrokerStream
from spaseq.storage.output_sizes import cut_to, is_regular, size_of

SNAPSHOT_S = 10.0
"""The state is saved this often, or less often if that took more than a twentieth of the time."""

_SHARE = 20
_AT_ONCE = 4 * 2**20  # bytes of a log that the engine reads before its answers leave
_LAST_ANSWERS_S = 10.0  # how long the end of a run waits for its output
_LOOK_S = 0.2


def run(
    job: Job,
    options: FollowOptions,
    *,
    out: str,
    form: str,
    columns: Sequence[str],
    sides: Mapping[str, TextIO] | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Evaluate a job over brokers' messages until it is interrupted; a later run goes on.

    Args:
        job: what to run; its streams are all `BrokerStream`s.
        options: the checkpoint, and how late events may be.
        out: a file, `-`, or the URL of a broker.
        form: the format of a file.
        columns: the columns of a table.
        sides: further output files, open for appending; a resumed run cuts them to what they were
            when the state was saved.
        stop: ends the run once it is set; by default SIGINT and SIGTERM do.

    Raises:
        UsageError: the checkpoint belongs to another run, or options do not go together.
        InputError: a broker cannot be reached at the start.
        RunError: a limit is exceeded, or the disk is full. What was accepted is in the logs.
    """
    check_queries(job)
    settings = options.arrivals
    directory = LiveDirectory.open(options.checkpoint, job, settings.delay_ms)
    with ExitStack() as stack:
        stack.callback(directory.release)
        stop = stop or stack.enter_context(until_interrupted())
        terms = Terms(patient=False)
        output = SinkSettings(out, terms, form, tuple(columns), overwrites=not directory.resumed)
        engine = LiveEngine(job, settings, options.limits)
        idle = IdleStreams(settings.idle_ms)
        _LiveRun(job, engine, directory, output, sides or {}, idle).run(stop)


class _LiveRun:
    """A run with its logs. `_behind` are the logged answers that the engine will give again."""

    def __init__(
        self,
        job: Job,
        engine: LiveEngine,
        directory: LiveDirectory,
        output: SinkSettings,
        sides: Mapping[str, TextIO],
        idle: IdleStreams,
    ) -> None:
        self._job, self._engine, self._directory = job, engine, directory
        self._output, self._idle = output, idle
        self._sides = {os.path.abspath(n): file for n, file in sides.items() if is_regular(file)}
        self._work = threading.Event()
        self._notes: list[str] = []
        streams = [stream for stream in job.streams if isinstance(stream, BrokerStream)]
        self._streams = {stream.iri: stream for stream in streams}
        self._logs = {iri: StreamLog(directory.stream(iri)) for iri in self._streams}
        self._answers = SegmentLog(directory.answers)
        self._saved_at, self._save_s = time.monotonic(), 0.0
        self._readers, self._behind = self._resumed()

    # --- resuming ---------------------------------------------------------------------------------

    def _resumed(self) -> tuple[dict[str, MessageReader], Counter[str]]:
        """The readers of the logs, from the last saved state on, and the answers after it."""
        state = self._directory.state()
        places: dict[str, int] = {}
        self._saved_answers = 0
        if state is not None:
            engine, places_then, self._saved_answers, sizes = state
            places = dict(places_then)
            self._engine.restore(engine)
            for name, size in sizes:
                if name in self._sides:
                    cut_to(self._sides[name], size)
        else:
            for file in self._sides.values():
                file.truncate(0)
        readers = {iri: log.reader(places.get(iri, 0)) for iri, log in self._logs.items()}
        behind: Counter[str] = Counter()
        reader = LogReader(self._answers, self._saved_answers)
        while some := reader.read():
            behind.update(LoggedAnswer.of_bytes(record).id for _, record in some)
        reader.close()
        return readers, behind

    def _save(self) -> None:
        """Save the engine's state; drop what no restart needs."""
        at = time.monotonic()
        for file in self._sides.values():
            file.flush()
            os.fsync(file.fileno())
        sizes = [(name, size_of(file)) for name, file in self._sides.items()]
        places = [(iri, reader.next) for iri, reader in self._readers.items()]
        self._saved_answers = self._answers.end
        self._directory.save_state([self._engine.snapshot(), places, self._saved_answers, sizes])
        for iri, place in places:
            self._logs[iri].log.drop_before(place)
        self._saved_at = time.monotonic()
        self._save_s = self._saved_at - at

    # --- running ----------------------------------------------------------------------------------

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set."""
        started, repeats = time.monotonic(), RetryCount()
        with ExitStack() as stack:
            stack.callback(self._close)
            sinks = {"out": self._output}
            delivery = Deliveries(
                self._directory.path, self._answers, sinks, self._notes.append, self._work.set
            )
            stack.callback(lambda: _send_rest(delivery))
            self._catch_up(delivery, stop)
            intakes = self._started()
            stack.callback(_end, list(intakes.values()))
            while not stop.is_set():
                if not self._accept(intakes):
                    self._work.wait(_LOOK_S)
                    self._work.clear()
                self._pass_idle()
                self._advance(delivery)
                self._job.stats.seconds = time.monotonic() - started
                self._job.stats.repeated += repeats.take()
                self._job.on_progress(self._job.stats)
                delivery.check()
            self._save()
        self._tell()

    def _started(self) -> dict[str, StreamIntake]:
        return {
            iri: StreamIntake(
                stream.connector(), self._logs[iri], self._work.set, self._notes.append
            )
            for iri, stream in self._streams.items()
        }

    def _accept(self, intakes: Mapping[str, StreamIntake]) -> bool:
        """Log what the sources have brought; whether there was anything."""
        arrival, found = int(time.time() * 1000), False
        for iri, intake in intakes.items():
            messages = intake.drain()
            if messages:
                log = self._logs[iri]
                log.note_partitions(intake.partitions)
                log.append(messages, arrival)
                log.commit()
                intake.committed()
                self._idle.hear({(iri, message.partition) for message in messages})
                found = True
        return found

    def _pass_idle(self) -> None:
        """Log that the watermarks of idle streams rise."""
        if self._waits():  # a stream that is not read to its end is not idle
            return
        risen = self._idle.risen(self._engine.clocks())
        for (iri, partition), to in risen.items():
            self._logs[iri].note_raised(partition, to)
            self._logs[iri].commit()

    def _catch_up(self, delivery: Deliveries, stop: threading.Event) -> None:
        """Read what an earlier run has logged and not evaluated."""
        while not stop.is_set() and self._waits():
            self._advance(delivery)

    def _waits(self) -> bool:
        return any(self._readers[iri].next < log.log.end for iri, log in self._logs.items())

    def _advance(self, delivery: Deliveries) -> None:
        """Let the engine read what is logged, and log its answers."""
        self._tell()
        read = False
        for iri, stream in self._streams.items():
            messages = self._readers[iri].read(_AT_ONCE)
            if messages:
                self._engine.take(stream, messages)
                read = True
        if read:
            self._job.stats.batches += 1
            self._log_answers(delivery)
        self._save_if_due(delivery)

    def _log_answers(self, delivery: Deliveries) -> None:
        records, now = [], int(time.time() * 1000)
        for number, answer in self._engine.advance():
            identity = self._job.plans[number].identity
            name = answer_id(identity.name, identity.canonical, answer)
            if self._behind and self._behind[name]:
                self._behind -= Counter((name,))  # and without what is used up
                continue
            self._job.stats.matches += 1
            records.append(LoggedAnswer(identity.name, name, answer, now).to_bytes())
        if records:
            self._answers.append(records)
            self._answers.commit()
            delivery.wake()

    def _save_if_due(self, delivery: Deliveries) -> None:
        due = max(SNAPSHOT_S, _SHARE * self._save_s)
        if time.monotonic() - self._saved_at > due:
            self._save()
            self._answers.drop_before(min(delivery.next, self._saved_answers))

    def _tell(self) -> None:
        """Pass on the notes of other threads."""
        while self._notes:
            self._job.on_note(self._notes.pop(0))

    def _close(self) -> None:
        for iri, log in self._logs.items():
            self._readers[iri].close()
            log.close()
        self._answers.close()


def _send_rest(deliveries: Deliveries) -> None:
    deliveries.close(_LAST_ANSWERS_S)
    deliveries.check()


def _end(intakes: Sequence[StreamIntake]) -> None:
    for intake in intakes:
        intake.stop()
    for intake in intakes:
        intake.join()


def check_queries(job: Job) -> None:
    """UsageError if a query asks an endpoint, whose answers no log has."""
    for plan in job.plans:
        endpoints = job.knowledge.endpoints
        asked = [*plan.inputs.services, *(iri for iri in plan.inputs.kbs if iri in endpoints)]
        if asked:
            raise UsageError(
                f"query {plan.identity.title} asks the endpoint <{asked[0]}>: a run on brokers "
                "cannot, because after a restart the endpoint may answer differently"
            )
