"""The topological relations of GeoSPARQL 1.1 sections 9.5 to 9.7, on arrays of shapes.

Simple features are GEOS's predicates. The relations of Egenhofer and RCC8 are patterns of DE-9IM,
as the standard's tables have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import shapely

Relation: TypeAlias = Callable[[Any, Any], Any]
"""Tests shapes, or arrays [n] of shapes, in one plane."""


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
