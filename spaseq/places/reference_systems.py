"""Coordinate reference systems: their names, the order of their axes, and changes between them.

Inside, the first coordinate always points east, as in CRS84, and the second north. So CRS84 and
EPSG:4326, which begins with the latitude, are one *plane*.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from spaseq.places.vocabulary import CRS84
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
