"""Sets of queries that are alike: variations of a generated case, which differ in constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import spaseq
from spaseq.compile import check_query
from spaseq.lang import ast
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from spaseq.lang.variables import rewritten
from tests.oracle.agreement import comparables, expected_of
from tests.oracle.choices import Choices
from tests.oracle.draw_events import NS
from tests.oracle.model import Refused, TooBig
from tests.oracle.patterns import nt
from tests.oracle.strategies import Case

XSD = "http://www.w3.org/2001/XMLSchema#"

NUMBERS = {XSD + name for name in ("integer", "decimal", "double", "float")}
OPERATORS = ("=", "<", "<=", ">", ">=")


def number(choices: Choices) -> ast.Literal:
    """A small number in one of the forms that numbers have."""
    value = choices.pick("0123")
    forms = [(value, "integer")] * 6
    forms += [(f"{value}.0", "decimal"), (f"{value}e0", "double"), (f"{value}.5", "float")]
    lexical, datatype = choices.pick(forms)
    return ast.Literal(lexical, XSD + datatype)


def with_conditions(query: ast.Query, choices: Choices) -> ast.Query:
    """The query with FILTERs that compare a variable of a GPM with a constant, or with a sum."""
    named = {g.name: sorted(values_of(g)) for g in query.gpms}
    every = sorted({v for own in named.values() for v in own})
    gpms = []
    for gpm in query.gpms:
        elements = list(gpm.pattern.elements)
        for _ in range(choices.pick([0, 1, 1, 2]) if named[gpm.name] else 0):
            left = ast.Var(choices.pick(named[gpm.name]))
            right: ast.Expr = number(choices)
            if choices.chance(3):
                right = ast.Arithmetic(
                    choices.pick("+-"), ast.Var(choices.pick(every)), number(choices)
                )
            elements.append(ast.Filter(ast.Compare(choices.pick(OPERATORS), left, right)))
        gpms.append(replace(gpm, pattern=ast.GroupGraphPattern(tuple(elements))))
    return replace(query, gpms=tuple(gpms))


def values_of(gpm: ast.Gpm) -> Iterator[str]:
    """The variables of the values of a GPM's triple patterns."""
    for element in gpm.pattern.elements:
        for triple in element.triples if isinstance(element, ast.Triples) else ():
            if triple.predicate == ast.Iri(f"{NS}v") and isinstance(triple.object, ast.Var):
                yield triple.object.name


def variation(query: ast.Query, choices: Choices, kinds: bool = True) -> ast.Query:
    """The query with some constants of its GPMs changed; IRIs only if `kinds`."""

    def changed(node: ast.Node) -> ast.Node | None:
        match node:
            case ast.Triple(subject, predicate, ast.Iri(value) as old):
                other = ast.Iri(NS + choices.pick("ABC")) if kinds and choices.chance(3) else old
                return ast.Triple(subject, predicate, other if value.startswith(NS) else old)
            # rdflib, which the oracle asks, orders numbers and dates among each other.
            case ast.Literal(datatype=kind) if kind in NUMBERS and choices.chance(2):
                return number(choices)
        return None

    return replace(query, gpms=tuple(rewritten(gpm, changed) for gpm in query.gpms))


def reshaped(query: ast.Query, choices: Choices) -> ast.Query:
    """The query with the same GPMs and another window."""
    if not isinstance(query.window, ast.TimeWindow):
        return query
    return replace(query, window=ast.TimeWindow(ast.TimeSpan(choices.pick(range(1, 7)), "SECONDS")))


def queries_of(case: Case, choices: Choices, most: int) -> list[str]:
    """Texts of queries without errors: the case's and variations of it, perhaps of two shapes."""
    first = with_conditions(parse(case.query), choices)
    shapes = [first, reshaped(first, choices)] if choices.chance(2) else [first]
    several = [
        first,
        *(variation(shapes[i % len(shapes)], choices) for i in range(choices.pick(range(1, most)))),
    ]
    texts = [format_query(query) for query in several]
    return [text for text in texts if check_query(text).plan is not None]


def expected(text: str, case: Case) -> list[Any]:
    """The oracle's answers to a query, or the engine's where the oracle does not run it."""
    query = check_query(text).query
    assert query is not None
    try:
        return comparables(expected_of(query, case))
    except (TooBig, Refused):
        return answers([text], case)[0]


def answers(
    texts: list[str],
    case: Case,
    disable: tuple[str, ...] = (),
    runtime: Literal["local", "spark"] = "local",
) -> list[list[Any]]:
    """The engine's answers to queries that run together, query by query."""
    read = {iri: events(case, iri) for iri in case.streams}
    named = {f"query{i}": i for i in range(1, len(texts) + 1)} if len(texts) > 1 else {"query": 1}
    used = {iri for text in texts for iri in read if f"<{iri}>" in text}
    given = {iri: own for iri, own in read.items() if iri in used}
    found: list[list[Any]] = [[] for _ in texts]
    for match in spaseq.run(texts, given, case.kb, runtime=runtime, disable=disable):
        found[named[match.query] - 1].append(match.answer)
    return [comparables(own) for own in found]


def pushed_answers(texts: list[str], case: Case, choices: Choices) -> list[list[Any]]:
    """The engine's answers to queries that run together over pushed events, query by query."""
    engine = spaseq.Engine(texts, case.kb)
    named = {name: number for number, name in enumerate(engine.queries)}
    streams = [(iri, event) for iri in case.streams for event in events(case, iri)]
    used = {iri for text in texts for iri in case.streams if f"<{iri}>" in text}
    pairs = sorted((pair for pair in streams if pair[0] in used), key=_time)
    matches: list[spaseq.Match] = []
    while pairs:
        size = choices.pick([1, 1, 2, 30])
        matches += engine.push_many(pairs[:size])
        pairs = pairs[size:]
    found: list[list[Any]] = [[] for _ in texts]
    for match in [*matches, *engine.close()]:
        found[named[match.query]].append(match.answer)
    return [comparables(own) for own in found]


def _time(pair: tuple[str, spaseq.Event]) -> int:
    time = pair[1].time
    assert isinstance(time, int)
    return time


def events(case: Case, iri: str) -> list[spaseq.Event]:
    """The events of a stream, in order of arrival."""
    return [
        spaseq.Event("".join(f"{nt(s)} {nt(p)} {nt(o)} .\n" for s, p, o in triples), time, name)
        for time, name, triples in case.streams[iri]
    ]
