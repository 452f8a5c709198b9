"""Literals as geometries: reading `geo:wktLiteral` and `geo:geoJSONLiteral`, and writing them.

Each distinct literal is read once as long as it is in a bounded cache. A literal that is no
geometry, or an invalid one, is counted whenever a function meets it.

Coordinate reference systems have names, an order of their axes, and changes between them. Inside,
the first coordinate always points east, as in CRS84, and the second north. So CRS84 and EPSG:4326,
which begins with the latitude, are one *plane*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from spaseq.compiled.arrays import Float64s, Indices
from spaseq.measures import BadGeometryCount
from spaseq.rdf.columns.term_columns import TextArray
from spaseq.rdf.geosparql import CRS84, GEO_JSON, WKT
from spaseq.rdf.terms.term import literal_text, split_literal
from spaseq.records import record

_NAMED = re.compile(r"https?://(?:www\.)?opengis\.net/def/crs/(\w+)/[\w.]+/(\w+)")
_URN = re.compile(r"urn:(?:x-)?ogc:def:crs:(\w+):[\w.]*:(\w+)")
_LONGITUDE_LATITUDE = frozenset({"OGC:CRS84", "EPSG:4326", "OGC:84"})


@record
class ReferenceSystem:
    """A coordinate reference system.

    Attributes:
        iri: its name, as the literal has it.
        plane: `authority:code`, CRS84 for its other names; equal planes need no transformation.
        swapped: whether its literals begin with the northing or latitude.
    """

    iri: str
    plane: str
    swapped: bool


@lru_cache(maxsize=1024)
def reference_system(iri: str) -> ReferenceSystem:
    """The system of an IRI; ValueError for an unknown one."""
    match = _NAMED.fullmatch(iri) or _URN.fullmatch(iri)
    if match is None:
        raise ValueError(f"<{iri}> is no known coordinate reference system")
    code = f"{match[1]}:{match[2]}".upper()
    if code in _LONGITUDE_LATITUDE:
        return ReferenceSystem(iri, "OGC:CRS84", code == "EPSG:4326")
    try:
        axes = CRS.from_user_input(code).axis_info
    except ProjError:
        raise ValueError(f"<{iri}> is no known coordinate reference system") from None
    swapped = len(axes) > 1 and (axes[0].direction, axes[1].direction) == ("north", "east")
    return ReferenceSystem(iri, code, swapped)


DEFAULT = reference_system(CRS84)


@lru_cache(maxsize=256)
def _transformer(source: str, target: str) -> Transformer:
    return Transformer.from_crs(source, target, always_xy=True)


def moved(shapes: Any, source: ReferenceSystem, target: ReferenceSystem) -> Any:
    """Shapely geometries in another plane; coordinates that have no place there become NaN."""
    if source.plane == target.plane:
        return shapes
    change = _transformer(source.plane, target.plane)

    def run(coordinates: Any) -> Any:
        x, y = change.transform(coordinates[:, 0], coordinates[:, 1])
        points = np.stack([x, y], axis=1)
        points[~np.isfinite(points).all(axis=1)] = np.nan
        return points

    return shapely.transform(shapes, run)


def swapped(shape: Any) -> Any:
    """A geometry with its first two coordinates exchanged."""

    def run(coordinates: Any) -> Any:
        return coordinates[:, [1, 0, *range(2, coordinates.shape[1])]]

    return shapely.transform(shape, run, include_z=bool(shapely.has_z(shape)))


_CRS = re.compile(r"\s*<([^<>\s]*)>\s*")
_KEPT = 1 << 16
_EMPTY = shapely.GeometryCollection()
_TYPES = frozenset(
    ("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon")
) | {"GeometryCollection"}


class BadGeometry(ValueError):
    """A term is no geometry, or an invalid one. It counts when it is raised."""


@record
class Geometry:
    """A literal's geometry: `shape` has its easting or longitude first, in any literal."""

    shape: Any
    system: ReferenceSystem = DEFAULT
    datatype: str = WKT

    def within_plane_of(self, system: ReferenceSystem) -> Any:
        """The shape in the plane of a system; ValueError if a coordinate has no place there."""
        shape = moved(self.shape, self.system, system)
        if shape is not self.shape and not np.isfinite(shapely.get_coordinates(shape)).all():
            raise ValueError("a coordinate lies outside of the other coordinate reference system")
        return shape

    def with_shape(self, shape: Any) -> str:
        """The literal of another shape in the same plane, of the same kind as this one."""
        if self.datatype == GEO_JSON:
            return written_as_json(shape)
        return written(shape, self.system)


_cache: dict[str, Geometry | str] = {}


def geometry(term: str) -> Geometry:
    """The geometry of a literal, given as N-Triples text.

    Raises:
        BadGeometry: it has none.
    """
    result = _cache.get(term)
    if result is None:
        if len(_cache) >= _KEPT:
            _cache.clear()
        result = _cache[term] = _read(term)
    if isinstance(result, str):
        BadGeometryCount.total += 1
        raise BadGeometry(result)
    return result


def geometry_or_none(term: str | None) -> Geometry | None:
    """The same with None for a term without one."""
    try:
        return None if term is None else geometry(term)
    except BadGeometry:
        return None


def _read(term: str) -> Geometry | str:
    """The geometry, or why there is none."""
    if term[:1] != '"':
        return f"{term} is no geometry"
    lexical, datatype, _ = split_literal(term)
    try:
        if datatype == WKT:
            parsed = _of_wkt(lexical)
        elif datatype == GEO_JSON:
            parsed = Geometry(_of_json(lexical), DEFAULT, GEO_JSON)
        else:
            return "neither a geo:wktLiteral nor a geo:geoJSONLiteral"
    except (ValueError, shapely.errors.ShapelyError) as error:
        return str(error)
    shape = parsed.shape
    if not np.isfinite(shapely.get_coordinates(shape)).all():
        return "a coordinate is not a finite number"
    if shapely.get_dimensions(shape) > 0 and not shapely.is_valid(shape):
        return str(shapely.is_valid_reason(shape))
    shapely.prepare(shape)
    return parsed


def _of_wkt(lexical: str) -> Geometry:
    prefix = _CRS.match(lexical)
    system = reference_system(prefix[1]) if prefix else DEFAULT
    text = lexical[prefix.end() :] if prefix else lexical
    if text.strip() and not text.rstrip().upper().endswith((")", "EMPTY")):
        raise ValueError("text behind the geometry")  # which older versions of GEOS pass over
    shape = shapely.from_wkt(text) if text.strip() else _EMPTY
    return Geometry(swapped(shape) if system.swapped else shape, system)


def _of_json(lexical: str) -> Any:
    if not lexical.strip():
        return _EMPTY
    value = json.loads(lexical)
    if not isinstance(value, dict) or value.get("type") not in _TYPES:
        raise ValueError("no geometry object of GeoJSON")
    return shapely.from_geojson(lexical)


# --- many at once ---------------------------------------------------------------------------------

_BEFORE, _AFTER = '"POINT(', f')"^^<{WKT}>'


def _points(terms: TextArray) -> tuple[Indices, Float64s]:
    """(rows, their coordinates [n, 2]) of points that are written in the usual way."""
    tidy = pc.replace_substring(terms, "POINT (", "POINT(", max_replacements=1)
    usual = pc.and_(pc.starts_with(tidy, _BEFORE), pc.ends_with(tidy, _AFTER))
    rows = np.flatnonzero(usual.to_numpy(zero_copy_only=False))
    inner = tidy.take(pa.array(rows)).cast(pa.large_binary())
    inner = pc.binary_slice(inner, len(_BEFORE), -len(_AFTER)).cast(pa.large_string())
    two = np.flatnonzero(pc.equal(pc.count_substring(inner, " "), 1).to_numpy(False))
    numerals = pc.split_pattern(inner.take(pa.array(two)), " ").flatten()
    try:
        places = numerals.cast(pa.float64()).to_numpy().reshape(-1, 2)
    except pa.ArrowInvalid:
        return np.empty(0, np.intp), np.empty((0, 2))
    finite = np.isfinite(places).all(axis=1)
    return rows[two[finite]], places[finite]


@record
class GeometryColumn:
    """The geometries of n distinct terms.

    `shapes` is an object array [n] with None for terms that are no geometry. `systems` are the
    systems that occur, `system` int8 [n] the index of each geometry's.
    """

    shapes: Any
    systems: tuple[ReferenceSystem, ...]
    system: Any

    @classmethod
    def of(cls, terms: Sequence[str | None] | TextArray) -> GeometryColumn:
        """Read terms; points in CRS84 are read all at once, and are not kept."""
        shapes = np.full(len(terms), None, object)
        if isinstance(terms, pa.Array | pa.ChunkedArray):
            rows, places = _points(terms)
            shapes[rows] = shapely.points(places)
            others = np.ones(len(terms), np.bool_)
            others[rows] = False
            left = np.flatnonzero(others)
            rest = terms.take(pa.array(left)).to_pylist()
        else:
            left, rest = np.arange(len(terms)), list(terms)
        systems, system = [DEFAULT], np.zeros(len(terms), np.int16)
        numbers = {DEFAULT.plane: 0}
        for i, parsed in zip(left.tolist(), map(geometry_or_none, rest), strict=True):
            if parsed is not None:
                shapes[i] = parsed.shape
                plane = parsed.system.plane
                if plane not in numbers:
                    numbers[plane] = len(systems)
                    systems.append(parsed.system)
                system[i] = numbers[plane]
        return cls(shapes, tuple(systems), system)

    def in_plane(self, number: int, target: ReferenceSystem) -> Any:
        """The shapes [n] of one of the systems, in the plane of another one.

        None for shapes of other systems, and for those with a coordinate that has no place there.
        """
        system = self.systems[number]
        if system.plane == target.plane and len(self.systems) == 1:
            return self.shapes
        rows = np.flatnonzero((self.system == number) & (self.shapes != None))  # noqa: E711
        all_shapes = np.full(len(self.shapes), None, object)
        shapes = moved(self.shapes[rows], system, target)
        if system.plane != target.plane and len(rows):
            corners, which = shapely.get_coordinates(shapes, return_index=True)
            shapes[np.unique(which[~np.isfinite(corners).all(axis=1)])] = None
        all_shapes[rows] = shapes
        return all_shapes


# --- writing --------------------------------------------------------------------------------------


def written(shape: Any, system: ReferenceSystem = DEFAULT) -> str:
    """The `geo:wktLiteral` of a shape; the system is named unless it is CRS84."""
    text = shapely.to_wkt(swapped(shape) if system.swapped else shape, rounding_precision=-1)
    if system.iri != DEFAULT.iri:
        text = f"<{system.iri}> {text}"
    return literal_text(text, WKT)


def written_as_json(shape: Any) -> str:
    """The `geo:geoJSONLiteral` of a shape in CRS84."""
    return literal_text(shapely.to_geojson(shape), GEO_JSON)
