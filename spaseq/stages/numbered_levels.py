"""Levels whose matches are compared as row numbers, before they are made.

The compiled sequencers number the rows of a batch. If each solution is a row with all bindings, a
match is part of another one exactly if its rows are among the rows of the other. So most matches of
the first steps, which become longer matches in the same batch, need not be made. No match of all
steps is ever made: it can only remove matches that are known when it is found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.match_builder import EnumeratedMatches, NumberedMatches, among, joined
from spaseq.automaton.program.window import Counted, Window
from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.automaton.run.matches import SequenceMatch
from spaseq.automaton.sequencer import AnySequencer
from spaseq.automaton.sets.compiled.set_sequencer import SetSequencer
from spaseq.compiled.arrays import Indices, Int64s
from spaseq.lang import sequence as seq
from spaseq.lang.sequence import Chain
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.records import record
from spaseq.stages.columnar_answers import MOST_BYTES
from spaseq.stages.live_matches import LiveMatch, LiveMatches

RowNumbers: TypeAlias = tuple[int, ...]

_NEVER = 2**63 - 1


@record
class _Shape:
    """Facts about the rows of matches that follow from the form of a sequence.

    `is_row`: each step is a GPM that no other step has. So a match is part of a longer one exactly
    if it is its prefix. `starts_once`: the GPM of the first step is in no other step. So all
    matches that contain the first row of a match begin with it.
    """

    is_row: bool
    starts_once: bool

    @classmethod
    def of(cls, chain: Chain) -> _Shape | None:
        """The shape of a sequence; None if solutions of one instant may have any order."""
        if any(isinstance(s, seq.BinaryStep) and s.kind != "|" for s in seq.steps(chain)):
            return None
        steps = [link.step for link in chain.links if not isinstance(link.step, seq.Negation)]
        names = [o.gpm for o in seq.occurrences(chain) if o.negation is None]
        all_single = all(isinstance(step, seq.GpmStep) for step in steps)
        once = isinstance(steps[0], seq.GpmStep) and names.count(names[0]) == 1
        return cls(all_single and len({*names}) == len(names), once)


@record
class _Piece:
    """Some matches of a level, and their rows."""

    level: int
    matches: EnumeratedMatches
    numbers: Sequence[RowNumbers]

    def taken(self, places: Sequence[int]) -> Iterator[_Piece]:
        """The matches at some positions, as a piece; nothing if there are none."""
        if len(places) == len(self.numbers):
            yield self
        elif places:
            numbers = [self.numbers[i] for i in places]
            yield _Piece(self.level, self.matches.take(places), numbers)


@record
class FoundMatches:
    """Matches of one level, to be made.

    `rows` are their rows, or empty tuples where rows have different numbers elsewhere. If `closes`
    is given, all windows have closed, at these times (ms), and the matches are partial matches.
    """

    level: int
    matches: Iterator[SequenceMatch]
    rows: Sequence[RowNumbers] = ()
    closes: Sequence[int] | None = None


class NumberedLevels:
    """The sequencers of all levels of a sequence, if rows identify solutions.

    Rows have the same numbers in all of them while all order the batches alike. `live` are the
    matches that have been made and are not known to be part of another one. `grouped` are the GPMs
    that bind group variables.
    """

    def __init__(
        self,
        sequencers: Sequence[SetSequencer | RunSequencer],
        live: LiveMatches,
        shape: _Shape,
        grouped: Indices,
        window: Window,
    ) -> None:
        self._sequencers, self._live, self._window = sequencers, live, window
        self._shape, self._grouped = shape, grouped
        self._since: int | None = None  # rows from this number on have the same number everywhere
        self._waiting = _WaitingRows()

    @classmethod
    def of(
        cls, plan: QueryPlan, sequencers: Sequence[AnySequencer], live: LiveMatches
    ) -> NumberedLevels | None:
        """The levels of a plan; None if they must be compared as matches."""
        shape, gpms = _Shape.of(plan.sequence.chain), plan.patterns.gpms
        certain = all({*g.variables} - g.private <= g.certain for g in gpms)
        strict = {level.plan.sequence.program.strict for level in plan.levels}
        usable = [
            s for s in sequencers if isinstance(s, SetSequencer | RunSequencer) and not s.waits
        ]
        if shape is None or not certain or len(strict) > 1 or len(usable) < len(sequencers):
            return None
        owned = {v for level in plan.levels for v in level.plan.sequence.scope.owner}
        grouped = [i for i, g in enumerate(gpms) if not owned.isdisjoint(g.variables)]
        return cls(usable, live, shape, np.array(grouped, np.intp), plan.sequence.window)

    def takes(self, rows: SolutionBatch) -> bool:
        """Whether `run` can process the next batch. If not, later rows get new numbers."""
        can = [sequencer.can_enumerate(rows) for sequencer in self._sequencers]
        if all(can) and not self._has_twins(rows):
            return True
        self._since = None
        return False

    def run(self, rows: SolutionBatch, watermark: int) -> Iterator[FoundMatches]:
        """Process a batch; yields the matches that must be made.

        Matches that wait and are part of others are dropped.

        Raises:
            TooManyMatches: the matches of one level need too much memory.
        """
        if not len(rows):
            return
        running = [sequencer.enumerated(rows, MOST_BYTES) for sequencer in self._sequencers]
        batches = [next(each) for each in running]
        if not all(numbered.is_like(batches[0]) for numbered in batches):
            self._since = None
        elif self._since is None:
            self._since = batches[0].first
        if self._shape.is_row and self._since is not None:
            yield from self._kept_rows(batches, watermark)
        else:
            yield from self._kept(batches, [numbered.pieces for numbered in batches])
        for each in running:
            for _ in each:
                pass

    def keep(self, match: LiveMatch, numbers: RowNumbers) -> None:
        """Record that a match that `run` gave waits."""
        if numbers:
            match.rows = numbers
            self._waiting.add(match)

    def forget(self, match: LiveMatch) -> None:
        """Remove a match that has been judged."""
        self._waiting.remove(match.rows)

    def renumber(self) -> None:
        """Record that the levels may have numbered rows differently."""
        self._since = None

    def _has_twins(self, rows: SolutionBatch) -> bool:
        """Whether an event may have two solutions that differ in group variables only.

        They count as one where matches are compared, so rows cannot stand for them.
        """
        if not len(self._grouped):
            return False
        mine = np.flatnonzero(np.isin(rows.gpm, self._grouped))
        time = rows.time[mine]
        if (time[1:] > time[:-1]).all():
            return False
        keys = np.stack([rows.gpm[mine], rows.stream[mine], rows.k[mine], time])
        keys = keys[:, np.lexsort(keys)]
        return bool((keys[:, 1:] == keys[:, :-1]).all(axis=0).any())

    def _kept_rows(
        self, batches: Sequence[NumberedMatches], watermark: int
    ) -> Iterator[FoundMatches]:
        """As `_kept`, for sequences of single steps.

        The matches that begin in the batch are compared as columns. Only their prefixes are part of
        them, and none of these waits.
        """
        earlier: list[list[EnumeratedMatches]] = []
        longer: Int64s | None = None
        for level in range(len(batches), 0, -1):
            matches = joined(batches[level - 1].pieces)
            rows = matches.rows.reshape(-1, level)
            begins_here = rows[:, 0] >= batches[0].first
            before = np.flatnonzero(~begins_here)
            earlier.insert(0, [matches.take(before)] if len(before) else [])
            begun, measures = rows[begins_here], matches.ends[begins_here, 1]
            if longer is not None:
                alone = ~among(begun, longer[:, :-1])
                yield from self._judged(
                    batches[level - 1], level, begun[alone], measures[alone], watermark
                )
            longer = begun
        yield from self._kept(batches, earlier)

    def _judged(
        self, numbered: NumberedMatches, level: int, rows: Int64s, measures: Int64s, watermark: int
    ) -> Iterator[FoundMatches]:
        """A mask of the matches [m, level] that begin in the batch and are part of no other one."""
        is_closed, closes = np.zeros(len(rows), np.bool_), measures
        if not isinstance(self._window, Counted):
            closes = self._window.close(measures)
            is_closed = closes <= watermark
        for chosen in (is_closed, ~is_closed):
            places = np.flatnonzero(chosen)
            size = min(thresholds.current.built_matches, max(1, len(places)))
            for begin in range(0, len(places), size):
                some = places[begin : begin + size]
                ends = np.stack([np.arange(1, len(some) + 1) * level, measures[some]], axis=1)
                made = numbered.built(EnumeratedMatches(rows[some].ravel(), ends))
                if chosen is is_closed:
                    yield FoundMatches(level, made, closes=closes[some].tolist())
                else:
                    yield FoundMatches(level, made, [*map(tuple, rows[some].tolist())])

    def _kept(
        self, batches: Sequence[NumberedMatches], given: Sequence[Sequence[EnumeratedMatches]]
    ) -> Iterator[FoundMatches]:
        """The matches of a batch that are not known to be part of others.

        `given` are the matches of each level to compare.
        """
        since = _NEVER if self._since is None else self._since
        pieces: list[_Piece] = []
        parts: set[RowNumbers] = set()  # rows of matches that are part of others
        complete: list[RowNumbers] = []
        for level in range(len(batches), 0, -1):
            matches = [_Piece(level, piece, piece.numbers()) for piece in given[level - 1]]
            numbered = [rows for piece in matches for rows in piece.numbers if rows[0] >= since]
            parts.update(_beginnings(numbered))
            if level == len(batches):
                complete = numbered
                pieces += _with_rows_before(since, matches)
            else:
                pieces += _without(matches, parts)
            if not self._shape.is_row:
                parts.update(numbered)  # a match of equal rows and fewer steps is part of it
        if not self._shape.is_row and complete:
            inside = self._parts_of(complete, pieces)
            pieces = [*_without(pieces, inside)]
            parts |= inside
        for match in self._waiting.pop(parts):
            if match.is_alive:
                self._live.remove(match)
        for piece in reversed(pieces):
            made = batches[piece.level - 1].built(piece.matches)
            rows = [rows if rows[0] >= since else () for rows in piece.numbers]
            yield FoundMatches(piece.level, made, rows)

    def _parts_of(
        self, complete: Iterable[RowNumbers], pieces: Iterable[_Piece]
    ) -> set[RowNumbers]:
        """The rows of matches, waiting or to be made, that complete matches contain."""
        candidates: dict[int, list[RowNumbers]] = {}
        for piece in pieces:
            for rows in piece.numbers:
                candidates.setdefault(rows[0], []).append(rows)
        by_first, parts = self._waiting.by_first, set[RowNumbers]()
        for rows in complete:
            for first in rows[:1] if self._shape.starts_once else rows:
                if first in candidates or first in by_first:
                    numbers = frozenset(rows)
                    near = *candidates.get(first, ()), *by_first.get(first, ())
                    parts.update(each for each in near if numbers.issuperset(each))
        return parts


class _WaitingRows:
    """The matches that wait, by their row numbers."""

    def __init__(self) -> None:
        self._matches: dict[RowNumbers, LiveMatch] = {}
        self.by_first: dict[int, dict[RowNumbers, None]] = {}

    def add(self, match: LiveMatch) -> None:
        """Add a match that has rows."""
        self._matches[match.rows] = match
        self.by_first.setdefault(match.rows[0], {})[match.rows] = None

    def remove(self, rows: RowNumbers) -> LiveMatch | None:
        """Remove the match of some rows, if it waits."""
        match = self._matches.pop(rows, None)
        if match is not None:
            near = self.by_first[rows[0]]
            del near[rows]
            if not near:
                del self.by_first[rows[0]]
        return match

    def pop(self, several: Collection[RowNumbers]) -> Iterator[LiveMatch]:
        """Remove the matches of several rows; yield those that waited."""
        for rows in self._matches.keys() & several:
            match = self.remove(rows)
            if match is not None:
                yield match


def _beginnings(matches: Iterable[RowNumbers]) -> Iterator[RowNumbers]:
    """The prefixes of matches: all of them for short matches, the longest for others."""
    for rows in matches:
        size = len(rows)
        for length in range(1 if size <= thresholds.current.short_traces else size - 1, size):
            yield rows[:length]


def _without(pieces: Iterable[_Piece], parts: Collection[RowNumbers]) -> Iterator[_Piece]:
    """The matches whose rows are not among `parts`."""
    for piece in pieces:
        yield from piece.taken([i for i, rows in enumerate(piece.numbers) if rows not in parts])


def _with_rows_before(since: int, pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    """The matches whose first rows have lower numbers."""
    for piece in pieces:
        yield from piece.taken([i for i, rows in enumerate(piece.numbers) if rows[0] < since])
