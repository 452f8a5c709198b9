"""Warnings about probable mistakes in a query, also in one with errors.

This module has the warnings about the sequence: steps that can never match, or never fail, windows,
and loops whose repetitions are not joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from spaseq.errors import Diagnostic, Span
from spaseq.lang import ast
from spaseq.lang.lint_filters import lint_comparisons, lint_filters, unbound_warning
from spaseq.lang.parser import Parsed
from spaseq.lang.resolve import Resolved
from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    GpmStep,
    Link,
    Negation,
    Occurrence,
    Repeat,
    chains,
    inner_chains,
    occurrences,
)
from spaseq.lang.variables import (
    filters_of,
    leaves,
    looks_back,
    plainly_bound,
    variables_of,
    walk,
)
from spaseq.lang.windows import lint_windows


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
        looped = {use.gpm for use in occurrences(loop.body) if use.negation is None}
        others = {use.gpm for use in resolved.scope.occurrences} - looped
        bound = frozenset().union(*(resolved.binds[name] for name in looped))
        elsewhere = frozenset().union(*(resolved.binds[name] for name in others))
        filters = [expr for name in looped for expr in filters_of(gpms[name].pattern)]
        if not looped or bound & elsewhere or any(map(looks_back, filters)):
            continue
        plain = frozenset.intersection(*(plainly_bound(gpms[name].pattern) for name in looped))
        name = next((name for name in shown if name in plain), None)
        if name is not None:
            message = (
                f"each repetition may have another ?{name}, of which the answer shows the last; "
                f"for events of one ?{name} write PARTITION BY (?{name}) after WITHIN"
            )
            where = loop.span, resolved.source
            yield Diagnostic("warning", "unjoined-loop", message, *where)


def _loops(chain: Chain) -> Iterator[Repeat]:
    """The loops that may have two repetitions, outer ones first."""
    waiting: list[ChainStep] = [link.step for link in chain.links]
    while waiting:
        step = waiting.pop(0)
        if isinstance(step, Repeat) and step.is_scope:
            yield step
        if not isinstance(step, Negation):
            waiting += [link.step for inner in inner_chains(step) for link in inner.links]


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


def lint_shape(resolved: Resolved) -> Iterator[Diagnostic]:
    """The warnings about steps, operators and the window, whatever the GPMs are."""
    yield from _vacuous_negations(resolved)
    yield from _unreachable(resolved, resolved.query.sequence)
    yield from _vain_gap_bounds(resolved)
    yield from _small_windows(resolved)


def lint_steps(resolved: Resolved) -> Iterator[Diagnostic]:
    """The warnings about steps that follow from the matches of their GPMs."""
    yield from _greedy_for_ever(resolved)
    yield from _strict_joins(resolved)


def _warning(resolved: Resolved, code: str, message: str, span: Span) -> Diagnostic:
    return Diagnostic("warning", code, message, span, resolved.source)


def _vacuous_negations(resolved: Resolved) -> Iterator[Diagnostic]:
    for chain in chains(resolved.chain):
        for i, link in enumerate(chain.links[1:-1], 1):
            strict = link.join.kind == "," == chain.links[i + 1].join.kind
            if isinstance(link.step, Negation) and strict:
                yield _warning(
                    resolved,
                    "vacuous-negation",
                    "negation between two ',' can never fail: no event lies between them; "
                    "write `;`",
                    link.step.span,
                )


def _greedy_for_ever(resolved: Resolved) -> Iterator[Diagnostic]:
    """Greedy loops that could always continue with the event of the next step."""
    gpms = {gpm.name: gpm for gpm in resolved.query.gpms}
    for chain in chains(resolved.chain):
        for loop, then in pairwise(link.step for link in chain.links):
            if not isinstance(loop, Repeat) or not loop.greedy or loop.maximum is not None:
                continue
            match loop.body.links, then:
                case (Link(GpmStep(use)),), GpmStep(next_use):
                    taken = use.gpm, next_use.gpm
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
            others = variables_of(then.pattern)
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


def _strict_joins(resolved: Resolved) -> Iterator[Diagnostic]:
    """Steps joined by `,` and by a variable, without PARTITION BY.

    An event with another value of the variable, between the two, then takes the match away.
    """
    keys = _possible_keys(resolved)
    if resolved.query.partition or not keys:
        return
    for chain in chains(resolved.chain):
        for before, link in pairwise(chain.links):
            shared = _binds(resolved, before) & _binds(resolved, link) & keys
            if link.join.kind == "," and shared:
                name = min(shared)
                message = (
                    f"`,` takes the very next event, whatever its ?{name}; if events with several "
                    f"?{name} alternate, write PARTITION BY (?{name}) after WITHIN, or `;`"
                )
                yield _warning(resolved, "strict-join", message, _first(link).span)
                return


def _possible_keys(resolved: Resolved) -> frozenset[str]:
    """The variables that PARTITION BY could name, as every step binds them."""
    gpms = {gpm.name: gpm for gpm in resolved.query.gpms}
    used = {use.gpm for use in resolved.scope.occurrences if use.negation is None}
    bound = [plainly_bound(gpms[name].pattern) for name in used]
    return frozenset.intersection(*bound) if bound else frozenset()


def _binds(resolved: Resolved, link: Link) -> frozenset[str]:
    """The variables that a step may bind."""
    uses = (use for use in occurrences(Chain((link,))) if use.negation is None)
    return frozenset().union(*(resolved.binds[use.gpm] for use in uses))


def _first(link: Link) -> Occurrence:
    return next(occurrences(Chain((link,))))


# --- windows --------------------------------------------------------------------------------------


def _vain_gap_bounds(resolved: Resolved) -> Iterator[Diagnostic]:
    """Gap bounds that are longer than the window."""
    window = resolved.query.window
    if not isinstance(window, ast.TimeWindow):
        return
    for op in walk(resolved.query.sequence):
        if isinstance(op, ast.Op) and op.gap is not None and op.gap.ms > window.length.ms:
            message = (
                f"this gap bound has no effect: a match fits into {_shown(window.length)}; "
                f"write WITHIN {_shown(op.gap)} or more, or a shorter bound"
            )
            yield _warning(resolved, "vain-gap-bound", message, op.gap.span)


def _shown(time: ast.TimeSpan) -> str:
    return f"{time.amount} {time.unit}"


def _small_windows(resolved: Resolved) -> Iterator[Diagnostic]:
    """Windows of fewer events than every match has."""
    window = resolved.query.window
    needed = _fewest(resolved.chain)
    if isinstance(window, ast.CountWindow) and window.events < needed:
        message = f"this can have no answers: a match has at least {needed} events"
        yield _warning(resolved, "small-window", message, window.span)


def _fewest(chain: Chain) -> int:
    """The least number of events that a match of a chain has."""
    return sum(_fewest_of_step(link.step) for link in chain.links)


def _fewest_of_step(step: ChainStep) -> int:
    match step:
        case Repeat(body=body, minimum=minimum):
            return minimum * _fewest(body)
        case Negation():
            return 0
        case BinaryStep("AND", operands):
            return sum(map(_fewest, operands))
        case BinaryStep("|", operands):
            return min(map(_fewest, operands))
        case BinaryStep(_, operands):
            return max(map(_fewest, operands))
        case GpmStep():
            return 1


def lint(resolved: Resolved, parsed: Parsed) -> Iterator[Diagnostic]:
    """The warnings that are true whatever the errors of the query."""
    yield from lint_comparisons(resolved)
    if "sequence" not in parsed.broken_clauses:
        yield from lint_shape(resolved)
    is_read = all(error.code in _OF_NAMES for error in parsed.errors)
    if is_read and _is_sequence_valid(resolved):
        yield from _unused(resolved)
        yield from lint_filters(resolved)
        yield from lint_steps(resolved)
        yield from lint_loops(resolved)
        yield from lint_windows(resolved.query, resolved.source)
        yield from _unbound_outputs(resolved)


_OF_NAMES = ("undeclared-prefix", "unknown-version")
"""The parser's errors that leave no part of the query unread."""


def _is_sequence_valid(resolved: Resolved) -> bool:
    """Whether no step has an error, and each names one GPM."""
    whole, names = resolved.query.sequence.span, [gpm.name for gpm in resolved.query.gpms]
    starts = (each.span.start for each in resolved.diagnostics)
    return len({*names}) == len(names) and not any(whole.start <= s < whole.end for s in starts)


def _unused(resolved: Resolved) -> Iterator[Diagnostic]:
    used = {o.gpm for o in resolved.scope.occurrences}
    for gpm in resolved.query.gpms:
        if gpm.name not in used:
            message = f"GPM {gpm.name} is defined but never used in the sequence"
            yield _warning(resolved, "unused-gpm", message, gpm.span)


def _unbound_outputs(resolved: Resolved) -> Iterator[Diagnostic]:
    bound = set(resolved.scope.owner) | set(resolved.scope.singles)
    form = resolved.query.form
    if isinstance(form, ast.Construct):
        if not form.template:
            message = "the template is empty, so there are no answers"
            yield _warning(resolved, "empty-template", message, form.span)
        yield from _template(resolved, form.template, bound)
    if isinstance(form, ast.Maintain):
        yield from _template(resolved, form.inserted, bound)
    if isinstance(form, ast.Select):
        for item in form.items or ():
            if item.expr is None and item.var is not None and item.var.name not in bound:
                message = f"?{item.var.name} is selected, but nothing binds it"
                yield unbound_warning(resolved, message, item.var, bound)


def _template(
    resolved: Resolved, template: Iterable[ast.Triple], bound: set[str]
) -> Iterator[Diagnostic]:
    """Triples of a template that are in no answer (SPARQL 1.1 section 16.2)."""
    for triple in template:
        places = (triple.subject, triple.predicate, triple.object)
        for term in (leaf for place in places for leaf in leaves(place)):
            if isinstance(term, ast.Var) and term.name not in bound:
                message = f"this triple is never in an answer: nothing binds ?{term.name}"
                yield unbound_warning(resolved, message, term, bound)
        if isinstance(triple.subject, ast.Literal):
            message = "this triple is never in an answer: its subject is a literal"
            yield _warning(resolved, "literal-subject", message, triple.subject.span)
