"""The other functions of GeoSPARQL 1.1: what they give by hand, and in which form."""

from __future__ import annotations

import json

import pytest
import shapely

from spaseq.rdf.geosparql import ARITIES, MEANINGS
from tests.places.calls import EPSG_4326, call, geojson

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
OTHER = "POLYGON((2 0, 6 0, 6 4, 2 4, 2 0))"


def same(found: str, expected: str) -> bool:
    return bool(shapely.equals(shapely.from_wkt(found), shapely.from_wkt(expected)))


def test_every_function_has_a_meaning() -> None:
    assert ARITIES.keys() == MEANINGS.keys()


def test_sets_of_points() -> None:
    assert same(call("intersection", SQUARE, OTHER), "POLYGON((2 0, 4 0, 4 4, 2 4, 2 0))")
    assert same(call("union", SQUARE, OTHER), "POLYGON((0 0, 6 0, 6 4, 0 4, 0 0))")
    assert same(call("difference", SQUARE, OTHER), "POLYGON((0 0, 2 0, 2 4, 0 4, 0 0))")
    parts = "MULTIPOLYGON(((0 0, 2 0, 2 4, 0 4, 0 0)), ((4 0, 6 0, 6 4, 4 4, 4 0)))"
    assert same(call("symDifference", SQUARE, OTHER), parts)


def test_shapes_of_one() -> None:
    line = "LINESTRING(0 0, 2 4, 4 0)"
    assert same(call("convexHull", line), "POLYGON((0 0, 2 4, 4 0, 0 0))")
    assert same(call("envelope", line), SQUARE)
    assert same(call("boundary", SQUARE), "LINESTRING(0 0, 4 0, 4 4, 0 4, 0 0)")
    assert same(call("boundary", line), "MULTIPOINT((0 0), (4 0))")
    assert same(call("centroid", SQUARE), "POINT(2 2)")
    assert shapely.from_wkt(call("boundingCircle", line)).area > 12


def test_the_result_has_the_form_of_the_first_argument() -> None:
    point = f"{EPSG_4326} POINT(52 4)"
    assert call("envelope", point) == f"{EPSG_4326} POINT (52 4)"
    both = call("union", point, "POINT(5 53)").removeprefix(EPSG_4326)
    assert same(both, "MULTIPOINT ((52 4), (53 5))")
    assert same(call("union", "POINT(5 53)", point), "MULTIPOINT ((5 53), (4 52))")
    own = geojson('{"type": "Point", "coordinates": [4, 52]}')
    assert json.loads(call("convexHull", own)) == {"type": "Point", "coordinates": [4, 52]}


def test_forms_and_systems() -> None:
    point = f"{EPSG_4326} POINT(52 4)"
    assert call("asWKT", point) == f"{EPSG_4326} POINT (52 4)"
    assert json.loads(call("asGeoJSON", point)) == {"type": "Point", "coordinates": [4, 52]}
    assert call("asWKT", geojson('{"type":"Point","coordinates":[4,52]}')) == "POINT (4 52)"
    assert call("getSRID", point) == EPSG_4326[1:-1]
    assert call("getSRID", "POINT(4 52)") == "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
    assert call("transform", point, "<http://www.opengis.net/def/crs/OGC/1.3/CRS84>") == (
        "POINT (4 52)"
    )
    moved = call("transform", "POINT(9 0)", "<http://www.opengis.net/def/crs/EPSG/0/32632>")
    assert moved.startswith("<http://www.opengis.net/def/crs/EPSG/0/32632> POINT (500000")
    assert call("transform", "POINT(9 0)", "<http://example/nowhere>") is None


def test_what_a_geometry_is() -> None:
    assert call("geometryType", SQUARE) == "http://www.opengis.net/ont/sf#Polygon"
    assert [call("dimension", g) for g in ("POINT(1 2)", "LINESTRING(0 0, 1 1)", SQUARE)] == [
        0,
        1,
        2,
    ]
    assert (call("isEmpty", "POINT EMPTY"), call("isEmpty", SQUARE)) == (True, False)
    assert call("isSimple", "LINESTRING(0 0, 2 2, 2 0, 0 2)") is False
    assert (call("is3D", "POINT Z(1 2 3)"), call("is3D", "POINT(1 2)")) == (True, False)
    assert call("coordinateDimension", "POINT Z(1 2 3)") == 3
    assert call("numGeometries", "MULTIPOINT((0 0), (1 1))") == 2
    assert call("geometryN", "MULTIPOINT((0 0), (1 2))", '"2"') == "POINT (1 2)"
    assert call("geometryN", "MULTIPOINT((0 0), (1 2))", '"3"') is None
    assert [call(n, SQUARE) for n in ("minX", "maxX", "minY", "maxY")] == [0, 4, 0, 4]
    assert call("maxX", f"{EPSG_4326} POINT(52 4)") == 52
    assert call("maxZ", "POINT Z(1 2 3)") == 3
    assert call("maxZ", "POINT(1 2)") is None


@pytest.mark.parametrize("name", sorted(ARITIES))
def test_every_function_answers_or_is_an_error(name: str) -> None:
    least, _ = ARITIES[name]
    second = {"relate": SQUARE, "buffer": 5.0, "metricBuffer": 5.0, "geometryN": '"1"'}
    second["transform"] = "<http://www.opengis.net/def/crs/EPSG/0/4326>"
    arguments = [SQUARE, second.get(name, OTHER), '"T********"'][:least]
    assert call(name, *arguments) is not None or name in ("minZ", "maxZ")
    assert call(name, "nonsense", *arguments[1:]) is None
