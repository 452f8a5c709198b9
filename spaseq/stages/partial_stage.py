"""Partial matches of one query: solutions of graph patterns in, partial matches out.

Each level of the query (`plan.levels`) has a sequencer, which gives the matches of the first steps.
A match is judged when its window closes, because no later event can belong to a larger match. It is
dropped when the window of its last event closes, because until then it can be above other matches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np

from spaseq.algebra.answers import Instant, PartialAnswer, TraceItem
from spaseq.automaton.batch.match_builder import TooManyMatches
from spaseq.automaton.program.window import Counted
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.machine import CorrelatedSolver, Machine
from spaseq.automaton.run.matches import (
    MatchedSolution,
    PartitionKey,
    SequenceMatch,
    partition_of,
)
from spaseq.automaton.sequencer import AnySequencer, sequencer
from spaseq.errors import RunError
from spaseq.plan.levels import first_names
from spaseq.plan.query_plan import Level, QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.stages import state_pickles
from spaseq.stages.columnar_answers import MOST_BYTES, Projection, partials_in_order
from spaseq.stages.live_matches import LiveMatch, LiveMatches
from spaseq.stages.machine_of_plan import machine_of
from spaseq.stages.numbered_levels import NumberedLevels
from spaseq.stages.window_closes import (
    CountedSchedule,
    EventCounts,
    EventsAtInstant,
    TimedSchedule,
)
from spaseq.stateful import Stateful, go_on, state_of

_MATCH_BYTES, _EVENT_BYTES = 1024, 64

Schedule: TypeAlias = TimedSchedule[LiveMatch] | CountedSchedule[LiveMatch]


class _LevelRun:
    """The sequencer of one level."""

    def __init__(self, level: Level, number: int, solve: CorrelatedSolver) -> None:
        self.number, self._waiting = number, level.waiting
        sequence = level.plan.sequence
        self.machine: Machine = machine_of(level.plan, solve, None)
        self.sequencer: AnySequencer = sequencer(self.machine, numbers_rows=True)
        self._projection = Projection(level.plan)
        self.needs_instants = sequence.program.strict or isinstance(sequence.window, Counted)

    def answer(self, match: SequenceMatch, closed: Instant | None) -> PartialAnswer:
        """A partial match of this level, whose window closed at an instant."""
        ((_, answer),) = self._projection.answers([match._replace(close=None)])
        return PartialAnswer(answer, answer.trace[-1].gpm, self._waiting, closed)

    def answers(
        self, matches: Iterable[SequenceMatch], closes: Iterable[int]
    ) -> Iterator[PartialAnswer]:
        """Partial matches of this level that never waited and whose windows closed (ms)."""
        waiting = self._waiting
        for (_, answer), close in zip(self._projection.answers(matches), closes, strict=True):
            yield PartialAnswer(answer, answer.trace[-1].gpm, waiting, (close, 0))


class PartialStage(Stateful):
    """Gives the partial matches of a query whose plan has levels.

    `SequenceStage` gives it the rows that its own sequencer gets. `take` returns the partial
    matches whose windows have closed since the last call, in order.
    """

    def __init__(self, plan: QueryPlan, solve: CorrelatedSolver) -> None:
        self._name, window = plan.identity.name, plan.sequence.window
        self._partition = plan.sequence.partition
        self._levels = [_LevelRun(level, n, solve) for n, level in enumerate(plan.levels, 1)]
        starters = first_names(plan.sequence.chain)
        self._starters = {i for i, g in enumerate(plan.patterns.gpms) if g.name in starters}
        self._live = LiveMatches(starters)
        sequencers = [level.sequencer for level in self._levels]
        self._numbered = NumberedLevels.of(plan, sequencers, self._live)
        self._counts = EventCounts(window) if isinstance(window, Counted) else None
        self._judged, self._forgotten = self._schedule(plan), self._schedule(plan)
        self._closed: list[PartialAnswer] = []  # in the current call, unordered
        self._found: list[PartialAnswer] = []
        self._events = 0  # number of live matches so far, minus those dropped

    def _schedule(self, plan: QueryPlan) -> Schedule:
        window = plan.sequence.window
        if isinstance(window, Counted):
            assert self._counts is not None
            return CountedSchedule(self._counts)
        return TimedSchedule(window)

    def rows(self, rows: SolutionBatch, watermark: int) -> SolutionBatch:
        """Process rows as a sequencer does, and return all of them."""
        if self._counts is not None:
            self._counts.see(_counted(rows, self._partition, self._starters))
        solved = rows
        if (rows.gpm == BARE).any():
            solved = rows.take(np.flatnonzero(rows.gpm != BARE))
        level_rows = rows if self._levels[0].needs_instants else solved
        if self._numbered is not None and self._numbered.takes(level_rows):
            self._add_numbered(self._numbered, level_rows, watermark)
        else:
            for level in self._levels:
                level_rows = rows if level.needs_instants else solved
                self._add(level, level.sequencer.run(level_rows, watermark))
        self._close(watermark)
        return rows

    def events(self, events: Sequence[EventRows], watermark: int) -> Sequence[EventRows]:
        """Process the rows of a few single events as a sequencer does, and return all of them."""
        if self._counts is not None:
            self._counts.see(self._counted_events(events))
        solved = [event for event in events if any(gpm != BARE for gpm, _ in event.solutions)]
        if self._numbered is not None and events:
            self._numbered.renumber()
        for level in self._levels:
            level_events = events if level.needs_instants else solved
            self._add(level, level.sequencer.run_events(level_events, watermark))
        self._close(watermark)
        return events

    def close(self) -> None:
        """Close every window: all streams have ended."""
        for level in self._levels:
            self._add(level, level.sequencer.close())
        self._close(None)

    def take(self) -> list[PartialAnswer]:
        """The partial matches whose windows have closed since the last call, in order."""
        partials, self._found = self._found, []
        return partials

    def live(self) -> int:
        """Number of waiting matches, complete or not, and of sets of them."""
        return len(self._live) + sum(level.sequencer.live_runs() for level in self._levels)

    # --- matches ----------------------------------------------------------------------------------

    def _add(self, level: _LevelRun, matches: Iterable[SequenceMatch]) -> None:
        for match in matches:
            self._add_one(level, match)

    def _add_numbered(self, levels: NumberedLevels, rows: SolutionBatch, watermark: int) -> None:
        try:
            for matches in levels.run(rows, watermark):
                level = self._levels[matches.level - 1]
                if matches.closes is not None:
                    self._closed += level.answers(matches.matches, matches.closes)
                    continue
                for made, numbers in zip(matches.matches, matches.rows, strict=True):
                    match = self._add_one(level, made)
                    if match is not None:
                        levels.keep(match, numbers)
        except TooManyMatches:
            raise self._too_many() from None

    def _add_one(self, level: _LevelRun, found: SequenceMatch) -> LiveMatch | None:
        """Add a match of a level; None if it is known."""
        match = LiveMatch(level.number, found)
        self._live.add(match)
        if not match.is_alive:
            return None
        key = partition_of(found.solutions[0], self._partition)
        if level.number < len(self._levels):
            self._judged.add(match, key, match.trace[0][:2])
        self._forgotten.add(match, key, match.trace[-1][:2])
        self._events += len(match.trace)
        if _MATCH_BYTES * len(self._live) + _EVENT_BYTES * self._events > MOST_BYTES:
            raise self._too_many()
        return match

    def _too_many(self) -> RunError:
        return RunError(
            f"query {self._name} has more matches of its first steps in one window than "
            f"{MOST_BYTES:,} bytes hold: shorten WITHIN, add a condition that ties the steps "
            "together, or do not ask for partial matches"
        )

    def _close(self, until: int | None) -> None:
        """Judge the matches whose windows have closed by a time (ms); None for all."""
        partials, self._closed = self._closed, []
        for closed, match in self._judged.closed(until):
            if self._numbered is not None:
                self._numbered.forget(match)
            if match.is_alive and self._live.is_partial(match):
                partials.append(self._levels[match.level - 1].answer(match.match, closed))
        for _, match in self._forgotten.closed(until):
            self._events -= len(match.trace)
            if match.is_alive:
                self._live.remove(match)
        if self._counts is not None:
            self._counts.trim()
        self._found += partials_in_order(partials)

    def _counted_events(self, events: Sequence[EventRows]) -> Iterator[EventsAtInstant]:
        gpms, partition = self._levels[0].machine.gpms, self._partition
        seen: set[tuple[int, int, PartitionKey, int, bool]] = set()
        for event in events:
            for gpm, values in event.solutions:
                key = values  # of BARE
                if gpm != BARE:
                    variables = gpms[gpm].variables
                    key = tuple([values[variables.index(v)] for v in partition])
                seen.add((event.time, event.k, key, event.stream, gpm in self._starters))
        return _at_instants(seen)

    # --- state ------------------------------------------------------------------------------------

    def snapshot(self) -> object:
        """The state for a snapshot of the query's stage."""
        matches = list(self._live)
        numbers = {match: i for i, match in enumerate(matches)}

        def number(match: LiveMatch) -> int:
            return numbers.get(match, -1)

        return (
            [
                state_pickles.dumps((0, ""), (level.sequencer.snapshot(),), level.machine)
                for level in self._levels
            ],
            [(match.level, _plain(match.match)) for match in matches],
            [schedule.snapshot(number) for schedule in (self._judged, self._forgotten)],
            None if self._counts is None else state_of(self._counts),
        )

    def restore(self, state: object) -> None:
        """Continue from what `snapshot` returned.

        Raises:
            any of `safe_pickles.BROKEN`: the state is damaged.
        """
        assert isinstance(state, tuple)
        sequences, plain, schedules, counts = state
        for level, data in zip(self._levels, sequences, strict=True):
            pickled = state_pickles.StatePickle(data)
            pickled.head()
            level.sequencer.restore(*pickled.state(level.machine))
        shapes: dict[tuple[str, ...], int] = {}
        matches = [LiveMatch(number, _match_of(fields, shapes)) for number, fields in plain]
        gone = LiveMatch(0, SequenceMatch((), 0, {}))
        gone.is_alive = False
        for match in matches:
            self._live.add(match)
        self._events = sum(len(match.trace) for match in matches)

        def match_of_number(number: int) -> LiveMatch:
            return matches[number] if number >= 0 else gone

        if self._counts is not None:
            go_on(self._counts, counts)
        for schedule, times in zip((self._judged, self._forgotten), schedules, strict=True):
            schedule.restore(times, match_of_number)


def _plain(match: SequenceMatch) -> tuple[object, ...]:
    """A match as plain values."""
    solutions = [(s.gpm, tuple(s.item), s.singles, s.groups) for s in match.solutions]
    return solutions, match.origin, dict(match.lists), match.close


def _match_of(fields: tuple[Any, ...], shapes: dict[tuple[str, ...], int]) -> SequenceMatch:
    """The inverse of `_plain`. The numbers of restored shapes are negative.

    `shapes` are the shapes so far, by their variables.
    """
    plain, origin, lists, close = fields
    solutions = []
    for gpm, item, singles, groups in plain:
        shape = shapes.setdefault(tuple([v for v, _ in singles]), -1 - len(shapes))
        solutions.append(MatchedSolution(gpm, TraceItem(*item), singles, groups, shape))
    return SequenceMatch(solutions, origin, lists, close)


def _counted(
    rows: SolutionBatch, partition: Sequence[str], starters: Collection[int]
) -> Iterator[EventsAtInstant]:
    """The events of a batch, in the order of instants."""
    keys = zip(*(rows.texts(v) for v in partition), strict=True) if partition else repeat(())
    begins = np.isin(rows.gpm, [*starters]).tolist()
    columns = rows.time.tolist(), rows.k.tolist(), keys, rows.stream.tolist(), begins
    return _at_instants({*zip(*columns)})  # noqa: B905 - keys may repeat for ever


def _at_instants(
    solutions: Iterable[tuple[int, int, PartitionKey, int, bool]],
) -> Iterator[EventsAtInstant]:
    """Solutions (time, k, partition, stream, whether a match can begin) by instant."""
    streams: dict[tuple[int, int, PartitionKey], set[int]] = {}
    begins = set()
    for time, k, key, stream, can_begin in solutions:
        streams.setdefault((time, k, key), set()).add(stream)
        if can_begin:
            begins.add((time, k, key))
    for place in sorted(streams, key=lambda place: place[:2]):
        time, k, key = place
        yield EventsAtInstant(key, (time, k), len(streams[place]), place in begins)
