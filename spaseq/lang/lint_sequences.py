"""Warnings about the sequence: steps that can never match, or never fail, and windows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from spaseq.errors import Diagnostic, Span
from spaseq.lang import ast
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
    occurrences,
)
from spaseq.lang.variables import (
    filters_of,
    looks_back,
    pattern_mentions,
    triple_variables,
    walk,
)


def lint_sequence(resolved: Resolved) -> Iterator[Diagnostic]:
    """The warnings about steps, operators and the window."""
    yield from _vacuous_negations(resolved)
    yield from _greedy_for_ever(resolved)
    yield from _unreachable(resolved, resolved.query.sequence)
    yield from _strict_joins(resolved)
    yield from _vain_gap_bounds(resolved)
    yield from _small_windows(resolved)


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
    used = {use.gpm for use in occurrences(resolved.chain) if use.negation is None}
    bound = [_plainly_bound(gpms[name].pattern) for name in used]
    return frozenset.intersection(*bound) if bound else frozenset()


def _plainly_bound(pattern: ast.GroupGraphPattern) -> frozenset[str]:
    """The variables in the triple patterns of a group itself, which every solution binds."""
    blocks = (e for e in pattern.elements if isinstance(e, ast.Triples))
    return frozenset().union(*map(triple_variables, blocks))


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
