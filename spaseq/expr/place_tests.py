"""FILTERs that compare two places: a relation of GeoSPARQL, or a distance with a limit.

They need the extra `geo`, which is imported when one is first called.
"""

from __future__ import annotations

from collections.abc import Set

from spaseq.expr.uses import is_volatile
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import expression_variables
from spaseq.rdf.geosparql import GEOF, METRES, RELATIONS
from spaseq.records import record

_APART = frozenset({"sfDisjoint", "ehDisjoint", "rcc8dc", "sfEquals", "ehEquals"})
"""Relations that shapes without a common point may have; empty shapes are equal."""

_NEARER = {"<": False, "<=": True}
_FURTHER = {">": False, ">=": True}


@record
class PlaceTest:
    """A test of two places.

    Attributes:
        name: the relation's or `distance`.
        first, second: the kinds of the places.
        metres: the limit of a distance, which the distance may have if `also_equal`.
    """

    name: str
    first: ast.Expr
    second: ast.Expr
    metres: float = 0.0
    also_equal: bool = False

    def __str__(self) -> str:
        return f"geof:{self.name}"


def place_test(expr: ast.Expr) -> PlaceTest | None:
    """The test that a condition is, if a spatial index can answer it; None for others."""
    match expr:
        case ast.FunctionCall(ast.Iri(iri), (first, second)) if iri.startswith(GEOF):
            name = iri.removeprefix(GEOF)
            return PlaceTest(name, first, second) if name in RELATIONS - _APART else None
        case ast.Compare(op, ast.FunctionCall() as call, limit) if op in _NEARER:
            return _distance_test(call, limit, _NEARER[op])
        case ast.Compare(op, limit, ast.FunctionCall() as call) if op in _FURTHER:
            return _distance_test(call, limit, _FURTHER[op])
    return None


def _distance_test(call: ast.FunctionCall, limit: ast.Expr, equal: bool) -> PlaceTest | None:
    name = call.function.value.removeprefix(GEOF)
    if name not in ("distance", "metricDistance") or not isinstance(limit, ast.Literal):
        return None
    match call.args:
        case (first, second):
            unit: float | None = 1.0
        case (first, second, ast.Iri(iri)):
            unit = METRES.get(iri)
        case _:
            return None
    number = decode(constant_text(limit))
    if unit is None or isinstance(number, bool) or not isinstance(number, int | float):
        try:
            number = float(number)  # type: ignore[arg-type]  # Decimal and Float
        except (TypeError, ValueError):
            return None
    return None if unit is None else PlaceTest("distance", first, second, number * unit, equal)


@record
class PlaceJoin:
    """A place test between two parts of a pattern: `asking` on one, `indexed` on the other."""

    test: PlaceTest
    asking: ast.Expr
    indexed: ast.Expr

    @property
    def indexed_first(self) -> bool:
        return self.indexed is self.test.first


def place_join(expr: ast.Expr, asking: Set[str], indexed: Set[str]) -> PlaceJoin | None:
    """The join by a condition of two parts that bind these variables; None if it is none."""
    test = place_test(expr)
    if test is None or is_volatile(expr):
        return None
    for one, other in ((test.first, test.second), (test.second, test.first)):
        left, right = expression_variables(one), expression_variables(other)
        if left and right and left <= asking and right <= indexed:
            return PlaceJoin(test, one, other)
    return None
