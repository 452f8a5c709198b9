"""A pattern on some events of a batch: on few of them, one event after the other.

To evaluate a pattern over columns takes half a millisecond, however few the events are. Of a
thousand queries most have a pattern that only a handful of a batch's events may match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain

import numpy as np

from spaseq import thresholds
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.expr.compile import Options
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.graphs.vertical_partition import SomeEvents, VerticalPartition
from spaseq.gpm.single_event.event_graph import EventGraph, Solution, TooManyPairs
from spaseq.gpm.single_event.event_operators import EventOperators
from spaseq.gpm.single_event.event_pattern import EventPattern
from spaseq.limits import Limits
from spaseq.rdf.columns.term_columns import UNBOUND


class BatchGraphs:
    """The graphs of a batch's events as Python strings; each is made once, if it is asked for."""

    def __init__(self, index: VerticalPartition) -> None:
        self._batch, self.lexicon = index.batch, index.lexicon
        self._graphs: dict[int, EventGraph] = {}
        self._texts: dict[int, str] = {}
        self._codes: dict[str, int] = {}

    def of(self, events: Int64s) -> list[EventGraph]:
        """The graphs of some events."""
        numbers, graphs = events.tolist(), self._graphs
        new = [event for event in numbers if event not in graphs]
        if new:
            self._read(np.array(new, np.int64))
        return [graphs[event] for event in numbers]

    def _read(self, events: Int64s) -> None:
        batch, texts = self._batch, self._texts
        columns = batch.s, batch.p, batch.o
        spans = map(slice, batch.start[events].tolist(), batch.start[events + 1].tolist())
        triples = [
            [*zip(*(column[span].tolist() for column in columns), strict=True)] for span in spans
        ]
        new = [*{code for own in triples for triple in own for code in triple}.difference(texts)]
        texts.update(zip(new, self.lexicon.take(np.array(new, np.int32)), strict=True))
        self._codes.update((texts[code], code) for code in new)
        for event, own in zip(events.tolist(), triples, strict=True):
            self._graphs[event] = EventGraph((texts[s], texts[p], texts[o]) for s, p, o in own)

    def codes(self, texts: list[str | None]) -> Int32s:
        """The codes [n] of some terms, most of which the events have; -1 for None."""
        known = self._codes
        new = [*{text for text in texts if text is not None and text not in known}]
        if new:
            known.update(zip(new, self.lexicon.encode(new).tolist(), strict=True))
        found = (UNBOUND if text is None else known[text] for text in texts)
        return np.fromiter(found, np.int32, len(texts))


class SomeEventsEvaluator:
    """Evaluates a pattern on some events of each batch, within the limits of an event.

    The first batches are evaluated over columns: many runs have no others.
    """

    def __init__(self, evaluator: GpmEvaluator, options: Options, limits: Limits) -> None:
        self.evaluator, self._options, self._limits = evaluator, options, limits
        self._batches = 0  # with few events, so far
        self._calls = False  # whether the pattern calls functions

    def evaluate(self, some: SomeEvents, graphs: BatchGraphs) -> EventSolutions:
        """The solutions, with the events' numbers among `some`; `graphs` are of the batch."""
        if some.numbers is not None and len(some.numbers) <= thresholds.current.graphs_one_by_one:
            self._batches += 1
            if self._batches > thresholds.current.columns_first and self._pattern is not None:
                solutions = self._one_by_one(self._pattern, graphs.of(some.numbers), graphs)
                if solutions is not None:
                    return solutions
        return self.evaluator.evaluate(some.index)

    @cached_property
    def _pattern(self) -> EventPattern | None:
        """The pattern on single events; None if it needs columns."""
        operators = EventOperators(self.evaluator, self._options, self._limits.solutions)
        pattern = operators.pattern()
        self._calls = operators.calls
        return pattern if pattern.is_whole else None

    def _one_by_one(
        self, pattern: EventPattern, events: Sequence[EventGraph], graphs: BatchGraphs
    ) -> EventSolutions | None:
        """The solutions on some events; None if one may exceed a limit."""
        try:
            each = [*map(self._budgeted if self._calls else pattern.solutions, events)]
        except (LimitExceeded, TooManyPairs):
            return None
        number = np.repeat(np.arange(len(events), dtype=np.int64), [*map(len, each)])
        solutions = [*chain.from_iterable(each)]
        columns = {
            v: graphs.codes([one.get(v) for one in solutions]) for v in self.evaluator.variables
        }
        return EventSolutions(number, columns, graphs.lexicon)

    def _budgeted(self, event: EventGraph) -> Sequence[Solution]:
        assert self._pattern is not None
        with spending(Budget(self._limits, seconds=self._limits.timeout_s)):
            return self._pattern.solutions(event)
