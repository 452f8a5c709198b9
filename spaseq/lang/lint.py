"""Warnings: queries that are valid but hardly intended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import pairwise

from spaseq.errors import Diagnostic, Span
from spaseq.lang import ast
from spaseq.lang.resolve import Resolved
from spaseq.lang.sequence import (
    GpmStep,
    Link,
    Negation,
    Repeat,
    chains,
    occurrences,
)
from spaseq.lang.variables import (
    expression_variables,
    filters_of,
    looks_back,
    pattern_mentions,
    timestamp_uses,
    walk,
)
from spaseq.lang.visibility import seen_before


def lint(resolved: Resolved) -> Iterator[Diagnostic]:
    """The warnings of a query without errors."""
    yield from _unused(resolved)
    yield from _unbound(resolved)
    yield from _own_times(resolved)
    yield from _vacuous_negations(resolved)
    yield from _greedy_for_ever(resolved)
    yield from _unreachable(resolved, resolved.query.sequence)
    yield from _unbound_outputs(resolved)


def _warning(resolved: Resolved, code: str, message: str, span: Span, near: str = "") -> Diagnostic:
    names = sorted({f"?{v}" for vs in resolved.binds.values() for v in vs})
    close = get_close_matches(near, names, n=1, cutoff=0.5) if near else []
    return Diagnostic(
        "warning", code, message, span, resolved.source, (), close[0] if close else None
    )


def _unused(resolved: Resolved) -> Iterator[Diagnostic]:
    used = {o.gpm for o in occurrences(resolved.chain)}
    for gpm in resolved.query.gpms:
        if gpm.name not in used:
            message = f"GPM {gpm.name} is defined but never used in the sequence"
            yield _warning(resolved, "unused-gpm", message, gpm.span)


def _unbound(resolved: Resolved) -> Iterator[Diagnostic]:
    """Variables that are unbound whenever a FILTER that reads them is evaluated."""
    everything = {v for vs in resolved.binds.values() for v in vs}
    seen = seen_before(resolved.chain, resolved.scope, resolved.binds)
    for gpm in resolved.query.gpms:
        if gpm.name not in seen:
            continue
        visible = seen[gpm.name] | resolved.binds[gpm.name]
        for expr in filters_of(gpm.pattern):
            for name in sorted(expression_variables(expr) - visible):
                cause = (
                    f"?{name} is bound only later"
                    if name in everything
                    else f"nothing binds ?{name}"
                )
                message = f"the FILTER can never hold: {cause}"
                yield _warning(resolved, "unbound-variable", message, expr.span, f"?{name}")


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


def _vacuous_negations(resolved: Resolved) -> Iterator[Diagnostic]:
    for chain in chains(resolved.chain):
        for i, link in enumerate(chain.links[1:-1], 1):
            strict = link.join.kind == "," == chain.links[i + 1].join.kind
            if isinstance(link.step, Negation) and strict:
                yield _warning(
                    resolved,
                    "vacuous-negation",
                    "negation between two ',' can never fail: no event lies between them",
                    link.step.span,
                )


def _greedy_for_ever(resolved: Resolved) -> Iterator[Diagnostic]:
    """Greedy loops that could always go on with the event of the step behind them."""
    gpms = {gpm.name: gpm for gpm in resolved.query.gpms}
    for chain in chains(resolved.chain):
        for loop, then in pairwise(link.step for link in chain.links):
            if not isinstance(loop, Repeat) or not loop.greedy or loop.maximum is not None:
                continue
            match loop.body.links, then:
                case (Link(GpmStep(own)),), GpmStep(next_use):
                    taken = own.gpm, next_use.gpm
                case _:
                    continue
            if loop.until is None and _takes_all_of(*(gpms[name] for name in taken)):
                yield _warning(
                    resolved,
                    "greedy-for-ever",
                    f"this can have no answers: each event that matches {taken[1]} matches "
                    f"{taken[0]}, too, and then the greedy loop could go on",
                    loop.span,
                )


def _takes_all_of(loop: ast.Gpm, then: ast.Gpm) -> bool:
    """Whether a GPM certainly matches every event that another one matches."""
    streams = {ref.name for ref in loop.streams}
    if not {ref.name for ref in then.streams} <= streams:
        return False
    if loop.name == then.name:
        return not any(map(looks_back, filters_of(loop.pattern)))
    match loop.pattern.elements:
        case (ast.Triples() as block,):
            # A triple of three variables that the other GPM does not use matches any triple.
            terms = [t for t in walk(block) if isinstance(t, ast.Var)]
            others = pattern_mentions(then.pattern)
            return len(terms) == 3 == len({t.name for t in terms} - others)
        case _:
            return False


def _unreachable(resolved: Resolved, sequence: ast.Sequence) -> Iterator[Diagnostic]:
    for step in sequence.steps:
        if not isinstance(step.atom, ast.Bracket):
            continue
        seen: list[ast.Sequence] = []
        for operand in step.atom.operands:
            if step.atom.kind == "|" and operand in seen:
                yield _warning(
                    resolved,
                    "unreachable-alternative",
                    "this alternative is unreachable: an earlier one is the same",
                    operand.span,
                )
            seen.append(operand)
            yield from _unreachable(resolved, operand)


def _unbound_outputs(resolved: Resolved) -> Iterator[Diagnostic]:
    bound = set(resolved.scope.owner) | set(resolved.scope.singles)
    form = resolved.query.form
    if isinstance(form, ast.Construct):
        yield from _template(resolved, form, bound)
    if isinstance(form, ast.Select):
        for item in form.items or ():
            if item.expr is None and item.var is not None and item.var.name not in bound:
                message = f"?{item.var.name} is selected, but nothing binds it"
                name = f"?{item.var.name}"
                yield _warning(resolved, "unbound-variable", message, item.var.span, name)


def _template(resolved: Resolved, form: ast.Construct, bound: set[str]) -> Iterator[Diagnostic]:
    """Triples of the template that are in no answer (SPARQL 1.1 section 16.2)."""
    if not form.template:
        message = "the template is empty, so there are no answers"
        yield _warning(resolved, "empty-template", message, form.span)
    for triple in form.template:
        for term in (triple.subject, triple.predicate, triple.object):
            if isinstance(term, ast.Var) and term.name not in bound:
                message = f"this triple is never in an answer: nothing binds ?{term.name}"
                yield _warning(resolved, "unbound-variable", message, term.span, f"?{term.name}")
        if isinstance(triple.subject, ast.Literal):
            message = "this triple is never in an answer: its subject is a literal"
            yield _warning(resolved, "literal-subject", message, triple.subject.span)
