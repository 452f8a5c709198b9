"""The answers of a query over a streamset, by brute force.

It shares only the parsed query with the engine. It is slow on purpose: every definition of the
language reference is one plain comprehension over all matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace

from rdflib import XSD, Dataset, Graph, Literal, URIRef
from rdflib.term import Identifier

from spaseq.lang import ast
from tests.oracle import answers as page
from tests.oracle.answers import Answer, Window
from tests.oracle.conditions import at_the_close
from tests.oracle.model import (
    Bindings,
    Event,
    Instant,
    Map,
    Match,
    Refused,
    Streamset,
    events_of,
    nothing,
    plain,
)
from tests.oracle.patterns import Expression, Pattern, binds, nt, terms_as_written, without_filters
from tests.oracle.running import Running
from tests.oracle.sequences import THEN, Evaluation
from tests.oracle.steps import (
    find_group_variables,
    flat,
    group_variables,
    positive_names,
    step_names,
    unfold,
    until_names,
    waits_for_the_close,
)


def evaluate(
    query: ast.Query, streams: Streamset, kb: Mapping[str, Graph] | None = None
) -> list[Answer]:
    """The answers of a SELECT query, in answer order.

    Args:
        query: the parsed query.
        streams: stream IRI to (time in ms, graph IRI or None, triples of rdflib terms), in order of
            arrival. Streams the query does not name are ignored.
        kb: graph IRI to graph.

    Raises:
        Refused: the language refuses the query.
        TooBig: too many matches for brute force.
    """
    with terms_as_written():
        return QueryRun(query, streams, kb or {}).answers()


class QueryRun:
    """A query, or the first steps of its sequence as a query, over a streamset."""

    def __init__(
        self,
        query: ast.Query,
        streams: Streamset,
        kb: Mapping[str, Graph],
        upto: int | None = None,
    ) -> None:
        self.query = query
        names = {s.name: s.iri.value for s in query.streams}
        self.streams = {g.name: frozenset(names[r.name] for r in g.streams) for g in query.gpms}
        self.events = events_of({iri: streams.get(iri, []) for iri in names.values()})
        self.kb = _dataset(query, kb)
        self.binds = {g.name: binds(g.pattern) for g in query.gpms}
        self.keys = tuple(v.name for v in query.partition)
        self.steps = unfold(query.sequence, upto=upto)
        self.level = upto
        counted = isinstance(query.window, ast.CountWindow) and upto is None
        if counted and waits_for_the_close(self.steps):
            raise Refused("negation at an end, or a greedy loop at the end, under WITHIN n EVENTS")
        if until_names(self.steps) & step_names(self.steps):
            raise Refused("UNTIL has a GPM that is a step")
        singles = frozenset(self.keys)
        if upto is not None:  # variables keep the kind that they have in the whole query
            whole = flat(query.sequence)
            bound = find_group_variables(whole, self.binds, singles)
            singles |= bound - group_variables(whole)
        find_group_variables(self.steps, self.binds, singles)
        self.groups = group_variables(self.steps)
        self.patterns = {g.name: Running(g.pattern, self.groups) for g in query.gpms}
        self.timed = frozenset(n.gpm.name for n in nodes(query) if isinstance(n, ast.Timestamp))
        self._solutions: dict[object, frozenset[Map]] = {}

    def solve(self, event: Event, name: str, mu: Bindings) -> frozenset[Map]:
        pattern = self.patterns[name]
        mu = replace(mu, now=event.instant[0])
        key = event, name, pattern.key(mu)
        if key not in self._solutions:
            self._solutions[key] = pattern.solutions(event.graph, self.kb, mu)
        return self._solutions[key]

    # Partition

    def partitions(self) -> Iterator[tuple[Map, list[Event]]]:
        """Each partition: the values of its variables, and its events."""
        if not self.keys:
            yield Map(), self.events
            return
        for name in positive_names(self.steps):
            if not self.binds[name].issuperset(self.keys):
                raise Refused(f"{name} does not bind the partition variables")
        members: dict[Map, list[Event]] = {}
        bare = {g.name: Pattern.of(without_filters(g.pattern)) for g in self.query.gpms}
        for event in self.events:
            for key in self._keys(event, bare):
                members.setdefault(key, []).append(event)
        yield from members.items()

    def _keys(self, event: Event, bare: Mapping[str, Pattern]) -> set[Map]:
        found = (
            solution.only(self.keys)
            for name, pattern in bare.items()
            if event.stream in self.streams[name]
            for solution in pattern.solutions(event.graph, self.kb, Map())
        )
        return {key for key in found if len(key) == len(self.keys)}

    # Answers

    def answers(self) -> list[Answer]:
        found = [a for key, events in self.partitions() for a in self.partition(key, events)]
        projected = [self.project(a) for a in page.merged(found)]
        assert isinstance(self.query.form, ast.Select)
        return page.distinct(projected) if self.query.form.distinct else projected

    def partition(self, key: Map, events: list[Event]) -> list[Answer]:
        """The answers of one partition, selected and skipped."""
        having = [a for a in self.matched(key, events) if self.has(a)]
        strategy = getattr(self.query.form, "strategy", "ALL")
        selected = page.select(strategy, having, sorted({e.instant for e in events}))
        return page.after_match(self.query.skip, selected)

    def matched(self, key: Map, events: list[Event]) -> list[Answer]:
        """The matches of one partition, in answer order."""
        evaluation = Evaluation(events, self.streams, self.solve, self.groups, self.timed)
        window = Window(self.query.window, events)
        matches = evaluation.sequence(nothing(Bindings(values=key)), self.steps, THEN)
        standing = [
            m
            for m in matches
            if m.first is not None
            and m.last is not None
            and window.holds(m.first, m.last)
            and evaluation.stands(m, window.holds)
        ]
        groups = self.groups & frozenset().union(
            *(self.binds[n] for n in positive_names(self.steps))
        )
        return page.merged([page.answer(m, self._end(m, window), groups) for m in standing])

    def _end(self, m: Match, window: Window) -> Instant:
        """The end of a match; its last instant if only the first steps are asked for."""
        assert m.first is not None and m.last is not None
        return window.close(m.first) if at_the_close(m) and self.level is None else m.last

    def has(self, a: Answer) -> bool:
        if self.query.having is None:
            return True
        return Expression(self.query.having).holds(replace(a.mu, now=a.end[0]), self.kb)

    def project(self, a: Answer) -> Answer:
        assert isinstance(self.query.form, ast.Select)
        items = self.query.form.items
        if items is None:
            shown = frozenset().union(*(self.binds[n] for n in positive_names(self.steps)))
            values = {v: a.mu.values.get(v) for v in sorted(shown)}
        else:
            values = self._values(items, replace(a.mu, now=a.end[0]))
        bound = tuple((v, nt(term)) for v, term in values.items() if term is not None)
        return replace(a, bindings=bound)

    def _values(
        self, items: tuple[ast.SelectItem, ...], mu: Bindings
    ) -> dict[str, Identifier | None]:
        """Each item's value; an expression may use the names defined before it."""
        values: dict[str, Identifier | None] = {}
        for item in items:
            assert item.var is not None
            if item.expr is None:
                values[item.var.name] = mu.values.get(item.var.name)
                continue
            value = Expression(item.expr).value(mu, self.kb)
            if not (isinstance(item.expr, ast.Aggregate) and item.expr.function in _PICKS):
                value = _canonical(value)
            values[item.var.name] = value
            if value is not None:
                mu = replace(mu, values=mu.values.plus({item.var.name: value}))
        return values


_PICKS = {"FIRST", "LAST", "MIN", "MAX", "SAMPLE"}
"""Functions that return one of their argument terms unchanged."""


def _canonical(term: Identifier | None) -> Identifier | None:
    """A computed decimal in canonical form, so that equal values are equal terms for DISTINCT."""
    if not isinstance(term, Literal) or term.datatype != XSD.decimal:
        return term
    text = f"{term.value:f}"
    if "." in text:
        text = text.rstrip("0").removesuffix(".")
    return Literal(text, datatype=XSD.decimal, normalize=False)


def _dataset(query: ast.Query, kb: Mapping[str, Graph]) -> Dataset:
    dataset = Dataset()
    for named in query.kbs:
        graph = dataset.graph(URIRef(named.iri.value))
        for s, p, o in kb.get(named.iri.value, ()):
            graph.add((plain(s), plain(p), plain(o)))
    return dataset


def nodes(node: object) -> Iterator[object]:
    """A node and everything below it."""
    yield node
    if isinstance(node, tuple):
        for child in node:
            yield from nodes(child)
    elif is_dataclass(node):
        for f in fields(node):
            yield from nodes(getattr(node, f.name))
