"""Graph patterns and expressions, evaluated by rdflib (docs/meaning.md#graph-patterns).

A pattern is parsed once. For each event the variables bound so far are substituted into rdflib's
algebra, which is then evaluated with the event's graph as default graph and the knowledge base's
graphs as named graphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import rdflib
from rdflib import XSD, BNode, Dataset, Graph, Literal, URIRef, Variable
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.evaluate import evalPart
from rdflib.plugins.sparql.parserutils import CompValue, Expr
from rdflib.plugins.sparql.sparql import QueryContext, SPARQLError
from rdflib.term import Identifier

from spaseq.lang import ast
from tests.oracle.model import Bindings, Map, plain
from tests.oracle.sparql_text import Milliseconds, Special, Writer, kind_in_ms
from tests.oracle.triple_terms import TripleTerm


@contextmanager
def terms_as_written() -> Iterator[None]:
    """A context in which rdflib keeps lexical forms: joins are by term; `1` and `01` differ."""
    before = rdflib.NORMALIZE_LITERALS
    rdflib.NORMALIZE_LITERALS = False
    try:
        yield
    finally:
        rdflib.NORMALIZE_LITERALS = before


# --- the variables of a pattern -------------------------------------------------------------------


def binds(pattern: ast.GroupGraphPattern) -> frozenset[str]:
    """The variables that a solution may bind: the in-scope ones (SPARQL 1.1 section 18.2.1)."""
    return frozenset().union(*map(_in_scope, pattern.elements))


def _in_scope(element: ast.Element) -> frozenset[str]:
    match element:
        case ast.Triples(triples):
            return frozenset(
                term.name
                for t in triples
                for place in (t.subject, t.predicate, t.object)
                for term in _leaves(place)
                if isinstance(term, ast.Var)
            )
        case ast.Filter() | ast.MinusGraphPattern():
            return frozenset()
        case ast.OptionalGraphPattern(pattern):
            return binds(pattern)
        case ast.GroupOrUnionGraphPattern(alternatives):
            return frozenset().union(*map(binds, alternatives))
        case ast.GraphGraphPattern(name, pattern):
            return binds(pattern) | ({name.name} if isinstance(name, ast.Var) else set())
        case ast.Bind(_, var):
            return frozenset([var.name])
        case ast.Values(variables, _):
            return frozenset(v.name for v in variables)
        case ast.SubSelect(items, pattern):
            if items is None:
                return binds(pattern)
            return frozenset(item.var.name for item in items if item.var is not None)
        case ast.GroupGraphPattern():
            return binds(element)
        case ast.ServiceGraphPattern(_, pattern):
            return binds(pattern)


def _leaves(term: ast.Node) -> Iterator[ast.Node]:
    if isinstance(term, ast.TripleTerm):
        for inner in (term.subject, term.predicate, term.object):
            yield from _leaves(inner)
    else:
        yield term


def without_filters(pattern: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
    """The pattern without FILTERs, at any depth."""
    kept = (e for e in pattern.elements if not isinstance(e, ast.Filter))
    return ast.GroupGraphPattern(tuple(_unfiltered(e) for e in kept))


def _unfiltered(element: ast.Element) -> ast.Element:
    match element:
        case ast.GroupOrUnionGraphPattern(alternatives):
            return ast.GroupOrUnionGraphPattern(tuple(map(without_filters, alternatives)))
        case ast.GroupGraphPattern():
            return without_filters(element)
        case (
            ast.OptionalGraphPattern(pattern)
            | ast.MinusGraphPattern(pattern)
            | ast.GraphGraphPattern(_, pattern)
        ):
            return replace(element, pattern=without_filters(pattern))
        case ast.SubSelect(_, pattern):
            return replace(element, pattern=without_filters(pattern))
        case _:
            return element


# --- evaluation -----------------------------------------------------------------------------------


@lru_cache(maxsize=2000)
def _algebra(text: str) -> Any:
    """rdflib's algebra below the query form of `SELECT * WHERE text`."""
    algebra = prepareQuery(f"SELECT * WHERE {text}").algebra.p.p
    _eager(algebra)
    return algebra


def _eager(node: Any) -> None:
    """Make joins pass no bindings from left to right: FILTERs in nested groups keep their scope."""
    if isinstance(node, CompValue):
        if node.name == "Join":
            node["lazy"] = False
        for child in (*node.values(), vars(node).get("graph")):
            _eager(child)
    elif isinstance(node, list):
        for child in node:
            _eager(child)


def _mentioned(node: Any) -> set[str]:
    match node:
        case Variable():
            return {str(node)}
        case dict():
            inside = vars(node).get("graph") if isinstance(node, CompValue) else None  # of EXISTS
            parts = (*node.keys(), *node.values(), inside)
            return set().union(*map(_mentioned, parts))
        case list() | tuple() | set() | frozenset():
            return set().union(*map(_mentioned, node))
        case _:
            return set()


def _substitute(node: Any, terms: Mapping[str, Identifier]) -> Any:
    """The algebra with variables replaced by terms, but not inner variables of a sub-SELECT."""
    match node:
        case Variable():
            return terms.get(str(node), node)
        case CompValue(name="Project") if node.get("PV") is not None:
            shown = {str(v) for v in node.PV}
            inner = {v: t for v, t in terms.items() if v in shown}
            return CompValue("Project", p=_substitute(node.p, inner), PV=node.PV, _vars=node._vars)
        case CompValue(name="values"):
            return CompValue("values", res=list(_compatible_rows(node.res, terms)))
        case CompValue(name="Minus"):
            sides = {side: _restored(node[side], terms) for side in ("p1", "p2")}
            return CompValue("Minus", **sides, _vars=node._vars)
        case CompValue(name="Extend"):
            changed = {
                key: value if key in ("var", "_vars") else _substitute(value, terms)
                for key, value in node.items()
            }
            return CompValue("Extend", **changed)
        case Expr():
            changed = {key: _substitute(value, terms) for key, value in node.items()}
            result = Expr(node.name, node._evalfn.__func__, **changed)
            if "graph" in vars(node):  # where rdflib keeps the algebra of EXISTS
                result.graph = _substitute(vars(node)["graph"], terms)
            return result
        case CompValue():
            changed = {
                key: value if key == "_vars" else _substitute(value, terms)
                for key, value in node.items()
            }
            result = CompValue(node.name, **changed)
            if "no_isolated_scope" in vars(node):
                result.no_isolated_scope = node.no_isolated_scope
            return result
        case list():
            return [_substitute(child, terms) for child in node]
        case tuple():
            return tuple(_substitute(child, terms) for child in node)
        case _:
            return node


def _restored(side: Any, terms: Mapping[str, Identifier]) -> Any:
    """An operand of MINUS joined with the substituted values, so both operands share them."""
    row = {Variable(name): terms[name] for name in sorted(_mentioned(side) & terms.keys())}
    values = CompValue("ToMultiSet", p=CompValue("values", res=[row]), _vars=set(row))
    return CompValue("Join", p1=_substitute(side, terms), p2=values, lazy=False, _vars=set(row))


def _compatible_rows(rows: Any, terms: Mapping[str, Identifier]) -> Iterator[dict[Any, Any]]:
    for row in rows:
        if all(str(v) not in terms or x in ("UNDEF", terms[str(v)]) for v, x in row.items()):
            yield {v: x for v, x in row.items() if str(v) not in terms}


@dataclass(frozen=True, eq=False)
class Pattern:
    """A group graph pattern, prepared for repeated evaluation."""

    algebra: Any
    specials: Mapping[str, Special]
    mentions: frozenset[str]

    @classmethod
    def of(cls, pattern: ast.GroupGraphPattern) -> Pattern:
        writer = Writer()
        return cls.of_text(writer.group(pattern), writer)

    @classmethod
    def of_text(cls, text: str, writer: Writer) -> Pattern:
        algebra = _algebra(text)
        return cls(algebra, writer.specials, frozenset(_mentioned(algebra)))

    def inputs(self, mu: Bindings) -> Map:
        """The part of μ that the pattern can use; special expressions have stand-in variables."""
        terms = mu.values.only(self.mentions)
        stand_ins = {name: special(node, mu) for name, node in self.specials.items()}
        return terms.plus({name: term for name, term in stand_ins.items() if term is not None})

    def solutions(self, graph: Graph, kb: Dataset, inputs: Map) -> frozenset[Map]:
        """The set of solutions ν that join with μ, without the variables bound in μ."""
        ground = {v: t for v, t in inputs.items() if not isinstance(t, BNode)}
        blanks = {Variable(v): t for v, t in inputs.items() if isinstance(t, BNode)}
        context = QueryContext(kb, initBindings=blanks)
        context.graph = graph
        found = set()
        for row in evalPart(context, _substitute(self.algebra, ground)):
            solution = {str(v): plain(term) for v, term in row.items() if not isinstance(v, BNode)}
            if all(inputs.get(v, term) == term for v, term in solution.items()):
                found.add(Map({v: t for v, t in solution.items() if v not in inputs}))
        return frozenset(found)


class Expression:
    """An expression of SELECT or HAVING."""

    _NOTHING = Graph()

    def __init__(self, expr: ast.Expr) -> None:
        writer = Writer()
        self._kind = kind_in_ms(expr)
        text = writer.in_ms(expr) if self._kind else writer.expr(expr)
        self._value = Pattern.of_text(f"{{ BIND({text} AS ?oracle_value) }}", writer)
        truth = f"{{ BIND(IF({text}, true, false) AS ?oracle_value) }}"
        self._truth = Pattern.of_text(truth, writer)

    def value(self, mu: Bindings, kb: Dataset) -> Identifier | None:
        """The value; None if evaluation is an error."""
        value = self._evaluate(self._value, mu, kb)
        if self._kind is None or value is None:
            return value
        ms = Decimal(str(value))
        return date_time(int(ms)) if self._kind == "time" else duration(ms)

    def holds(self, mu: Bindings, kb: Dataset) -> bool:
        """The effective boolean value; an error is false."""
        return bool(self._evaluate(self._truth, mu, kb) == Literal("true", datatype=XSD.boolean))

    def _evaluate(self, pattern: Pattern, mu: Bindings, kb: Dataset) -> Identifier | None:
        (solution,) = pattern.solutions(self._NOTHING, kb, pattern.inputs(mu))
        term: Identifier | None = solution.get("oracle_value")
        return None if isinstance(term, SPARQLError) else term


# --- PREV, TIMESTAMP, NOW, and aggregates over group variables ------------------------------------

CDT_LIST = URIRef("http://w3id.org/awslabs/neptune/SPARQL-CDTs/List")


def special(node: Special, mu: Bindings) -> Identifier | None:
    """The value of a stand-in variable; None if it is unbound or an error."""
    match node:
        case ast.Prev(var):
            return mu.previous.get(var.name)
        case ast.Timestamp(gpm):
            return date_time(mu.times[gpm.name]) if gpm.name in mu.times else None
        case ast.Call("NOW", ()):
            return None if mu.now is None else date_time(mu.now)
        case Milliseconds(ast.Timestamp(gpm)):
            return Literal(mu.times[gpm.name]) if gpm.name in mu.times else None
        case Milliseconds():
            return None if mu.now is None else Literal(mu.now)
        case ast.Aggregate(operand=ast.Var(name)):
            terms = mu.lists.get(name)
            if terms is None:  # a single variable is a list of itself
                terms = (mu.values[name],) if name in mu.values else ()
            return aggregate(node, list(terms))
        case _:
            raise NotImplementedError(f"an aggregate over something else than a variable: {node}")


def date_time(ms: int) -> Literal:
    """Milliseconds since the epoch as a canonical `xsd:dateTime` in UTC."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{ms % 1000:03d}".rstrip("0") if ms % 1000 else ""
    return Literal(f"{text}{fraction}Z", datatype=XSD.dateTime)


def duration(ms: Decimal) -> Literal:
    """Milliseconds as an `xsd:dayTimeDuration` in canonical form."""
    seconds = abs(ms) / 1000
    minutes, second = int(seconds) // 60, seconds - int(seconds) // 60 * 60
    days, hours = minutes // 1440, minutes // 60 % 24
    fields = [(f"{hours}", "H"), (f"{minutes % 60}", "M"), (_plain(second), "S")]
    time = "".join(f"{number}{letter}" for number, letter in fields if number != "0")
    text = (f"{days}D" if days else "") + (f"T{time}" if time else "")
    signed = f"{'-' if ms < 0 else ''}P{text}" if text else "PT0S"
    return Literal(signed, datatype=XSD.dayTimeDuration, normalize=False)


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def aggregate(node: ast.Aggregate, terms: list[Identifier]) -> Identifier | None:
    """FIRST, LAST, LIST and SPARQL's set functions (section 18.5) over a list of terms."""
    if node.distinct:
        terms = list(dict.fromkeys(terms))
    match node.function:
        case "FIRST" | "SAMPLE":
            return terms[0] if terms else None
        case "LAST":
            return terms[-1] if terms else None
        case "LIST":
            return Literal(f"[{', '.join(map(nt, terms))}]", datatype=CDT_LIST)
        case "COUNT":
            return Literal(str(len(terms)), datatype=XSD.integer)
        case "GROUP_CONCAT":
            separator = " " if node.separator is None else node.separator
            return Literal(separator.join(str(t) for t in terms))
        case "SUM":
            return _sum(terms)
        case "AVG":
            return _average(terms)
        case "MIN" | "MAX":
            return _extremum(node.function, terms)
    raise NotImplementedError(node.function)


def _sum(terms: list[Identifier]) -> Literal | None:
    if not all(isinstance(t, Literal) and t.datatype in _NUMERIC for t in terms):
        return None
    datatype = max((t.datatype for t in terms), key=_NUMERIC.index, default=XSD.integer)
    number = float if datatype in (XSD.float, XSD.double) else Decimal
    return Literal(str(sum((number(str(t)) for t in terms), number(0))), datatype=datatype)


def _average(terms: list[Identifier]) -> Literal | None:
    total = _sum(terms)
    if total is None or not terms:
        return total
    if total.datatype in (XSD.float, XSD.double):
        return Literal(str(float(total) / len(terms)), datatype=total.datatype)
    return Literal(str(Decimal(str(total)) / len(terms)), datatype=XSD.decimal)


def _extremum(function: str, terms: list[Identifier]) -> Identifier | None:
    """The least or greatest term in ORDER BY's order; the first of equal values."""
    if not terms:
        return None
    best = terms[0]
    for term in terms[1:]:
        if (term < best) if function == "MIN" else (term > best):
            best = term
    return best


_NUMERIC = [XSD.integer, XSD.decimal, XSD.float, XSD.double]


# --- N-Triples text -------------------------------------------------------------------------------


def nt(term: Identifier) -> str:
    """The canonical N-Triples text of a term."""
    match term:
        case Literal():
            quoted = '"' + re.sub(r'[\\"\n\r]', lambda m: _ESCAPES[m[0]], str(term)) + '"'
            if term.language:
                return f"{quoted}@{term.language.lower()}"
            if term.datatype is None or term.datatype == XSD.string:
                return quoted
            return f"{quoted}^^<{term.datatype}>"
        case BNode():
            return f"_:{term}"
        case TripleTerm(terms=terms):
            return f"<<( {' '.join(map(nt, terms))} )>>"
        case _:
            return f"<{term}>"


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
