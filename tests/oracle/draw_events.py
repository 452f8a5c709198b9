"""Generated streamsets: events that often match the generated queries, with ties."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from rdflib import XSD, Graph, Literal, URIRef
from rdflib.term import Identifier

from tests.oracle.choices import Choices
from tests.oracle.model import Triple
from tests.oracle.triple_terms import REIFIES, triple_term

NS = "http://example.org/"
KB = f"{NS}kb"
STREAMS = [f"{NS}stream/{i}" for i in (1, 2, 3)]

Arrivals: TypeAlias = list[tuple[int, str | None, list[Triple]]]


def term(local: str) -> URIRef:
    return URIRef(NS + local)


def number(lexical: str, datatype: URIRef = XSD.integer) -> Literal:
    return Literal(lexical, datatype=datatype, normalize=False)


def knowledge() -> dict[str, Graph]:
    """A KB with a limit for each key, and an owner for one key."""
    graph = Graph()
    for key, limit in (("k1", "1"), ("k2", "3")):
        graph.add((term(key), term("limit"), number(limit)))
    graph.add((term("k1"), term("owner"), term("someone")))
    return {KB: graph}


@dataclass(frozen=True)
class Crowd:
    """The events to draw: for which GPMs, whether in long runs for each of them, and how many."""

    names: list[str]
    runs: bool
    most: int


def observations(
    choices: Choices, features: frozenset[str], crowd: Crowd, due: str
) -> list[Triple]:
    """The triples of one event: up to two observations, each a possible solution.

    `due` is the GPM that the event should preferably match.
    """
    names = crowd.names
    often = 3 if crowd.runs else 2
    triples: list[Triple] = []
    keys = ["k1", "k1", "k2"] if "several-keys" in features else ["k1"]
    for subject in map(term, ("o1", "o2")[: choices.pick([1, 1, 1, 1, 2, 2, 0])]):
        kind = choices.pick([due] * often * len(names) + [*names, *names, "Other"])
        triples.append((subject, term("is"), term(kind)))
        value = _value(choices, features)
        triples.append((subject, term("v"), value))
        if not choices.chance(6):
            triples.append((subject, term("k"), term(choices.pick(keys))))
            triples.append((subject, term("g"), number(choices.pick("001"))))
        if choices.chance(2):
            triples.append((subject, term("w"), number(choices.pick("112"))))
        if "triple-terms" in features and choices.pick([True, True, False]):
            said = choices.pick([value, value, _value(choices, features)])
            triples += _reified(choices, triple_term(subject, term("v"), said))
    return triples


def _reified(choices: Choices, value: Identifier) -> Iterator[Triple]:
    """How sure some value of an observation is, and perhaps who says so."""
    reifier = term(choices.pick(["r1", "r2"]))
    yield reifier, REIFIES, value
    yield reifier, term("sure"), number(choices.pick("0123"))
    if choices.chance(3):
        yield reifier, REIFIES, triple_term(term("someone"), term("says"), value)


def _value(choices: Choices, features: frozenset[str]) -> Literal:
    value = str(choices.pick(range(4)))
    if "lexical-forms" in features and choices.chance(6):
        return choices.pick([number(f"0{value}"), number(f"{value}.0", XSD.decimal)])
    return number(value)


def streamset(
    choices: Choices, features: frozenset[str], crowd: Crowd, iris: list[str]
) -> dict[str, Arrivals]:
    """Events over the given streams, in order of time, at few instants."""
    streams: dict[str, Arrivals] = {iri: [] for iri in iris}
    time = 0
    steps = [0, 1000, 1000, 1000, 2000, 5000] if "ties" in features else [1000, 1000, 2000, 5000]
    names = crowd.names
    few = [] if crowd.runs else [0, 1, 2, 3]
    least, most = (5, min(crowd.most, 8)) if crowd.runs else (4, crowd.most)
    count = choices.pick([*few, *(n for n in range(least, most + 1) for _ in range(4))])
    for i in range(count):
        time += choices.pick(steps)
        triples = observations(choices, features, crowd, names[i * len(names) // count])
        streams[choices.pick(iris)].append((time, f"{NS}event/{i}", triples))
    return streams


def stream_features(streams: dict[str, Arrivals]) -> Iterator[str]:
    """The features of the events."""
    events = [event for arrivals in streams.values() for event in arrivals]
    if len({time for time, _, _ in events}) < len(events):
        yield "ties"
    terms = [o for _, _, triples in events for _, _, o in triples]
    if {term("k1"), term("k2")} <= set(terms):
        yield "several-keys"
    if any(isinstance(o, Literal) and not re.fullmatch("[0-9]", o) for o in terms):
        yield "lexical-forms"
