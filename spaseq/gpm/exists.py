"""EXISTS by columns: a semi-join, whose results take its place in the expression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import conjoined, translate_group
from spaseq.algebra.scope import possible, visible
from spaseq.algebra.substitution import lifted
from spaseq.gpm.joins import merged, pairs
from spaseq.gpm.solutions import Bools, Solutions
from spaseq.lang import ast
from spaseq.lang.rewriting import rewritten
from spaseq.lang.variables import exists_uses
from spaseq.rdf.terms import literal_text
from spaseq.rdf.vocabulary import XSD

Test = Callable[[ast.Expr, Solutions], Bools]

_BOOLEANS = [literal_text(text, XSD + "boolean") for text in ("false", "true")]


class ExistsTests:
    """The EXISTS of one expression; an expression without any is left as it is."""

    def __init__(self, expr: ast.Expr) -> None:
        self._uses = {use: f"{n.RESERVED}?{i}" for i, use in enumerate(exists_uses(expr))}
        self._patterns: dict[ast.Exists, tuple[n.Pattern, ast.Expr | None]] = {}
        for use in self._uses:
            pattern, conditions = lifted(translate_group(use.pattern))
            self._patterns[use] = pattern, conjoined(conditions)
        self.expr: ast.Expr = rewritten(expr, self._variable) if self._uses else expr
        """The expression with variables for EXISTS."""

    def __bool__(self) -> bool:
        return bool(self._uses)

    def _variable(self, node: ast.Node) -> ast.Node | None:
        if not isinstance(node, ast.Exists):
            return None
        return ast.Var(self._uses[node])

    def answered(
        self,
        found: Solutions,
        evaluate: Callable[[n.Pattern], Solutions],
        test: Test,
    ) -> Solutions:
        """The solutions, which are of events if any pattern's are, with EXISTS as columns."""
        for use, name in self._uses.items():
            pattern, condition = self._patterns[use]
            inner = evaluate(pattern).only(visible(possible(pattern)))
            rows, others = pairs(found, inner)
            if condition is not None:
                rows = rows[test(condition, merged(found, inner, (rows, others)))]
            holds = np.full(found.size, use.negated)
            holds[rows] = not use.negated
            codes = found.lexicon.encode(_BOOLEANS)
            found = found.with_column(name, codes[holds.astype(np.intp)])
        return found
