"""A spatial index: an R-tree (STR, Leutenegger et al. 1997) over geometries.

The tree finds the pairs whose boxes meet; then each pair is tested. Both are done in the plane that
the relation is defined in: that of its first argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

from spaseq.compiled.arrays import Bools, Indices
from spaseq.places import geodesy
from spaseq.places.geometries import GeometryColumn
from spaseq.places.reference_systems import DEFAULT, ReferenceSystem
from spaseq.places.relations import holds, relation_to_prepared

Pairs = tuple[Indices, Indices]

_LEAST_RADIUS_M = 6_335_000.0
"""Less than any radius of curvature of WGS 84, so that angles from it are never too small."""


class PlaceIndex:
    """An index over geometries, with a tree for each plane that it is asked in."""

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
