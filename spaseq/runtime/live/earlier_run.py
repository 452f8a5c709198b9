"""The remains of an earlier run with the same directory, and its repetition.

A note has what a run needs besides the state, and the point of the logs from which the state can be
rebuilt. It is JSON, which later versions read. A state of another format is not read.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaseq.errors import RunError, UsageError
from spaseq.logs.segment_log import SegmentLog
from spaseq.logs.stream_log import StreamLog
from spaseq.rdf.inputs.stream_options import ignore
from spaseq.runtime.arrivals.log_depth import Reach, has_endless_windows
from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.live.answer_log import AnswerLog
from spaseq.runtime.live.changing_queries import ChangingQueries
from spaseq.runtime.live.endpoint_log import EndpointLog, place_of
from spaseq.runtime.live.live_directory import LiveDirectory, SavedRun
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.live.log_points import (
    BEGIN,
    PastPoint,
    PastPoints,
    ReplayPoint,
    ReplayPoints,
    reaches,
)


@dataclass(frozen=True, slots=True)
class Replay:
    """How to rebuild the state of an earlier run.

    Attributes:
        point: the point from which the logs are read.
        to: the run when its state was saved, with counts in the place of the engine's state. The
            answers up to there are logged.
    """

    point: ReplayPoint
    to: SavedRun


class EarlierRun:
    """The saved state of an earlier run, or the means to rebuild it.

    Args:
        directory: of the run.
        streams: the logs of the streams, by IRI.
        others: the other logs, by the field of `SavedRun` with their position.
        rebuilds: whether to rebuild the state from the logs in any case.
        is_whole: whether the log of external graph changes is complete.
        reads_state: whether this version can use the saved state, if it can read it.

    Attributes:
        state: the saved state; None if there is none that can be used.
        replay: how to rebuild it without answers; None if that is not needed, or impossible.
        points: the points from which it can be rebuilt later.
        warning: a warning about a state of another version, if no note goes with it.

    Raises:
        UsageError: a log ends before the position to which the state has read it, or a rebuild
            would need graphs that earlier events have changed.
        RunError: the state or the note is damaged.
    """

    def __init__(
        self,
        directory: LiveDirectory,
        streams: Mapping[str, StreamLog],
        others: Mapping[str, SegmentLog],
        rebuilds: bool,
        is_whole: bool = True,
        reads_state: bool = True,
    ) -> None:
        self._directory, self._streams, self._others = directory, streams, others
        self.state: SavedRun | None = None
        self.replay: Replay | None = None
        self.points = ReplayPoints()
        if rebuilds:
            directory.forget_state()  # so that a later run continues with that
        value, note = directory.state() if reads_state else None, directory.note()
        to: SavedRun | None = None
        if note is not None:
            to, self.points = _of_note(note)
        if value is not None:
            self.state = SavedRun.of_value(value)
        saved = self.state or to
        mistake = None if saved is None else self._mistake(saved)
        if mistake is not None:
            if not rebuilds:
                raise UsageError(mistake)
            directory.forget_note()
            to, self.points = None, ReplayPoints()
        first = self.points.first
        if self.state is None and to is not None and first is not None and self._has(first):
            if not first.lacks_nothing and is_whole and self._is_whole():
                first = BEGIN
            if first.lost_graphs and not rebuilds:
                raise UsageError(self._lost(first.lost_graphs))
            self.replay = Replay(first, to)
        elif self.state is None:
            self.points = ReplayPoints()
        is_unread = directory.has_state and value is None and self.replay is None
        self.warning = self._unread() if is_unread else None

    def _unread(self) -> str:
        text = (
            f"{self._directory.path / 'state'} is of another version of spaseq: the state is "
            "rebuilt from the logs as they are"
        )
        if any(log.log.first for log in self._streams.values()):
            text += (
                ". Their first messages were dropped, and partial matches that begin there are lost"
            )
        return text

    def _mistake(self, saved: SavedRun) -> str | None:
        """The name of a log that does not fit a saved state; None if all fit."""
        for iri, log in self._streams.items():
            if saved.places.get(iri, 0) > log.log.end:
                return self._text(saved.places[iri], log.log, f"the log of stream <{iri}>")
        for name, other in self._others.items():
            if getattr(saved, name) > other.end:
                return self._text(getattr(saved, name), other, f"the log of {name}")
        return None

    def _text(self, count: int, log: SegmentLog, what: str) -> str:
        return (
            f"{self._directory.path / 'state'} goes with {count} records of {what}, but "
            f"{log.directory} ends after {log.end}: it was deleted, or an older copy was restored. "
            "Restore both from the same copy, or start with --rebuild, which rebuilds the state "
            "from the logs as they are"
        )

    def _is_whole(self) -> bool:
        """Whether the logs have all their records; old answers are not needed."""
        logs = [each.log for each in self._streams.values()]
        logs += [each for name, each in self._others.items() if name != "answers"]
        return not any(log.first for log in logs)

    def _lost(self, graphs: Sequence[str]) -> str:
        names = ", ".join(f"<{iri}>" for iri in graphs)
        return (
            f"{self._directory.path / 'state'} is gone, or another version wrote it, and the logs "
            f"no longer have all events that have changed {names} (MAINTAIN GRAPH). Use "
            "that version or restore the state, or start with --rebuild, which rebuilds the state "
            "from the logs as they are: these graphs are empty at their beginning"
        )

    def _has(self, point: ReplayPoint) -> bool:
        """Whether the logs still have all records after a point."""
        logs = {iri: log.log for iri, log in self._streams.items()}
        return all(log.first <= point.places.get(iri, 0) <= log.end for iri, log in logs.items())


def other_logs(
    answers: AnswerLog, endpoints: EndpointLog, queries: ChangingQueries
) -> dict[str, SegmentLog]:
    """All logs except the logs of streams, by the field of `SavedRun` with their position."""
    changes = {} if queries.log is None else {"changes": queries.log}
    return {"answers": answers.log, "endpoints": endpoints.log, **changes}


def check_knowledge(
    saved: SavedRun, knowledge: str, logs: Mapping[str, StreamLog], path: Path
) -> None:
    """UsageError if there are messages for another knowledge base than this one."""
    is_other = saved.knowledge != knowledge
    if is_other and any(saved.places.get(iri, 0) < log.log.end for iri, log in logs.items()):
        raise UsageError(
            f"{path}: the knowledge base has changed, and the run before this one was killed "
            "before it had evaluated all messages. Start it with the knowledge base as it was, "
            "stop it, and then change the knowledge base"
        )


def note_of(saved: SavedRun, counts: list[Any], points: ReplayPoints) -> dict[str, Any]:
    """The note for a saved state; `counts` are the engine's."""
    return {"saved": {**saved.as_value(), "engine": counts}, "points": points.as_values()}


def point_of(
    places: Mapping[str, int], engine: LiveEngine, queries: ChangingQueries, endpoints: int
) -> ReplayPoint:
    """The present point of a run, between two batches.

    Args:
        places: the next record of each stream's log, by IRI.
        engine: of the run.
        queries: of the run.
        endpoints: the next record of the log of endpoints.
    """
    plans = [query.plan for query in engine.queries.queries]
    graphs = {*engine.queries.maintained}
    graphs |= {iri for plan in plans if plan.changing is not None for iri in plan.changing.graphs}
    return ReplayPoint(
        dict(places),
        engine.streams_as_json(),
        {iri: counts.accepted for iri, counts in engine.counts.items()},
        queries.changed,
        endpoints,
        queries.as_values(),
        [(q.plan.identity.title, q.failure) for q in engine.queries.queries if q.failure],
        sorted(graphs),
        [plan.identity.title for plan in plans if has_endless_windows(plan)],
    )


def reaches_of(engine: LiveEngine) -> list[Reach]:
    """How far back the states of an engine's queries reach."""
    plans = [query.plan for query in engine.queries.queries if query.failure is None]
    marks = {iri: engine.watermark(iri) for iri in engine.counts}
    return reaches(plans, marks, {iri: c.accepted for iri, c in engine.counts.items()})


def _of_note(note: Any) -> tuple[SavedRun, ReplayPoints]:
    """The inverse of `note_of`."""
    try:
        points = ReplayPoints(ReplayPoint(*values) for values in note["points"])
        return SavedRun.of_value(note["saved"]), points
    except (TypeError, KeyError) as error:
        raise RunError(f"the note about the state of the run is damaged: {error}") from error


Advance = Callable[[Mapping[str, int] | None], bool]
"""Lets the engine read the logs, at most to some positions; returns whether there was anything."""


class LogRepetition:
    """Reads the logs again, to the position of an earlier run.

    Args:
        job: of the run; it gets no report that the earlier run has made.
        engine: evaluates.
        queries: change as they have changed.
        answers: of the run; logged ones come again.
        endpoints: answer as they have answered.
        iris: of the streams.
        advance: reads on, and lets others look at the run.
    """

    def __init__(
        self,
        job: Job,
        engine: LiveEngine,
        queries: ChangingQueries,
        answers: AnswerLog,
        endpoints: EndpointLog,
        iris: Iterable[str],
        advance: Advance,
    ) -> None:
        self._job, self._engine, self._queries, self._answers = job, engine, queries, answers
        self._endpoints, self._iris = endpoints, [*iris]
        self._advance = advance

    def make_anew(self, replay: Replay, stop: threading.Event) -> None:
        """Rebuild the state of the earlier run, without answers, unless `stop` is set."""
        job, to, began = self._job, replay.to, time.monotonic()
        job.on_note("the state is rebuilt from the logs; then the run goes on")
        for title in () if replay.point.is_begin else replay.point.endless or ():
            job.on_note(
                f"query {title}: its open windows (sessions, or of the last n events) may have "
                "begun before what the logs still have, and may then lack these events. If that "
                "matters, end this run, restore its directory from a copy, and go on with the "
                "version that wrote the state until the windows have closed"
            )
        told = job.on_bad, job.on_late, job.on_partial, job.stats
        job.on_bad = job.on_late = job.on_partial = ignore
        job.stats = Stats()
        while not stop.is_set() and self._is_due(to):
            self._read_on(stop)
        while not stop.is_set() and self._advance(to.places):
            pass
        job.on_bad, job.on_late, job.on_partial, job.stats = told
        if stop.is_set():
            return
        self._engine.restore_counts(to.engine)
        self._answers.is_silent = False
        self._answers.answered = Counter(to.answered)
        self._queries.catch_ups.points = PastPoints(PastPoint(*values) for values in to.points)
        self._answers.expect_again(to.answers)
        job.on_note(f"the state was rebuilt in {time.monotonic() - began:.1f} s")

    def repeat_changes(self, stop: threading.Event) -> None:
        """Read on to the last change of queries, and over the last batch that used endpoints."""
        while not stop.is_set() and (self._queries.due or self._endpoints.next_repeated):
            self._read_on(stop)

    def _is_due(self, to: SavedRun) -> bool:
        """Whether a change of queries, or a batch that used endpoints, comes before a position."""
        batch, due = self._endpoints.next_repeated, self._queries.due
        if batch is not None and self._place(batch.before) < self._place(to.places):
            return True
        return bool(due) and due[0].index < to.changes

    def _read_on(self, stop: threading.Event) -> None:
        """Read to the next change of queries, or over the next batch that used endpoints."""
        if self._repeats_first():
            self._repeat(stop)
        elif not self._advance(self._queries.due[0].places):
            self._queries.apply(self._queries.due.popleft())

    def _repeats_first(self) -> bool:
        """Whether a batch must be repeated before the next change of queries."""
        batch = self._endpoints.next_repeated
        if batch is None or not self._queries.due:
            return batch is not None
        return self._place(batch.before) < self._place(self._queries.due[0].places)

    def _place(self, places: Mapping[str, int]) -> int:
        return place_of(places, self._iris)

    def _repeat(self, stop: threading.Event) -> None:
        """Evaluate a batch that used endpoints again, with their logged answers."""
        batch = self._endpoints.next_repeated
        assert batch is not None
        while self._advance(batch.before):
            if stop.is_set():
                return
        self._endpoints.begin_repeating()
        self._advance(batch.after)
        self._endpoints.end_repeating()
