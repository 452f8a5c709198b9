"""FILTERs between steps as FILTERs over columns of terms.

A function of texts of one variable, as in STRENDS(STR(?a), STR(?b)), is computed once for each
term, and not for each pair of terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from spaseq.automaton.registers.compiled.edge_tests import AskedTest
from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.expr.columns import TermRows, filter_rows
from spaseq.expr.compile import Options, compile_term
from spaseq.expr.env import DictEnv
from spaseq.expr.leaves import TermOrNone
from spaseq.lang import ast
from spaseq.lang.variables import expression_variables, rewritten, walk

_PREVIOUS, _INNER = "_:previous ", "_:inner "  # no variable of a query has such a name

_OF_TEXTS = (
    *("STR", "STRLEN", "SUBSTR", "UCASE", "LCASE", "STRBEFORE", "STRAFTER"),
    *("CONCAT", "REPLACE", "ENCODE_FOR_URI", "LANG"),
)
"""Functions of texts."""


class _Inner:
    """A function of texts of one variable; `name` is the variable that has its result."""

    def __init__(self, name: str, variable: str, function: TermOrNone) -> None:
        self.name, self.variable, self._function = name, variable, function
        self.of = lru_cache(maxsize=1 << 16)(self._of)

    def _of(self, term: str | None) -> str | None:
        """The result for a term; None if it is an error."""
        return self._function(DictEnv({} if term is None else {self.variable: term}))


class ColumnarTest:
    """The FILTERs of an asked test as one FILTER, with a variable in place of each PREV.

    The test depends on terms. A variable has the run's term where the solution leaves it unbound.
    """

    def __init__(self, test: AskedTest, options: Options) -> None:
        self._names = [number.variable for number in test.of_solution]
        self._own, self._options, self._inner = len(test.of_own), options, list[_Inner]()

        def change(node: ast.Node) -> ast.Node | None:
            return ast.Var(_PREVIOUS + node.var.name) if isinstance(node, ast.Prev) else None

        self._condition = rewritten(rewritten(ast.And(test.conditions), change), self._outer)

    def _outer(self, node: ast.Node) -> ast.Node | None:
        """The variable in place of a function of texts of one variable; None for other nodes."""
        if not isinstance(node, ast.Call) or not all(map(_is_of_texts, walk(node))):
            return None
        variables = [*expression_variables(node)]
        if len(variables) != 1:
            return None
        name = f"{_INNER}{len(self._inner)}"
        self._inner.append(_Inner(name, variables[0], compile_term(node, self._options)))
        return ast.Var(name)

    def holds(self, numbers: Int64s, term: Callable[[str, int], str | None]) -> Bools:
        """[n] whether the FILTERs hold, given the numbers [n, numbers] of terms that decide it."""
        code: dict[str, int] = {}
        columns: dict[str, Int32s] = {}
        for i, name in enumerate(self._names):
            used, place = np.unique(numbers[:, i], return_inverse=True)
            column = _codes(code, [_text(term, name, n) for n in used.tolist()])[place]
            if i < self._own:
                columns[name] = column
                continue
            columns[_PREVIOUS + name] = column
            own = columns.get(name, column)
            columns[name] = np.where(own < 0, column, own)
        for inner in self._inner:
            texts = [*code, None]  # the last for the code -1
            column = columns.get(inner.variable, np.full(len(numbers), -1, np.int32))
            used, place = np.unique(column, return_inverse=True)
            columns[inner.name] = _codes(code, [inner.of(texts[c]) for c in used.tolist()])[place]
        rows = TermRows(columns, [*code], len(numbers))
        return filter_rows(self._condition, rows, self._options)


def _is_of_texts(node: ast.Node) -> bool:
    """Whether a node is a function of texts, or a variable or a constant."""
    if isinstance(node, ast.Call):
        return node.function in _OF_TEXTS
    return isinstance(node, ast.Var | ast.Literal | ast.Iri)


def _text(term: Callable[[str, int], str | None], name: str, number: int) -> str | None:
    return None if number == kernel.UNSET else term(name, number)


def _codes(code: dict[str, int], texts: Sequence[str | None]) -> Int32s:
    """The codes of terms, -1 for None; new ones are added."""
    return np.array([-1 if t is None else code.setdefault(t, len(code)) for t in texts], np.int32)


def columnar_test(test: AskedTest, options: Options) -> ColumnarTest | None:
    """A test as one FILTER over columns; None if it depends on times or on a whole run."""
    return ColumnarTest(test, options) if test.is_of_terms else None
