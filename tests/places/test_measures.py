"""Distances, areas, lengths and buffers on WGS 84, against pyproj and against many small steps."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from tests.places.calls import EPSG_4326, call

GEOD = Geod(ellps="WGS84")
BOX = "POLYGON((5 50, 6 50, 6 51, 5 51, 5 50))"


def distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    return float(GEOD.inv(*a, *b)[2])


def test_distances_of_points_and_units() -> None:
    metres = distance((4, 52), (4, 53))
    for other in ("POINT(4 53)", f"{EPSG_4326} POINT(53 4)"):
        assert call("distance", "POINT(4 52)", other) == pytest.approx(metres)
    assert call("metricDistance", "POINT(4 52)", "POINT(4 53)") == pytest.approx(metres)
    units = {"metre": 1, "kilometre": 1000, "statuteMile": 1609.344, "radian": 6371008.8}
    for unit, size in units.items():
        found = call("distance", "POINT(4 52)", "POINT(4 53)", f"uom:{unit}")
        assert found == pytest.approx(metres / size)
    degrees = call("distance", "POINT(4 52)", "POINT(4 53)", "uom:degree")
    assert degrees == pytest.approx(1, rel=0.01)
    assert call("distance", "POINT(4 52)", "POINT(4 53)", "uom:furlong") is None
    assert call("distance", "POINT(4 95)", "POINT(4 53)") is None
    assert call("distance", "POINT EMPTY", "POINT(4 53)") is None


def test_distances_over_the_date_line_and_the_poles() -> None:
    east = "POLYGON((-179.9 -1, -179 -1, -179 1, -179.9 1, -179.9 -1))"
    assert call("distance", "POINT(179.9 0)", east) == pytest.approx(
        distance((179.9, 0), (-179.9, 0)), abs=1e-3
    )
    assert call("distance", "POINT(0 89)", "POINT(180 89)") == pytest.approx(
        distance((0, 89), (180, 89))
    )
    cap = "POLYGON((-180 89, 180 89, 180 90, -180 90, -180 89))"
    assert call("distance", "POINT(50 88)", cap) == pytest.approx(distance((50, 88), (50, 89)))
    assert call("distance", "POINT(50 89.5)", cap) == 0


def nearest(place: shapely.Point, shape: shapely.Geometry, steps: int = 2000) -> float:
    """The least distance to the outline, by small steps."""
    outline = shape.boundary if shape.geom_type == "Polygon" else shape
    corners = shapely.get_coordinates(outline)
    along = np.linspace(0, 1, steps)[:, None]
    line = np.concatenate([a + along * (b - a) for a, b in pairwise(corners)])
    x, y = (np.full(len(line), c) for c in (place.x, place.y))
    return float(GEOD.inv(x, y, line[:, 0], line[:, 1])[2].min())


places = st.tuples(st.floats(-180, 180, allow_nan=False), st.floats(-89, 89, allow_nan=False)).map(
    lambda place: (round(place[0], 4), round(place[1], 4))
)


@settings(max_examples=12, deadline=None)
@given(places, st.lists(places, min_size=2, max_size=4, unique=True))
def test_far_distances_to_lines_by_small_steps(
    place: tuple[float, float], corners: list[tuple[float, float]]
) -> None:
    point, line = shapely.Point(place), shapely.LineString(corners)
    if point.distance(line) < 1e-3:
        return
    found, steps = call("distance", point.wkt, line.wkt), nearest(point, line)
    longest = line.length / 2000 * 112_000
    assert steps - longest / 2 - 1e-6 <= found <= steps + 1e-6


@settings(max_examples=12, deadline=None)
@given(places, st.floats(0, 360), st.floats(10, 15000), st.floats(0, 180))
def test_near_distances_to_areas_by_small_steps(
    place: tuple[float, float], direction: float, metres: float, turn: float
) -> None:
    """A triangle with a corner at a known distance, which may be nearer with an edge."""
    if abs(place[1]) > 80 or abs(place[0]) > 178:
        return
    corner = GEOD.fwd(*place, direction, metres)[:2]
    others = [GEOD.fwd(*corner, direction + turn + more, 3000)[:2] for more in (-100, 10)]
    point, area = shapely.Point(place), shapely.Polygon([corner, *others])
    found = call("distance", area.wkt, point.wkt)
    expected = 0 if area.intersects(point) else nearest(point, area)
    assert found == pytest.approx(expected, abs=0.01)


def test_distances_of_areas() -> None:
    other = "POLYGON((7 50.2, 8 50.2, 8 50.4, 7 50.4, 7 50.2))"
    expected = nearest(shapely.Point(7, 50.4), shapely.from_wkt(BOX), 100_000)
    assert call("distance", BOX, other) == pytest.approx(expected, abs=1e-3)
    assert call("distance", BOX, "LINESTRING(5.5 40, 5.5 60)") == 0


def test_areas_and_lengths() -> None:
    shape = shapely.from_wkt(BOX)
    area, around = GEOD.geometry_area_perimeter(shapely.geometry.polygon.orient(shape))
    assert call("area", BOX) == call("metricArea", BOX) == pytest.approx(area)
    assert call("area", BOX, "uom:kilometre") == pytest.approx(area / 1e6)
    clockwise = "POLYGON((5 50, 5 51, 6 51, 6 50, 5 50))"
    assert call("area", clockwise) == pytest.approx(area)
    for name in ("length", "perimeter", "metricLength", "metricPerimeter"):
        assert call(name, BOX) == pytest.approx(around)
    assert call("length", "LINESTRING(4 52, 4 53)") == pytest.approx(distance((4, 52), (4, 53)))
    assert call("perimeter", "LINESTRING(4 52, 4 53)") == 0
    holed = "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))"
    whole, hole = "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))", "POLYGON((1 1, 2 1, 2 2, 1 2, 1 1))"
    assert call("area", holed) == pytest.approx(call("area", whole) - call("area", hole))
    over = "POLYGON((179 0, -179 0, -179 1, 179 1, 179 0))"  # its edges are geodesics, so short
    assert call("area", over) == pytest.approx(call("area", "POLYGON((0 0,2 0,2 1,0 1,0 0))"))


@pytest.mark.parametrize(
    ("x", "y", "metres"),
    [(4, 52, 1000), (179.999, 10, 1000), (-180, -45, 30_000), (0, 89.99, 5000), (7, -90, 2e5)],
)
def test_a_buffer_is_a_circle_on_the_earth(x: float, y: float, metres: float) -> None:
    circle = shapely.from_wkt(call("buffer", f"POINT({x} {y})", metres))
    assert circle.is_valid and circle.bounds[0] >= -180 and circle.bounds[2] <= 180
    for direction in range(0, 360, 10):
        for share, inside in ((0.99, True), (1.01, False)):
            place = GEOD.fwd(x, y, direction, share * metres)[:2]
            assert circle.intersects(shapely.Point(place)) is inside
    area = call("area", circle.wkt)
    assert area == pytest.approx(math.pi * metres**2, rel=0.01)


def test_buffers_of_other_shapes() -> None:
    line = shapely.from_wkt(call("buffer", "LINESTRING(0 60, 3 60)", 1000.0, "uom:metre"))
    for x in (0, 1.5, 3):
        for metres, inside in ((990, True), (1010, False)):
            assert line.contains(shapely.Point(GEOD.fwd(x, 60, 0, metres)[:2])) is inside
    smaller = shapely.from_wkt(call("buffer", BOX, -2.0, "uom:kilometre"))
    assert smaller.within(shapely.from_wkt(BOX))
    assert smaller.contains(shapely.Point(GEOD.fwd(5, 50.5, 90, 2050)[:2]))
    assert not smaller.contains(shapely.Point(GEOD.fwd(5, 50.5, 90, 1950)[:2]))
    assert call("buffer", "POINT(0 0)", 1e7) is None
    north = call("buffer", f"{EPSG_4326} POINT(60 0)", 10.0)
    assert north.startswith(f"{EPSG_4326} POLYGON ((59.9999") and call("minX", north) < 60
