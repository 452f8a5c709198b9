"""Short text for algebra, and group graph patterns from text."""

from __future__ import annotations

from spaseq.algebra import nodes as n
from spaseq.lang import ast
from spaseq.lang.parser import parse

PROLOGUE = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"


def query_of(pattern: str) -> str:
    """The query with one GPM whose pattern is `{ ... }`."""
    return (
        f"{PROLOGUE} SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> FROM NAMED <http://e/kb> "
        f"SEQ(A) {{ DEFINE GPM A ON S {pattern} }}"
    )


def gpm_of(pattern: str) -> ast.Gpm:
    """The GPM whose pattern is `{ ... }`."""
    return parse(query_of(pattern)).gpms[0]


def group_of(pattern: str) -> ast.GroupGraphPattern:
    """The syntax tree of `{ ... }`."""
    return gpm_of(pattern).pattern


def shown(pattern: n.Pattern) -> str:
    """A pattern in the notation of the specification."""
    match pattern:
        case n.BGP(()):
            return "Z"
        case n.BGP(triples):
            return f"BGP({' . '.join(' '.join(map(_term, t.terms)) for t in triples)})"
        case n.Filter(expr, inner):
            return f"Filter({expression(expr)}, {shown(inner)})"
        case n.LeftJoin(left, right, expr):
            condition = "true" if expr is None else expression(expr)
            return f"LeftJoin({shown(left)}, {shown(right)}, {condition})"
        case n.Extend(inner, variable, expr):
            return f"Extend({shown(inner)}, {variable}, {expression(expr)})"
        case n.Graph(name, inner):
            return f"Graph({_term(name)}, {shown(inner)})"
        case n.Service(name, inner):
            return f"Service({_term(name)}, {shown(inner)})"
        case n.Table(variables, rows):
            cells = (" ".join("-" if t is None else _term(t) for t in row) for row in rows)
            return f"Table({' '.join(variables)}: {' | '.join(cells)})"
        case n.Project(inner, variables):
            return f"Project({shown(inner)}, {' '.join(variables)})"
        case _:
            return f"{type(pattern).__name__}({', '.join(map(shown, n.children(pattern)))})"


def expression(expr: ast.Expr) -> str:
    """The few forms of expressions that these tests use."""
    match expr:
        case ast.Var(name):
            return f"?{name}"
        case ast.Literal(lexical):
            return lexical
        case ast.Compare(op, left, right):
            return f"{expression(left)} {op} {expression(right)}"
        case ast.And(operands):
            return " && ".join(map(expression, operands))
        case ast.Prev(var):
            return f"PREV({expression(var)})"
        case ast.Aggregate(function, operand):
            return f"{function}({'*' if operand is None else expression(operand)})"
        case ast.Timestamp(gpm):
            return f"TIMESTAMP({gpm.name})"
        case ast.Call(function, args):
            return f"{function}({', '.join(map(expression, args))})"
        case ast.Exists(negated=negated):
            return "NOT EXISTS" if negated else "EXISTS"
    raise AssertionError(expr)


def _term(term: n.PatternTerm) -> str:
    if isinstance(term, ast.Var):
        return f"?{term.name}"
    return term.replace("<http://www.w3.org/2001/XMLSchema#integer>", "xsd:integer").replace(
        "<http://e/", ":"
    ).removesuffix(">")  # fmt: skip
