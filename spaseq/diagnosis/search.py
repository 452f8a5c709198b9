"""A bounded search for the matches of a relaxed query in the rows of a run.

The search feeds the rows to the engine in small pieces of time and stops once it has enough
matches. A relaxed query may have far too many partial matches; so the pieces shrink as they take
longer, and a search that needs too much time or memory stops early. It is then not complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import thread_time

import numpy as np

from spaseq.algebra.answers import Answer
from spaseq.compiled.arrays import Indices
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.report import plural
from spaseq.diagnosis.watched_event import HeldEvent
from spaseq.lang.sequence import occurrences
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules.shared_runs import compiled_runs, shared_runs
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.inputs.stream_options import ignore
from spaseq.records import record
from spaseq.stages.sequence import SequenceStage

FEW_ROWS = 4_000
"""Fewer rows are searched in Python: a kernel would take longer to load."""

MOST_RUNS = 1_000_000
"""A search with more partial matches than this at once stops."""

_LARGEST_PIECE = 65_536
_SHORT, _LONG = 0.02, 0.1
"""A piece that takes less or more seconds is followed by a larger or a smaller one."""


@dataclass(slots=True)
class SearchTime:
    """The processor time for all searches of one diagnosis, in seconds.

    So the results do not depend on other load of the machine. The first piece of a search is not
    counted, because a kernel may be compiled in it.
    """

    seconds: float = 20.0
    each: float = 6.0  # of one search
    spent: float = 0.0

    def left(self) -> float:
        """The seconds that the next search may take."""
        return min(self.each, max(self.seconds - self.spent, self.seconds / 40))


@record
class Found:
    """The matches that a search found; if it is not `complete` there may be more."""

    matches: tuple[Answer, ...]
    complete: bool

    def __bool__(self) -> bool:
        return bool(self.matches)

    def __len__(self) -> int:
        return len(self.matches)

    def counted(self, noun: str) -> str:
        """A count, in words."""
        return ("" if self.complete else "at least ") + plural(len(self.matches), noun)

    @property
    def nothing(self) -> bool:
        """Whether it is certain that there is no match."""
        return self.complete and not self.matches

    @property
    def unknown(self) -> bool:
        """Whether the search stopped before it found a match."""
        return not self.complete and not self.matches


def answers_in_pieces(
    stage: SequenceStage,
    rows: SolutionBatch,
    time: SearchTime,
    until: int | None = None,
) -> Iterator[Sequence[Answer] | None]:
    """The answers of one piece of time after the other; None if the time is over.

    The rows are in order of time. With `until` the streams have come to this time (ms) and have
    not ended.
    """
    if until is not None:
        rows = rows.take(slice(0, int(np.searchsorted(rows.time, until, "right"))))
    start, size, n, left = 0, 1, len(rows), time.left()
    while start < n:
        before = thread_time()
        last = int(rows.time[min(start + size, n) - 1])
        end = int(np.searchsorted(rows.time, last, "right"))
        stage.push(rows.take(slice(start, end)))
        yield stage.advance(last)
        took = thread_time() - before
        if start:
            time.spent += took
            left -= took
        start = end
        if left < 0 or stage.live_runs() > MOST_RUNS:
            yield None
            return
        if took < _SHORT:
            size = min(2 * size, _LARGEST_PIECE)
        elif took > _LONG:
            size = max(size // 8, 1)
    yield stage.close() if until is None else stage.advance(until)


@record
class RowSearch:
    """Searches the rows that were observed, for matches that hold an event if one is given.

    `after` are the rows to search: those later than this instant. `copies` says of which GPM each
    added GPM of a plan takes the rows.
    """

    observed: Observed
    time: SearchTime
    held: HeldEvent | None = None

    def found(
        self,
        plan: QueryPlan,
        most: int = 1,
        copies: Mapping[int, int] | None = None,
        after: tuple[int, int] | None = None,
    ) -> Found:
        """The first matches of a plan, in the order in which they end."""
        rows = self._rows(plan, copies or {}, after)
        if len(rows) > FEW_ROWS:
            plan = compiled_runs(shared_runs(plan))
        matches: list[Answer] = []
        held = self.held if self.held and self.held.concerns(plan.sequence.chain) else None
        for some in self._answers(plan, rows):
            if some is None:
                return Found(tuple(matches), False)
            matches += some if held is None else filter(held.is_in, some)
            if len(matches) >= most:
                return Found(tuple(matches[:most]), False)
        return Found(tuple(matches), True)

    def _answers(self, plan: QueryPlan, rows: SolutionBatch) -> Iterator[Sequence[Answer] | None]:
        observed = self.observed
        stage = SequenceStage(plan, StageOptions(None, observed.limits), observed.knowledge, ignore)
        return answers_in_pieces(stage, rows, self.time)

    def _rows(
        self, plan: QueryPlan, copies: Mapping[int, int], after: tuple[int, int] | None
    ) -> SolutionBatch:
        """The rows that a plan needs, in order of instant, each copied for the added GPMs."""
        rows, names = self.observed.rows, [gpm.name for gpm in plan.patterns.gpms]
        used = {names.index(use.gpm) for use in occurrences(plan.sequence.chain)}
        wanted = np.isin(rows.gpm, [number for number in used if number not in copies])
        mask = wanted
        if plan.sequence.needs_instants:  # of partitions, bare rows have them all
            mask = wanted | (rows.gpm == BARE) | (not plan.sequence.partition)
        at: list[Indices] = [np.flatnonzero(mask)]
        gpm = [np.where(wanted, rows.gpm, BARE)[mask]]
        for copy, original in copies.items():
            if copy in used:
                at.append(np.flatnonzero(rows.gpm == original))
                gpm.append(np.full(len(at[-1]), copy, np.int32))
        places, numbers = np.concatenate(at), np.concatenate(gpm)
        if len(at) > 1:
            order = np.argsort(places, kind="stable")
            places, numbers = places[order], numbers[order]
        if after is not None:
            time, k = rows.time[places], rows.k[places]
            later = (time > after[0]) | ((time == after[0]) & (k > after[1]))
            places, numbers = places[later], numbers[later]
        return replace(rows.take(places), gpm=numbers)


COUNT_SECONDS = 6.0
"""The processor time in which the answers are counted."""


def answer_count(
    observed: Observed,
    options: StageOptions,
    counts: Callable[[Answer], bool] | None = None,
    until: int | None = None,
) -> tuple[int, bool]:
    """The number of answers, and whether it is complete.

    Args:
        observed: the rows.
        options: the options of the run.
        counts: which answers count; None for all.
        until: if given, only answers that are certain when all streams have come to this time (ms).
    """
    plan = observed.question.plan
    stage = SequenceStage(plan, options, observed.knowledge, ignore)
    rows = observed.rows if plan.sequence.needs_instants else observed.solutions
    count = 0
    time = SearchTime(COUNT_SECONDS)
    for answers in answers_in_pieces(stage, rows, time, until):
        if answers is None:
            return count, False
        count += len(answers) if counts is None else sum(map(counts, answers))
    return count, True
