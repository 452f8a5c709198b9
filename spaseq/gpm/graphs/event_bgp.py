"""Basic graph patterns over the events of a batch: order of the triple patterns, and solutions.

The triple pattern with the fewest matches comes first, so that one search rejects most events. The
statistics come from samples of the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spaseq import thresholds
from spaseq.algebra.constants import OBJECT, PARTS, is_part
from spaseq.algebra.nodes import PatternTerm, TriplePattern
from spaseq.budget import current_budget
from spaseq.compiled import mode
from spaseq.compiled.arrays import Float64s, Int8s, Int32s, Int64s
from spaseq.gpm.graphs.vertical_partition import PatternRows, VerticalPartition
from spaseq.gpm.kernels import bgp_interpreter as kernels
from spaseq.gpm.kernels.bgp_interpreter import AGAIN, BOUND, CONSTANT, FREE, O, P, S
from spaseq.gpm.solutions.lazy_columns import LazyColumn, LazyColumns
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.lang import ast
from spaseq.plan.pattern_plan import FASTEST, PatternEvaluation
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import row_order

if TYPE_CHECKING:
    from spaseq.gpm.graphs.virtual_bgp import VirtualBgp

STEPS = 2**28
"""Triples that one call of the kernel visits, before the time is checked: about a second."""
SAMPLE = 2048
"""Triples of a batch in a sample."""
ROOM = 64
"""Initial room for solutions beyond one per event."""
MEMORY = 0.75
"""Factor by which each sample reduces the weight of earlier samples."""


class EventBgp:
    """One basic graph pattern, ready for many batches."""

    def __init__(
        self, triples: Sequence[TriplePattern], evaluation: PatternEvaluation = FASTEST
    ) -> None:
        """Prepare at least one triple pattern; `evaluation` says how to evaluate it."""
        self._triples = tuple(triples)
        terms = [term for triple in self._triples for term in triple.terms]
        self._constants = list(dict.fromkeys(t for t in terms if isinstance(t, str)))
        self.variables = tuple(dict.fromkeys(t.name for t in terms if not isinstance(t, str)))
        self._numbers = {v: i for i, v in enumerate(self.variables)}
        self._rare_first = evaluation.rare_first and len(self._triples) > 1
        self._has_parts = any(map(is_part, self._triples))
        self._anchors = anchors(self._triples)
        self._is_virtual = evaluation.virtual and not self._has_parts
        self._virtual: VirtualBgp | None = None
        self._key = self.shape if evaluation.shared else self
        self._weights = np.zeros(len(self._triples))
        self._rest, self._left = 1, 0  # batches between samples, and until the next
        self._take_order(tuple(range(len(self._triples))))

    @property
    def shape(self) -> object:
        """A key that is equal for patterns that differ only in variable names."""
        return tuple(self._named(term) for triple in self._triples for term in triple.terms)

    def _named(self, term: PatternTerm) -> str | int:
        return term if isinstance(term, str) else self._numbers[term.name]

    def solutions(self, index: VerticalPartition) -> Solutions:
        """The solutions on each event. Patterns of one `shape` are evaluated once per batch."""
        event, rows = index.solutions(self._key, lambda: self._found(index))
        pairs = list(zip(self.variables, rows, strict=True))
        lazy = {v: column for v, column in pairs if isinstance(column, LazyColumn)}
        columns = {v: column for v, column in pairs if not isinstance(column, LazyColumn)}
        return Solutions(len(event), event, LazyColumns(lazy) if lazy else columns, index.lexicon)

    def _found(self, index: VerticalPartition) -> PatternRows:
        virtual = self._virtual_over(index.batch)
        rows = None if virtual is None else virtual.solutions(index.batch)
        return self._evaluate(index) if rows is None else rows

    def _virtual_over(self, batch: EventBatch) -> VirtualBgp | None:
        """The pattern over lifted events; None over others."""
        if self._is_virtual and self._virtual is None and type(batch) is not EventBatch:
            # Runs without lifts need not wait for this import.
            from spaseq.gpm.graphs.virtual_bgp import VirtualBgp

            self._virtual = VirtualBgp(self._triples, self.variables)
        return self._virtual

    def _evaluate(self, index: VerticalPartition) -> tuple[Int64s, Int32s]:
        batch = index.with_parts(self._anchors) if self._has_parts else index.batch
        codes = index.lexicon.find(self._constants)
        if (codes < 0).any():
            return np.empty(0, np.int64), np.empty((len(self.variables), 0), np.int32)
        if self._rare_first:
            self._observe(batch, codes)
        terms = self._terms(codes)
        event, rows = self._search(batch, terms)
        return self._of_the_graph(index, event, rows) if self._has_parts else (event, rows)

    def _of_the_graph(
        self, index: VerticalPartition, event: Int64s, rows: Int32s
    ) -> tuple[Int64s, Int32s]:
        """The solutions in which no variable is the predicate of a part of a triple term."""
        verbs = [t.predicate.name for t in self._triples if isinstance(t.predicate, ast.Var)]
        places = [self._numbers[name] for name in verbs]
        kept = ~np.isin(rows[places], index.lexicon.find(PARTS)).any(axis=0)
        return (event, rows) if kept.all() else (event[kept], rows[:, kept])

    def _search(self, batch: EventBatch, terms: Int32s) -> tuple[Int64s, Int32s]:
        room = len(batch) + ROOM
        event, rows = np.empty(room, np.int64), np.empty((len(self.variables), room), np.int32)
        found, at, any_repeats = 0, 0, False
        budget, usual_steps = current_budget(), mode.steps(STEPS)
        most_steps = usual_steps
        graphs = batch.start, batch.s, batch.p, batch.o
        while True:
            first = at
            found, at, repeats, steps = kernels.solutions(
                *graphs, terms, self._modes, at, found, most_steps, event, rows
            )
            any_repeats |= repeats
            if at == len(batch):
                break
            budget.check()
            if steps > most_steps:
                most_steps = 2 * most_steps if at == first else usual_steps
                continue
            if len(event) - found > budget.limits.solutions:  # event `at` has more than that
                budget.too_many()
            budget.spend(len(event))
            event = np.concatenate([event, np.empty_like(event)])
            rows = np.concatenate([rows, np.empty_like(rows)], axis=1)
        event, rows = event[:found], rows[:, :found]
        # Events ascend: if rows `most` places apart are of one event, it has too many.
        most = budget.limits.solutions
        if found > most and (event[most:] == event[:-most]).any():
            budget.too_many()
        return _distinct(event, rows) if any_repeats else (event, rows)

    def _terms(self, codes: Int32s) -> Int32s:
        """Codes of constants and numbers of variables [steps, 3]."""
        terms = self._places.copy()
        fixed = self._modes == CONSTANT
        terms[fixed] = codes[terms[fixed]]
        return terms

    def _observe(self, batch: EventBatch, codes: Int32s) -> None:
        """Take a sample at intervals, which double while the order stays the same."""
        self._left -= 1
        if self._left <= 0:
            order = self._order
            self._count(batch.s[:SAMPLE], batch.p[:SAMPLE], batch.o[:SAMPLE], codes)
            self._rest = (
                min(2 * self._rest, thresholds.current.longest_rest) if order == self._order else 1
            )
            self._left = self._rest

    def _count(self, s: Int32s, p: Int32s, o: Int32s, codes: Int32s) -> None:
        """Count the matches of a sample, and change the order if another one is better now."""
        terms = self._terms(codes)
        counts = kernels.frequencies(s, p, o, terms, self._modes)
        self._weights[list(self._order)] = self._weights[list(self._order)] * MEMORY + counts
        order = rarest_first(self._triples, self._weights)
        if order != self._order:
            self._take_order(order)

    def _take_order(self, order: tuple[int, ...]) -> None:
        """Set `_places` and `_modes` [steps, 3]: numbers of constants or variables, and modes."""
        self._order = order
        steps = len(order)
        self._places = np.zeros((steps, 3), np.int32)
        self._modes: Int8s = np.zeros((steps, 3), np.int8)
        bound: set[str] = set()
        for step, number in enumerate(order):
            here: set[str] = set()
            for position in (P, S, O):
                term = self._triples[number].terms[position]
                if isinstance(term, str):
                    place, mode = self._constants.index(term), CONSTANT
                else:
                    again = AGAIN if term.name in here else FREE
                    place, mode = self._numbers[term.name], BOUND if term.name in bound else again
                    here.add(term.name)
                self._places[step, position], self._modes[step, position] = place, mode
            bound |= here


def anchors(triples: Sequence[TriplePattern]) -> tuple[str, ...] | None:
    """The predicates whose objects are the triple terms of a pattern; None for any."""
    composed = {triple.subject for triple in triples if is_part(triple)}
    inner = {triple.object for triple in triples if triple.predicate == OBJECT}
    above = {t.object: t.predicate for t in triples if t.object in composed and not is_part(t)}
    if composed - inner - above.keys():
        return None
    names = [name for name in above.values() if isinstance(name, str)]
    return tuple(sorted({*names})) if len(names) == len(above) else None


def rarest_first(triples: Sequence[TriplePattern], weights: Float64s) -> tuple[int, ...]:
    """An order of the triple patterns: fewest matches first, then connected patterns.

    The next pattern is the one with the fewest matches that shares a variable with the patterns
    before it, or any if none does. `weights` [patterns] are numbers of matches.
    """
    left = list(range(len(triples)))
    order: list[int] = []
    bound: set[str] = set()
    while left:
        connected = [i for i in left if bound & _variables(triples[i])] or left
        best = min(connected, key=lambda i: (weights[i], i))
        left.remove(best)
        order.append(best)
        bound |= _variables(triples[best])
    return tuple(order)


def _variables(triple: TriplePattern) -> set[str]:
    return {term.name for term in triple.terms if not isinstance(term, str)}


def _distinct(event: Int64s, rows: Int32s) -> tuple[Int64s, Int32s]:
    """The distinct solutions of each event, in order of events."""
    order = row_order([event, *rows[::-1]])
    event, rows = event[order], rows[:, order]
    new = np.ones(len(event), np.bool_)
    new[1:] = (event[1:] != event[:-1]) | (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    return event[new], rows[:, new]
