"""GPMs on windows that are a join across events, which stage 2 keeps from one close to the next.

Such a GPM joins EVENT blocks and triple patterns on the union graph. Stage 1 matches each of these
parts once on each event, and joins it with blocks of the KB. The rest of the pattern concerns one
of its solutions at a time. Parts that share variables must be acyclic: they form a join tree (Beeri
and others, JACM 1983).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import certain, possible, visible
from spaseq.lang import ast
from spaseq.lang.variables import conjuncts, variables_of
from spaseq.plan.pattern_plan import ContentPlan, GpmPlan, JoinEdge
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.window_groups import (
    SOLVED,
    beside_knowledge,
    events_of,
    is_matched,
    is_plain,
    of_partitions,
)
from spaseq.records import record

MOST_PARTS = 6
"""Maximum number of parts of a kept join."""


@record
class JoinOperand:
    """A part of a join: its pattern for each event in stage 1, and the stream's name of ON."""

    pattern: n.Pattern
    stream: str | None = None


@record
class JoinedPattern:
    """The parts of a GPM's pattern, and the pattern with `joined` in their place."""

    parts: tuple[JoinOperand, ...]
    pattern: n.Pattern
    joined: n.Pattern


def reason_against(gpm: GpmPlan) -> str | None:
    """The reason why the join of a GPM is evaluated anew at each close; None if it is kept."""
    join = join_of(gpm.pattern)
    if join is None:
        return "its pattern is neither one sub-SELECT with aggregates over EVENT nor a plain join"
    if len(join.parts) > MOST_PARTS:
        return f"its join has more than {MOST_PARTS} parts"
    if any(not _common(*pair) <= _sure(pair) for pair in combinations(join.parts, 2)):
        return "a variable of its join may be unbound"
    if edges_of(join.parts) is None:
        return "its join is cyclic"
    return None


def _common(one: JoinOperand, other: JoinOperand) -> frozenset[str]:
    return _shared(one.pattern, other.pattern)


def _shared(one: n.Pattern, other: n.Pattern) -> frozenset[str]:
    return possible(one) & possible(other)


def _is_sure(part: JoinOperand) -> bool:
    """Whether all its variables are always bound: joined with itself, a part stays the same."""
    return possible(part.pattern) <= certain(part.pattern)


def _sure(parts: Sequence[JoinOperand]) -> frozenset[str]:
    return frozenset.intersection(*(certain(part.pattern) for part in parts))


def join_of(pattern: n.Pattern) -> JoinedPattern | None:
    """The join of a pattern whose other parts concern one of its solutions at a time.

    A FILTER with the variables of one part is evaluated with that part.
    """
    return _below(pattern, ())


def _below(pattern: n.Pattern, filters: tuple[ast.Expr, ...]) -> JoinedPattern | None:
    """The join below a pattern; `filters` stand over it in the same scope."""
    match pattern:
        case n.Filter(expr, inner) if is_plain(expr):
            return _below(inner, (*filters, *conjuncts([expr])))
        case n.Extend(inner, variable, expr) if is_plain(expr):
            above = [test for test in filters if variable in variables_of(test)]
            inner_join = _below(inner, tuple(test for test in filters if test not in above))
            return _over(
                inner_join, lambda below: _filtered(n.Extend(below, variable, expr), above)
            )
        case n.Project(inner, variables):
            inner_join = _below(inner, ())
            return _over(inner_join, lambda below: _filtered(n.Project(below, variables), filters))
        case n.Distinct(inner):
            return _over(_below(inner, filters), n.Distinct)
    operands = [*_operands(pattern)]
    every = [operand for operand in operands if isinstance(operand, JoinOperand)]
    parts = [
        operand
        for i, operand in enumerate(every)
        if operand not in every[:i] or not _is_sure(operand)
    ]
    if None in operands or not parts:
        beside = beside_knowledge(pattern)
        if beside is None:
            return None
        return _over(
            _below(beside, ()),
            lambda below: _filtered(
                n.mapped(pattern, lambda node: below if node is beside else node), filters
            ),
        )
    _join_blocks(parts, [operand for operand in operands if isinstance(operand, n.Graph)])
    above = []
    for expr in filters:
        reading = next((i for i, p in enumerate(parts) if _reads(expr) <= certain(p.pattern)), None)
        if reading is None:
            above.append(expr)
        else:
            parts[reading] = JoinOperand(
                n.Filter(expr, parts[reading].pattern), parts[reading].stream
            )
    joined: n.Pattern = n.EventBlock(_all([part.pattern for part in parts]), None, 0)
    rest = [operand for operand in operands if isinstance(operand, n.Table)]
    return JoinedPattern(tuple(parts), _filtered(_all([joined, *rest]), above), joined)


def _reads(expr: ast.Expr) -> frozenset[str]:
    return variables_of(expr) or frozenset("?")  # a constant stays where it is


def _over(
    join: JoinedPattern | None, make: Callable[[n.Pattern], n.Pattern]
) -> JoinedPattern | None:
    return None if join is None else JoinedPattern(join.parts, make(join.pattern), join.joined)


def _filtered(pattern: n.Pattern, filters: Sequence[ast.Expr]) -> n.Pattern:
    for expr in filters:
        pattern = n.Filter(expr, pattern)
    return pattern


def _all(patterns: Sequence[n.Pattern]) -> n.Pattern:
    joined = patterns[0]
    for pattern in patterns[1:]:
        joined = n.Join(joined, pattern)
    return joined


def _join_blocks(parts: list[JoinOperand], blocks: Sequence[n.Graph]) -> None:
    """Join each block of the KB with the part that shares the most variables with it."""
    left = [*blocks]
    while left:
        pairs = product(range(len(parts)), left)
        place, block = max(pairs, key=lambda pair: len(_shared(parts[pair[0]].pattern, pair[1])))
        parts[place] = JoinOperand(n.Join(parts[place].pattern, block), parts[place].stream)
        left.remove(block)


def _operands(pattern: n.Pattern) -> Iterator[JoinOperand | n.Table | n.Graph | None]:
    """The parts, tables and blocks of the KB of a join; None for anything else."""
    match pattern:
        case n.Join(left, right):
            yield from _operands(left)
            yield from _operands(right)
        case n.BGP(triples):
            yield from (JoinOperand(n.BGP((triple,))) for triple in triples)
        case n.Table():
            yield pattern
        case n.Graph():
            yield pattern if is_matched(pattern) else None
        case _:
            of_events = events_of(pattern)
            yield None if of_events is None else JoinOperand(*of_events)


def edges_of(parts: Sequence[JoinOperand]) -> tuple[JoinEdge, ...] | None:
    """The edges of a join tree of some parts; None if the join is cyclic.

    A maximum spanning tree, by the number of shared variables, is a join tree, if there is one.
    """
    edges = list[JoinEdge]()
    inside, outside = [0], [*range(1, len(parts))]
    while outside:
        pairs = [(i, j) for i in inside for j in outside]
        i, j = max(pairs, key=lambda pair: len(_common(parts[pair[0]], parts[pair[1]])))
        edges.append(JoinEdge(i, j, tuple(sorted(_common(parts[i], parts[j])))))
        inside.append(j)
        outside.remove(j)
    uses = [v for part in parts for v in possible(part.pattern)]
    repeated = len(uses) - len(set(uses))
    return tuple(edges) if sum(len(e.variables) for e in edges) == repeated else None


# --- plans ----------------------------------------------------------------------------------------


def column_of(plan: QueryPlan, variable: str) -> str:
    """The column of a variable.

    A hidden one, as of a blank node, has another name. With PARTITION BY all have, except the
    variables of the partition.
    """
    apart = plan.sequence.own_partition or n.is_reserved(variable)
    return f"#{variable}" if apart else variable


def columns_of(gpm: GpmPlan, join: JoinedPattern) -> tuple[tuple[str, int], ...]:
    """The variables that are read outside the parts, each with a part that surely binds it."""
    read = _read_outside(join.pattern, join.joined) | possible(gpm.pattern)
    columns = []
    for variable in sorted(visible(possible(join.joined)) & read):
        places = [i for i, part in enumerate(join.parts) if variable in possible(part.pattern)]
        sure = [i for i in places if variable in certain(join.parts[i].pattern)]
        columns.append((variable, (sure or places)[0]))
    return tuple(columns)


def _read_outside(pattern: n.Pattern, joined: n.Pattern) -> frozenset[str]:
    if pattern == joined:
        return frozenset()
    here = (variables_of(expr) for expr in n.expressions(pattern))
    inner = (_read_outside(child, joined) for child in n.children(pattern))
    known = possible(pattern) if isinstance(pattern, n.Table | n.Graph) else frozenset[str]()
    return known.union(*here, *inner)


def contents_of(plan: QueryPlan, gpm: GpmPlan, join: JoinedPattern) -> Iterator[ContentPlan]:
    """The content from stage 1 for each part of a kept join."""
    edges = edges_of(join.parts)
    assert edges is not None
    windows = [plan.inputs.windows[source.window] for source in gpm.windows]
    streams = tuple(sorted({stream for window in windows for stream in window.streams}))
    shown = {variable for variable, _ in columns_of(gpm, join)}
    partition = plan.sequence.own_partition
    for number, part in enumerate(join.parts):
        keys = {v for e in edges if number in (e.first, e.second) for v in e.variables}
        pattern = part.pattern
        given = sorted(keys | (shown & possible(part.pattern)))
        columns = [column_of(plan, variable) for variable in given]
        for variable, column in zip(given, columns, strict=True):
            if column != variable:
                pattern = n.Extend(pattern, column, ast.Var(variable))
        if partition:
            pattern = of_partitions(plan, gpm, pattern, columns)
            columns += [*partition, SOLVED]
        variables = tuple(sorted(columns))
        plan_of = GpmPlan(gpm.name, streams, pattern, variables, frozenset(), negated=True)
        yield ContentPlan(plan_of, (), (), ())
