"""Buffers in metres: the places within a distance of a shape on WGS 84, as a shape in CRS84.

A shape's outline is cut into short pieces. Each is buffered in a plane around it that keeps
distances from its middle, and comes back as longitudes and latitudes; their union is the buffer.
What crosses the date line is cut there, and what holds a pole reaches up to it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from pyproj import Transformer

from spaseq.compiled.arrays import Float64s
from spaseq.places.geodesy import pieces

_GREATEST_M = 9_900_000.0
"""A circle of a greater radius may hold both poles."""

_QUARTER = 16  # corners of a quarter of a circle
_FINE = 64  # edges of a circle are divided, since they are bent in longitude and latitude
_PIECE_M = 50_000.0


def buffer(shape: Any, metres: float) -> Any:
    """The buffer; with a negative distance the places that are further inside than that.

    Raises:
        ValueError: the distance is too great, or a coordinate is not on the globe.
    """
    if not abs(metres) <= _GREATEST_M:
        raise ValueError(f"a buffer of {metres:g} m is wider than {_GREATEST_M:g} m")
    if shape.is_empty or (metres < 0 and shapely.get_dimensions(shape) < 2):
        return shapely.Polygon()
    if metres == 0:
        return shapely.buffer(shape, 0)
    start, end = _short(*pieces(np.array([shape]))[:2], max(_PIECE_M, abs(metres) / 4))
    if (np.abs(np.concatenate([start, end])[:, 1]) > 90).any():
        raise ValueError("a latitude is beyond a pole")
    around = shapely.union_all([_piece(a, b, abs(metres)) for a, b in zip(start, end, strict=True)])
    return shapely.difference(shape, around) if metres < 0 else shapely.union(shape, around)


def _short(start: Float64s, end: Float64s, most_m: float) -> tuple[Float64s, Float64s]:
    """The pieces, divided so that none is longer than that (m)."""
    starts, ends = [], []
    for a, b in zip(start, end, strict=True):
        share = np.cos(np.radians(min(abs(a[1]), abs(b[1]))))
        length = 111_700.0 * np.hypot((b[0] - a[0]) * share, b[1] - a[1])
        at = np.linspace(0, 1, max(1, int(np.ceil(length / most_m))) + 1)[:, None]
        corners = a + at * (b - a)
        starts.append(corners[:-1])
        ends.append(corners[1:])
    return np.concatenate(starts), np.concatenate(ends)


@lru_cache(maxsize=1024)
def _plane(longitude: float, latitude: float) -> Transformer:
    middle = f"+proj=aeqd +lat_0={latitude!r} +lon_0={longitude!r} +datum=WGS84"
    return Transformer.from_crs("OGC:CRS84", middle, always_xy=True)


def _piece(start: Float64s, end: Float64s, metres: float) -> Any:
    """The buffer of a short piece."""
    middle = (start + end) / 2
    plane = _plane(float(middle[0]), float(middle[1]))
    corners = np.stack([start, middle, end])
    x, y = plane.transform(corners[:, 0], corners[:, 1])
    line = np.stack([x, y], axis=1)
    core = shapely.points(line[1]) if (start == end).all() else shapely.linestrings(line)
    quarter = _QUARTER if metres < 1_000_000 else _FINE
    ring = shapely.get_coordinates(shapely.buffer(core, metres, quad_segs=quarter).exterior)
    longitude, latitude = plane.transform(ring[:, 0], ring[:, 1], direction="INVERSE")
    return _on_globe(np.asarray(longitude), np.asarray(latitude), middle)


def _on_globe(longitude: Float64s, latitude: Float64s, middle: Float64s) -> Any:
    """The area in a ring of places around a middle, cut at the date line."""
    turns = np.diff(longitude)
    turns -= 360 * np.round(turns / 360)
    unrolled = middle[0] + (longitude[0] - middle[0] + 180) % 360 - 180
    unrolled = unrolled + np.concatenate([[0.0], np.cumsum(turns)])
    ring = np.stack([unrolled, latitude], axis=1)
    if abs(turns.sum()) > 180:  # around a pole
        pole = 90.0 if middle[1] > 0 else -90.0
        ring = np.concatenate([ring, [[ring[-1, 0], pole], [ring[0, 0], pole], ring[0]]])
    area = shapely.make_valid(shapely.polygons(ring))
    if ring[:, 0].min() >= -180 and ring[:, 0].max() <= 180:
        return area
    first, last = (
        int(np.floor((edge + 180) / 360)) for edge in (ring[:, 0].min(), ring[:, 0].max())
    )
    worlds = []
    for turn in range(first, last + 1):
        part = shapely.intersection(area, shapely.box(-180 + 360 * turn, -90, 180 + 360 * turn, 90))
        worlds.append(shapely.transform(part, lambda c, by=360.0 * turn: c - [by, 0.0]))
    return shapely.union_all(worlds)
