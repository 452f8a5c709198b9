"""Copies of cases with geometries have the answers of each case alone.

The brute force asks shapely and pyproj, pair by pair.
"""

from __future__ import annotations

import shapely
from pyproj import Geod
from rdflib import Graph, Literal, URIRef
from rdflib.plugins.sparql.operators import register_custom_function
from rdflib.plugins.sparql.sparql import SPARQLError

from spaseq.compile import check_query
from tests.oracle.choices import Choices, seeded
from tests.oracle.copies.campaign import Sample, Tallied, check
from tests.oracle.copies.command import Road
from tests.oracle.copies.layouts import layout
from tests.oracle.draw_events import KB, NS, STREAMS, Arrivals, term
from tests.oracle.strategies import Case
from tests.sizes import sizes

GEOF = "http://www.opengis.net/def/function/geosparql/"
WKT = URIRef("http://www.opengis.net/ont/geosparql#wktLiteral")
HEAD = f"""PREFIX : <{NS}> PREFIX geof: <{GEOF}>
SELECT * WITHIN 20 SECONDS FROM STREAM S <{STREAMS[0]}> FROM NAMED <{KB}> WHERE {{ """
IN_ZONE = "?x :at ?p GRAPH :kb { ?z :area ?a } FILTER (geof:sfWithin(?p, ?a))"
SAME_ZONE = "?y :at ?q GRAPH :kb { ?z :area ?b } FILTER (geof:sfIntersects(?b, ?q))"
NEAR_PORT = "?y :at ?q GRAPH :kb { ?port :at ?c } FILTER (geof:distance(?q, ?c) < 60000)"
NEAR = "?y :at ?q FILTER (geof:distance(?p, ?q) < 100000)"
OUTSIDE = "?y :at ?q FILTER (!geof:sfWithin(?q, ?a))"
QUERIES = [
    f"SEQ (A; B) DEFINE GPM A ON S {{ {IN_ZONE} }} DEFINE GPM B ON S {{ {SAME_ZONE} }} }}",
    f"SEQ (A, B+) DEFINE GPM A ON S {{ {IN_ZONE} }} DEFINE GPM B ON S {{ {NEAR} }} }}",
    f"SEQ (A; B) DEFINE GPM A ON S {{ {IN_ZONE} }} DEFINE GPM B ON S {{ {OUTSIDE} }} }}",
    f"SEQ (A: B) DEFINE GPM A ON S {{ {IN_ZONE} }} DEFINE GPM B ON S {{ {NEAR_PORT} }} }}",
    f"SEQ (A; N!; B) DEFINE GPM A ON S {{ {IN_ZONE} }} DEFINE GPM B ON S {{ ?y :at ?q }} "
    f"DEFINE GPM N ON S {{ ?n :at ?o FILTER (geof:distance(?o, ?p) > 200000) }} }}",
]


def shape(literal: object) -> shapely.Geometry:
    """The geometry of a literal."""
    try:
        return shapely.from_wkt(str(literal))
    except shapely.errors.ShapelyError as error:
        raise SPARQLError(str(error)) from error


def distance(a: object, b: object) -> Literal:
    """The distance of two points."""
    one, other = shape(a), shape(b)
    return Literal(float(Geod(ellps="WGS84").inv(one.x, one.y, other.x, other.y)[2]))


FUNCTIONS = {
    "sfWithin": lambda a, b: Literal(shape(a).within(shape(b))),
    "sfIntersects": lambda a, b: Literal(shape(a).intersects(shape(b))),
    "distance": distance,
}


def wkt(text: str) -> Literal:
    return Literal(text, datatype=WKT)


def place(choices: Choices) -> tuple[int, int]:
    """Whole degrees, so that places lie on edges of zones, too."""
    return choices.pick(range(4)), choices.pick(range(50, 53))


def drawn(choices: Choices) -> Case:
    graph = Graph()
    for number in range(12):
        x, y = place(choices)
        corners = [(x, y), (x + 2, y), (x + 2, y + choices.pick([1, 2])), (x, y + 1)]
        graph.add((term(f"z{number}"), term("area"), wkt(shapely.Polygon(corners).wkt)))
        graph.add((term(f"port{number}"), term("at"), wkt(f"POINT({x} {y})")))
    events: Arrivals = []
    for number in range(8):
        x, y = place(choices)
        text = f"POINT({x + choices.pick([0, 0.5, 0.5])} {y + choices.pick([0, 0.5, 0.5])})"
        text = "POINT(?)" if choices.chance(10) else text
        triple = (term("v"), term("at"), wkt(text))
        events.append((1000 * number, f"{NS}e{number}", [triple]))
    query = HEAD + choices.pick(QUERIES)
    return Case(query, frozenset(["places"]), {STREAMS[0]: events}, {KB: graph})


@sizes(8, 16, 200)
def test_copies_of_places(examples: int) -> None:
    for name, function in FUNCTIONS.items():
        register_custom_function(URIRef(GEOF + name), function, override=True)
    tally = Tallied()
    for number in range(examples):
        choices = seeded(f"places:{number}")
        example = drawn(choices)
        query = check_query(example.query).query
        assert query is not None
        lying = layout(choices, example, [query], False, 50)
        texts = {f"p{number}": example.query}
        check(Sample(f"places:{number}", example, texts, lying, Road(process=False)), tally)
    assert not tally.wrong, "\n\n".join(tally.wrong)
    assert tally.answers > 20 * examples
