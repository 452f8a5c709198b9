"""Stage 1 for one event at a time, in microseconds, with the solutions of `PatternStage`; also a
pattern on few events of a batch, one after the other.

Evaluating a pattern over columns takes half a millisecond, however few the events are. Most of a
thousand queries have a pattern that only a handful of a batch's events may match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain, compress, count
from typing import Protocol

import numpy as np

from spaseq import thresholds
from spaseq.algebra.translate import EVENT
from spaseq.automaton.run.event_rows import EventRows, known_double
from spaseq.automaton.run.runs import Values
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.expr.compile import Options
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.graphs.vertical_partition import SomeEvents, VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_graph import (
    EventGraph,
    NeedsColumns,
    Solution,
    are_compatible,
)
from spaseq.gpm.single_event.event_operators import EventOperators
from spaseq.gpm.single_event.event_pattern import EventPattern, distinct_solutions
from spaseq.gpm.solution_rows import event_text
from spaseq.limits import Limits
from spaseq.plan.pattern_plan import Operand
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.columns.term_columns import UNBOUND
from spaseq.rdf.program_events import batch_of_event
from spaseq.rdf.terms.number_kinds import DOUBLE
from spaseq.rdf.terms.term import scoped_term
from spaseq.rdf.terms.triple_terms import blank_nodes, may_have_blank_node
from spaseq.records import record


class BatchGraphs:
    """The graphs of a batch's events as Python strings, each made at its first use."""

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
        except (LimitExceeded, NeedsColumns):
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


@record
class _EventGpm:
    """A GPM on single events; `is_decided` if its solutions need no columns.

    Unless `has_key`, they may leave variables of the partition unbound. Then they belong to each
    partition of their event; those that have no column for one need columns. Of a correlated GPM
    it is the core, of whose solutions `shown` are handed on, with the event.

    The content of a kept window has `operands`. An event without a solution is then a row with the
    number `bare`, if it is given.
    """

    number: int
    pattern: EventPattern
    is_decided: bool
    has_key: bool
    private: frozenset[str]
    shown: frozenset[str] | None = None
    operands: Sequence[Operand] | None = None
    bare: int | None = None


class Matcher(Protocol):
    """Stage 1 over columns."""

    def match(self, events: EventBatch) -> SolutionBatch:
        """The solutions of a batch's events."""


class SingleEventStage:
    """Evaluates every GPM of a plan on single events, as `stage` does.

    `matcher` evaluates an event if a GPM on it may have solutions and needs columns, or the pattern
    of its partitions does.
    """

    def __init__(
        self, plan: QueryPlan, stage: PatternStage, matcher: Matcher | None = None
    ) -> None:
        self._plan, self._stage, self._matcher = plan, stage, matcher or stage
        self._streams = {iri: i for i, iri in enumerate(plan.inputs.streams)}
        self._partition = plan.sequence.partition
        self._needs_instants = plan.sequence.needs_instants
        correlated = (gpm.correlation is not None for gpm in plan.patterns.gpms)
        self._with_event = frozenset(compress(count(), correlated))
        self._variables = [*plan.patterns.row_variables, self._partition]
        self._calls = False
        self._gpms: list[list[_EventGpm]] = [[] for _ in plan.inputs.streams]
        for number, gpm in enumerate(plan.patterns.evaluated):
            if not gpm.streams:  # it stands on a window
                continue
            content = number - len(plan.patterns.gpms)
            operands = None if content < 0 else plan.patterns.contents[content].operands
            pattern = self._pattern(stage.evaluator(number), counts_all=operands is not None)
            has_key = gpm.certain.issuperset(self._partition)
            has_room = has_key or {*self._partition} <= {*gpm.variables}
            shown = None if gpm.correlation is None else gpm.certain
            is_content = shown is None and EVENT in gpm.variables
            is_decided = pattern.is_whole and not is_content and has_room
            bare = None
            if operands is not None:
                is_decided = pattern.is_whole
                if not plan.sequence.own_partition:
                    bare = plan.patterns.number_of(content, bare=True)
            given = number, pattern, is_decided, has_key, gpm.private, shown
            each = _EventGpm(*given, operands, bare)
            for stream in gpm.streams:
                self._gpms[stream].append(each)
        self._memberships: list[list[EventPattern]] = [[] for _ in plan.inputs.streams]
        for streams, evaluator in stage.memberships:
            pattern = self._pattern(evaluator)
            for stream in streams:
                self._memberships[stream].append(pattern)

    def _pattern(self, evaluator: GpmEvaluator, counts_all: bool = False) -> EventPattern:
        most = self._stage.limits.solutions
        operators = EventOperators(evaluator, self._plan.expressions, most, counts_all)
        pattern = operators.pattern()
        self._calls |= operators.calls
        return pattern

    def match(
        self, iri: str, time: int, k: int, name: str | None, graph: EventGraph
    ) -> EventRows | SolutionBatch | None:
        """The solutions on an event of stream `iri`, at instant (time, k), of graph `name`.

        None if there are none and stage 2 does not need the bare event.
        """
        stream = self._streams[iri]
        rows = self._rows(stream, graph)
        if rows is None:
            batch = self._matcher.match(batch_of_event(iri, time, k, name, [*graph.triples]))
            return batch if len(batch) else None
        if not rows:
            return None
        return EventRows(stream, time, k, name, self._values(rows, iri, time, k, graph))

    def _rows(self, stream: int, graph: EventGraph) -> list[tuple[int, Solution]] | None:
        """(GPM or BARE, solution) pairs; None if they need columns."""
        try:
            if not self._calls:
                return self._found(stream, graph)
            with spending(Budget(self._stage.limits, seconds=self._stage.limits.timeout_s)):
                return self._found(stream, graph)
        except (LimitExceeded, NeedsColumns):
            return None

    def _found(self, stream: int, graph: EventGraph) -> list[tuple[int, Solution]] | None:
        rows: list[tuple[int, Solution]] = []
        for gpm in self._gpms[stream]:
            solutions = gpm.pattern.solutions(graph)
            if not solutions:
                if gpm.bare is not None:
                    rows.append((gpm.bare, {}))
                continue
            if not gpm.is_decided:
                return None
            if gpm.operands is not None:
                rows += [(gpm.number, _with_operands(one, gpm.operands)) for one in solutions]
                continue
            if gpm.shown is not None:
                solutions = distinct_solutions(_only(one, gpm.shown) for one in solutions)
            if not gpm.has_key:
                keys = self._keys(stream, graph)
                if keys is None:
                    return None
                solutions = _spread(solutions, keys)
            rows += [(gpm.number, solution) for solution in _without(solutions, gpm.private)]
        if not self._needs_instants:
            return rows
        if not self._partition:
            return rows or [(BARE, {})]
        keys = self._keys(stream, graph)
        return None if keys is None else [*rows, *((BARE, key) for key in keys)]

    def _keys(self, stream: int, graph: EventGraph) -> Sequence[Solution] | None:
        """The partitions of an event: the bindings of PARTITION BY's variables, in order.

        None if they need columns.
        """
        keys: dict[tuple[str | None, ...], Solution] = {}
        for membership in self._memberships[stream]:
            for solution in membership.solutions(graph):
                if not membership.is_whole:
                    return None
                key = tuple([solution.get(v) for v in self._partition])
                if None not in key:
                    keys[key] = {v: solution[v] for v in self._partition}
        return [keys[key] for key in sorted(keys, key=str)]

    def _values(
        self,
        rows: list[tuple[int, Solution]],
        iri: str,
        time: int,
        k: int,
        graph: EventGraph,
    ) -> list[tuple[int, Values]]:
        """The solutions as values of their GPMs' variables; blank nodes get their answer labels."""
        values_of_rows = []
        blank: set[str] | None = None  # the blank nodes of the event
        event: str | None = None  # as a correlated GPM gets it
        for gpm, solution in rows:
            values = [solution.get(v) for v in self._variables[gpm]]
            for i, text in enumerate(values):
                # Most texts have no "_:", and the usual case is no call.
                if text is not None and "_:" in text and may_have_blank_node(text):
                    if blank is None:
                        terms = chain.from_iterable(graph.triples)
                        blank = {*chain.from_iterable(map(blank_nodes, terms))}
                    values[i] = scoped_term(iri, time, k, text, blank)
            if gpm in self._with_event:
                event = event or event_text(iri, time, k, graph.triples)
                values[-1] = event
            values_of_rows.append((gpm, tuple(values)))
        return values_of_rows


def _with_operands(solution: Solution, operands: Sequence[Operand]) -> Solution:
    """A solution with the operands of groups, as `handed_on.of_groups` has them."""
    made = dict(solution)
    for operand in operands:
        text = solution.get(operand.variable)
        if text is not None:
            made[operand.number] = text
            if operand.needs_text or known_double(text)[1] != DOUBLE:
                made[operand.text] = text
    return made


def _only(solution: Solution, names: frozenset[str]) -> Solution:
    """A solution without other variables."""
    return {v: text for v, text in solution.items() if v in names}


def _spread(rows: Sequence[Solution], keys: Sequence[Solution]) -> Sequence[Solution]:
    """The solutions in each partition of their event that they are compatible with."""
    spread = [{**row, **key} for row in rows for key in keys if are_compatible(row, key)]
    return distinct_solutions(spread)


def _without(rows: Sequence[Solution], private: frozenset[str]) -> Sequence[Solution]:
    """The solutions without private variables, unless there are several solutions."""
    if len(rows) > 1 or not private:
        return rows
    return [{v: text for v, text in row.items() if v not in private} for row in rows]
