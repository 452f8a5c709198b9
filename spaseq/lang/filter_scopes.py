"""The variables that each FILTER of a GPM sees.

SPARQL 1.1 section 18.2: a FILTER sees the variables of its own group. In OPTIONAL it sees the group
around it, too, and in EXISTS everything that the FILTER with the EXISTS sees. Variables of earlier
steps are visible everywhere except in a sub-SELECT that does not select them.
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, nested_groups, pattern_variables
from spaseq.records import record


@record
class SeenFilter:
    """A FILTER with the variables that it may see bound."""

    expr: ast.Expr
    visible: frozenset[str]
    inside: ast.Element | None = None  # the innermost part of the GPM around it; None in EXISTS


def seen_filters(
    group: ast.GroupGraphPattern,
    earlier: frozenset[str],
    around: frozenset[str] = frozenset(),
    inside: ast.Element | None = None,
    begins: frozenset[str] = frozenset(),
) -> Iterator[SeenFilter]:
    """The FILTERs of a group at any depth, in the order of the text, also inside EXISTS.

    Args:
        group: the group.
        earlier: variables that are substituted into the group.
        around: more variables that the FILTERs of the group itself see.
        inside: the part of the GPM that the group is in.
        begins: variables that are bound at the begin of the group: those of EVENT.
    """
    own = pattern_variables(group) | begins
    visible = own | earlier | around
    for element in group.elements:
        if isinstance(element, ast.Filter):
            yield SeenFilter(element.expr, visible, inside)
            for exists in exists_uses(element.expr):
                yield from seen_filters(exists.pattern, visible)
        outer = own if isinstance(element, ast.OptionalGraphPattern) else frozenset[str]()
        for inner in nested_groups(element):
            handed_on = _handed_on(element, earlier)
            yield from seen_filters(inner, handed_on, outer, element, _of_event(element))


def _of_event(element: ast.Element) -> frozenset[str]:
    """The variables that EVENT binds before its group."""
    if not isinstance(element, ast.EventGraphPattern):
        return frozenset()
    return frozenset(v.name for v in (element.event, element.time) if v is not None)


def _handed_on(element: ast.Element, earlier: frozenset[str]) -> frozenset[str]:
    """The variables of earlier steps that an element sees."""
    match element:
        case ast.SubSelect(items=items) if items is not None:
            return earlier & {item.var.name for item in items if item.var}
        case _:
            return earlier
