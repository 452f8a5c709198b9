"""How a run repeats what an earlier one has done: from the logs alone, as it was done."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.live.answer_log import AnswerLog
from spaseq.runtime.live.changing_queries import ChangingQueries
from spaseq.runtime.live.earlier_run import Replay
from spaseq.runtime.live.endpoint_log import EndpointLog, place_of
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.live.past_points import PastPoints
from spaseq.runtime.live.saved_run import SavedRun

Advance = Callable[[Mapping[str, int] | None], bool]
"""Lets the engine read the logs, at most to some places; whether there was anything."""


class LogRepetition:
    """Reads the logs again, to the place that an earlier run had come to.

    Args:
        job: of the run; it is told nothing that the earlier run has told.
        engine: evaluates.
        queries: change as they have changed.
        answers: of the run; those that are logged come again.
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
        """Make the state of the earlier run anew, without answers, unless `stop` is set."""
        job, to, began = self._job, replay.to, time.monotonic()
        job.on_note("the state is made anew from the logs; then the run goes on")
        told = job.on_bad, job.on_late, job.on_partial, job.stats
        job.on_bad = job.on_late = job.on_partial = _ignore
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
        self._queries.catch_ups.points = PastPoints(to.points)
        self._answers.expect_again(to.answers)
        job.on_note(f"the state was made anew in {time.monotonic() - began:.1f} s")

    def repeat_changes(self, stop: threading.Event) -> None:
        """Read on to the last change of queries, and over the last batch that asked endpoints."""
        while not stop.is_set() and (self._queries.due or self._endpoints.next_repeated):
            self._read_on(stop)

    def _is_due(self, to: SavedRun) -> bool:
        """Whether a change of queries, or a batch that asked endpoints, comes before a place."""
        batch, due = self._endpoints.next_repeated, self._queries.due
        if batch is not None and self._place(batch.before) < self._place(to.places):
            return True
        return bool(due) and due[0].index < to.changes

    def _read_on(self, stop: threading.Event) -> None:
        """Read to the next change of queries, or over the next batch that asked endpoints."""
        if self._repeats_first():
            self._repeat(stop)
        elif not self._advance(self._queries.due[0].places):
            self._queries.apply(self._queries.due.popleft())

    def _repeats_first(self) -> bool:
        """Whether a batch is to be repeated before the next change of queries."""
        batch = self._endpoints.next_repeated
        if batch is None or not self._queries.due:
            return batch is not None
        return self._place(batch.before) < self._place(self._queries.due[0].places)

    def _place(self, places: Mapping[str, int]) -> int:
        return place_of(places, self._iris)

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


def _ignore(*_: object) -> None:
    """Tell nobody: the earlier run has told it."""
