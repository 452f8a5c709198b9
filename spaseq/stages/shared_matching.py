"""Stage 1 of several queries in no family: each template of GPMs is evaluated once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias
from weakref import ref

import numpy as np

from spaseq import thresholds
from spaseq.algebra.needs import needs
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.expr.columns import TermRows, filter_rows
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.graphs.vertical_partition import (
    ANY,
    NeededTriples,
    PossibleEvents,
    SomeEvents,
    VerticalPartition,
)
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_stage import BatchGraphs, SomeEventsEvaluator
from spaseq.gpm.solution_rows import are_several, distinct_solutions
from spaseq.gpm.solutions.joins import KeyIndex
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.lang import ast
from spaseq.lang.shapes import QUERY
from spaseq.lang.variables import expression_variables
from spaseq.limits import Limits
from spaseq.plan.pattern_templates import (
    PatternTemplate,
    TemplateUse,
)
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import UNBOUND
from spaseq.records import record
from spaseq.stages.joint_rows import JointSolutions, RowCutter

_LOG = logging.getLogger("spaseq")

_JointColumns: TypeAlias = "tuple[Int64s, Int64s, list[tuple[Int32s, Int32s]]]"
"""The event, the GPM's number and the columns of each solution, as in `JointSolutions`."""

_NOTHING: _JointColumns = (np.empty(0, np.int64), np.empty(0, np.int64), [])


@record
class LoneSolutions:
    """The solutions on a batch, by query; the queries `apart` must compute their own."""

    found: Mapping[int, SolutionBatch]
    apart: frozenset[int] = frozenset()


class SharedMatching:
    """Stage 1 of some queries at once. A row is a GPM of a query."""

    def __init__(self, given: Sequence[tuple[PatternStage, Sequence[TemplateUse | None]]]) -> None:
        first = given[0][0]
        self._knowledge, self._limits = first.knowledge, first.limits
        self._stages = [ref(stage) for stage, _ in given]
        plans = [stage.plan for stage, _ in given]
        gpms = [(i, k) for i, plan in enumerate(plans) for k in range(len(plan.patterns.gpms))]
        self._query, self._gpm = (np.array(column, np.int64) for column in zip(*gpms, strict=True))
        self._streams: dict[str, tuple[Bools, Int32s]] = {}
        for iri in dict.fromkeys(iri for plan in plans for iri in plan.inputs.streams):
            calls = [
                plan.inputs.streams.index(iri) if iri in plan.inputs.streams else -1
                for plan in plans
            ]
            reads = [calls[i] in plans[i].patterns.gpms[k].streams for i, k in gpms]
            self._streams[iri] = np.array(reads), np.array(calls, np.int32)
        self._cutter = RowCutter([plan.patterns.columns for plan in plans])
        self._texts: dict[str, int] = {}
        uses: dict[int, list[tuple[int, TemplateUse]]] = {}  # equal templates are one object
        every = (use for _, of_template in given for use in of_template)
        for row, use in enumerate(every):
            if use is not None:
                uses.setdefault(id(use.template), []).append((row, use))
        self._templates = []
        is_single = np.ones(len(gpms), np.bool_)
        names = [plan.patterns.columns.variables for plan in plans]
        for of_template in uses.values():
            if len(of_template) >= thresholds.current.template_uses:
                made = self._template(of_template, names)
                self._templates.append(made)
                is_single[made.rows] = False
        self._single = np.flatnonzero(is_single)  # rows without a template
        self._evaluators: dict[int, SomeEventsEvaluator] = {}  # of these, once requested
        self._needed = self._needed_triples([plan for plan in plans for _ in plan.patterns.gpms])

    def _needed_triples(self, plans: Sequence[QueryPlan]) -> NeededTriples:
        """The triples that the templates need, and then the rows without one; `plans` has the plan
        of each row.
        """
        needed = [needs_of.needs(self._number) for needs_of in self._templates]
        for row in self._single.tolist():
            gpm = plans[row].patterns.gpms[self._gpm[row]]
            needs_of = needs(gpm.core)
            pairs = [(self._number(p), ANY if o is None else self._number(o)) for p, o in needs_of]
            needed.append(np.array(pairs, np.int64).reshape(1, -1, 2))
        return NeededTriples(needed)

    def _number(self, text: str) -> int:
        """The number of a text among those whose codes each batch looks up."""
        return self._texts.setdefault(text, len(self._texts))

    def _template(
        self,
        uses: Sequence[tuple[int, TemplateUse]],
        columns: Sequence[Sequence[str]],
    ) -> _JoinedTemplate:
        template = uses[0][1].template
        rows = np.array([row for row, _ in uses], np.int64)
        constants = [[*map(self._number, use.constants)] for _, use in uses]
        places: dict[str, Int32s] = {}
        for variable in uses[0][1].names:
            numbers = []
            for row, use in uses:
                names, name = columns[self._query[row]], use.names[variable]
                numbers.append(names.index(name) if name in names else -1)
            if max(numbers) >= 0:
                places[variable] = np.array(numbers, np.int32)
        given = np.array(constants, np.int64).reshape(len(rows), -1)
        evaluator = GpmEvaluator(
            template.pattern,
            self._knowledge.only(template.kbs),
            template.options,
            template.evaluation,
            self._limits,
        )
        own_uses = [use for _, use in uses]
        return _JoinedTemplate(template, rows, given, places, own_uses, evaluator, self._limits)

    def others(self, numbers: Collection[int]) -> Iterator[PatternStage]:
        """The stages, except those with these numbers."""
        for number, known in enumerate(self._stages):
            stage = known() if number not in numbers else None
            if stage is not None:
                yield stage

    def matched(self, index: VerticalPartition) -> LoneSolutions:
        """The solutions of all queries but some."""
        reads, calls = self._streams.get(index.batch.stream, (None, None))
        if reads is None or calls is None or not len(index.batch):
            return LoneSolutions({})
        parts, apart = self._found(index, reads, calls)
        if apart:
            parts = [part.take(np.flatnonzero(~np.isin(part.query, [*apart]))) for part in parts]
        return LoneSolutions(self._cutter.batches(parts, calls, index), frozenset(apart))

    def _found(
        self, index: VerticalPartition, reads: Bools, calls: Int32s
    ) -> tuple[list[JointSolutions], set[int]]:
        """The solutions, and the queries that must compute theirs by themselves."""
        solutions, room = list[JointSolutions](), thresholds.current.joint_rows
        apart = set[int]()
        codes = _Constants(index.lexicon, [*self._texts])
        possible, graphs = self._needed.possible(index, codes.codes), BatchGraphs(index)
        has_some, count = possible.has_some, len(self._templates)
        for number in np.flatnonzero(has_some[:count]).tolist():
            template = self._templates[number]
            of_template = template.rows[reads[template.rows]]
            some = possible.of(number) if len(of_template) else None
            if some is None:
                continue
            solved = template.solutions(some, graphs, reads, codes, room)
            if solved is None:
                apart.update(self._query[of_template].tolist())
                continue
            event, rows, columns = solved
            event = some.in_batch(event)
            solutions.append(JointSolutions(event, self._query[rows], self._gpm[rows], columns))
            room -= len(event)
        solutions += self._of_single_rows(possible, graphs, reads, calls, apart)
        return solutions, apart

    def _of_single_rows(
        self,
        possible: PossibleEvents,
        graphs: BatchGraphs,
        reads: Bools,
        calls: Int32s,
        apart: set[int],
    ) -> Iterator[JointSolutions]:
        """The solutions of GPMs without a template; `apart` gets queries that fail or exceed
        limits.
        """
        first = len(self._templates)
        for place in np.flatnonzero(possible.has_some[first:] & reads[self._single]).tolist():
            number, row = first + place, int(self._single[place])
            query, gpm = int(self._query[row]), int(self._gpm[row])
            some = None if query in apart else possible.of(number)
            stage = None if some is None else self._stages[query]()
            if some is None or stage is None:
                continue
            try:
                found = self._evaluator(row, stage, gpm).evaluate(some, graphs)
                solutions = stage.finished(gpm, found, some, int(calls[query]))
            except Exception:  # an extension function: the query itself raises it again
                apart.add(query)
                continue
            if stage.take_exceeding():
                apart.add(query)
            size = len(solutions.event)
            if size:
                columns = [
                    (np.full(size, column, np.int32), solutions.columns[v])
                    for column, v in enumerate(stage.plan.patterns.columns.variables)
                    if v in solutions.columns
                ]
                of = np.full(size, query), np.full(size, gpm)
                yield JointSolutions(some.in_batch(solutions.event), *of, columns)

    def _evaluator(self, row: int, stage: PatternStage, gpm: int) -> SomeEventsEvaluator:
        """The evaluator of the GPM of a row."""
        known = self._evaluators.get(row)
        if known is None:
            given = stage.evaluator(gpm), stage.plan.expressions, stage.limits
            known = self._evaluators[row] = SomeEventsEvaluator(*given)
        return known


class _Constants:
    """The constants of all templates as codes of a batch's terms, -1 for absent terms.

    A pattern over the parts of triple terms adds terms, so the constants are looked up at the join
    with its solutions.
    """

    def __init__(self, lexicon: Lexicon, texts: Sequence[str]) -> None:
        self._lexicon, self._texts = lexicon, texts
        self._terms = -1  # the number of terms at the look-up
        self._codes = np.empty(0, np.int32)

    def codes(self) -> Int32s:
        """The codes [n], in the order of the texts."""
        if self._texts and self._terms != len(self._lexicon):
            self._codes, self._terms = self._lexicon.find(self._texts), len(self._lexicon)
        return self._codes


class _JoinedTemplate:
    """A template and the GPMs that use it."""

    def __init__(
        self,
        template: PatternTemplate,
        rows: Int64s,
        constants: Int64s,
        places: Mapping[str, Int32s],
        uses: Sequence[TemplateUse],
        evaluator: GpmEvaluator,
        limits: Limits,
    ) -> None:
        """
        Args:
            template: the template.
            rows: [r], the numbers of the GPMs.
            constants: [r, parameters], the numbers of their constants' texts.
            places: by variable [r], its position among the columns of the GPM's query.
            uses: [r], the GPMs as templates.
            evaluator: the evaluator of the template's pattern.
            limits: the run's limits.
        """
        self.rows, self._constants, self._places = rows, constants, places
        self._template, self._limits = template, limits
        self._rest, self._left = 1, 0  # batches to skip after a failure, and until the next attempt
        numbers: dict[tuple[ast.Expr, ...], int] = {}
        self._tests_of = np.array([numbers.setdefault(u.tests, len(numbers)) for u in uses])
        self._tests = [*numbers]
        hidden = frozenset[str]().union(*(use.private for use in uses))
        self._private = {v: np.array([v in use.private for use in uses]) for v in sorted(hidden)}
        self._evaluator = SomeEventsEvaluator(evaluator, template.options, limits)

    def needs(self, number: Callable[[str], int]) -> Int64s:
        """The arguments [r, triples, 2] for `NeededTriples`; `number` gives texts numbers."""
        parameters = self._template.parameters
        needed = needs(self._template.pattern, parameters)
        table = np.full((len(self.rows), len(needed), 2), ANY, np.int64)
        for triple, (predicate, target) in enumerate(needed):
            table[:, triple, 0] = number(predicate)
            if target in parameters:
                table[:, triple, 1] = self._constants[:, parameters.index(target)]
            elif target is not None:
                table[:, triple, 1] = number(target)
        return table

    def solutions(
        self, some: SomeEvents, graphs: BatchGraphs, reads: Bools, codes: _Constants, room: int
    ) -> _JointColumns | None:
        """The solutions; None if they are too many, an event exceeds a limit, or an evaluation
        fails.

        This may hold for the template but not for a single query. `reads` says which GPMs read the
        stream. `codes` has the codes of all constants. `room` is the maximum number of solutions.
        """
        rows = np.flatnonzero(reads[self.rows])
        if not len(rows):
            return _NOTHING
        self._left -= 1
        if self._left >= 0:
            return None
        try:
            solutions = self._solutions(some, graphs, rows, codes, room)
        except Exception as error:
            if not isinstance(error, LimitExceeded | MemoryError):
                _LOG.warning("GPMs are evaluated one by one, as together they fail: %r", error)
            self._rest = min(2 * self._rest, thresholds.current.longest_rest)
            self._left = self._rest
            return None
        self._rest = 1
        return solutions

    def _solutions(
        self, some: SomeEvents, graphs: BatchGraphs, rows: Indices, codes: _Constants, room: int
    ) -> _JointColumns:
        solutions = self._evaluator.evaluate(some, graphs)
        for reason in self._evaluator.evaluator.take_exceeding().values():
            raise LimitExceeded(reason)
        if not len(solutions.event):
            return _NOTHING
        solutions = distinct_solutions(solutions)
        with spending(Budget(self._limits, room, self._limits.timeout_s)):
            row, taken = self._joined(solutions, rows, codes)
            row, taken = self._tested(solutions, row, taken)
        if len(row) > room:
            raise LimitExceeded("there are too many solutions")
        event = solutions.event[taken]
        columns = {v: solutions.columns[v][taken] for v in self._places if v in solutions.columns}
        columns[QUERY] = row.astype(np.int32)
        self._hide_private(EventSolutions(event, columns, solutions.terms), columns, row)
        placed = [(rows[row], columns[v]) for v, rows in self._places.items() if v in columns]
        return event, self.rows[row], placed

    def _hide_private(
        self, solutions: EventSolutions, columns: dict[str, Int32s], row: Indices
    ) -> None:
        """Leave private variables unbound in the only solution of a GPM on an event.

        As `without_private`, where each GPM has its own private variables.
        """
        if not len(row) or not any(v in columns for v in self._private):
            return
        alone = ~are_several(solutions)
        for v, is_private in self._private.items():
            if v in columns:
                hidden = is_private[row] & alone
                columns[v] = np.where(hidden, UNBOUND, columns[v]).astype(np.int32)

    def _joined(
        self, solutions: EventSolutions, rows: Indices, codes: _Constants
    ) -> tuple[Indices, Indices]:
        """(row of a GPM, solution) of each solution with the constants of a GPM."""
        parameters = self._template.parameters
        constants = codes.codes()[self._constants[rows]] if parameters else self._constants[rows]
        table = KeyIndex([*constants.T], len(rows))
        probe = [solutions.columns[v] for v in parameters]
        taken, places = table.match(probe, len(solutions.event))
        return rows[places], taken

    def _tested(
        self, solutions: EventSolutions, row: Indices, taken: Indices
    ) -> tuple[Indices, Indices]:
        """The pairs of `_joined` that pass the tests of the GPM."""
        tests_of = self._tests_of[row]
        passed = np.ones(len(row), np.bool_)
        for number in np.unique(tests_of).tolist():
            if not self._tests[number]:
                continue
            pairs = np.flatnonzero(tests_of == number)
            names = frozenset().union(*map(expression_variables, self._tests[number]))
            columns = {v: solutions.columns[v][taken[pairs]] for v in names}
            rows = TermRows(columns, solutions.terms, len(pairs))
            for test in self._tests[number]:
                passed[pairs] &= filter_rows(test, rows, self._template.options)
        return row[passed], taken[passed]
