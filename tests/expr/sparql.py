"""Converts SPARQL text to our AST through rdflib, so that tests can use SPARQL text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import rdflib
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.term import BNode, Literal, URIRef, Variable

from spaseq.expr.compile import compile_filter, compile_term
from spaseq.expr.env import DictEnv
from spaseq.lang import ast
from spaseq.rdf.terms.term import XSD

PREFIXES = f"PREFIX xsd: <{XSD}>\nPREFIX : <http://example.org/>\n"
EMPTY_LIST = URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#nil")  # how rdflib reads ()


@contextmanager
def lexical_forms_kept() -> Iterator[None]:
    """Keep lexical forms; by default rdflib rewrites `01` as `1`."""
    before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
    try:
        yield
    finally:
        rdflib.NORMALIZE_LITERALS = before


@cache
def expression(text: str) -> ast.Expr:
    """The AST of an expression written in SPARQL, with the prefixes `xsd:` and `:`."""
    with lexical_forms_kept():
        query = translateQuery(parseQuery(f"{PREFIXES}SELECT ({text} AS ?result) {{}}"))
    return from_rdflib(query.algebra.p.p.expr)


def term(text: str, **bindings: str) -> str | None:
    """The value of an expression, with variables bound to N-Triples texts; None is an error."""
    return compile_term(expression(text))(DictEnv(bindings))


def holds(text: str, **bindings: str) -> bool:
    """Whether a FILTER passes."""
    return compile_filter(expression(text))(DictEnv(bindings))


def ntriples(text: str) -> str | None:
    """The N-Triples text of a constant written in SPARQL; None for the word `error`."""
    return None if text == "error" else term(text)


def from_rdflib(node: Any) -> ast.Expr:
    """Our AST of an expression in rdflib's algebra."""
    match node:
        case Variable():
            return ast.Var(str(node))
        case URIRef():
            return ast.Iri(str(node))
        case Literal():
            datatype = None if node.datatype is None else str(node.datatype)
            return ast.Literal(str(node), datatype, node.language and node.language.lower())
        case BNode():
            raise ValueError("a blank node is no expression")
    return _compound(node)


def _compound(node: Any) -> ast.Expr:
    match node.name:
        case "TrueFilter":  # an OPTIONAL without FILTER
            return ast.Literal("true", XSD + "boolean")
        case "ConditionalOrExpression":
            return ast.Or(_all([node.expr, *node.other]))
        case "ConditionalAndExpression":
            return ast.And(_all([node.expr, *node.other]))
        case "UnaryNot":
            return ast.Not(from_rdflib(node.expr))
        case "UnaryMinus" | "UnaryPlus":
            return ast.Sign("-" if node.name == "UnaryMinus" else "+", from_rdflib(node.expr))
        case "AdditiveExpression" | "MultiplicativeExpression":
            return _left_associative(node.expr, node.op, node.other)
        case "RelationalExpression":
            return _relational(node)
        case "Function":
            return ast.FunctionCall(ast.Iri(str(node.iri)), _all(node.expr))
        case name if name.startswith("Builtin_"):
            return ast.Call(name.removeprefix("Builtin_").upper(), _all(_arguments(node)))
    raise ValueError(f"unexpected {node.name}")


def _all(nodes: Any) -> tuple[ast.Expr, ...]:
    return () if nodes in (None, EMPTY_LIST) else tuple(from_rdflib(n) for n in nodes)


def _left_associative(first: Any, ops: Sequence[Any], others: Sequence[Any]) -> ast.Expr:
    result = from_rdflib(first)
    for op, other in zip(ops, others, strict=True):
        result = ast.Arithmetic(str(op), result, from_rdflib(other))  # type: ignore[arg-type]
    return result


def _relational(node: Any) -> ast.Expr:
    left = from_rdflib(node.expr)
    if node.op in ("IN", "NOT IN"):
        return ast.In(left, _all(node.other), node.op == "NOT IN")
    return ast.Compare(str(node.op), left, from_rdflib(node.other))  # type: ignore[arg-type]


# rdflib's parameter names, in an order that is right for every function
_ARGUMENTS = (
    *("arg", "arg1", "arg2", "arg3"),
    *("text", "start", "length", "pattern", "replacement", "flags"),
)


def _arguments(node: Any) -> list[Any]:
    found: list[Any] = []
    for name in _ARGUMENTS:
        if name in node and node[name] != EMPTY_LIST:
            value = node[name]
            found.extend(value if isinstance(value, list) else [value])
    return found
