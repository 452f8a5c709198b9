"""A sub-SELECT on one event: GROUP BY, aggregates, ORDER BY, DISTINCT and LIMIT over Python dicts.

Where the order of solutions decides, as for SAMPLE of several values, an event needs columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from spaseq.algebra import nodes as n
from spaseq.expr.aggregates import WITHOUT_COLUMNS, order_key
from spaseq.expr.compile import set_function
from spaseq.expr.env import DictEnv
from spaseq.expr.leaves import TermOrNone
from spaseq.expr.values import decode
from spaseq.gpm.single_event.event_graph import EventGraph, NeedsColumns, Operator, Solution
from spaseq.gpm.single_event.event_pattern import distinct_solutions
from spaseq.gpm.solutions.modifiers import combined
from spaseq.lang import ast

SubSelect: TypeAlias = n.Project | n.Distinct | n.OrderBy | n.Slice | n.Group


class Inside(Protocol):
    """Makes the operands of a sub-SELECT, where equal solutions count; None if it needs columns."""

    def operator(self, pattern: n.Pattern) -> Operator | None: ...

    def term(self, expr: ast.Expr) -> TermOrNone | None: ...


_Order: TypeAlias = "tuple[int, ...]"
"""The place of a solution under ORDER BY."""


def sub_select(pattern: SubSelect, inside: Inside) -> Operator | None:
    """The solutions of a sub-SELECT, or of a part of one, on an event; None if it needs columns."""
    match pattern:
        case n.Slice():
            return _sliced(pattern, inside)
        case n.Group():
            return _grouped(pattern, inside)
        case n.OrderBy(inner, conditions):  # without LIMIT the order changes nothing
            terms = [inside.term(condition.expr) for condition in conditions]
            return None if None in terms else inside.operator(inner)
    operator = inside.operator(pattern.pattern)
    if operator is None:
        return None
    solutions = operator
    if isinstance(pattern, n.Distinct):
        return lambda graph: distinct_solutions(solutions(graph))
    variables = pattern.variables
    return lambda graph: _projected(solutions(graph), variables)


def _projected(solutions: Iterable[Solution], variables: Sequence[str]) -> list[Solution]:
    return [{v: one[v] for v in variables if v in one} for one in solutions]


# ORDER BY and LIMIT


def _sliced(pattern: n.Slice, inside: Inside) -> Operator | None:
    """OFFSET and LIMIT, with the order and the projection directly below them."""
    inner, offset, limit = pattern.pattern, pattern.offset, pattern.limit
    is_distinct = isinstance(inner, n.Distinct)
    if isinstance(inner, n.Distinct):
        inner = inner.pattern
    variables: Sequence[str] | None = None
    if isinstance(inner, n.Project):
        variables = inner.variables
        inner = inner.pattern
    conditions: Sequence[ast.OrderCondition] = ()
    if isinstance(inner, n.OrderBy):
        conditions = inner.conditions
        inner = inner.pattern
    operator = inside.operator(inner)
    terms = [inside.term(condition.expr) for condition in conditions]
    known = [term for term in terms if term is not None]
    if operator is None or len(known) < len(terms):
        return None
    solutions, is_descending = operator, [condition.descending for condition in conditions]

    def run(graph: EventGraph) -> Sequence[Solution]:
        some = solutions(graph)
        orders = _orders(some, known, is_descending)
        shown = some if variables is None else _projected(some, variables)
        ordered = sorted(zip(orders, shown, strict=True), key=lambda pair: pair[0])
        if is_distinct:
            first = {frozenset(one.items()): (order, one) for order, one in reversed(ordered)}
            ordered = sorted(first.values(), key=lambda pair: pair[0])
        end = len(ordered) if limit is None else offset + limit
        for cut in (offset, end):
            if 0 < cut < len(ordered) and ordered[cut - 1][0] == ordered[cut][0]:
                raise NeedsColumns
        return [one for _, one in ordered[offset:end]]

    return run


def _orders(
    solutions: Sequence[Solution], terms: Sequence[TermOrNone], is_descending: Sequence[bool]
) -> list[_Order]:
    """The position of each solution; solutions that ORDER BY holds equal share one."""
    columns = []
    for term, descends in zip(terms, is_descending, strict=True):
        keys = [order_key(term(DictEnv(one))) for one in solutions]
        place = {key: i for i, key in enumerate(sorted({*keys}, reverse=descends))}
        columns.append([place[key] for key in keys])
    return [*zip(*columns, strict=True)] if columns else [()] * len(solutions)


# GROUP BY

_Aggregate: TypeAlias = "Callable[[Sequence[Solution]], str | None]"
"""The value of an aggregate over the solutions of a group; None where it is an error."""


def _grouped(pattern: n.Group, inside: Inside) -> Operator | None:
    """GROUP BY and aggregates; without keys there is one group, which may be empty."""
    operator, keys = inside.operator(pattern.pattern), pattern.keys
    made = [(name, _aggregate(each, inside)) for name, each in pattern.aggregates]
    known = [(name, aggregate) for name, aggregate in made if aggregate is not None]
    if operator is None or len(known) < len(made):
        return None
    solutions = operator

    def run(graph: EventGraph) -> Sequence[Solution]:
        groups: dict[tuple[str | None, ...], list[Solution]] = {} if keys else {(): []}
        for one in solutions(graph):
            groups.setdefault(tuple([one.get(v) for v in keys]), []).append(one)
        grouped = []
        for key, members in groups.items():
            values = [*zip(keys, key, strict=True), *((v, of(members)) for v, of in known)]
            grouped.append({v: text for v, text in values if text is not None})
        return grouped

    return run


def _aggregate(aggregate: ast.Aggregate, inside: Inside) -> _Aggregate | None:
    """An aggregate over the solutions of one event; None if it needs columns."""
    function, is_distinct = aggregate.function, aggregate.distinct
    if function not in WITHOUT_COLUMNS:
        return None
    combine = set_function(aggregate)
    if aggregate.operand is None:  # COUNT(*)
        counted = distinct_solutions if is_distinct else list[Solution]
        return lambda members: combine([""] * len(counted(members)))
    term = inside.term(aggregate.operand)
    if term is None:
        return None
    value = term

    def of(members: Sequence[Solution]) -> str | None:
        texts = [value(DictEnv(one)) for one in members]
        if is_distinct:
            texts = [*dict.fromkeys(texts)]
        if _depends_on_order(function, texts):
            raise NeedsColumns
        return combined(combine, texts)

    return of


def _depends_on_order(function: str, texts: Sequence[str | None]) -> bool:
    """Whether the value of an aggregate may depend on the order of its terms."""
    different = {text for text in texts if text is not None}
    if len(different) < 2 or function == "COUNT":
        return False
    if function in ("SUM", "AVG"):
        return len(texts) > 2 and any(type(decode(text)) is not int for text in different)
    if function in ("MIN", "MAX"):
        keys: dict[Any, set[str]] = {}
        for text in different:
            keys.setdefault(order_key(text), set()).add(text)
        return len(keys[min(keys) if function == "MIN" else max(keys)]) > 1
    return True
