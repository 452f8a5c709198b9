"""Numbers that a FILTER between steps computes from the value of one variable."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from spaseq.automaton.registers.compiled.edge_tests import Number
from spaseq.compiled.arrays import Float64s
from spaseq.expr.compile import Options, compile_term
from spaseq.expr.doubles import double_of
from spaseq.expr.env import DictEnv
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.rdf.columns.term_columns import UNBOUND, NumberColumn, TermColumn
from spaseq.rdf.terms.number_kinds import DATE_TIME, DOUBLE, OTHER

_REMEMBERED = 1 << 14
"""Maximum number of terms whose results a formula caches."""


class Formula:
    """The formula of a number, for one term of its variable or for a column of terms."""

    def __init__(self, number: Number, options: Options) -> None:
        assert number.formula is not None
        self._expr, self._variable = number.formula, number.variable
        self._term = compile_term(number.formula, options)
        self.of = lru_cache(_REMEMBERED)(self._of)

    def _of(self, text: str | None) -> tuple[float, int]:
        """(float64, kind) of the result for a term; kind OTHER for an error and for NaN."""
        result = self._term(DictEnv({self._variable: text}))
        value, kind = (np.nan, OTHER) if result is None else double_of(result)
        return value, OTHER if value != value else kind

    def constant(self, rows: int) -> NumberColumn:
        """The result of a formula without a variable, as a column of n rows."""
        value, kind = self.of(None)
        return NumberColumn(np.full(rows, value), np.full(rows, kind, np.int8))

    def column(self, terms: TermColumn, numbers: NumberColumn) -> NumberColumn:
        """The results for a column of the variable, given both as terms and as numbers.

        For xsd:double they are computed in one go. Each other distinct term is computed once.
        """
        doubles = numbers.kind == DOUBLE
        value, kind = np.full(len(terms), np.nan), np.full(len(terms), OTHER, np.int8)
        results = _of_doubles(self._expr, numbers.value[doubles])
        if results is None:
            doubles = np.zeros(len(terms), np.bool_)
        else:
            value[doubles], kind[doubles] = results, np.where(np.isnan(results), OTHER, DOUBLE)
        rest = np.flatnonzero(~doubles & (terms.codes != UNBOUND))
        if len(rest):
            codes, which = np.unique(terms.codes[rest], return_inverse=True)
            single = [self.of(text) for text in TermColumn(codes, terms.terms).texts()]
            value[rest] = np.array([v for v, _ in single], np.float64)[which]
            kind[rest] = np.array([k for _, k in single], np.int8)[which]
        return NumberColumn(value, kind)


def _of_doubles(expr: ast.Expr, value: Float64s) -> Float64s | None:
    """An expression over values [n] of xsd:double; None if float64 arithmetic cannot compute it."""
    match expr:
        case ast.Var():
            return value
        case ast.Literal():
            number, kind = double_of(constant_text(expr))
            return None if kind in (OTHER, DATE_TIME) else np.full(len(value), number)
        case ast.Sign(op, operand):
            result = _of_doubles(operand, value)
            return None if result is None else result if op == "+" else -result
        case ast.Arithmetic(op, left, right) if _has_variable(left) or _has_variable(right):
            one, other = _of_doubles(left, value), _of_doubles(right, value)
            if one is None or other is None:
                return None
            with np.errstate(all="ignore"):
                match op:
                    case "+":
                        return one + other
                    case "-":
                        return one - other
                    case "*":
                        return one * other
                    case "/":
                        return one / other
    return None


def _has_variable(expr: ast.Expr) -> bool:
    match expr:
        case ast.Var():
            return True
        case ast.Sign(_, operand):
            return _has_variable(operand)
        case ast.Arithmetic(_, left, right):
            return _has_variable(left) or _has_variable(right)
    return False
