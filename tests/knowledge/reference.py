"""Graphs that change, evaluated event by event from the text of LANGUAGE section 9.

Each event has a dataset of its own: its triples, and the value of each graph at its time. Oxigraph
evaluates the pattern on it. Nothing of the engine is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyoxigraph as ox

E = "http://example/"
GRAPH, ZONES = f"{E}graph", f"{E}zones"
PROLOGUE = f"PREFIX : <{E}>\n"

Triple = tuple[str, str, str]
"""Local names; an object may be a text in quotes."""


@dataclass(frozen=True)
class Given:
    """An event of a stream: its time in seconds, and its triples."""

    stream: str
    time: int
    triples: tuple[Triple, ...]


@dataclass(frozen=True)
class Maintainer:
    """A query that maintains the graph: for each event of a stream that has `predicate`.

    `deleted` and `inserted` are triples of local names and of `?d` and `?o`, subject and object of
    the event's triple; other variables are wildcards.
    """

    name: str
    stream: str
    predicate: str
    deleted: tuple[Triple, ...]
    inserted: tuple[Triple, ...]

    def query(self) -> str:
        """The text of the query."""
        parts = ""
        for word, triples in (("DELETE", self.deleted), ("INSERT", self.inserted)):
            if triples:
                parts += f" {word} {{ {' '.join(map(_pattern, triples))} }}"
        return (
            f"{PROLOGUE}MAINTAIN GRAPH <{GRAPH}> AS{parts}\nWITHIN 1 HOURS\n"
            f"FROM STREAM {self.stream} :{self.stream}\n"
            f"WHERE {{ SEQ(A) DEFINE GPM A ON {self.stream} {{ ?d :{self.predicate} ?o }} }}"
        )


def _pattern(triple: Triple) -> str:
    return " ".join(t if t[0] in '?"' else f":{t}" for t in triple) + " ."


@dataclass
class Values:
    """The value of the graph after each of some changes, by time."""

    before: frozenset[Triple]
    replaced: Sequence[tuple[int, frozenset[Triple]]] = ()
    maintainers: Sequence[Maintainer] = ()
    events: Sequence[Given] = ()
    _steps: list[tuple[int, frozenset[Triple]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        changes: list[tuple[tuple[int, int, str, int, str], object]] = []
        for number, (time, triples) in enumerate(self.replaced):
            changes.append(((time, 0, "", number, ""), triples))
        for maintainer in self.maintainers:
            for number, event in enumerate(self.events):
                if event.stream != maintainer.stream:
                    continue
                for s, p, o in event.triples:
                    if p == maintainer.predicate:
                        # Answers of one instant are in order of their bindings, as texts.
                        key = event.time, 1, maintainer.name, number, f"{s} {o}"
                        changes.append((key, (maintainer, s, o)))
        value = self.before
        for (time, *_), change in sorted(changes, key=lambda each: each[0]):
            value = change if isinstance(change, frozenset) else _changed(value, *change)  # type: ignore[misc]
            self._steps.append((time, value))

    def at(self, time: int) -> frozenset[Triple]:
        """The value at a time."""
        known = [value for since, value in self._steps if since <= time]
        return known[-1] if known else self.before


def _changed(value: frozenset[Triple], maintainer: Maintainer, d: str, o: str) -> frozenset[Triple]:
    bound = {"?d": d, "?o": o}
    for pattern in maintainer.deleted:
        wanted = tuple(bound.get(term, term) for term in pattern)
        value = frozenset(triple for triple in value if not _fits(triple, wanted))
    made = [tuple(bound.get(term, term) for term in triple) for triple in maintainer.inserted]
    return value | {triple for triple in made if not any(term[0] == "?" for term in triple)}  # type: ignore[misc]


def _fits(triple: Triple, wanted: Sequence[str]) -> bool:
    known: dict[str, str] = {}
    for term, asked in zip(triple, wanted, strict=True):
        if asked[0] != "?":
            if term != asked:
                return False
        elif known.setdefault(asked, term) != term:
            return False
    return True


ONTOLOGY = f"""PREFIX : <{E}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
:owner rdfs:subPropertyOf :near ; rdfs:range :Owner . :seen rdfs:subPropertyOf :near .
:Owner rdfs:subClassOf :Agent ."""


def entailed(value: frozenset[Triple]) -> frozenset[Triple]:
    """The triples of a graph, and those that follow from them by ONTOLOGY."""
    near = {(s, "near", o) for s, p, o in value if p in ("owner", "seen")}
    types = {(o, "a", c) for _, p, o in value if p == "owner" for c in ("Owner", "Agent")}
    return value | near | types


def _term(name: str) -> ox.NamedNode | ox.Literal:
    if name == "a":
        return ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    return ox.Literal(name[1:-1]) if name[0] == '"' else ox.NamedNode(E + name)


def _quads(triples: Iterable[Triple], graph: str | None) -> list[ox.Quad]:
    name = ox.DefaultGraph() if graph is None else ox.NamedNode(graph)
    return [ox.Quad(_term(s), _term(p), _term(o), name) for s, p, o in triples]  # type: ignore[arg-type]


def solutions(
    pattern: str, event: Given, value: frozenset[Triple], zones: Iterable[Triple]
) -> set[frozenset[tuple[str, str]]]:
    """The distinct solutions of a pattern on an event, given the value of the graph."""
    store = ox.Store()
    store.extend(_quads(event.triples, None) + _quads(value, GRAPH) + _quads(zones, ZONES))
    found = store.query(f"{PROLOGUE}SELECT * WHERE {{ {pattern} }}")
    assert isinstance(found, ox.QuerySolutions)
    names = [variable.value for variable in found.variables]
    return {frozenset((n, str(row[n])) for n in names if row[n] is not None) for row in found}
