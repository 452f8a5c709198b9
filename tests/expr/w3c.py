"""W3C evaluation tests as data: a small evaluator of the algebra around the expressions.

A naive matcher evaluates patterns over the test's graph; `spaseq.expr` evaluates all expressions.
Answers are compared as multisets, and numbers by value and datatype.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyoxigraph
import rdflib
from rdflib.namespace import RDF
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.term import Variable

from spaseq.expr.compile import Options, compile_filter, compile_term
from spaseq.expr.values import decode, encode
from spaseq.rdf.terms.term import from_rdflib as term_from_rdflib
from tests.expr.sparql import from_rdflib, lexical_forms_kept

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
RS = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")
BASE = "http://example.org/base/"

Solution = dict[str, str]


@dataclass(frozen=True)
class Case:
    """One evaluation test of a manifest."""

    name: str
    query: Path
    data: Path | None
    result: Path

    def run(self) -> tuple[Counter[Any], Counter[Any]]:
        """(answers, expected answers), both in comparable form."""
        got = Counter(_comparable(s) for s in _answers(self))
        return got, Counter(_comparable(s) for s in _expected(self.result))


def cases(folder: Path) -> list[Case]:
    """The evaluation tests of a folder's manifest, in its order."""
    graph = rdflib.Graph().parse(folder / "manifest.ttl", publicID=folder.as_uri() + "/")
    found = []
    entries = graph.value(graph.value(predicate=RDF.type, object=MF.Manifest), MF.entries)
    for test in graph.items(entries):
        action, result = graph.value(test, MF.action), graph.value(test, MF.result)
        query, data = graph.value(action, QT.query), graph.value(action, QT.data)
        if query is not None and result is not None:
            name = str(test).rpartition("#")[2]
            found.append(Case(name, _path(query), data and _path(data), _path(result)))
    return found


def _path(iri: Any) -> Path:
    return Path(str(iri).removeprefix("file://"))


class _Solution:
    """A solution as the environment of expressions; BNODE labels are local to it."""

    def __init__(self, bindings: Solution) -> None:
        self.bindings = bindings
        self.nodes: dict[str, str] = {}

    def value(self, name: str) -> str | None:
        return self.bindings.get(name)

    def previous(self, name: str) -> str | None:
        return None

    def group(self, name: str) -> tuple[str, ...]:
        return ()

    def time(self, gpm: str) -> int | None:
        return None

    def now(self) -> int:
        return 0

    def blank_node(self, label: str) -> str:
        return self.nodes.setdefault(label, str(pyoxigraph.BlankNode()))


def _answers(case: Case) -> Iterator[Solution]:
    text = case.query.read_text()
    with lexical_forms_kept():
        query = translateQuery(parseQuery(text), base=BASE)
    base = BASE if "BASE" not in text else text.partition("<")[2].partition(">")[0]
    evaluator = _Evaluator(_triples(case.data), Options(base=base))
    if query.algebra.name == "AskQuery":
        yield {"ask": str(any(True for _ in evaluator.run(query.algebra.p))).lower()}
        return
    names = [str(v) for v in query.algebra.PV]
    for solution in evaluator.run(query.algebra.p):
        yield {v: x for v in names if (x := solution.value(v)) is not None}


def _triples(data: Path | None) -> list[tuple[str, str, str]]:
    if data is None:
        return []
    parsed = pyoxigraph.parse(path=str(data), base_iri=data.as_uri())
    return [(str(q.subject), str(q.predicate), str(q.object)) for q in parsed]


class _Evaluator:
    def __init__(self, triples: list[tuple[str, str, str]], options: Options) -> None:
        self.triples = triples
        self.options = options

    def run(self, node: Any) -> Iterator[_Solution]:
        match node.name:
            case "Project" | "SelectQuery" | "ToMultiSet":
                yield from self.run(node.p)
            case "BGP":
                yield from self.basic(node.triples, {})
            case "Filter":
                test = compile_filter(from_rdflib(node.expr), self.options)
                yield from (s for s in self.run(node.p) if test(s))
            case "Extend":
                term = compile_term(from_rdflib(node.expr), self.options)
                for solution in self.run(node.p):
                    if (value := term(solution)) is not None:
                        solution.bindings[str(node.var)] = value
                    yield solution
            case "Join":
                right = [s.bindings for s in self.run(node.p2)]
                for left in self.run(node.p1):
                    yield from (
                        _Solution(left.bindings | b) for b in right if _agree(left.bindings, b)
                    )
            case "Union":
                yield from self.run(node.p1)
                yield from self.run(node.p2)
            case "LeftJoin":
                yield from self.left_join(node)
            case _:
                raise NotImplementedError(node.name)

    def left_join(self, node: Any) -> Iterator[_Solution]:
        test = compile_filter(from_rdflib(node.expr), self.options)
        right = [s.bindings for s in self.run(node.p2)]
        for left in self.run(node.p1):
            merged = [_Solution(left.bindings | b) for b in right if _agree(left.bindings, b)]
            yield from [s for s in merged if test(s)] or [left]

    def basic(self, patterns: list[Any], bound: Solution) -> Iterator[_Solution]:
        if not patterns:
            yield _Solution(bound)
            return
        for triple in self.triples:
            extended = dict(bound)
            if all(_bind(extended, p, t) for p, t in zip(patterns[0], triple, strict=True)):
                yield from self.basic(patterns[1:], extended)


def _bind(bound: Solution, pattern: Any, term: str) -> bool:
    if isinstance(pattern, Variable | rdflib.BNode):
        return bound.setdefault(str(pattern), term) == term
    return term_from_rdflib(pattern) == term


def _agree(a: Solution, b: Solution) -> bool:
    return all(b[v] == x for v, x in a.items() if v in b)


def _expected(path: Path) -> Iterator[Solution]:
    if path.suffix == ".ttl":
        yield from _expected_turtle(path)
        return
    results = pyoxigraph.parse_query_results(path=str(path))
    if isinstance(results, pyoxigraph.QueryBoolean):
        yield {"ask": str(bool(results)).lower()}
        return
    names = [v.value for v in results.variables]
    for row in results:
        yield {v: str(x) for v, x in zip(names, row, strict=True) if x is not None}


def _expected_turtle(path: Path) -> Iterator[Solution]:
    with lexical_forms_kept():
        graph = rdflib.Graph().parse(path)
    if (None, RS.boolean, None) in graph:
        boolean = next(graph.objects(None, RS.boolean))
        yield {"ask": str(boolean).lower()}
        return
    for solution in graph.objects(None, RS.solution):
        yield {
            str(graph.value(b, RS.variable)): term_from_rdflib(graph.value(b, RS.value))
            for b in graph.objects(solution, RS.binding)
        }


def _comparable(solution: Solution) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((v, _canonical(x)) for v, x in solution.items()))


def _canonical(term: str) -> str:
    if term[0] == "_":
        return "_:"
    return encode(decode(term)) if term[0] == '"' else term
