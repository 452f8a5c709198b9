"""Levels whose matches are compared as row numbers, before they are made.

In a row of different GPMs, a match of k steps is part of a longer match exactly if its solutions
are the first k solutions of that match. The kernels of sets number the rows of a batch. So most
matches of the first steps, which become longer matches in the same batch, need not be made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from spaseq.automaton.batch.match_builder import EnumeratedMatches
from spaseq.automaton.run.matches import SequenceMatch
from spaseq.automaton.sequencer import AnySequencer
from spaseq.automaton.sets.compiled.set_sequencer import NumberedMatches, SetSequencer
from spaseq.lang import sequence as seq
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stages.live_matches import LiveMatch, LiveMatches

RowNumbers: TypeAlias = tuple[int, ...]


class NumberedLevels:
    """The sequencers of all levels of a sequence for which `applies` is true.

    Rows have the same numbers in all of them as long as all order the batches alike. `live` are the
    matches that have been made and are not known to be part of another one.
    """

    def __init__(self, sequencers: Sequence[SetSequencer], live: LiveMatches) -> None:
        self._sequencers, self._live = sequencers, live
        self._since: int | None = None  # rows from this number on have the same number everywhere
        self._known: dict[RowNumbers, LiveMatch] = {}

    @classmethod
    def of(
        cls, plan: QueryPlan, sequencers: Sequence[AnySequencer], live: LiveMatches
    ) -> NumberedLevels | None:
        """The levels of a plan; None if they must be compared as matches."""
        steps = [link.step for link in plan.sequence.chain.links]
        names = [step.occurrence.gpm for step in steps if isinstance(step, seq.GpmStep)]
        different = len({*names}) == len(steps)
        certain = all({*g.variables} - g.private <= g.certain for g in plan.patterns.gpms)
        strict = {level.plan.sequence.program.strict for level in plan.levels}
        own = [s for s in sequencers if isinstance(s, SetSequencer)]
        alike = len(own) == len(sequencers) and len(strict) == 1
        return cls(own, live) if different and certain and alike else None

    def run(self, rows: SolutionBatch) -> Iterator[tuple[int, SequenceMatch, RowNumbers]]:
        """Process a batch: (level, match, its rows) of each match that must be kept.

        The matches that they and others are above are dropped. The rows are empty if they have
        different numbers elsewhere.
        """
        if not len(rows):
            return
        running = [sequencer.enumerated(rows) for sequencer in self._sequencers]
        found = [next(each) for each in running]
        if not all(numbered.is_like(found[0]) for numbered in found):
            self._since = None
        elif self._since is None:
            self._since = found[0].first
        yield from self._matches(found)
        for each in running:
            for _ in each:
                pass

    def keep(self, match: LiveMatch, numbers: RowNumbers) -> None:
        """A match that `run` gave waits."""
        if numbers:
            match.rows = numbers
            self._known[numbers] = match

    def forget(self, match: LiveMatch) -> None:
        """A match has been judged."""
        self._known.pop(match.rows, None)

    def renumber(self) -> None:
        """Rows have come that the levels may have numbered differently."""
        self._since = None

    def _matches(
        self, found: Sequence[NumberedMatches]
    ) -> Iterator[tuple[int, SequenceMatch, RowNumbers]]:
        covered: set[RowNumbers] = set()
        since = 2**63 - 1 if self._since is None else self._since
        made: list[tuple[int, EnumeratedMatches, list[RowNumbers]]] = []
        for level in range(len(found), 0, -1):
            for piece in found[level - 1].pieces:
                own = [*map(tuple, piece.rows.reshape(-1, level).tolist())]
                last = level == len(found)
                kept = [
                    i
                    for i, numbers in enumerate(own)
                    if numbers[0] < since or not (last or numbers in covered)
                ]
                if kept:
                    made.append((level, _part(piece, level, kept), [own[i] for i in kept]))
                alike = (
                    own if not own or min(own)[0] >= since else [t for t in own if t[0] >= since]
                )
                for length in range(1, level):
                    covered.update([numbers[:length] for numbers in alike])
        for numbers in covered & self._known.keys():
            part = self._known.pop(numbers)
            if part.is_alive:
                self._live.remove(part)
        for level, piece, numbers_of in reversed(made):
            matches = found[level - 1].built(piece)
            for match, numbers in zip(matches, numbers_of, strict=True):
                yield level, match, numbers if numbers[0] >= since else ()


def _part(piece: EnumeratedMatches, level: int, kept: list[int]) -> EnumeratedMatches:
    """Some matches of a piece, each of `level` rows."""
    ends = piece.ends[kept]
    ends[:, 0] = np.arange(1, len(kept) + 1) * level
    return EnumeratedMatches(piece.rows.reshape(-1, level)[kept].ravel(), ends)
