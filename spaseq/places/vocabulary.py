"""The functions of GeoSPARQL 1.1 by name: how many arguments they take, and what they give."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
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
"""What each function gives, by its name in the namespace `geof:`."""

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
"""What each set function gives."""

AGGREGATE_IRIS: Final = frozenset(GEOF + name for name in AGGREGATES)

MISSING: Final = "functions of places need shapely and pyproj: pip install 'spaseq[geo]'"


def is_installed() -> bool:
    """Whether the extra `geo` is there."""
    return find_spec("shapely") is not None and find_spec("pyproj") is not None
