"""The row groups of Parquet that no row passes the FILTERs of a lift in, by their statistics.

Such rows are counted, and not read. A FILTER is looked at if it compares a field of numbers with
an integer, and a row group is left out only if no value of it could make its row bad.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from spaseq.algebra.groups import constant_text
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lift.cells import variable_of
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan
from spaseq.lift.pruned_lifts import KnownFields

_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True)
class Bound:
    """`?field op number`, which a row must pass."""

    field: str
    op: str
    number: int

    def may_pass(self, least: Any, most: Any) -> bool:
        """Whether a number between two others may pass.

        >>> Bound("volume", ">", 7).may_pass(1, 7)
        False
        """
        match self.op:
            case "<":
                return bool(least < self.number)
            case "<=":
                return bool(least <= self.number)
            case ">":
                return bool(most > self.number)
            case ">=":
                return bool(most >= self.number)
        return bool(least <= self.number <= most)

    def __str__(self) -> str:
        return f"?{self.field} {self.op} {self.number}"


def bounds(plan: LiftPlan) -> list[Bound]:
    """The comparisons of fields with integers that every event's row passes."""
    found = []
    for element in plan.elements:
        if isinstance(element, ast.Filter):
            expr = element.expr
            operands = expr.operands if isinstance(expr, ast.And) else (expr,)
            found += [bound for each in operands if (bound := _bound(each)) is not None]
    return [bound for bound in found if bound.field in plan.fields.wanted]


def _bound(expr: ast.Expr) -> Bound | None:
    match expr:
        case ast.Compare(op, ast.Var(name), ast.Literal() as constant) if op in _SWAPPED:
            own: str = op
        case ast.Compare(op, ast.Literal() as constant, ast.Var(name)) if op in _SWAPPED:
            own = _SWAPPED[op]
        case _:
            return None
    value = decode(constant_text(constant))
    return Bound(name, own, value) if type(value) is int else None


def row_group_runs(
    file: Any, groups: range, plan: LiftPlan, known: KnownFields
) -> Iterator[tuple[bool, list[int], int]]:
    """(whether rows may pass, row groups, number of rows) of runs of some of a file's groups."""
    metadata, tested = file.metadata, bounds(plan)
    if not plan.fields.wanted - {ROW_NUMBER} <= known.harmless:
        tested = []
    numbers = {
        variable_of(field.name) for field in file.schema_arrow if _is_number(str(field.type))
    }
    tested = [bound for bound in tested if bound.field in numbers]
    for passes, run in groupby(groups, lambda g: _may_pass(metadata.row_group(g), tested)):
        own = list(run)
        yield passes, own, sum(metadata.row_group(g).num_rows for g in own)


def _is_number(kind: str) -> bool:
    return kind == "double" or kind.startswith(("int", "uint"))


def _may_pass(row_group: Any, tested: Sequence[Bound]) -> bool:
    if not tested:
        return True
    chunks = [row_group.column(number) for number in range(row_group.num_columns)]
    named = {variable_of(chunk.path_in_schema): chunk for chunk in chunks}
    for bound in tested:
        chunk = named[bound.field]
        statistics = chunk.statistics if chunk.is_stats_set else None
        if statistics is None:
            continue
        if statistics.has_null_count and statistics.null_count == row_group.num_rows:
            return False
        if statistics.has_min_max and not bound.may_pass(statistics.min, statistics.max):
            return False
    return True
