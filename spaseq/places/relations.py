"""The topological relations of GeoSPARQL 1.1 sections 9.5 to 9.7, on arrays of shapes, and the
index that finds the shapes that may be related: an R-tree (STR, Leutenegger et al. 1997).

Simple features are GEOS's predicates. The relations of Egenhofer and RCC8 are patterns of DE-9IM,
as the standard's tables have them. The tree finds the pairs whose boxes meet; then each pair is
tested. Both are done in the plane that the relation is defined in: that of its first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import shapely

from spaseq.compiled.arrays import Bools, Indices
from spaseq.places import geodesy
from spaseq.places.geometries import DEFAULT, GeometryColumn, ReferenceSystem

Relation: TypeAlias = Callable[[Any, Any], Any]
"""Tests shapes, or arrays [n] of shapes, in one plane."""

Pairs = tuple[Indices, Indices]

_LEAST_RADIUS_M = 6_335_000.0
"""Less than any radius of curvature of WGS 84, so that angles from it are never too small."""


def _patterns(*patterns: str) -> Relation:
    def run(first: Any, second: Any) -> Any:
        matched = [shapely.relate_pattern(first, second, pattern) for pattern in patterns]
        return np.logical_or.reduce(matched)

    return run


def _exchanged(relation: Relation) -> Relation:
    """A relation by its inverse, which GEOS tests faster if the second shape is prepared."""
    return lambda first, second: relation(second, first)


RELATIONS: Mapping[str, Relation] = {
    "sfEquals": shapely.equals,
    "sfDisjoint": shapely.disjoint,
    "sfIntersects": shapely.intersects,
    "sfTouches": shapely.touches,
    "sfCrosses": shapely.crosses,
    "sfWithin": shapely.within,
    "sfContains": shapely.contains,
    "sfOverlaps": shapely.overlaps,
    "ehEquals": shapely.equals,  # the table's pattern TFFFTFFFT would part equal points
    "ehDisjoint": _patterns("FF*FF****"),
    "ehMeet": _patterns("FT*******", "F**T*****", "F***T****"),
    "ehOverlap": _patterns("T*T***T**"),
    "ehCovers": _patterns("T*TFT*FF*"),
    "ehCoveredBy": _patterns("TFF*TFT**"),
    "ehInside": _patterns("TFF*FFT**"),
    "ehContains": _patterns("T*TFF*FF*"),
    "rcc8eq": _patterns("TFFFTFFFT"),
    "rcc8dc": _patterns("FFTFFTTTT"),
    "rcc8ec": _patterns("FFTFTTTTT"),
    "rcc8po": _patterns("TTTTTTTTT"),
    "rcc8tppi": _patterns("TTTFTTFFT"),
    "rcc8tpp": _patterns("TFFTTFTTT"),
    "rcc8ntpp": _patterns("TFFTFFTTT"),
    "rcc8ntppi": _patterns("TTTFFTFFT"),
}
"""By name."""

_WITH_SECOND_PREPARED: Mapping[str, Relation] = {
    "sfWithin": _exchanged(shapely.contains),
    "sfContains": _exchanged(shapely.within),
    "sfIntersects": _exchanged(shapely.intersects),
}


def relation_to_prepared(name: str, prepared_first: bool) -> Relation:
    """A relation between shapes and prepared ones, which are the first or the second argument.

    The function that is returned takes the prepared ones second.
    """
    if prepared_first:
        return _exchanged(RELATIONS[name])
    return _WITH_SECOND_PREPARED.get(name, RELATIONS[name])


def matrix_pattern(pattern: str) -> Relation:
    """The relation of a pattern of DE-9IM; ValueError if it is none."""
    if len(pattern) != 9 or set(pattern.upper()) - set("TF*012"):
        raise ValueError(f"{pattern!r} is no pattern of DE-9IM")
    return partial(_related, pattern.upper())


def _related(pattern: str, first: Any, second: Any) -> Any:
    return shapely.relate_pattern(first, second, pattern)


def holds(test: Relation, first: Any, second: Any, none: Any) -> Any:
    """A test of arrays of shapes; if it fails as a whole, of each pair, `none` for failures."""
    try:
        return test(first, second)
    except shapely.errors.ShapelyError:
        results = np.full(len(first), none)
        for i in range(len(first)):
            try:
                results[i] = test(first[i : i + 1], second[i : i + 1])[0]
            except shapely.errors.ShapelyError:
                continue
        return results


class PlaceIndex:
    """An index over geometries, with a tree for each plane of its queries."""

    def __init__(self, geometries: GeometryColumn) -> None:
        self._own = geometries
        self._trees: dict[tuple[int, str], tuple[Any, Any, Indices]] = {}

    def related(self, relation: str, others: GeometryColumn, own_first: bool) -> Pairs:
        """(numbers of others, numbers of own geometries) of the pairs in a relation.

        `own_first` says that the own geometry is the first argument of the relation.
        """
        test = relation_to_prepared(relation, own_first)
        parts = []
        for i, system in enumerate(self._own.systems):
            for j, other in enumerate(others.systems):
                plane = system if own_first else other
                tree, shapes, rows = self._tree(i, plane)
                probes = others.in_plane(j, plane)
                probe, hit = tree.query(probes)
                passed = holds(test, probes[probe], shapes[hit], False)
                parts.append((probe[passed], rows[hit[passed]]))
        return _joined(parts)

    def near(self, others: GeometryColumn, metres: float, also_equal: bool) -> Pairs:
        """The same for pairs at less than a distance, or at most at it."""
        parts = []
        for i in range(len(self._own.systems)):
            tree, shapes, rows = self._tree(i, DEFAULT)
            for j in range(len(others.systems)):
                probes = others.in_plane(j, DEFAULT)
                probe, hit = _around(tree, probes, metres)
                lengths = geodesy.distances(probes[probe], shapes[hit])
                passed: Bools = lengths <= metres if also_equal else lengths < metres
                parts.append((probe[passed], rows[hit[passed]]))
        return _joined(parts)

    def _tree(self, number: int, plane: ReferenceSystem) -> tuple[Any, Any, Indices]:
        """(tree, its shapes, the number of each) of the geometries of one system, in a plane."""
        key = number, plane.plane
        if key not in self._trees:
            shapes = self._own.in_plane(number, plane)
            rows = np.flatnonzero(shapes != None)  # noqa: E711
            shapely.prepare(shapes[rows])
            self._trees[key] = shapely.STRtree(shapes[rows]), shapes[rows], rows
        return self._trees[key]


def _joined(parts: list[Pairs]) -> Pairs:
    left, right = (np.concatenate(side) for side in zip(*parts, strict=True))
    return left, right


def _around(tree: Any, probes: Any, metres: float) -> Pairs:
    """Pairs whose distance may be within some metres; boxes reach over the date line and poles."""
    low_x, low_y, high_x, high_y = shapely.bounds(probes).T
    # Moved by 0.2 degrees, since latitudes of the ellipsoid and of a sphere differ by less.
    latitude = np.minimum(np.maximum(np.abs(low_y), np.abs(high_y)) + 0.2, 90.0)
    angle = 1.01 * metres / _LEAST_RADIUS_M
    north = np.degrees(angle) + 1e-9
    cosine = np.cos(np.radians(latitude))
    share = np.divide(
        np.sin(min(angle, np.pi / 2)), cosine, where=cosine > 1e-9, out=cosine * 0 + 1
    )
    over_pole = (share >= 1) | (np.maximum(np.abs(low_y), np.abs(high_y)) + north >= 90)
    east = np.where(over_pole, 360.0, np.degrees(np.arcsin(np.minimum(share, 1))) + 1e-9)
    boxes = low_x - east, low_y - north, high_x + east, high_y + north
    parts = []
    for turn in (-360.0, 0.0, 360.0):
        moved = shapely.box(boxes[0] + turn, boxes[1], boxes[2] + turn, boxes[3])
        moved[np.isnan(low_x)] = None
        parts.append(tree.query(moved))
    pairs = np.unique(np.concatenate(parts, axis=1), axis=1)
    return pairs[0], pairs[1]
