"""The row groups of Parquet that need not be read, by their statistics.

There are two kinds. If no row passes the FILTERs of a lift, the rows are no events; they are
counted. If no row can be in a solution of a query, the rows are events of which only the times
matter. A row group is left out only if no value of it could make its row bad.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Any, TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_part
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.variables import conjuncts, exists_uses
from spaseq.lift.cells import variable_of
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan
from spaseq.lift.lifted_graphs import unified
from spaseq.lift.pruned_lifts import KnownFields, comparison, spelled_iri

AskedRows: TypeAlias = "tuple[tuple[Bound, ...], ...]"
"""A row in a solution is within all bounds of one of these."""

_INTEGER = re.compile("0|-?[1-9][0-9]*")


class _Unknown(Exception):
    """Any row may matter."""


def asked_rows(patterns: Iterable[n.Pattern], plan: LiftPlan) -> AskedRows | None:
    """The bounds of the rows in solutions of some patterns; None if any row may be in one."""
    try:
        alternatives = [_bounds(pattern, plan, plan.binds) for pattern in patterns]
    except _Unknown:
        return None
    return tuple(dict.fromkeys(each for each in alternatives if each is not None))


def _bounds(
    pattern: n.Pattern, plan: LiftPlan, binds: Mapping[str, ast.Expr]
) -> tuple[Bound, ...] | None:
    """The bounds of the rows in solutions of one pattern; None if there is no such row."""
    triples: list[n.TriplePattern] = []
    filters: list[ast.Expr] = []
    _collect(pattern, triples, filters)
    ways = unified(triples, [t.terms for t in plan.template if t.inside])
    if ways is None or len(ways) > 1:
        raise _Unknown
    if not ways:
        return None
    (way,) = ways
    row_bounds = [bound for one, other in way.equal for bound in _equal(one, other, binds)]
    for expr in conjuncts(filters):
        bound = bound_of(expr)
        term = None if bound is None else way.columns.get(bound.field)
        field = _field(term, binds) if isinstance(term, ast.Var) else None
        if bound is not None and field is not None:
            row_bounds.append(Bound(field, bound.op, bound.value))
    if not row_bounds:
        raise _Unknown
    return tuple(dict.fromkeys(row_bounds))


def _collect(pattern: n.Pattern, triples: list[n.TriplePattern], filters: list[ast.Expr]) -> None:
    """The triples and FILTERs that every solution has to pass; other parts are refused."""
    match pattern:
        case n.BGP(patterns):
            triples += (triple for triple in patterns if not is_part(triple))
        case n.Join(left, right):
            _collect(left, triples, filters)
            _collect(right, triples, filters)
        case n.Filter(expr, inner) if not exists_uses(expr):
            filters.append(expr)
            _collect(inner, triples, filters)
        case n.Graph(str(), inner) if _is_local(inner):
            pass  # of the knowledge base, joined only with rows that match
        case _:
            raise _Unknown


def _is_local(pattern: n.Pattern) -> bool:
    """Whether no endpoint is used."""
    return isinstance(pattern, n.BGP) or (
        isinstance(pattern, n.Join | n.Filter | n.Union)
        and not (isinstance(pattern, n.Filter) and exists_uses(pattern.expr))
        and all(map(_is_local, n.children(pattern)))
    )


def _field(term: ast.Var, binds: Mapping[str, ast.Expr]) -> str | None:
    """The field whose values a variable of the lift has as they stand."""
    name = term.name
    while name in binds:
        expr = binds[name]
        if not isinstance(expr, ast.Var):
            return None
        name = expr.name
    return name


def _equal(one: ast.Var, other: n.PatternTerm, binds: Mapping[str, ast.Expr]) -> Iterator[Bound]:
    """The bounds of rows in which a variable of the lift is a constant."""
    if isinstance(other, ast.Var):
        return
    field = _field(one, binds)
    if field is not None:
        value = decode(other) if other.startswith('"') else None
        if type(value) is str or (type(value) is int and other.startswith(f'"{value}"')):
            yield Bound(field, "=", value)
        return
    iri = spelled_iri(binds[one.name]) if one.name in binds else None
    if iri is None:
        return
    before, after = f"<{iri.prefix}", f"{iri.suffix}>"
    if len(other) >= len(before) + len(after) and other.startswith(before):
        inner = other[len(before) : -len(after)]
        if other.endswith(after):
            yield Bound(iri.field, "=", inner, _INTEGER.fullmatch(inner) is not None)


def asked_text(asked: Sequence[Sequence[Bound]]) -> str:
    """The bounds in words."""
    return " or ".join(" && ".join(map(str, conjunction)) for conjunction in asked) or "no row"


_MOST_EXACT = 2**53
"""A double is compared with an integer as a double; up to here that is exact."""


@dataclass(frozen=True, slots=True)
class Bound:
    """`?field op value`, which a row must pass.

    With `spelled` the value is a text that a row has as a string or as an integer.
    """

    field: str
    op: str
    value: int | str
    spelled: bool = False

    def may_pass(self, least: Any, most: Any) -> bool:
        """Whether a value between two others may pass; NaN is no bound.

        >>> Bound("volume", ">", 7).may_pass(1, 7)
        False
        """
        if least != least or most != most:
            return True
        value = int(self.value) if self.spelled and isinstance(least, int) else self.value
        match self.op:
            case "<":
                return bool(least < value)
            case "<=":
                return bool(least <= value)
            case ">":
                return bool(most > value)
            case ">=":
                return bool(most >= value)
        return bool(least <= value <= most)

    def suits(self, kind: str) -> bool:
        """Whether the statistics of an Arrow type bound the values that are compared."""
        if kind.startswith("dictionary<values=string"):
            kind = "string"
        whole = kind.startswith(("int", "uint"))
        if isinstance(self.value, str):
            return kind in ("string", "large_string") or (self.spelled and whole)
        return abs(self.value) <= _MOST_EXACT and (whole or kind == "double")

    def __str__(self) -> str:
        shown = f"'{self.value}'" if isinstance(self.value, str) else self.value
        return f"?{self.field} {self.op} {shown}"


def bounds(plan: LiftPlan) -> list[Bound]:
    """The comparisons of fields with constants that every event's row passes."""
    comparisons = []
    for element in plan.elements:
        if isinstance(element, ast.Filter):
            expr = element.expr
            operands = expr.operands if isinstance(expr, ast.And) else (expr,)
            comparisons += [bound for each in operands if (bound := bound_of(each)) is not None]
    return [bound for bound in comparisons if bound.field in plan.fields.wanted]


def bound_of(expr: ast.Expr) -> Bound | None:
    """The bound that an expression is: a comparison with an integer, or = with a text."""
    match comparison(expr):
        case (op, ast.Var(name), value) if op != "!=":
            if type(value) is int or (type(value) is str and op == "="):
                return Bound(name, op, value)
    return None


class GroupUse(Enum):
    """The part of a row group that is read."""

    ALL = "all fields that are needed"
    TIMES = "the times of events that are in no solution"
    NOTHING = "nothing, as no row is an event"


def row_group_runs(
    file: Any,
    own: range,
    plan: LiftPlan,
    known: KnownFields,
    asked: Sequence[Sequence[Bound]] | None,
) -> Iterator[tuple[GroupUse, list[int], int]]:
    """(the part that is read, row groups, number of rows) of runs of a file's `own` row groups.

    `asked` has rows of bounds; each row in a solution satisfies one of them.
    """
    metadata = file.metadata
    kinds = {variable_of(field.name): str(field.type) for field in file.schema_arrow}
    tested = _usable(bounds(plan), kinds)
    if not plan.fields.wanted - {ROW_NUMBER} <= known.harmless:
        tested = []
    wanted = None if asked is None else [_usable(own, kinds) for own in asked]

    def use(number: int) -> GroupUse:
        group = metadata.row_group(number)
        if not _may_pass(group, tested):
            return GroupUse.NOTHING
        if wanted is None or any(_may_pass(group, own) for own in wanted):
            return GroupUse.ALL
        return GroupUse.TIMES

    for used, run in groupby(own, use):
        groups = list(run)
        yield used, groups, sum(metadata.row_group(g).num_rows for g in groups)


def _usable(tested: Iterable[Bound], kinds: dict[str, str]) -> list[Bound]:
    return [bound for bound in tested if bound.suits(kinds.get(bound.field, ""))]


def _may_pass(row_group: Any, tested: Sequence[Bound]) -> bool:
    """Whether the statistics allow a row that passes all bounds."""
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
        if statistics.has_min_max and not _within(bound, statistics):
            return False
    return True


def _within(bound: Bound, statistics: Any) -> bool:
    """Whether a bound may be passed; a cut text in the statistics is a bound of the texts, too."""
    try:
        least, most = statistics.min, statistics.max
    except UnicodeDecodeError:  # a text that was cut within a character
        return True
    if isinstance(least, bytes):
        return True
    return bound.may_pass(least, most)
