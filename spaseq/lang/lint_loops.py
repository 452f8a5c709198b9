"""Warnings about loops whose repetitions are not joined, and about HAVING beside a strategy."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.errors import Diagnostic
from spaseq.lang import ast
from spaseq.lang.resolve import Resolved
from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    Negation,
    Repeat,
    occurrences,
)
from spaseq.lang.variables import filters_of, looks_back, triple_variables, walk


def lint_loops(resolved: Resolved) -> Iterator[Diagnostic]:
    """The warnings about loops and HAVING."""
    yield from _unjoined(resolved)
    yield from _having(resolved)


def _unjoined(resolved: Resolved) -> Iterator[Diagnostic]:
    """Loops that a reader may take for several events of one thing."""
    query = resolved.query
    if query.partition or not isinstance(query.form, ast.Select):
        return
    shown = [i.var.name for i in query.form.items or () if i.expr is None and i.var is not None]
    gpms = {gpm.name: gpm for gpm in query.gpms}
    for loop in _loops(resolved.chain):
        own = {use.gpm for use in occurrences(loop.body) if use.negation is None}
        others = {use.gpm for use in occurrences(resolved.chain)} - own
        bound = frozenset().union(*(resolved.binds[name] for name in own))
        elsewhere = frozenset().union(*(resolved.binds[name] for name in others))
        filters = [expr for name in own for expr in filters_of(gpms[name].pattern)]
        if not own or bound & elsewhere or any(map(looks_back, filters)):
            continue
        plain = frozenset.intersection(*(_plainly_bound(gpms[name].pattern) for name in own))
        name = next((name for name in shown if name in plain), None)
        if name is not None:
            message = (
                f"each repetition may have another ?{name}, of which the answer shows the last; "
                f"for events of one ?{name} write PARTITION BY (?{name}) after WITHIN"
            )
            place = loop.span, resolved.source
            yield Diagnostic("warning", "unjoined-loop", message, *place)


def _loops(chain: Chain) -> Iterator[Repeat]:
    """The loops that may have two repetitions, outer ones first."""
    waiting: list[ChainStep] = [link.step for link in chain.links]
    while waiting:
        step = waiting.pop(0)
        match step:
            case Repeat(body=body, maximum=most):
                if most is None or most > 1:
                    yield step
                waiting += [link.step for link in body.links]
            case BinaryStep(_, operands):
                waiting += [link.step for operand in operands for link in operand.links]
            case Negation():
                pass


def _plainly_bound(pattern: ast.GroupGraphPattern) -> frozenset[str]:
    """The variables in the triple patterns of a group itself, which every solution binds."""
    blocks = (e for e in pattern.elements if isinstance(e, ast.Triples))
    return frozenset().union(*map(triple_variables, blocks))


def _having(resolved: Resolved) -> Iterator[Diagnostic]:
    """HAVING that refuses long matches, before SELECT MAX selects the longest that is left."""
    form, having = resolved.query.form, resolved.query.having
    if not isinstance(form, ast.Select) or form.strategy != "MAX" or having is None:
        return
    if any(isinstance(node, ast.Compare) and _is_upper_bound(node) for node in walk(having)):
        message = (
            "HAVING is tested before SELECT MAX: where it refuses the longest match, a shorter "
            "one is the answer; to have neither, bound the loop by UNTIL or by a negated step"
        )
        yield Diagnostic("warning", "having-before-max", message, having.span, resolved.source)


def _is_upper_bound(comparison: ast.Compare) -> bool:
    """Whether an aggregate, which may grow with the match, must not be too large."""
    sides = (comparison.left, ("<", "<=", "=")), (comparison.right, (">", ">=", "="))
    return any(
        comparison.op in ops and any(isinstance(n, ast.Aggregate) for n in walk(side))
        for side, ops in sides
    )
