"""Canonical text of expressions, with as few brackets as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spaseq.lang import ast
from spaseq.lang.format_terms import TermText, flag, string
from spaseq.places.vocabulary import AGGREGATE_IRIS
from spaseq.records import record

# Precedences, loosest first. An operand that binds more loosely than its place gets brackets.
OR, AND, RELATION, SUM, PRODUCT, UNARY, PRIMARY = range(7)


@record
class ExpressionText:
    """Writes expressions; `group` writes the pattern of EXISTS."""

    terms: TermText
    group: Callable[[ast.GroupGraphPattern], str]

    def text(self, expr: ast.Expr, place: int = OR) -> str:
        """An expression, in brackets if it binds more loosely than `place`."""
        text, binds = self._text(expr)
        return text if binds >= place else f"({text})"

    def constraint(self, expr: ast.Expr) -> str:
        """An expression after FILTER: in brackets, unless it is EXISTS."""
        text = self.text(expr)
        return f" {text}" if isinstance(expr, ast.Exists) else f"({text})"

    def _text(self, expr: ast.Expr) -> tuple[str, int]:
        """The text without outer brackets, and its precedence."""
        match expr:
            case ast.Or(operands):
                return " || ".join(self.text(operand, AND) for operand in operands), OR
            case ast.And(operands):
                return " && ".join(self.text(operand, RELATION) for operand in operands), AND
            case ast.Compare(op, left, right):
                return f"{self.text(left, SUM)} {op} {self.text(right, SUM)}", RELATION
            case ast.In(operand, options, negated):
                operator = f"{flag('NOT', negated)}IN"
                return f"{self.text(operand, SUM)} {operator} ({self._list(options)})", RELATION
            case ast.Arithmetic(op, left, right):
                binds = SUM if op in "+-" else PRODUCT
                return f"{self.text(left, binds)} {op} {self.text(right, binds + 1)}", binds
            case ast.Not(operand):
                return f"!{self.text(operand, PRIMARY)}", UNARY
            case ast.Sign(op, operand):
                return self._sign(op, operand), UNARY
            case _:
                return self._primary(expr), PRIMARY

    def _primary(self, expr: ast.Expr) -> str:
        match expr:
            case ast.Var() | ast.Iri() | ast.Literal():
                return self.terms.term(expr)
            case ast.Call(function, args):
                return f"{function}({self._list(args)})"
            case ast.FunctionCall(function, args, distinct):
                items = flag("DISTINCT", distinct) + self._list(args)
                return f"{self.terms.iri(function.value)}({items})"
            case ast.Exists(pattern, negated):
                return f"{flag('NOT', negated)}EXISTS {self.group(pattern)}"
            case ast.Aggregate():
                return self._aggregate(expr)
            case ast.Prev(var):
                return f"PREV({self.terms.term(var)})"
            case ast.Timestamp(gpm):
                return f"TIMESTAMP({gpm.name})"
        raise AssertionError(expr)

    def _sign(self, op: str, operand: ast.Expr) -> str:
        text = self.text(operand, PRIMARY)
        is_number = text[0].isdigit() or text[0] == "."  # `-1` would be one number
        return f"{op}({text})" if is_number else f"{op}{text}"

    def _aggregate(self, aggregate: ast.Aggregate) -> str:
        operand = "*" if aggregate.operand is None else self.text(aggregate.operand)
        distinct = flag("DISTINCT", aggregate.distinct)
        separator = ""
        if aggregate.separator is not None:
            separator = f"; SEPARATOR={string(aggregate.separator)}"
        name = aggregate.function
        if name in AGGREGATE_IRIS:
            name = self.terms.iri(name)
        return f"{name}({distinct}{operand}{separator})"

    def _list(self, expressions: Iterable[ast.Expr]) -> str:
        return ", ".join(self.text(expr) for expr in expressions)
