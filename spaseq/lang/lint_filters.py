"""Warnings about FILTERs and other expressions: unbound variables, own times, vain comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from spaseq.errors import Diagnostic, Span
from spaseq.lang import ast
from spaseq.lang.comparisons import vain_comparisons
from spaseq.lang.filter_scopes import SeenFilter, seen_filters
from spaseq.lang.outcomes import can_hold
from spaseq.lang.resolve import Resolved
from spaseq.lang.sequence import occurrences
from spaseq.lang.spelling import suggested
from spaseq.lang.variables import (
    children,
    filters_of,
    timestamp_uses,
    walk,
)
from spaseq.lang.visibility import seen_before


def lint_filters(resolved: Resolved) -> Iterator[Diagnostic]:
    """The warnings about expressions."""
    yield from _unbound(resolved)
    yield from _unbound_outputs(resolved)
    yield from _own_times(resolved)
    yield from _comparisons(resolved)


def unbound_warning(
    resolved: Resolved, message: str, var: ast.Var, visible: Collection[str] | None = None
) -> Diagnostic:
    """A warning about an unbound variable, with the nearest of those that may be bound there."""
    names = visible if visible is not None else {v for vs in resolved.binds.values() for v in vs}
    near = None if var.name in names else suggested(var.name, names)
    shown = None if near is None else f"?{near}"
    return _warning(resolved, "unbound-variable", message, var.span, shown)


def _warning(
    resolved: Resolved, code: str, message: str, span: Span, suggestion: str | None = None
) -> Diagnostic:
    return Diagnostic("warning", code, message, span, resolved.source, (), suggestion)


# --- unbound variables ---------------------------------------------------------------------------


def _unbound(resolved: Resolved) -> Iterator[Diagnostic]:
    """Variables that are unbound whenever a FILTER that reads them is evaluated."""
    seen = seen_before(resolved.chain, resolved.scope, resolved.binds)
    for gpm in resolved.query.gpms:
        if gpm.name not in seen:
            continue
        for found in seen_filters(gpm.pattern, frozenset(seen[gpm.name])):
            unread = {v.name: v for v in _reads(found.expr) if v.name not in found.visible}
            holds = can_hold(found.expr, unread)
            for name in sorted(unread):
                cause = _cause(resolved, gpm, found, unread[name], seen)
                message = f"{cause}" if holds else f"the FILTER can never hold: {cause}"
                near = found.visible if cause.startswith("nothing") else {name}
                yield unbound_warning(resolved, message, unread[name], near)


def _reads(expr: ast.Node) -> Iterator[ast.Var]:
    """The variables whose own value an expression reads: not in PREV, aggregates or EXISTS."""
    if isinstance(expr, ast.Var):
        yield expr
    elif not isinstance(expr, ast.Prev | ast.Aggregate | ast.Exists):
        for child in children(expr):
            yield from _reads(child)


def _cause(
    resolved: Resolved, gpm: ast.Gpm, found: SeenFilter, var: ast.Var, seen: dict[str, set[str]]
) -> str:
    """Why a variable has no value in a FILTER, and what to do."""
    name = var.name
    if name in resolved.binds[gpm.name]:
        return _bound_outside(name, found.inside)
    later = [g for g, names in resolved.binds.items() if name in names and g in seen]
    if later:
        reads = {v.name for v in _reads(found.expr)}
        goal = next((g for g in later if reads <= seen[g] | resolved.binds[g]), None)
        advice = "" if goal is None else f"; move it to {goal}"
        return f"?{name} is bound only later{advice}"
    if _mentioned_apart(gpm.pattern, name):
        return (
            f"?{name} has a value only inside other braces of {gpm.name}; move the FILTER there, "
            f"or SELECT ?{name} in the sub-SELECT"
        )
    return f"nothing binds ?{name}"


def _bound_outside(name: str, inside: ast.Element | None) -> str:
    match inside:
        case ast.MinusGraphPattern():
            return f"MINUS does not see ?{name}; write FILTER NOT EXISTS {{ ... }} instead of MINUS"
        case ast.SubSelect():
            return f"?{name} is bound outside of the sub-SELECT; move the FILTER out of it"
        case _:
            return f"?{name} is bound outside of the braces around the FILTER; move it out of them"


def _mentioned_apart(node: ast.Node, name: str) -> bool:
    """Whether a variable stands in a part of a GPM that binds variables, such as a triple."""
    if isinstance(node, ast.Triples | ast.Values):
        return any(isinstance(n, ast.Var) and n.name == name for n in walk(node))
    return any(_mentioned_apart(child, name) for child in children(node))


def _unbound_outputs(resolved: Resolved) -> Iterator[Diagnostic]:
    """Variables in the expressions of SELECT and in HAVING that nothing binds."""
    query = resolved.query
    bound = set(resolved.scope.owner) | set(resolved.scope.singles)
    if isinstance(query.form, ast.Select):
        bound |= {item.var.name for item in query.form.items or () if item.expr and item.var}
        for item in query.form.items or ():
            for var in _reads(item.expr) if item.expr is not None else ():
                if var.name not in bound:
                    message = f"nothing binds ?{var.name}"
                    yield unbound_warning(resolved, message, var, bound)
    if query.having is None:
        return
    unread = {v.name: v for v in _reads(query.having) if v.name not in bound}
    never = "" if can_hold(query.having, unread) else "HAVING can never hold: "
    for name, var in sorted(unread.items()):
        yield unbound_warning(resolved, f"{never}nothing binds ?{name}", var, bound)


# --- own times, comparisons -----------------------------------------------------------------------


def _own_times(resolved: Resolved) -> Iterator[Diagnostic]:
    """TIMESTAMP of a step in its own FILTER, where the step has no event yet."""
    uses = Counter(o.gpm for o in occurrences(resolved.chain))
    repeated = {o.gpm for o in occurrences(resolved.chain) if o.repeats}
    for gpm in resolved.query.gpms:
        if uses[gpm.name] != 1 or gpm.name in repeated:
            continue
        for stamp in (use for e in filters_of(gpm.pattern) for use in timestamp_uses(e)):
            if stamp.gpm.name == gpm.name:
                message = (
                    f"TIMESTAMP({gpm.name}) has no value in the FILTER of {gpm.name} itself: "
                    "the time of its event is NOW()"
                )
                yield _warning(resolved, "own-timestamp", message, stamp.span)


def _comparisons(resolved: Resolved) -> Iterator[Diagnostic]:
    for compare, message in vain_comparisons(resolved.query):
        yield _warning(resolved, "vain-comparison", message, compare.span)
