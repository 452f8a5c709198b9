"""Units of measure: how many metres one of them is on the ground.

A degree or radian is an angle at the centre of a sphere with the earth's mean radius.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

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
