"""The functions of GeoSPARQL 1.1 over columns of arguments, which are N-Triples texts.

A result is the N-Triples text of a literal, or a bool, int or float.

Planar functions (hulls, boxes, set operations) use the plane of the first argument, as the standard
requires; functions with a unit of length use WGS 84.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import shapely

from spaseq.compiled.arrays import Bools, Float64s, Indices
from spaseq.places import geodesy
from spaseq.places.geometries import (
    DEFAULT,
    Geometry,
    GeometryColumn,
    geometry,
    reference_system,
    written,
    written_as_json,
)
from spaseq.places.relations import RELATIONS, Relation, holds, matrix_pattern
from spaseq.rdf.geosparql import METRES, OGC, metres_of
from spaseq.rdf.terms.term import XSD, literal_text, split_literal

Rows: TypeAlias = Sequence[Sequence[str]]
Result: TypeAlias = str | bool | int | float
Results: TypeAlias = "list[Result | None]"

_METRE = f"<{OGC}metre>"
_SIMPLE_FEATURES = "http://www.opengis.net/ont/sf#"
_FAILURES = (ValueError, IndexError, KeyError, ArithmeticError, shapely.errors.ShapelyError)


def results(name: str, rows: Rows) -> Results:
    """The results of a function for n rows of arguments; None where the call is an error."""
    if name in RELATIONS:
        return _related(RELATIONS[name], rows)
    if name == "relate":
        return _by_pattern(rows)
    if name in ("distance", "metricDistance"):
        return _distances(rows)
    run = _BY_ROW[name]
    return [_or_none(run, row) for row in rows]


def _or_none(run: Callable[..., Result], row: Sequence[str]) -> Result | None:
    try:
        return run(*row)
    except _FAILURES:
        return None


# --- terms ----------------------------------------------------------------------------------------


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise ValueError("no number")
    return float(value)


def _any_uri(value: str) -> str:
    return literal_text(value, XSD + "anyURI")


def _number(term: str) -> float:
    lexical, datatype, language = split_literal(term)
    if language is not None or not datatype.startswith(XSD) or datatype == XSD + "string":
        raise ValueError(f"{term} is no number")
    return float(lexical)


# --- two columns of geometries --------------------------------------------------------------------


Pairs: TypeAlias = tuple[GeometryColumn, Indices, GeometryColumn, Indices]
"""Two columns of distinct geometries; behind each, the number [n] of the geometry of each pair."""


def passing(name: str, pairs: Pairs, metres: float, also_equal: bool) -> Bools:
    """Which pairs of places pass a test.

    Args:
        name: that of a relation, or `distance`.
        metres, also_equal: the limit of a distance, and whether the distance may have it.
    """
    if name in RELATIONS:
        related: Bools = _outcomes(RELATIONS[name], pairs) == 1
        return related
    distances: Float64s = _tested(geodesy.distances, pairs, np.nan, plane=False)
    return distances <= metres if also_equal else distances < metres


def _pairs(rows: Rows) -> Pairs:
    """The geometries of the first two arguments."""
    columns: list[Any] = []
    for argument in (0, 1):
        numbers: dict[str, int] = {}
        which = [numbers.setdefault(row[argument], len(numbers)) for row in rows]
        columns += [GeometryColumn.of(list(numbers)), np.array(which, np.intp)]
    return columns[0], columns[1], columns[2], columns[3]


def _tested(test: Callable[[Any, Any], Any], pairs: Pairs, none: Any, plane: bool = True) -> Any:
    """The results [n] of a test of pairs in one plane; `none` where an argument is bad.

    The plane is that of the first argument, or CRS84.
    """
    first, left, second, right = pairs
    outcomes = np.full(len(left), none)
    for i, system in enumerate(first.systems):
        for j in range(len(second.systems)):
            chosen = np.flatnonzero((first.system[left] == i) & (second.system[right] == j))
            target = system if plane else DEFAULT
            a = first.in_plane(i, target)[left[chosen]]
            b = second.in_plane(j, target)[right[chosen]]
            there = (a != None) & (b != None)  # noqa: E711
            if there.any():
                outcomes[chosen[there]] = holds(test, a[there], b[there], none)
    return outcomes


_TRUTH = (False, True, None)


def _outcomes(relation: Relation, pairs: Pairs) -> Any:
    """[n] the places of the results in `_TRUTH`."""
    return _tested(lambda a, b: relation(a, b).astype(np.int8), pairs, np.int8(2))


def _related(relation: Relation, rows: Rows) -> Results:
    return [_TRUTH[value] for value in _outcomes(relation, _pairs(rows)).tolist()]


def _by_pattern(rows: Rows) -> Results:
    outcomes: Results = [None] * len(rows)
    for pattern in {row[2] for row in rows}:
        alike = [i for i, row in enumerate(rows) if row[2] == pattern]
        try:
            relation = matrix_pattern(split_literal(pattern)[0])
        except ValueError:
            continue
        for i, result in zip(alike, _related(relation, [rows[i] for i in alike]), strict=True):
            outcomes[i] = result
    return outcomes


def _distances(rows: Rows) -> Results:
    metres: Float64s = _tested(geodesy.distances, _pairs(rows), np.nan, plane=False)
    units = [METRES.get(row[2][1:-1]) if len(row) > 2 else 1.0 for row in rows]
    return [
        None if unit is None or not np.isfinite(value) else _finite(value / unit)
        for value, unit in zip(metres.tolist(), units, strict=True)
    ]


# --- one row --------------------------------------------------------------------------------------


def _of_shape(make: Callable[[Any], Any]) -> Callable[[str], str]:
    def run(term: str) -> str:
        given = geometry(term)
        return given.with_shape(make(given.shape))

    return run


def _of_shapes(make: Callable[[Any, Any], Any]) -> Callable[[str, str], str]:
    def run(first: str, second: str) -> str:
        given = geometry(first)
        return given.with_shape(make(given.shape, geometry(second).within_plane_of(given.system)))

    return run


def _measured(measure: Callable[[Any], float], power: int) -> Callable[..., Result]:
    def run(term: str, unit: str = _METRE) -> float:
        shape = geometry(term).within_plane_of(DEFAULT)
        return _finite(measure(shape) / metres_of(unit) ** power)

    return run


def _buffered(term: str, radius: str, unit: str = _METRE) -> str:
    given = geometry(term)
    shape = given.within_plane_of(DEFAULT)
    buffered = geodesy.buffer(shape, _number(radius) * metres_of(unit))
    return given.with_shape(Geometry(buffered).within_plane_of(given.system))


def _transformed(term: str, iri: str) -> str:
    name = iri[1:-1] if iri[:1] == "<" else split_literal(iri)[0]
    system = reference_system(name)
    return written(geometry(term).within_plane_of(system), system)


def _as_json(term: str) -> str:
    return written_as_json(geometry(term).within_plane_of(DEFAULT))


def _as_wkt(term: str) -> str:
    given = geometry(term)
    return written(given.shape, given.system)


def _part(term: str, number: str) -> str:
    given, wanted = geometry(term), int(split_literal(number)[0])
    if not 1 <= wanted <= shapely.get_num_geometries(given.shape):
        raise IndexError(wanted)
    return given.with_shape(shapely.get_geometry(given.shape, wanted - 1))


def _axis(coordinate: int, greatest: bool) -> Callable[[str], float]:
    def run(term: str) -> float:
        given = geometry(term)
        axis = 1 - coordinate if given.system.swapped and coordinate < 2 else coordinate
        numbers = shapely.get_coordinates(given.shape, include_z=coordinate == 2)[:, axis]
        return _finite(numbers.max() if greatest else numbers.min())

    return run


def _type(term: str) -> str:
    name = {"LinearRing": "LineString"}.get(kind := geometry(term).shape.geom_type, kind)
    return _any_uri(_SIMPLE_FEATURES + name)


def _coordinates(term: str, measures: bool) -> int:
    shape = geometry(term).shape
    return int(2 + bool(shapely.has_z(shape)) + (measures and _has_measures(shape)))


def _has_measures(shape: Any) -> bool:
    return bool(shapely.has_m(shape)) if hasattr(shapely, "has_m") else False


_BY_ROW: Mapping[str, Callable[..., Result]] = {
    "buffer": _buffered,
    "metricBuffer": _buffered,
    "convexHull": _of_shape(shapely.convex_hull),
    "envelope": _of_shape(shapely.envelope),
    "boundary": _of_shape(lambda shape: shapely.boundary(shape) or shapely.GeometryCollection()),
    "boundingCircle": _of_shape(shapely.minimum_bounding_circle),
    "centroid": _of_shape(shapely.centroid),
    "intersection": _of_shapes(shapely.intersection),
    "union": _of_shapes(shapely.union),
    "difference": _of_shapes(shapely.difference),
    "symDifference": _of_shapes(shapely.symmetric_difference),
    "area": _measured(geodesy.area, 2),
    "metricArea": _measured(geodesy.area, 2),
    "length": _measured(geodesy.length, 1),
    "metricLength": _measured(geodesy.length, 1),
    "perimeter": _measured(geodesy.perimeter, 1),
    "metricPerimeter": _measured(geodesy.perimeter, 1),
    "getSRID": lambda term: _any_uri(geometry(term).system.iri),
    "asWKT": _as_wkt,
    "asGeoJSON": _as_json,
    "transform": _transformed,
    "dimension": lambda term: int(shapely.get_dimensions(geometry(term).shape)),
    "coordinateDimension": lambda term: _coordinates(term, True),
    "spatialDimension": lambda term: _coordinates(term, False),
    "geometryType": _type,
    "isEmpty": lambda term: bool(geometry(term).shape.is_empty),
    "isSimple": lambda term: bool(geometry(term).shape.is_simple),
    "is3D": lambda term: bool(geometry(term).shape.has_z),
    "isMeasured": lambda term: bool(_has_measures(geometry(term).shape)),
    "numGeometries": lambda term: int(shapely.get_num_geometries(geometry(term).shape)),
    "geometryN": _part,
    "minX": _axis(0, False),
    "maxX": _axis(0, True),
    "minY": _axis(1, False),
    "maxY": _axis(1, True),
    "minZ": _axis(2, False),
    "maxZ": _axis(2, True),
}


# --- set functions --------------------------------------------------------------------------------

_OF_ALL: Mapping[str, Callable[[Any], Any]] = {
    "aggUnion": shapely.union_all,
    "aggBoundingBox": lambda shapes: shapely.envelope(shapely.geometrycollections(shapes)),
    "aggBoundingCircle": lambda shapes: shapely.minimum_bounding_circle(
        shapely.geometrycollections(shapes)
    ),
    "aggCentroid": lambda shapes: shapely.centroid(shapely.geometrycollections(shapes)),
    "aggConvexHull": lambda shapes: shapely.convex_hull(shapely.geometrycollections(shapes)),
}


def combined(name: str, terms: Sequence[str]) -> str:
    """The result of a set function over geometries, in the plane of the first one.

    Raises:
        ValueError: one is bad, or there is none.
    """
    shapes = [geometry(term) for term in terms]
    if not shapes:
        raise ValueError("no geometry")
    first = shapes[0]
    try:
        return first.with_shape(_OF_ALL[name]([g.within_plane_of(first.system) for g in shapes]))
    except shapely.errors.ShapelyError as error:
        raise ValueError(str(error)) from error
