"""The functions of GeoSPARQL 1.1 by name, with their arguments and results; and its units of
measure.

A unit has its length on the ground in metres. A degree or radian is an angle at the centre of a
sphere with the earth's mean radius.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

GEO: Final = "http://www.opengis.net/ont/geosparql#"
GEOF: Final = "http://www.opengis.net/def/function/geosparql/"
WKT: Final = GEO + "wktLiteral"
GEO_JSON: Final = GEO + "geoJSONLiteral"
CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"

_RELATIONS = {
    "sfEquals": "whether two geometries have the same points",
    "sfDisjoint": "whether two geometries have no common point",
    "sfIntersects": "whether two geometries have a common point",
    "sfTouches": "whether two geometries meet, but not in their interiors",
    "sfCrosses": "whether two geometries cross each other",
    "sfWithin": "whether the first geometry lies in the second",
    "sfContains": "whether the second geometry lies in the first",
    "sfOverlaps": "whether two geometries of one dimension overlap",
    "ehEquals": "whether two geometries are equal (Egenhofer)",
    "ehDisjoint": "whether two geometries have no common point (Egenhofer)",
    "ehMeet": "whether two geometries meet at their boundaries (Egenhofer)",
    "ehOverlap": "whether two geometries overlap (Egenhofer)",
    "ehCovers": "whether the first covers the second, with a common boundary (Egenhofer)",
    "ehCoveredBy": "whether the second covers the first, with a common boundary (Egenhofer)",
    "ehInside": "whether the first lies in the interior of the second (Egenhofer)",
    "ehContains": "whether the second lies in the interior of the first (Egenhofer)",
    "rcc8eq": "whether two regions are equal (RCC8)",
    "rcc8dc": "whether two regions are disconnected (RCC8)",
    "rcc8ec": "whether two regions are externally connected (RCC8)",
    "rcc8po": "whether two regions overlap partially (RCC8)",
    "rcc8tppi": "whether the second is a tangential proper part of the first (RCC8)",
    "rcc8tpp": "whether the first is a tangential proper part of the second (RCC8)",
    "rcc8ntpp": "whether the first is a non-tangential proper part of the second (RCC8)",
    "rcc8ntppi": "whether the second is a non-tangential proper part of the first (RCC8)",
}
RELATIONS: Final = frozenset(_RELATIONS)

_OF_ONE = {
    "convexHull": "the convex hull",
    "envelope": "the smallest box around a geometry",
    "boundary": "the boundary of a geometry",
    "boundingCircle": "the smallest circle around a geometry, in the coordinates' plane",
    "centroid": "the centre of a geometry",
    "metricArea": "the area in square metres on WGS 84",
    "metricLength": "the length in metres on WGS 84, of areas the perimeter",
    "metricPerimeter": "the perimeter of areas in metres on WGS 84",
    "getSRID": "the IRI of the coordinate reference system",
    "asWKT": "the geometry as geo:wktLiteral",
    "asGeoJSON": "the geometry as geo:geoJSONLiteral, in CRS84",
    "dimension": "0 for points, 1 for lines, 2 for areas",
    "coordinateDimension": "how many numbers a coordinate has",
    "spatialDimension": "how many numbers of a coordinate are in space",
    "geometryType": "the IRI of the class of simple features",
    "isEmpty": "whether a geometry has no point",
    "isSimple": "whether a geometry does not cross or touch itself",
    "is3D": "whether a geometry has heights",
    "isMeasured": "whether a geometry has measures",
    "numGeometries": "how many parts a collection has, 1 for others",
    "minX": "the least first coordinate",
    "maxX": "the greatest first coordinate",
    "minY": "the least second coordinate",
    "maxY": "the greatest second coordinate",
    "minZ": "the least height",
    "maxZ": "the greatest height",
}
_OF_TWO = {
    "metricDistance": "the distance in metres on WGS 84",
    "metricBuffer": "the points within a number of metres, on WGS 84",
    "intersection": "the common points of two geometries",
    "union": "the points of two geometries",
    "difference": "the points of the first geometry that the second has not",
    "symDifference": "the points that only one of two geometries has",
    "transform": "the geometry in another coordinate reference system",
    "geometryN": "a part of a collection, counted from 1",
}
_WITH_UNIT = {
    "distance": (2, "the distance on WGS 84, in a unit (metre if left out)"),
    "buffer": (2, "the points within a distance on WGS 84, in a unit (metre if left out)"),
    "area": (1, "the area on WGS 84, in the square of a unit (metre if left out)"),
    "length": (1, "the length on WGS 84, of areas the perimeter, in a unit (metre if left out)"),
    "perimeter": (1, "the perimeter of areas on WGS 84, in a unit (metre if left out)"),
}

MEANINGS: Mapping[str, str] = {
    **_RELATIONS,
    "relate": "whether two geometries are related by a pattern of DE-9IM, such as T*F**F***",
    **{name: meaning for name, (_, meaning) in _WITH_UNIT.items()},
    **_OF_TWO,
    **_OF_ONE,
}
"""The result of each function, by its name in the namespace `geof:`."""

ARITIES: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(_RELATIONS, (2, 2)),
    "relate": (3, 3),
    **{name: (least, least + 1) for name, (least, _) in _WITH_UNIT.items()},
    **dict.fromkeys(_OF_TWO, (2, 2)),
    **dict.fromkeys(_OF_ONE, (1, 1)),
}
"""The least and greatest number of arguments."""

AGGREGATES: Mapping[str, str] = {
    "aggUnion": "the points of all geometries",
    "aggBoundingBox": "the smallest box around all geometries",
    "aggBoundingCircle": "the smallest circle around all geometries, in the coordinates' plane",
    "aggCentroid": "the centre of all geometries",
    "aggConvexHull": "the convex hull of all geometries",
}
"""The result of each set function."""

AGGREGATE_IRIS: Final = frozenset(GEOF + name for name in AGGREGATES)

OGC = "http://www.opengis.net/def/uom/OGC/1.0/"
EPSG = "http://www.opengis.net/def/uom/EPSG/0/"
QUDT = "http://qudt.org/vocab/unit/"

MEAN_RADIUS_M = 6_371_008.8
"""(2a + b) / 3 of WGS 84."""

_METRES = {
    "metre": 1.0,
    "kilometre": 1000.0,
    "centimetre": 0.01,
    "millimetre": 0.001,
    "foot": 0.3048,
    "surveyFoot": 1200 / 3937,
    "yard": 0.9144,
    "statuteMile": 1609.344,
    "nauticalMile": 1852.0,
    "radian": MEAN_RADIUS_M,
    "degree": MEAN_RADIUS_M * math.pi / 180,
}
_SPELLINGS = {
    "metre": ("meter", "squareMetre", "squareMeter", "m"),
    "kilometre": ("kilometer", "squareKilometre", "km"),
    "statuteMile": ("mile",),
}
_QUDT = {
    "M": "metre",
    "M2": "metre",
    "KiloM": "kilometre",
    "KiloM2": "kilometre",
    "CentiM": "centimetre",
    "MilliM": "millimetre",
    "FT": "foot",
    "FT_US": "surveyFoot",
    "YD": "yard",
    "MI": "statuteMile",
    "MI_N": "nauticalMile",
    "RAD": "radian",
    "DEG": "degree",
}
_EPSG = {
    "9001": "metre",
    "9036": "kilometre",
    "1033": "centimetre",
    "1025": "millimetre",
    "9002": "foot",
    "9003": "surveyFoot",
    "9096": "yard",
    "9093": "statuteMile",
    "9030": "nauticalMile",
    "9101": "radian",
    "9102": "degree",
}

METRES: Mapping[str, float] = {
    **{OGC + name: metres for name, metres in _METRES.items()},
    **{OGC + also: _METRES[name] for name, others in _SPELLINGS.items() for also in others},
    **{QUDT + code: _METRES[name] for code, name in _QUDT.items()},
    **{EPSG + code: _METRES[name] for code, name in _EPSG.items()},
}
"""By IRI."""


def metres_of(unit: str) -> float:
    """The metres of a unit, given as the text of its IRI; ValueError for an unknown one."""
    try:
        return METRES[unit[1:-1]]
    except KeyError:
        raise ValueError(f"{unit} is no known unit of length") from None
