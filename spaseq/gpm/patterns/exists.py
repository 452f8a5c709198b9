"""EXISTS in columns: a semi-join, whose result replaces EXISTS in the expression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import conjoined, translate_group
from spaseq.algebra.schema import Schema
from spaseq.algebra.scope import possible, visible
from spaseq.algebra.substitution import lifted, sensitive, substituted
from spaseq.budget import current_budget
from spaseq.compiled.arrays import Bools, Indices
from spaseq.gpm.solutions.joins import merged, pairs
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, rewritten
from spaseq.rdf.columns.distinct_rows import grouped_rows
from spaseq.rdf.terms.term import XSD, literal_text
from spaseq.records import record

Test = Callable[[ast.Expr, Solutions], Bools]
Evaluate = Callable[[n.Pattern], Solutions]

_BOOLEANS = [literal_text(text, XSD + "boolean") for text in ("false", "true")]


@record
class Existence:
    """One pattern of EXISTS; `pattern` and `condition` are its `lifted` form.

    Values of the variables in `substituted` are put into the `whole` pattern before evaluation. The
    result is joined with the solutions on all other variables.
    """

    whole: n.Pattern
    pattern: n.Pattern
    condition: ast.Expr | None
    substituted: frozenset[str]

    @classmethod
    def of(cls, use: ast.Exists, schema: Schema | None) -> Existence:
        """The pattern of EXISTS, entailed by a schema."""
        whole = entailed(translate_group(use.pattern), schema)
        pattern, conditions = lifted(whole)
        return cls(whole, pattern, conjoined(conditions), sensitive(pattern))

    def rows(
        self, solutions: Solutions, evaluate: Evaluate, evaluate_once: Evaluate, test: Test
    ) -> Indices:
        """The rows of the solutions for which the pattern has a solution, possibly repeated."""
        names = sorted(v for v in solutions.columns if v in self.substituted)
        if names:
            return self._by_value(solutions, names, evaluate_once)
        inner = evaluate(self.pattern).only(visible(possible(self.pattern)))
        rows, others = pairs(solutions, inner)
        if self.condition is None:
            return rows
        return rows[test(self.condition, merged(solutions, inner, (rows, others)))]

    def _by_value(self, solutions: Solutions, names: list[str], evaluate: Evaluate) -> Indices:
        """`rows`, by evaluating the pattern for each distinct combination of values."""
        columns = [solutions.columns[v] for v in names]
        first, which = grouped_rows(columns)
        hits = [np.empty(0, np.intp)]
        combinations = zip(*(column[first].tolist() for column in columns), strict=True)
        for number, codes in enumerate(combinations):
            current_budget().check()
            rows = np.flatnonzero(which == number)
            bound = {v: solutions.lexicon[c] for v, c in zip(names, codes, strict=True) if c >= 0}
            pattern = substituted(self.whole, bound)
            inner = evaluate(pattern).only(visible(possible(pattern)))
            hits.append(rows[pairs(solutions.take(rows), inner)[0]])
        return np.concatenate(hits)


class ExistsTests:
    """The EXISTS of one expression."""

    def __init__(self, expr: ast.Expr, schema: Schema | None) -> None:
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
