"""Distances, lengths and areas on the ellipsoid of WGS 84, in metres, and buffers in metres.

Shapes are in CRS84. Lengths and areas have geodesics between the corners of a shape. Distances keep
the straight lines in longitude and latitude, as the relations do, so that shapes that intersect are
at distance 0: the nearest place on such a line is found by geodesics to it.

A buffer is the places within a distance of a shape. The shape's outline is cut into short pieces.
Each is buffered in a plane around it that keeps distances from its middle, and comes back as
longitudes and latitudes; their union is the buffer. A buffer across the date line is cut there, and
one around a pole reaches up to it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from pyproj import Geod, Transformer
from shapely.geometry.polygon import orient

from spaseq.compiled.arrays import Float64s, Indices

ELLIPSOID = Geod(ellps="WGS84")
_POLAR_RADIUS_M = 6_399_594.0  # of curvature, the greatest
_PIECE_DEGREES = 1.0
_MOST_CORNERS = 1 << 18  # that are looked at together
_SMALL_M = 1e-4
_SHORT_M = 20_000.0

_GREATEST_M = 9_900_000.0
"""A circle of a greater radius may hold both poles."""

_QUARTER = 16  # corners of a quarter of a circle
_FINE = 64  # edges of a circle are divided, since they are bent in longitude and latitude
_PIECE_M = 50_000.0


def point_distances(a: Float64s, b: Float64s) -> Float64s:
    """The geodesic distances (m) between places [n, 2] of longitude and latitude."""
    metres: Float64s = ELLIPSOID.inv(a[:, 0], a[:, 1], b[:, 0], b[:, 1])[2]
    return metres


def distances(first: Any, second: Any) -> Float64s:
    """The distances (m) between pairs of shapes [n]; NaN where one is empty or off the globe."""
    metres = np.full(len(first), np.nan)
    left = shapely.get_type_id(first) == 0
    right = shapely.get_type_id(second) == 0
    there = ~shapely.is_empty(first) & ~shapely.is_empty(second)
    rows = np.flatnonzero(left & right & there)
    if len(rows):
        a, b = (shapely.get_coordinates(shapes[rows]) for shapes in (first, second))
        metres[rows] = point_distances(a, b)
    for points, shapes, rows in (
        (first, second, np.flatnonzero(left & ~right & there)),
        (second, first, np.flatnonzero(right & ~left & there)),
    ):
        if len(rows):
            metres[rows] = _short_distances(points[rows], shapes[rows])
        far = rows[np.isnan(metres[rows])]
        if len(far):
            metres[far] = _far_distances(shapely.get_coordinates(points[far]), shapes[far])
    for row in np.flatnonzero(there & ~left & ~right):
        metres[row] = _between(first[row], second[row])
    return metres


def _between(first: Any, second: Any) -> float:
    """The distance (m) between two shapes that are no points."""
    if shapely.intersects(first, second):
        return 0.0
    least = np.inf
    for shape, target in ((first, second), (second, first)):
        places = np.unique(
            shapely.get_coordinates(shapely.segmentize(shape, _PIECE_DEGREES)), axis=0
        )
        least = min(least, float(_far_distances(places, np.repeat(target, len(places))).min()))
    return least


def _short_distances(points: Any, shapes: Any) -> Float64s:
    """The distances (m) between points and other shapes [n]; NaN for long distances.

    The nearest point is found in a plane whose scale is that of the point, and again with the scale
    halfway.
    """
    metres = np.full(len(points), np.nan)
    metres[shapely.intersects(shapes, points)] = 0.0
    rows = np.flatnonzero(metres != 0)
    places = shapely.get_coordinates(points[rows])
    scale, nearest = places[:, 1], places
    for _ in range(2):
        nearest = _nearest_in_plane(places, shapes[rows], scale)
        scale = (places[:, 1] + nearest[:, 1]) / 2
    lengths = point_distances(places, nearest)
    short = (lengths < _SHORT_M) & (np.abs(places[:, 1]) < 85)
    metres[rows[short]] = lengths[short]
    return metres


def _nearest_in_plane(places: Float64s, shapes: Any, latitude: Float64s) -> Float64s:
    """The places [n, 2] of shapes nearest to places, in planes with the scales of latitudes."""
    sine = np.sin(np.radians(latitude))
    root = np.sqrt(1 - ELLIPSOID.es * sine**2)
    east = np.cos(np.radians(latitude)) / root
    scale = np.stack([east, (1 - ELLIPSOID.es) / root**3], axis=1)
    corners, which = shapely.get_coordinates(shapes, return_index=True)
    scaled = shapely.set_coordinates(
        shapely.force_2d(shapes), (corners - places[which]) * scale[which]
    )
    lines = shapely.shortest_line(shapely.points(np.zeros(2)), scaled)
    nearest: Float64s = places + shapely.get_coordinates(lines)[1::2] / scale
    return nearest


def _far_distances(places: Float64s, shapes: Any) -> Float64s:
    """The distances (m) from places [n, 2] to shapes that they are not in."""
    sizes = shapely.get_num_coordinates(shapes)
    metres = np.empty(len(places))
    low = 0
    while low < len(places):
        high = low + max(1, int(np.searchsorted(np.cumsum(sizes[low:]), _MOST_CORNERS)))
        metres[low:high] = _to_outlines(places[low:high], shapes[low:high])
        low = high
    return metres


def pieces(shapes: Any) -> tuple[Float64s, Float64s, Indices]:
    """(starts [m, 2], ends, numbers of shapes) of straight pieces that make up the outlines.

    A piece is at most a degree long. A point is a piece without length.
    """
    parts, owner = shapely.get_parts(shapes, return_index=True)
    while (shapely.get_type_id(parts) >= 4).any():
        parts, which = shapely.get_parts(parts, return_index=True)
        owner = owner[which]
    areas = shapely.get_type_id(parts) == 3
    rings, which = shapely.get_rings(parts[areas], return_index=True)
    lines = np.concatenate([parts[~areas], rings]).astype(object)
    lines = shapely.segmentize(lines, _PIECE_DEGREES)
    owner = np.concatenate([owner[~areas], owner[areas][which]])
    corners, line = shapely.get_coordinates(lines, return_index=True)
    inner = line[1:] == line[:-1]
    alone = shapely.get_type_id(lines)[line] == 0
    start = np.concatenate([corners[:-1][inner], corners[alone]])
    end = np.concatenate([corners[1:][inner], corners[alone]])
    return start, end, owner[np.concatenate([line[:-1][inner], line[alone]])]


def _to_outlines(places: Float64s, shapes: Any) -> Float64s:
    """The distances (m) from places to the outlines of shapes [n]; infinite if beyond a pole."""
    start, end, owner = pieces(shapes)
    there = _in_space(places)[owner]
    chords = [np.linalg.norm(there - _in_space(corner), axis=1) for corner in (start, end)]
    # No geodesic is shorter than the chord, and no place of a piece further from an end than the
    # piece is long. On the other hand, a geodesic is at most pi/2 times the chord.
    most = _least(np.minimum(*chords) * np.pi / 2, owner, len(places))
    kept = (chords[0] + chords[1] - _lengths(start, end)) / 2 <= most[owner]
    return _to_pieces(places, start[kept], end[kept], owner[kept])


def _least(values: Float64s, owner: Indices, count: int) -> Float64s:
    least = np.full(count, np.inf)
    np.minimum.at(least, owner, values)
    return least


def _in_space(places: Float64s) -> Float64s:
    """The places [n, 3] in metres from the earth's centre."""
    longitude, latitude = np.radians(places[:, 0]), np.radians(places[:, 1])
    squared = ELLIPSOID.es
    normal = ELLIPSOID.a / np.sqrt(1 - squared * np.sin(latitude) ** 2)
    flat = normal * np.cos(latitude)
    height = normal * (1 - squared) * np.sin(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), height], axis=1)


def _lengths(start: Float64s, end: Float64s) -> Float64s:
    """Upper bounds (m) of the lengths of straight pieces."""
    east, north = np.radians(np.abs(end - start)).T
    latitude = np.radians(np.minimum(np.abs(start[:, 1]), np.abs(end[:, 1])))
    latitude[np.sign(start[:, 1]) != np.sign(end[:, 1])] = 0.0
    metres: Float64s = _POLAR_RADIUS_M * np.hypot(east * np.cos(latitude), north)
    return metres


def _to_pieces(places: Float64s, start: Float64s, end: Float64s, owner: Indices) -> Float64s:
    """The distance (m) of each place [n, 2] to its pieces; `owner` is each piece's place.

    Pieces are halved until they are short for their distance, and left out if they are surely not
    nearest. There the squared distance is nearly a parabola, whose lowest point is looked for again
    around the last one.
    """
    near, far = (point_distances(places[owner], corner) for corner in (start, end))
    while True:
        length = _lengths(start, end)
        most = _least(np.minimum(near, far), owner, len(places))
        kept = (near + far - length) / 2 <= most[owner]
        start, end, owner = start[kept], end[kept], owner[kept]
        near, far, length = near[kept], far[kept], length[kept]
        if not (length > np.maximum(0.05 * np.minimum(near, far), _SMALL_M)).any():
            break
        middle = (start + end) / 2
        half = point_distances(places[owner], middle)
        owner = np.concatenate([owner, owner])
        start, end = np.concatenate([start, middle]), np.concatenate([middle, end])
        near, far = np.concatenate([near, half]), np.concatenate([half, far])
    metres = np.minimum(near, far)
    targets = places[owner]
    low, high = np.zeros(len(start)), np.ones(len(start))
    for _ in range(3):
        at = np.stack([low, (low + high) / 2, high])
        values = np.stack([point_distances(targets, _along(start, end, t)) for t in at]) ** 2
        lowest = _lowest(at, values)
        metres = np.minimum(metres, point_distances(targets, _along(start, end, lowest)))
        width = (high - low) / 20
        low, high = np.maximum(lowest - width, 0), np.minimum(lowest + width, 1)
    return _least(metres, owner, len(places))


def _along(start: Float64s, end: Float64s, share: Float64s) -> Float64s:
    points: Float64s = start + share[:, None] * (end - start)
    return points


def _lowest(at: Float64s, values: Float64s) -> Float64s:
    """The minima of parabolas through three equally distant points [3, n], between these."""
    low, middle, high = values
    bend = low - 2 * middle + high
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(bend > 0, (low - high) / (2 * bend), np.where(low < high, -1.0, 1.0))
    half = (at[2] - at[0]) / 2
    lowest: Float64s = at[1] + half * np.clip(np.nan_to_num(shift), -1, 1)
    return lowest


# --- lengths and areas ----------------------------------------------------------------------------


def length(shape: Any) -> float:
    """The length (m) of the lines and of the rings of areas."""
    parts = [part for part in _simple_parts(shape) if shapely.get_dimensions(part) > 0]
    return sum((float(ELLIPSOID.geometry_length(part)) for part in parts), 0.0)


def perimeter(shape: Any) -> float:
    """The length (m) of the rings of areas."""
    return sum((length(area) for area in _areas(shape)), 0.0)


def area(shape: Any) -> float:
    """The area (square metres)."""
    return sum((abs(ELLIPSOID.geometry_area_perimeter(orient(a))[0]) for a in _areas(shape)), 0.0)


def _areas(shape: Any) -> list[Any]:
    return [part for part in _simple_parts(shape) if shapely.get_dimensions(part) == 2]


def _simple_parts(shape: Any) -> list[Any]:
    """The points, lines and areas of a shape, without empty ones."""
    parts, simple = [shape], []
    while parts:
        part = parts.pop()
        if shapely.get_type_id(part) >= 4:
            parts += list(part.geoms)
        elif not part.is_empty:
            simple.append(part)
    return simple


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
