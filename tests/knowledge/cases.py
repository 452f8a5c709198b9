"""Drawn cases of graphs that change, and what the engine and the reference say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import rdflib
from hypothesis import strategies as st

import spaseq
from tests.knowledge.reference import (
    GRAPH,
    PROLOGUE,
    ZONES,
    E,
    Given,
    Maintainer,
    Triple,
    Values,
    entailed,
    solutions,
)

PATTERNS = (
    "?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?o{n} }}",
    "?d :alarm ?x OPTIONAL {{ GRAPH <{g}> {{ ?d :owner ?o{n} }} }}",
    "?d :alarm ?x FILTER NOT EXISTS {{ GRAPH <{g}> {{ ?d :owner ?h{n} }} }}",
    "?d :alarm ?x FILTER EXISTS {{ GRAPH <{g}> {{ ?d :owner ?x }} }}",
    "?d :alarm ?x OPTIONAL {{ GRAPH <{g}> {{ ?d :owner ?o{n} FILTER (?o{n} != :d1) }} }}",
    "?d :alarm ?x OPTIONAL {{ GRAPH <{g}> {{ ?d :owner ?o{n} }} FILTER (?o{n} != ?x) }}",
    "?d :alarm ?x OPTIONAL {{ GRAPH <{g}> {{ ?d :owner ?o{n} }} }} "
    "OPTIONAL {{ GRAPH <{g}> {{ ?x :seen ?p{n} . ?p{n} :owner [] }} }}",
    "?d :alarm ?x OPTIONAL {{ GRAPH <{g}> {{ ?d :owner ?o{n} }} }} FILTER (!BOUND(?o{n}))",
    "?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?o{n} }} "
    "FILTER NOT EXISTS {{ GRAPH <{g}> {{ ?o{n} :seen ?h{n} FILTER (?h{n} != ?d) }} }}",
    "?d :alarm ?x FILTER EXISTS {{ GRAPH <{g}> {{ ?d :seen ?h{n} . ?h{n} ?any ?x }} }}",
    "?d :alarm ?x OPTIONAL {{ GRAPH <{g}> {{ ?d :owner ?o{n} }} }} "
    "GRAPH <{g}> {{ ?o{n} :seen ?x }}",
    "?d :alarm ?x FILTER NOT EXISTS {{ GRAPH <{g}> {{ ?d :owner ?h{n} }} }} "
    "OPTIONAL {{ ?x :alarm ?h{n} }}",
    "?d :alarm ?x OPTIONAL {{ GRAPH <{g}> {{ ?d :owner ?o{n} }} }} "
    "BIND (COALESCE(?o{n}, ?x) AS ?c{n})",
    "?d :alarm ?x MINUS {{ GRAPH <{g}> {{ ?d :seen ?h{n} }} }}",
    "?d :alarm ?x "
    "{{ GRAPH <{g}> {{ ?d :owner ?o{n} }} }} UNION {{ GRAPH <{g}> {{ ?o{n} :seen ?d }} }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?o{n} . ?o{n} :seen ?z{n} }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?y }} GRAPH <{z}> {{ ?y :in ?o{n} }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d (:owner|^:seen)+ ?o{n} }}",
    "?d :alarm ?x "
    "{{ SELECT ?d (COUNT(?h{n}) AS ?o{n}) {{ GRAPH <{g}> {{ ?d ?p ?h{n} }} }} GROUP BY ?d }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?o{n} }} FILTER (?o{n} != ?x)",
    "?d :alarm ?x GRAPH ?from{n} {{ ?d ?p{n} ?o{n} }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d ?p{n} ?o{n} }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?x }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?o{n} ?p{n} ?x }}",
    "?d ?p{n} ?x GRAPH <{g}> {{ ?s{n} :seen ?s{n} . ?d :owner [] }}",
    "?d :alarm ?x GRAPH <{g}> {{ :d1 :owner ?o{n} . ?d ?p{n} :d2 }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?a{n} :owner ?b{n} FILTER (?a{n} != ?b{n}) }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?o{n} }} OPTIONAL {{ ?x :alarm ?z{n} }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?o{n} }} OPTIONAL {{ ?x :alarm ?o{n} }}",
    "?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?o{n} }} MINUS {{ ?x :alarm ?d }}",
    "?d :alarm ?x BIND (?x AS ?c{n}) GRAPH <{g}> {{ ?d :owner ?o{n} }} FILTER (?c{n} != ?d)",
    "GRAPH <{g}> {{ ?d :owner ?o{n} }} {{ ?d :alarm ?x }} UNION {{ ?x :alarm ?d }}",
)
MAINTAINERS = (
    Maintainer("owners", "M", "to", (("?d", "owner", "?any"),), (("?d", "owner", "?o"),)),
    Maintainer("seen", "M", "to", (("?o", "seen", "?any"),), (("?o", "seen", "?d"),)),
    Maintainer("adds", "N", "of", (), (("?d", "owner", "?o"),)),
    Maintainer("away", "N", "of", (("?d", "?any", "?some"), ("?o", "?p", "?o")), ()),
    Maintainer(
        "moves",
        "M",
        "to",
        (("?d", "owner", "?any"), ("?o", "seen", "?d"), ("?d", "seen", "?o")),
        (("?o", "owner", "?d"), ("?d", "seen", "?o"), ("?d", "owner", "?o")),
    ),
    Maintainer("holders", "M", "to", (("?any", "owner", "?o"),), (("?d", "owner", "?o"),)),
    Maintainer("seers", "N", "of", (("?any", "seen", "?d"),), (("?o", "seen", "?d"),)),
    Maintainer("loops", "N", "of", (("?same", "?any", "?same"),), (("?d", "seen", "?d"),)),
)
ENTITIES = ("d1", "d2", "d3")
ZONE_TRIPLES: tuple[Triple, ...] = (("d1", "in", "z1"), ("d2", "in", "z1"), ("d2", "in", "z2"))


@dataclass(frozen=True)
class Case:
    """A drawn case: events in order of time, changes, and the patterns of one or two steps."""

    events: tuple[Given, ...]
    before: frozenset[Triple]
    replaced: tuple[tuple[int, frozenset[Triple]], ...]
    maintainers: tuple[Maintainer, ...]
    patterns: tuple[str, ...]
    partitioned: bool
    projected: bool = False
    with_ontology: bool = False

    def query(self) -> str:
        """The query that reads the graph."""
        gpms = "\n".join(
            f"DEFINE GPM {name} ON S {{ {text} }}"
            for name, text in zip("AB", self.patterns, strict=False)
        )
        steps = " : ".join("AB"[: len(self.patterns)])
        return (
            f"{PROLOGUE}SELECT {'?d' if self.projected else '*'} WITHIN 10 SECONDS\n"
            + ("PARTITION BY (?d)\n" if self.partitioned else "")
            + f"FROM STREAM S :S FROM NAMED <{GRAPH}> FROM NAMED <{ZONES}>\n"
            f"WHERE {{ SEQ({steps}) {gpms} }}"
        )

    def values(self) -> Values:
        """The graph at all times."""
        named = [replace(m, name=f"query{n}") for n, m in enumerate(self.maintainers, 2)]
        return Values(self.before, self.replaced, named, self.events)

    def last(self) -> frozenset[Triple]:
        """The graph after all changes."""
        return self.values().at(10**6)

    def expected(self) -> Counter[tuple[tuple[int, ...], frozenset[tuple[str, str]]]]:
        """The answers, by the times of their events and their bindings."""
        found: Counter[tuple[tuple[int, ...], frozenset[tuple[str, str]]]] = Counter()
        for (times, bindings), count in self._matches().items():
            shown = ((v, term) for v, term in bindings if v == "d" or not self.projected)
            found[times, frozenset(shown)] += count
        return found

    def _matches(self) -> Counter[tuple[tuple[int, ...], frozenset[tuple[str, str]]]]:
        """The matches, by the times of their events and their bindings."""
        values = self.values()
        rows = [
            [
                (place, event.time, found)
                for place, event in enumerate(self.events)
                if event.stream == "S"
                for found in solutions(pattern, event, self._value(values, event), ZONE_TRIPLES)
            ]
            for pattern in self.patterns
        ]
        if len(rows) == 1:
            return Counter(((time,), found) for _, time, found in rows[0])
        both: Counter[tuple[tuple[int, ...], frozenset[tuple[str, str]]]] = Counter()
        for first, start, one in rows[0]:
            for second, end, other in rows[1]:
                a, b = dict(one), dict(other)
                if first < second and end - start <= 10 and all(a[v] == b[v] for v in a.keys() & b):
                    both[(start, end), one | other] += 1
        return both

    def _value(self, values: Values, event: Given) -> frozenset[Triple]:
        value = values.at(event.time)
        return entailed(value) if self.with_ontology else value


def _triples(
    predicates: Sequence[str], most: int, least: int = 0
) -> st.SearchStrategy[frozenset[Triple]]:
    entity = st.sampled_from(ENTITIES)
    triple = st.tuples(entity, st.sampled_from(predicates), entity)
    return st.frozensets(triple, min_size=least, max_size=most)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A case with up to 14 events."""
    times = sorted(draw(st.lists(st.integers(0, 20), min_size=1, max_size=14)))
    kinds = {"S": ("alarm",), "M": ("to",), "N": ("of",)}
    events = []
    for time in times:
        stream = draw(st.sampled_from("SSMN"))
        triples = draw(_triples(kinds[stream], 2, 1))
        events.append(Given(stream, time, tuple(sorted(triples))))
    versions = st.tuples(st.integers(0, 20), _triples(("owner", "seen"), 4))
    texts = draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2))
    return Case(
        tuple(events),
        draw(_triples(("owner", "seen"), 4)),
        tuple(draw(st.lists(versions, max_size=3))),
        tuple(draw(st.lists(st.sampled_from(MAINTAINERS), max_size=3, unique=True))),
        tuple(text.format(g=GRAPH, z=ZONES, n=n) for n, text in enumerate(texts)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def nt(triples: Sequence[Triple] | frozenset[Triple]) -> str:
    """Triples as N-Triples."""
    terms = ((f"<{E}{t}>" if t[0] != '"' else t for t in triple) for triple in sorted(triples))
    return "".join(" ".join(some) + " .\n" for some in terms)


def graph_of(triples: Sequence[Triple] | frozenset[Triple]) -> rdflib.Graph:
    """Triples as a graph of rdflib."""
    return rdflib.Graph().parse(data=nt(triples), format="nt")


def queries(case: Case) -> list[str]:
    """The texts of the run's queries, which are called query1, query2 and so on."""
    return [case.query(), *(m.query() for m in case.maintainers)]


def streams_of(case: Case) -> dict[str, list[spaseq.Event]]:
    """The events of each stream that a query reads."""
    used = {"S", *(m.stream for m in case.maintainers)}
    found: dict[str, list[spaseq.Event]] = {f"{E}{name}": [] for name in sorted(used)}
    for event in case.events:
        if event.stream in used:
            found[f"{E}{event.stream}"].append(spaseq.Event(nt(event.triples), event.time * 1000))
    return found


def knowledge(case: Case) -> dict[str, rdflib.Graph]:
    """The knowledge base before the first change."""
    return {GRAPH: graph_of(case.before), ZONES: graph_of(ZONE_TRIPLES)}


def shown(
    matches: Sequence[spaseq.Match],
) -> Counter[tuple[tuple[int, ...], frozenset[tuple[str, str]]]]:
    """Answers as `Case.expected` has them."""
    return Counter(
        (
            tuple(int(item.time.timestamp()) for item in match.trace),
            frozenset((v, term.n3()) for v, term in match.bindings.items()),
        )
        for match in matches
    )
