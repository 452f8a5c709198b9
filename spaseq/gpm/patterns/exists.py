"""EXISTS, a semi-join whose result replaces EXISTS in the expression; and graph IRIs and times of
events as values of variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import conjoined, translate_group
from spaseq.algebra.nodes import possible, visible
from spaseq.algebra.substitution import lifted, sensitive, substituted
from spaseq.budget import current_budget
from spaseq.compiled.arrays import Bools, Indices
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.solutions.joins import merged, pairs
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, rewritten
from spaseq.rdf.columns.solution_batch import grouped_rows
from spaseq.rdf.schema import Schema
from spaseq.rdf.terms.term import XSD, iri_text, literal_text
from spaseq.rdf.terms.times import canonical_time
from spaseq.records import record

Test = Callable[[ast.Expr, Solutions], Bools]
Evaluate = Callable[[n.Pattern], Solutions]

_BOOLEANS = [literal_text(text, XSD + "boolean") for text in ("false", "true")]


@record
class Existence:
    """One pattern of EXISTS; `pattern` and `condition` are its `lifted` form.

    Values of the variables in `substituted` are substituted in the pattern before evaluation. The
    result is joined with the solutions on all other variables.
    """

    pattern: n.Pattern
    condition: ast.Expr | None
    substituted: frozenset[str]

    @classmethod
    def of(cls, use: ast.Exists, schema: Schema | None) -> Existence:
        """The pattern of EXISTS, entailed by a schema."""
        pattern, conditions = lifted(entailed(translate_group(use.pattern), schema))
        return cls(pattern, conjoined(conditions), sensitive(pattern))

    def rows(
        self, solutions: Solutions, evaluate: Evaluate, evaluate_once: Evaluate, test: Test
    ) -> Indices:
        """The rows of the solutions for which the pattern has a solution, possibly repeated."""
        names = sorted(v for v in solutions.columns if v in self.substituted)
        if not names:
            return self._joined(solutions, self.pattern, evaluate, test)
        columns = [solutions.columns[v] for v in names]
        first, which = grouped_rows(columns)
        hits = [np.empty(0, np.intp)]
        combinations = zip(*(column[first].tolist() for column in columns), strict=True)
        for number, codes in enumerate(combinations):
            current_budget().check()
            rows = np.flatnonzero(which == number)
            bound = {v: solutions.lexicon[c] for v, c in zip(names, codes, strict=True) if c >= 0}
            pattern = substituted(self.pattern, bound)
            hits.append(rows[self._joined(solutions.take(rows), pattern, evaluate_once, test)])
        return np.concatenate(hits)

    def _joined(
        self, solutions: Solutions, pattern: n.Pattern, evaluate: Evaluate, test: Test
    ) -> Indices:
        """The rows that a solution of a pattern is compatible with, if the condition holds."""
        inner = evaluate(pattern).only(visible(possible(pattern)))
        rows, others = pairs(solutions, inner)
        if self.condition is None:
            return rows
        return rows[test(self.condition, merged(solutions, inner, (rows, others)))]


def with_alternatives(expr: ast.Expr, schema: Schema | None) -> ast.Expr:
    """The expression with one EXISTS for each operand of a UNION, where values are substituted.

    Often each operand alone can be joined with the solutions, as UNION cannot.
    """

    def divided(node: ast.Node) -> ast.Node | None:
        if not isinstance(node, ast.Exists):
            return None
        groups = _alternatives(node.pattern)
        if len(groups) == 1 or not Existence.of(node, schema).substituted:
            return node
        either = ast.Or(tuple(map(ast.Exists, groups)))
        return ast.Not(either) if node.negated else either

    return rewritten(expr, divided)


def _alternatives(group: ast.GroupGraphPattern) -> list[ast.GroupGraphPattern]:
    """Groups that have the solutions of a group between them; itself unless it has one UNION."""
    options = [*map(_options, group.elements)]
    divided = [place for place, of_element in enumerate(options) if len(of_element) > 1]
    if len(divided) != 1:
        return [group]
    [place] = divided
    before, after = group.elements[:place], group.elements[place + 1 :]
    return [ast.GroupGraphPattern((*before, each, *after)) for each in options[place]]


def _options(element: ast.Element) -> Sequence[ast.Element]:
    match element:
        case ast.GroupOrUnionGraphPattern(groups):
            return [each for group in groups for each in _alternatives(group)]
        case ast.GroupGraphPattern():
            return _alternatives(element)
        case ast.GraphGraphPattern() | ast.EventGraphPattern():
            return [replace(element, pattern=each) for each in _alternatives(element.pattern)]
        case _:
            return [element]


class ExistsTests:
    """The EXISTS of one expression."""

    def __init__(self, expr: ast.Expr, schema: Schema | None) -> None:
        expr = with_alternatives(expr, schema)
        self._uses = {use: f"{n.RESERVED}?{i}" for i, use in enumerate(exists_uses(expr))}
        self._patterns = {use: Existence.of(use, schema) for use in self._uses}
        self.expr: ast.Expr = rewritten(expr, self._variable) if self._uses else expr
        """The expression with a variable in place of each EXISTS."""

    def __bool__(self) -> bool:
        return bool(self._uses)

    def _variable(self, node: ast.Node) -> ast.Node | None:
        if not isinstance(node, ast.Exists):
            return None
        return ast.Var(self._uses[node])

    def answered(
        self,
        solutions: Solutions,
        evaluate: Evaluate,
        evaluate_once: Evaluate,
        test: Test,
    ) -> Solutions:
        """The solutions with a column of booleans for each EXISTS.

        The result belongs to events if the solutions of any pattern do. `evaluate` may cache a
        pattern; `evaluate_once` must not.
        """
        for use, name in self._uses.items():
            holds = np.full(solutions.size, use.negated)
            rows = self._patterns[use].rows(solutions, evaluate, evaluate_once, test)
            holds[rows] = not use.negated
            codes = solutions.lexicon.encode(_BOOLEANS)
            solutions = solutions.with_column(name, codes[holds.astype(np.intp)])
        return solutions


def event_names(pattern: n.EventName, source: VerticalPartition) -> Solutions:
    """The names and times of events; events without an IRI are left out if names are needed."""
    batch = source.batch
    events = np.arange(len(batch), dtype=np.int64)
    names = batch.graph.read(events).texts()
    if pattern.event is not None:
        events = np.array([i for i in events.tolist() if names[i] is not None], np.int64)
    columns = {}
    for variable in dict.fromkeys(pattern.variables):
        is_name = variable == pattern.event
        texts = [
            iri_text(names[i] or "") if is_name else canonical_time(int(batch.time[i]))
            for i in events.tolist()
        ]
        columns[variable] = source.lexicon.encode(texts)
    return Solutions(len(events), events, columns, source.lexicon)
