"""FILTERs of places over columns hold for the rows for which they hold one by one."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

pytest.importorskip("shapely")
pytest.importorskip("pyproj")

from spaseq.expr.columns import TermRows, filter_rows
from spaseq.expr.compile import Options, compile_filter
from spaseq.expr.env import DictEnv
from spaseq.expr.extension import Function, known_functions
from spaseq.lang import ast
from spaseq.rdf.geosparql import GEOF, OGC, RELATIONS
from spaseq.rdf.terms.term import XSD

WKT = "^^<http://www.opengis.net/ont/geosparql#wktLiteral>"
PLACES = [
    f'"POINT(0 50)"{WKT}',
    f'"POINT(0.01 50)"{WKT}',
    f'"POINT(0.02 50.01)"{WKT}',
    f'"POINT EMPTY"{WKT}',
    f'"POLYGON((-1 49, 1 49, 1 51, -1 51, -1 49))"{WKT}',
    f'"POLYGON((0 49, 2 49, 2 51, 0 51, 0 49))"{WKT}',
    f'"LINESTRING(0 50, 1 50)"{WKT}',
    f'"<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(50 0.01)"{WKT}',
    f'"POINT(oops"{WKT}',
    '"no place"',
    "<http://example/place>",
]

OPTIONS = Options(functions=known_functions())


def rows_of(seed: int) -> TermRows:
    random = Random(seed)
    pairs = [*product(range(-1, len(PLACES)), repeat=2)]
    random.shuffle(pairs)
    columns = np.array(pairs + pairs[:20], np.int32)
    return TermRows({"a": columns[:, 0].copy(), "b": columns[:, 1].copy()}, PLACES, len(columns))


def one_by_one(expr: ast.Expr, rows: TermRows, options: Options = OPTIONS) -> list[bool]:
    holds = compile_filter(expr, options)
    return [holds(DictEnv(binding)) for binding in rows.bindings()]


def call(name: str, *arguments: ast.Expr) -> ast.FunctionCall:
    return ast.FunctionCall(ast.Iri(GEOF + name), arguments)


A, B = ast.Var("a"), ast.Var("b")


@pytest.mark.parametrize("name", sorted(RELATIONS))
def test_relations(name: str) -> None:
    rows, expr = rows_of(1), call(name, A, B)
    holds = filter_rows(expr, rows, OPTIONS).tolist()
    assert holds == one_by_one(expr, rows)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("unit", ["metre", "kilometre", "none"])
@pytest.mark.parametrize("swapped", [False, True])
def test_distances(operator: str, unit: str, swapped: bool) -> None:
    factor = {"metre": 1, "kilometre": 0.001, "none": 1}[unit]
    units = () if unit == "none" else (ast.Iri(OGC + unit),)
    limit: ast.Expr = ast.Literal(str(800 * factor), XSD + "double")
    distance: ast.Expr = call("distance", A, B, *units)
    sides = (limit, distance) if swapped else (distance, limit)
    expr = ast.Compare(operator, *sides)  # type: ignore[arg-type]
    rows = rows_of(2)
    holds = filter_rows(expr, rows, OPTIONS).tolist()
    assert holds == one_by_one(expr, rows)
    assert any(holds)


def test_a_function_of_the_user_takes_the_place_of_one_of_places() -> None:
    never = Function(GEOF + "sfEquals", lambda first, second: False, "terms", False)
    within = Function(GEOF + "sfWithin", lambda first, second: False, "terms", False)
    options = Options(functions=(never, within))
    expr, rows = call("sfWithin", A, B), rows_of(3)
    assert not filter_rows(expr, rows, options).any()
    assert filter_rows(expr, rows, OPTIONS).any()
