"""The relations of GeoSPARQL, against the definitions by points and against shapely."""

from __future__ import annotations

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.rdf.geosparql import RELATIONS
from tests.places.calls import EPSG_4326, call, geojson

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
SIDES = {  # each against SQUARE: what the standard's definitions say
    "POLYGON((0 0, 0 4, 4 4, 4 0, 0 0))": "sfEquals sfIntersects sfWithin sfContains "
    "ehEquals rcc8eq",
    "POLYGON((1 1, 3 1, 3 3, 1 3, 1 1))": "sfIntersects sfContains ehContains rcc8ntppi",
    "POLYGON((0 1, 3 1, 3 3, 0 3, 0 1))": "sfIntersects sfContains ehCovers rcc8tppi",
    "POLYGON((-1 -1, 5 -1, 5 5, -1 5, -1 -1))": "sfIntersects sfWithin ehInside rcc8ntpp",
    "POLYGON((0 0, 5 0, 5 5, 0 5, 0 0))": "sfIntersects sfWithin ehCoveredBy rcc8tpp",
    "POLYGON((2 2, 6 2, 6 6, 2 6, 2 2))": "sfIntersects sfOverlaps ehOverlap rcc8po",
    "POLYGON((4 0, 8 0, 8 4, 4 4, 4 0))": "sfIntersects sfTouches ehMeet rcc8ec",
    "POLYGON((4 4, 8 4, 8 8, 4 8, 4 4))": "sfIntersects sfTouches ehMeet rcc8ec",
    "POLYGON((9 9, 10 9, 10 10, 9 9))": "sfDisjoint ehDisjoint rcc8dc",
    "LINESTRING(-1 2, 5 2)": "sfIntersects sfCrosses ehOverlap",
    "LINESTRING(0 0, 4 0)": "sfIntersects sfTouches ehMeet",
    "POINT(2 2)": "sfIntersects sfContains ehContains",
    "POINT(4 2)": "sfIntersects sfTouches ehMeet",
    "POINT(5 5)": "sfDisjoint ehDisjoint",
}


@pytest.mark.parametrize("other", SIDES)
def test_a_square_and_another_shape(other: str) -> None:
    held = {name for name in RELATIONS if call(name, SQUARE, other)}
    if "POLYGON" not in other:  # RCC8 is about areas
        held = {name for name in held if not name.startswith("rcc8")}
    assert held == set(SIDES[other].split())


def test_relate() -> None:
    assert call("relate", "POINT(2 2)", SQUARE, '"T*F**F***"') is True
    assert call("relate", "POINT(9 9)", SQUARE, '"T*F**F***"') is False
    assert call("relate", "POINT(9 9)", SQUARE, '"T*F**"') is None


def test_the_axis_order_of_epsg_4326() -> None:
    netherlands = "POLYGON((3 50, 8 50, 8 54, 3 54, 3 50))"
    assert call("sfWithin", f"{EPSG_4326} POINT(52 5)", netherlands) is True
    assert call("sfWithin", f"{EPSG_4326} POINT(5 52)", netherlands) is False
    assert call("sfEquals", f"{EPSG_4326} POINT(52 5)", "POINT(5 52)") is True
    urn = "<urn:ogc:def:crs:EPSG::4326> POINT(52 5)"
    assert call("sfEquals", urn, geojson('{"type": "Point", "coordinates": [5, 52]}')) is True


def test_another_system_is_transformed_to_that_of_the_first_argument() -> None:
    utm = "<http://www.opengis.net/def/crs/EPSG/0/25832>"
    zone = f"{utm} POLYGON((4e5 56e5, 6e5 56e5, 6e5 58e5, 4e5 58e5, 4e5 56e5))"
    assert call("sfContains", zone, "POINT(9 51)") is True
    assert call("sfContains", zone, "POINT(12 51)") is False
    assert call("sfTouches", zone, f"{utm} POINT(500000 5600000)") is True  # exact in its own plane
    assert call("sfEquals", f"{utm} POINT(500000 0)", f"{utm} POINT(500000 0)") is True


def test_empty_geometries() -> None:
    for empty in ("POINT EMPTY", "POLYGON EMPTY", ""):
        assert call("sfDisjoint", empty, SQUARE) is True
        assert call("sfIntersects", empty, SQUARE) is False
        assert call("sfWithin", empty, SQUARE) is False


@pytest.mark.parametrize(
    "bad",
    [
        "POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))",
        "POLYGON((0 0, 1 0, 1 1))",
        "POINT(1)",
        "POINT(1 2) x",
        "POINT(nan 2)",
        "<http://example/nowhere> POINT(1 2)",
        '"POINT(1 2)"',
        "<http://example/a>",
        geojson('{"type": "Feature", "geometry": null}'),
        geojson("{"),
    ],
)
def test_what_is_no_geometry_is_an_error(bad: str) -> None:
    assert call("sfIntersects", bad, SQUARE) is None
    assert call("sfDisjoint", SQUARE, bad) is None
    assert call("asWKT", bad) is None


coordinates = st.tuples(st.integers(0, 4), st.integers(0, 4))
shapes = st.one_of(
    coordinates.map(shapely.Point),
    st.lists(coordinates, min_size=2, max_size=4, unique=True).map(shapely.LineString),
    st.lists(coordinates, min_size=3, max_size=5, unique=True)
    .map(shapely.Polygon)
    .filter(lambda shape: shape.is_valid and shape.area > 0),
)
PREDICATES = [
    "equals",
    "disjoint",
    "intersects",
    "touches",
    "crosses",
    "within",
    "contains",
    "overlaps",
]


@settings(max_examples=30, deadline=None)
@given(shapes, shapes)
def test_simple_features_against_shapely(first: shapely.Geometry, second: shapely.Geometry) -> None:
    for predicate in PREDICATES:
        expected = getattr(shapely, predicate)(first, second)
        assert call(f"sf{predicate.capitalize()}", first.wkt, second.wkt) == expected, predicate
