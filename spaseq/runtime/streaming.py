"""A run over live streams: a program gives events, and gets answers as they become certain."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import islice

from spaseq.algebra.answers import Answer
from spaseq.errors import SpaseqError, UsageError
from spaseq.plan.families import UnitPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.bounded_sequence import SortedUnit
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.unit_graph import UnitGraph
from spaseq.runtime.local import read_streams
from spaseq.runtime.pushed import PushedQueries
from spaseq.runtime.pushed_units import PushedUnit
from spaseq.sources.iterables import OF_PROGRAM, parts_of_event
from spaseq.stages.sorting import room_for_rows
from spaseq.stages.unit_stages import StageFactory

Answered = list[tuple[int, Answer]]

_NEVER = -(2**63)


@dataclass(slots=True)
class _LiveStream:
    """An open live stream. `clock` is the greatest time so far (ms)."""

    counter: InstantCounter
    clock: int | None = None


class GeneratorRun:
    """A job with live streams, such as generators, beside bounded ones.

    The caller reads `waits_for` to learn which stream is behind, gets its next event and passes it
    to `take`, or calls `end` if there is none. Each call returns (number of the query, answer) of
    the answers that are now certain, query by query. When `waits_for` is None, the run is over.

    Args:
        job: the queries, and the bounded streams.
        live: the IRIs of the live streams.
        delay_ms: maximum delay of an event behind the greatest time of its stream.
        on_refused: called with the error of each bad event; may raise it.
    """

    def __init__(
        self,
        job: Job,
        live: Sequence[str],
        delay_ms: int,
        on_refused: Callable[[SpaseqError, object], None],
    ) -> None:
        self._job, self._delay, self._on_refused = job, delay_ms, on_refused
        how = StageFactory(job.knowledge, job.options, job.take_bad)
        self._queries = PushedQueries(job.plans, how)
        self._open = {iri: _LiveStream(InstantCounter(ordered=delay_ms == 0)) for iri in live}
        self._started = time.monotonic()
        room = room_for_rows() // max(1, len(job.plans))
        graph = UnitGraph(SortedUnit(UnitPlan({0: plan}), job, how, room) for plan in job.plans)
        self._latest = read_streams(job, graph, how)
        self._sorted = [
            _Sorted(self._queries.unit(query), each.sorter.batches())
            for query, each in zip(self._queries.queries, graph, strict=True)
        ]

    @property
    def waits_for(self) -> str | None:
        """The live stream whose events are needed next; None if all have ended."""
        return min(self._open, key=lambda iri: _or_never(self._open[iri].clock), default=None)

    def take(self, iri: str, event: object) -> Answered:
        """Take the next event of a live stream."""
        stream, stats = self._open[iri], self._job.stats
        try:
            at, name, triples = parts_of_event(event, self._job.options.limits)
            if stream.clock is not None and at < stream.clock - self._delay:
                stats.late += 1
                raise UsageError(_late(iri, at, stream.clock))
        except SpaseqError as error:
            self._on_refused(error, event)
            return []
        instant = at, stream.counter.next(at)
        self._queries.push(self._queries.match_event(iri, instant, name, triples))
        stats.events += 1
        stats.triples += len(triples)
        if stream.clock is not None and at <= stream.clock:
            return []
        stream.clock, self._latest = at, max(at, self._latest)
        return self._advanced()

    def end(self, iri: str) -> Answered:
        """Record that a live stream has ended."""
        del self._open[iri]
        if self._open:
            return self._advanced()
        answers = self._caught_up(None)
        answers += self._queries.close(self._latest if self._job.options.open_end else None)
        self._job.stats.suppressed += self._queries.suppressed
        self._job.stats.add_muted(self._queries.muted)
        return self._counted(answers)

    def finish(self) -> None:
        """Release files and record the time of the run, which may have been cut short."""
        for each in self._sorted:
            each.close()
        self._job.stats.seconds = time.monotonic() - self._started
        self._job.on_progress(self._job.stats)

    def _advanced(self) -> Answered:
        """The answers that are certain at the clocks of all live streams."""
        least = min(_or_never(stream.clock) for stream in self._open.values())
        watermark = least - self._delay - 1
        stats = self._job.stats
        if least == _NEVER or (stats.watermark is not None and watermark <= stats.watermark):
            return []
        stats.watermark = watermark
        answers = self._caught_up(watermark)
        return self._counted(answers + self._queries.advance(watermark))

    def _caught_up(self, watermark: int | None) -> Answered:
        """Push the rows of the other streams up to a watermark (all if None), batch by batch."""
        answers: Answered = []
        while True:
            ends = [s.end for s in self._sorted if s.end is not None]
            due = min(ends, default=None)
            if due is None or (watermark is not None and due > watermark):
                break
            for each in self._sorted:
                each.push_until(due)
            answers += self._queries.advance(due)
        for each in self._sorted:
            each.push_until(watermark)
        return answers

    def _counted(self, answers: Answered) -> Answered:
        for number, _ in answers:
            self._job.stats.count_answers(self._job.plans[number].identity.title, 1)
        for number, partial in self._queries.partials():
            self._job.take_partials(number, [partial])
        if answers:
            self._job.on_progress(self._job.stats)
        return answers


class _Sorted:
    """A query's solutions over the bounded streams, in order of time."""

    def __init__(self, query: PushedUnit, batches: Generator[tuple[SolutionBatch, int]]) -> None:
        self._query, self._batches = query, batches
        self.end: int | None = None  # time of the last row of the next batch; None after the last
        self._rows: SolutionBatch | None = None
        self._read()

    def push_until(self, watermark: int | None) -> None:
        """Push the batches that begin at or before a watermark; all if it is None."""
        while self._rows is not None:
            if watermark is not None and int(self._rows.time.min()) > watermark:
                return
            self._query.push(self._rows)
            self._read()

    def close(self) -> None:
        """Remove the files of the remaining batches."""
        self._batches.close()

    def _read(self) -> None:
        for rows, end in islice(self._batches, 1):
            self._rows, self.end = rows, end
            return
        self._rows = self.end = None


def refuse(error: SpaseqError, event: object) -> None:
    """Let a bad event end the run."""
    raise error


def reporting(job: Job) -> Callable[[SpaseqError, object], None]:
    """Report each bad event as bad input of a job."""

    def report(error: SpaseqError, event: object) -> None:
        job.take_bad(BadInput(OF_PROGRAM, None, str(error), repr(event)[:200]))

    return report


def _or_never(clock: int | None) -> int:
    return _NEVER if clock is None else clock


def _late(iri: str, at: int, clock: int) -> str:
    return (
        f"stream <{iri}>: an event at {format_time(at)} comes after one at {format_time(clock)}. "
        "Answers over a generator come as soon as they are certain, so its events are in order of "
        "time: say watermark_ms=N if one may be N ms behind, or give a list, which is sorted"
    )
