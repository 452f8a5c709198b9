"""Functions of places in queries: set functions, checks, and a Python without the extra."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import shapely

import spaseq
from spaseq.compile import compile_query
from spaseq.errors import QueryError
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from spaseq.rdf import geosparql
from tests.places.world import PROLOGUE, World, query

TRACK = f"""{PROLOGUE}
SELECT ?v (geof:aggUnion(?p) AS ?all) (geof:aggBoundingBox(?p) AS ?box)
       (geof:aggCentroid(?p) AS ?middle) (geof:aggConvexHull(DISTINCT ?p) AS ?hull)
WITHIN 1 HOURS FROM STREAM S <http://e/s>
WHERE {{ SEQ (A{{3}}) DEFINE GPM A ON S {{ ?v :at ?p }} }}"""


def positions(*places: str) -> list[tuple[str, int]]:
    at = "<http://e/v> <http://e/at>"
    found = [f'{at} "{place}"^^<{geosparql.WKT}> .\n' for place in places]
    return [(text, 1000 * i) for i, text in enumerate(found)]


def shape(match: spaseq.Match, name: str) -> shapely.Geometry:
    return shapely.from_wkt(str(match.bindings[name].to_python()))


def test_set_functions_of_a_group_variable() -> None:
    engine = spaseq.Engine(TRACK)
    for graph, time in positions("POINT(0 0)", "POINT(4 0)", "POINT(4 2)"):
        found = engine.push("S", graph, time)
    found += engine.close()
    (match,) = found
    assert shape(match, "all").equals(shapely.MultiPoint([(0, 0), (4, 0), (4, 2)]))
    assert shape(match, "box").equals(shapely.box(0, 0, 4, 2))
    assert shape(match, "middle").distance(shapely.Point(8 / 3, 2 / 3)) < 1e-9
    assert shape(match, "hull").equals(shapely.Polygon([(0, 0), (4, 0), (4, 2)]))


def test_set_functions_of_a_sub_query_and_bad_geometries() -> None:
    text = f"""{PROLOGUE} SELECT ?n ?all WITHIN 1 HOURS FROM STREAM S <http://e/s>
    WHERE {{ SEQ (A) DEFINE GPM A ON S {{
      {{ SELECT (COUNT(?p) AS ?n) (geof:aggUnion(?p) AS ?all) {{ ?v :at ?p }} }} }} }}"""
    engine = spaseq.Engine(text)
    good, bad = (
        "".join(graph for graph, _ in positions(*places))
        for places in (("POINT(0 0)", "POINT(4 0)"), ("POINT(0 0)", "POINT(x)"))
    )
    found = [*engine.push("S", good, 0), *engine.push("S", bad, 1000), *engine.close()]
    assert [sorted(match.bindings) for match in found] == [["all", "n"], ["n"]]


def test_a_canonical_form_with_a_set_function() -> None:
    text = format_query(parse(TRACK))
    assert "geof:aggConvexHull(DISTINCT ?p)" in text
    assert format_query(parse(text)) == text


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("geof:sfWithin(?p)", "does not take 1 argument"),
        ("geof:distance(?p, ?a, 1, 2) < 3", "does not take 4 arguments"),
        ("geof:sfWithn(?p, ?a)", "unknown function"),
        ("geof:aggUnion(?p, ?a)", "unknown function"),
    ],
)
def test_the_check_knows_the_functions(condition: str, message: str) -> None:
    with pytest.raises(QueryError) as error:
        compile_query(query(condition))
    assert message in str(error.value)


def test_without_the_extra_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "shapely", None)
    stream, kb = World(1, 5).write(tmp_path)
    for text in (query("geof:sfWithin(?p, ?a)"), TRACK):
        with pytest.raises(QueryError) as error:
            spaseq.run(text, {"S": stream}, kb={"http://e/kb": kb})
        assert "shapely, which is not installed: pip install '.[geo]'" in str(error.value)
