"""GPMs on windows whose groups stage 2 keeps from one close to the next.

Such a GPM has one sub-SELECT with aggregates over one EVENT block. Stage 1 matches the block once
on each event. The rest of the pattern concerns one group at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import certain, possible, visible
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.variables import is_now, walk
from spaseq.plan.pattern_plan import ContentPlan, GpmPlan, KeptGroups, Operand
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.split_patterns import reads

FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
"""The aggregates that are kept."""

ORDERED = ("SAMPLE", "GROUP_CONCAT")
"""The aggregates that depend on the order of rows."""

SOLVED = "#s"
"""A variable that rows of an event without solutions leave unbound, if there are partitions."""

_OF_MORE = (ast.Exists, ast.Prev, ast.Timestamp)


def reason_for_all(plan: QueryPlan, gpm: GpmPlan) -> str | None:
    """The reason, beside its pattern, why nothing of a GPM on windows is kept, if any."""
    if plan.sequence.needs_instants and not plan.sequence.partition and _counts_events(plan):
        return "the sequence counts events that windows hold"
    if gpm.streams:
        return "it stands on a stream, too"
    if gpm.correlation is not None or gpm.needed:
        return "its pattern depends on other steps, or on NOW()"
    keys = {plan.inputs.windows[source.window].held.gpm.pattern for source in gpm.windows}
    if plan.sequence.own_partition and len(keys) > 1:
        return "its windows have several forms of KEY"
    if plan.changing is not None and reads(kept_part(gpm.pattern), plan.changing.graphs):
        return "it reads a graph that changes"
    return None


def _counts_events(plan: QueryPlan) -> bool:
    """Whether streams of a window have other readers, too."""
    return any(window.held.counted for window in plan.inputs.windows)


def reason_against(gpm: GpmPlan) -> str | None:
    """The reason why the groups of a GPM on windows are evaluated anew at each close; None if they
    are kept.
    """
    group = group_of(gpm.pattern)
    if group is None:
        return "its pattern is not one sub-SELECT with aggregates over EVENT"
    if not all(_is_kept(aggregate) for _, aggregate in group.aggregates):
        return "it has COUNT(DISTINCT *), or an aggregate that is not kept"
    if events_of(group.pattern) is None:
        return "its aggregates are not over one EVENT with triple patterns, FILTERs and GRAPH"
    return None


def _is_kept(aggregate: ast.Aggregate) -> bool:
    if aggregate.operand is None:
        return not aggregate.distinct
    return aggregate.function in FUNCTIONS and is_plain(aggregate.operand)


def is_plain(expr: ast.Expr) -> bool:
    """Whether the value of an expression depends on its solution only."""
    nodes = list(walk(expr))
    if any(isinstance(node, _OF_MORE) or is_now(node) for node in nodes) or is_volatile(expr):
        return False
    return not any(isinstance(node, ast.Var) and n.is_parameter(node.name) for node in nodes)


def group_of(pattern: n.Pattern) -> n.Group | None:
    """The groups of a pattern whose other parts concern single solutions of theirs.

    The keys are shown, so groups differ in their solutions.
    """
    inner = pattern
    while not isinstance(inner, n.Group):
        match inner:
            case n.Filter(expr, below) | n.Extend(below, _, expr) if is_plain(expr):
                inner = below
            case n.Project(below) | n.Distinct(below):
                inner = below
            case _:
                beside = beside_knowledge(inner)
                if beside is None:
                    return None
                inner = beside
    shown = possible(pattern)
    keys_shown = shown.issuperset(inner.keys) and not any(map(n.is_reserved, inner.keys))
    return inner if keys_shown else None


def kept_part(pattern: n.Pattern) -> n.Pattern:
    """The kept part of a pattern: the input of its groups, or the whole."""
    group = group_of(pattern)
    return pattern if group is None else group.pattern


def reads_around(pattern: n.Pattern) -> bool:
    """Whether a pattern reads graphs of the knowledge base beside its groups."""
    if isinstance(pattern, n.Group):
        return False
    return isinstance(pattern, n.Graph) or any(map(reads_around, n.children(pattern)))


def beside_knowledge(pattern: n.Pattern) -> n.Pattern | None:
    """The operand whose solutions a pattern joins one by one with the KB or with tables, if any."""
    match pattern:
        case n.Join(inner, other) | n.Minus(inner, other) if _is_known(other):
            return inner
        case n.LeftJoin(inner, other, expr) if expr is None or is_plain(expr):
            return inner if _is_known(other) else None
        case n.Join(other, inner) if _is_known(other):
            return inner
    return None


def _is_known(pattern: n.Pattern) -> bool:
    """Whether a pattern has the same solutions on all events; graphs of the KB must not change."""
    match pattern:
        case n.Table():
            return True
        case n.BGP() | n.Path() | n.EventName():
            return False
    return is_matched(pattern) and (
        isinstance(pattern, n.Graph) or all(map(_is_known, n.children(pattern)))
    )


def events_of(pattern: n.Pattern) -> tuple[n.Pattern, str | None] | None:
    """(pattern for each event in stage 1, the stream's name of ON); None if it is impossible."""
    match pattern:
        case n.Join(n.Graph() as block, other) | n.Join(other, n.Graph() as block):
            inner_events = events_of(other) if is_matched(block) else None
            return (
                None if inner_events is None else (n.Join(inner_events[0], block), inner_events[1])
            )
        case n.EventBlock(inner, stream):
            return (inner, stream) if is_matched(inner) else None
        case n.Filter(expr, inner) if is_plain(expr):
            inner_events = events_of(inner)
            return (
                None if inner_events is None else (n.Filter(expr, inner_events[0]), inner_events[1])
            )
        case n.Extend(inner, variable, expr) if is_plain(expr):
            inner_events = events_of(inner)
            return (
                None
                if inner_events is None
                else (n.Extend(inner_events[0], variable, expr), inner_events[1])
            )
    return None


def is_matched(pattern: n.Pattern) -> bool:
    """Whether stage 1 may evaluate a pattern inside EVENT; graphs of the KB must not change."""
    match pattern:
        case n.BGP() | n.Path() | n.Table() | n.EventName():
            return True
        case n.Filter(expr, inner) | n.Extend(inner, _, expr):
            return is_plain(expr) and is_matched(inner)
        case n.LeftJoin(left, right, expr):
            plain = expr is None or is_plain(expr)
            return plain and is_matched(left) and is_matched(right)
        case n.Join(left, right) | n.Union(left, right) | n.Minus(left, right):
            return is_matched(left) and is_matched(right)
        case n.Project(inner) | n.Distinct(inner) | n.Graph(_, inner):
            return is_matched(inner)
    return False


# --- plans ----------------------------------------------------------------------------------------


def content_of(plan: QueryPlan, gpm: GpmPlan) -> ContentPlan:
    """The content from stage 1 for a GPM whose groups are kept."""
    group = group_of(gpm.pattern)
    assert group is not None
    of_events = events_of(group.pattern)
    assert of_events is not None
    pattern = of_events[0]
    partition = plan.sequence.own_partition
    operands: list[Operand] = []
    for number, expr in enumerate(_operands(group)):
        variable = f"#e{number}"
        if isinstance(expr, ast.Var) and not partition:
            variable = expr.name
        else:
            pattern = n.Extend(pattern, variable, expr)
        uses = [a for _, a in group.aggregates if a.operand == expr]
        by_text = any(a.distinct or a.function in ("MIN", "MAX", *ORDERED) for a in uses)
        operands.append(Operand(variable, f"#n{number}", f"#t{number}", by_text))
    windows = [plan.inputs.windows[source.window] for source in gpm.windows]
    streams = tuple(sorted({stream for window in windows for stream in window.streams}))
    keys = _key_columns(plan, group)
    order = _order_columns(group, of_events[0])
    for column, shown in order:
        pattern = n.Extend(pattern, column, ast.Var(shown))
    if partition:
        for column, key in zip(keys, group.keys, strict=True):
            pattern = n.Extend(pattern, column, ast.Var(key))
        inner = (*keys, *(own.variable for own in operands), *(column for column, _ in order))
        pattern = of_partitions(plan, gpm, pattern, inner)
        keys = (*keys, *partition, SOLVED)
    columns = (own.text for own in operands), (column for column, _ in order)
    variables = tuple(sorted({*keys, *chain(*columns)}))
    own = GpmPlan(gpm.name, streams, pattern, variables, frozenset(), negated=True)
    return ContentPlan(own, (), (), tuple(operands))


def _key_columns(plan: QueryPlan, group: n.Group) -> tuple[str, ...]:
    """The variables of a content for the keys of groups, distinct from the keys of PARTITION BY."""
    if not plan.sequence.own_partition:
        return group.keys
    return tuple(f"#k{number}" for number in range(len(group.keys)))


def _order_columns(group: n.Group, pattern: n.Pattern) -> tuple[tuple[str, str], ...]:
    """(column, variable) that sort the solutions of an event, if an aggregate needs that."""
    if not any(aggregate.function in ORDERED for _, aggregate in group.aggregates):
        return ()
    shown = sorted(visible(possible(pattern)))
    return tuple((f"#o{number:04}", variable) for number, variable in enumerate(shown))


def of_partitions(
    plan: QueryPlan, gpm: GpmPlan, pattern: n.Pattern, columns: Iterable[str]
) -> n.Pattern:
    """The columns of a pattern, for each partition of an event.

    SOLVED is unbound where the event has no solution.
    """
    key = plan.inputs.windows[gpm.windows[0].window].held.gpm.pattern
    solved = n.Extend(pattern, SOLVED, ast.Literal("true"))
    return n.LeftJoin(key, n.Project(solved, (*columns, SOLVED)))


def _operands(group: n.Group) -> list[ast.Expr]:
    """The distinct operands of a group's aggregates."""
    return [*dict.fromkeys(_summed(group))]


def _summed(group: n.Group) -> Iterator[ast.Expr]:
    sure = certain(group.pattern)
    for _, aggregate in group.aggregates:
        if aggregate.operand is not None and not _counts_rows(aggregate, sure):
            yield aggregate.operand


def _counts_rows(aggregate: ast.Aggregate, sure: frozenset[str]) -> bool:
    """Whether an aggregate is the number of a group's rows."""
    operand = aggregate.operand
    is_bound = operand is None or (isinstance(operand, ast.Var) and operand.name in sure)
    return aggregate.function == "COUNT" and not aggregate.distinct and is_bound


def kept_of(plan: QueryPlan, number: int, content: int) -> KeptGroups:
    """The kept groups of a GPM (an index), made of a content."""
    group = group_of(plan.patterns.gpms[number].pattern)
    assert group is not None
    of_events = events_of(group.pattern)
    assert of_events is not None
    sure, operands = certain(group.pattern), _operands(group)
    places = tuple(
        None if _counts_rows(aggregate, sure) else operands.index(aggregate.operand)  # type: ignore[arg-type]
        for _, aggregate in group.aggregates
    )
    stream = None if of_events[1] is None else plan.inputs.stream_names.index(of_events[1])
    order = tuple(column for column, _ in _order_columns(group, of_events[0]))
    return KeptGroups(number, content, group, _key_columns(plan, group), places, stream, order)
