"""Joins of solutions on events with changing graphs, at the position of each event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import visible
from spaseq.budget import Budget, LimitExceeded, current_budget, spending
from spaseq.compiled.arrays import Bools, Indices, Int64s
from spaseq.expr.columns import TermRows, filter_rows
from spaseq.expr.doubles import doubles_of
from spaseq.lang import ast
from spaseq.lang.variables import expression_variables
from spaseq.limits import Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.split_patterns import GraphStep, GraphTriples
from spaseq.rdf.columns.solution_batch import SolutionBatch, first_rows
from spaseq.rdf.columns.term_columns import RowSelection, TermColumn, distinct
from spaseq.rdf.columns.term_tables import ExtendedTerms
from spaseq.rdf.inputs.stream_options import OnBad, over_limit
from spaseq.rdf.terms.times import format_time
from spaseq.records import record
from spaseq.stages.timed_graphs import ANY, TimedGraph


@record
class PlacedRows:
    """n solutions of the patterns that read the event alone.

    Attributes:
        rows: the solutions.
        at: int64 [n], the position of each row's event; ascends.
        codes: by variable that joins with a graph, int64 [n].
    """

    rows: SolutionBatch
    at: Int64s
    codes: Mapping[str, Int64s]

    def take(self, rows: RowSelection) -> PlacedRows:
        """The rows at the given positions."""
        codes = {v: column[rows] for v, column in self.codes.items()}
        return PlacedRows(self.rows.take(rows), self.at[rows], codes)


class GraphJoins:
    """Joins the rows of a query whose GPMs are split.

    Args:
        plan: the query.
        graphs: by IRI, with their values at the positions of the rows.
        lexicon: the terms of the codes.
        on_bad: as for `PatternStage`.
        limits: as for `PatternStage`.
    """

    def __init__(
        self,
        plan: QueryPlan,
        graphs: Mapping[str, TimedGraph],
        lexicon: ExtendedTerms,
        on_bad: OnBad,
        limits: Limits,
    ) -> None:
        assert plan.changing is not None
        assert plan.changing.splits is not None
        self._plan, self._splits = plan, plan.changing.splits
        self._graphs, self._lexicon = graphs, lexicon
        self._on_bad, self._limits = on_bad, limits

    def solutions(self, placed: PlacedRows) -> SolutionBatch:
        """The solutions of the GPMs.

        Raises:
            LimitExceeded: some events together exceed a limit.
        """
        parts, gpms = [], placed.rows.gpm
        with spending(Budget.of_events(self._limits, len(distinct(placed.at)))):
            for gpm in distinct(gpms).tolist():
                part = placed if (gpms == gpm).all() else placed.take(np.flatnonzero(gpms == gpm))
                joins = self._splits[gpm].triples or self._splits[gpm].steps
                parts.append(self._joined(gpm, part) if joins else part.rows)
        return SolutionBatch.concat(parts, self._plan.patterns.columns)

    def within_limits(self, placed: PlacedRows) -> SolutionBatch:
        """The solutions on the events that exceed no limit; other events are reported."""
        rows, at = placed.rows, placed.at
        try:
            return self.solutions(placed)
        except LimitExceeded as error:
            exceeded = error
        events = distinct(at)
        if len(events) == 1:
            event = rows.event.take(slice(0, 1)).texts()[0] or "an event"
            stream = self._plan.inputs.streams[int(rows.stream[0])]
            where = f"{event} of <{stream}> at {format_time(int(rows.time[0]))}"
            self._on_bad(over_limit(self._plan.identity.name, exceeded.reason, where))
            return SolutionBatch.empty(self._plan.patterns.columns)
        parts = []
        for some in np.array_split(events, min(thresholds.current.budget_parts, len(events))):
            own = slice(*np.searchsorted(at, [some[0], some[-1] + 1]).tolist())
            parts.append(self.within_limits(placed.take(own)))
        return SolutionBatch.concat(parts, self._plan.patterns.columns)

    def finish(self) -> None:
        """Apply all changes of the graphs."""
        for graph in self._graphs.values():
            graph.finish()

    def _joined(self, gpm: int, placed: PlacedRows) -> SolutionBatch:
        """The solutions of a GPM."""
        split, plan, at = self._splits[gpm], self._plan.patterns.gpms[gpm], placed.at
        codes = {v: placed.codes[v] for v in split.handed_on}
        row, solutions = self._matches(split.triples, split.conditions, codes, at)
        for step in split.steps:
            row, solutions = self._after(step, row, solutions, at)
        made = visible(frozenset(solutions) - split.handed_on)
        if len(made) + len(split.handed_on) < len(solutions):  # a blank node in a pattern
            row, solutions = _distinct(row, {v: solutions[v] for v in made})
        values, numbers = {}, {}
        columns = self._plan.patterns.columns
        for variable in made:
            column = solutions[variable].astype(np.int32)
            if variable in plan.private:
                several = np.bincount(at[row] - at[0])[at[row] - at[0]] > 1 if len(row) else row > 0
                column = np.where(several, column, np.int32(-1))
            if variable in columns.variables:
                terms = self._lexicon
                values[variable] = TermColumn.of_codes(column, len(terms), terms.strings)
            if variable in columns.numbers:
                numbers[variable] = doubles_of(column, self._lexicon)
        once = len(row) == len(at) and (row[1:] > row[:-1]).all()
        whole = placed.rows if once else placed.rows.take(row)
        return replace(
            whole, values={**whole.values, **values}, numbers={**whole.numbers, **numbers}
        )

    def _after(
        self, step: GraphStep, row: Indices, codes: dict[str, Int64s], at: Int64s
    ) -> tuple[Indices, dict[str, Int64s]]:
        """Rows and their codes after a step."""
        read = {v: some for v, some in codes.items() if v in step.read}
        if step.kind == "filter":
            passing = np.logical_and.reduce(
                [self._passes(condition, read, len(row)) for condition in step.conditions]
            )
            return row[passing], {v: some[passing] for v, some in codes.items()}
        source, matched = self._matches(step.triples, step.conditions, read, at[row])
        lone: Bools = np.ones(len(row), np.bool_)
        lone[source] = False
        if step.kind != "optional":
            kept = lone if step.kind == "not exists" else ~lone
            return row[kept], {v: some[kept] for v, some in codes.items()}
        rest = np.flatnonzero(lone)
        source = np.concatenate([source, rest])
        order = np.argsort(source, kind="stable")
        unbound = np.full(len(rest), ANY)
        new = {v: np.concatenate([matched[v], unbound])[order] for v in matched.keys() - codes}
        source = source[order]
        return row[source], {v: some[source] for v, some in codes.items()} | new

    def _matches(
        self,
        triples: GraphTriples,
        conditions: Sequence[ast.Expr],
        codes: dict[str, Int64s],
        at: Int64s,
    ) -> tuple[Indices, dict[str, Int64s]]:
        """The join of n rows with triple patterns: for each solution its row and codes."""
        row: Indices = np.arange(len(at))
        left, conditions, most = [*triples], [*conditions], self._limits.solutions
        while left:
            current_budget().check()
            graph, triple = next_ = max(left, key=lambda each: _rank(each[1], codes))
            left.remove(next_)
            rows, new = self._step(self._graphs[graph], triple, codes, at[row])
            if (rows[1:] < rows[:-1]).any():
                order = np.argsort(rows, kind="stable")
                rows, new = rows[order], {v: c[order] for v, c in new.items()}
            row = row[rows]
            codes = {v: c[rows] for v, c in codes.items()} | new
            ready = [c for c in conditions if expression_variables(c) <= codes.keys()]
            conditions = [c for c in conditions if c not in ready]
            for condition in ready:
                kept = self._passes(condition, codes, len(row))
                row, codes = row[kept], {v: c[kept] for v, c in codes.items()}
            event = at[row]
            if len(row) > most and (event[most:] == event[:-most]).any():
                current_budget().too_many()
        return row, codes

    def _step(
        self, graph: TimedGraph, triple: n.TriplePattern, codes: dict[str, Int64s], at: Int64s
    ) -> tuple[Indices, dict[str, Int64s]]:
        """The matches of a triple pattern for n rows: the rows, and the codes of new variables."""
        s, p, o = (self._wanted(term, codes, len(at)) for term in triple.terms)
        known = graph.predicates() if p is None else distinct(p).tolist()
        rows, columns = [np.empty(0, np.intp)], [np.empty((3, 0), np.int64)]
        for predicate in known:
            some: Indices | slice = slice(None)
            if p is not None and len(known) > 1:
                some = np.flatnonzero(p == predicate)
            wanted = (None if s is None else s[some]), (None if o is None else o[some])
            row, subjects, objects = graph.matches(predicate, *wanted, at[some])
            rows.append(row if isinstance(some, slice) else some[row])
            columns.append(np.stack([subjects, np.full(len(row), predicate), objects]))
        row, table = np.concatenate(rows), np.concatenate(columns, axis=1)
        new: dict[str, Int64s] = {}
        same: Bools = np.ones(len(row), np.bool_)
        for term, column in zip(triple.terms, table, strict=True):
            if isinstance(term, ast.Var) and term.name not in codes:
                same &= new.setdefault(term.name, column) == column
        return row[same], {v: c[same] for v, c in new.items()}

    def _wanted(self, term: n.PatternTerm, codes: Mapping[str, Int64s], rows: int) -> Int64s | None:
        """The codes [rows] of a term; None for an unbound variable."""
        if isinstance(term, ast.Var):
            return codes.get(term.name)
        return np.full(rows, self._lexicon.encode([term])[0], np.int64)

    def _passes(self, condition: ast.Expr, codes: Mapping[str, Int64s], size: int) -> Bools:
        columns = {v: codes[v].astype(np.int32) for v in expression_variables(condition)}
        rows = TermRows(columns, self._lexicon, size)
        return filter_rows(condition, rows, self._plan.expressions)


def _rank(triple: n.TriplePattern, known: Mapping[str, Int64s]) -> tuple[int, int]:
    """Number of known terms among subject and object, and number of constants."""
    ends = triple.subject, triple.object
    bound = [t for t in ends if not isinstance(t, ast.Var) or t.name in known]
    return len(bound), -sum(not isinstance(t, ast.Var) for t in bound)


def _distinct(row: Indices, columns: Mapping[str, Int64s]) -> tuple[Indices, dict[str, Int64s]]:
    """The distinct solutions, in order of their rows."""
    first = np.sort(first_rows([row, *columns.values()]))
    return row[first], {v: column[first] for v, column in columns.items()}
