"""Refusals of negated steps (docs/meaning.md#negation) and of loops (docs/meaning.md#loops)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spaseq.errors import Diagnostic, QueryText, Span
from spaseq.lang import ast
from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    Link,
    Negation,
    Repeat,
    can_be_empty,
    chains,
    occurrences,
    steps,
)
from spaseq.records import record


def check_loops(chain: Chain, query: ast.Query, source: QueryText) -> Iterator[Diagnostic]:
    """The errors of loops that have no meaning at their place."""
    counted = isinstance(query.window, ast.CountWindow)
    for code, message, span in (*_untils(chain), *_loop_refusals(chain, _Around(counted))):
        yield Diagnostic("error", code, message, span, source)


_Refusal = tuple[str, str, Span]


def _untils(chain: Chain) -> Iterator[_Refusal]:
    untils = [r.until for r in steps(chain) if isinstance(r, Repeat) and r.until is not None]
    ends = {until.id for until in untils}
    used = {use.gpm for use in occurrences(chain) if use.negation not in ends}
    for until in untils:
        for use in occurrences(until.body):
            if use.gpm in used:
                yield (
                    "until-step",
                    f"UNTIL {use.gpm}: {use.gpm} is a step of the sequence; UNTIL takes a GPM "
                    "that is not",
                    until.span,
                )


@record
class _Around:
    """The surroundings of a chain."""

    counted: bool  # the window counts events
    edge: str = ""  # a bracket whose edges are those of the chain
    inside: str = ""  # a negated or repeated step around the chain


def _loop_refusals(chain: Chain, around: _Around) -> Iterator[_Refusal]:
    for i, link in enumerate(chain.links):
        if isinstance(link.step, Repeat):
            yield from _loop(link.step, chain.links[:i], chain.links[i + 1 :], around)
        yield from _loops_inside(link.step, around)


def _loops_inside(step: ChainStep, around: _Around) -> Iterator[_Refusal]:
    match step:
        case BinaryStep(kind, operands):
            for operand in operands:
                yield from _loop_refusals(operand, replace(around, edge=f"a bracket with {kind}"))
        case Repeat(body=body):
            yield from _loop_refusals(body, replace(around, inside="a repeated step"))
        case Negation(body=body):
            yield from _loop_refusals(body, replace(around, inside="a negated step"))


def _loop(
    loop: Repeat, before: tuple[Link, ...], after: tuple[Link, ...], around: _Around
) -> Iterator[_Refusal]:
    if loop.own is not None and loop.maximum is not None and loop.maximum < 2:
        yield (
            "own-operator",
            f"[{loop.own.kind}] joins repetitions, but the step repeats at most {loop.maximum} "
            "times: leave it out",
            loop.span,
        )
    if not loop.greedy:
        return
    reason = next(_no_greed(loop, before, after, around), None)
    if reason is not None:
        yield "greedy-loop", f"a greedy loop cannot stand {reason}", loop.span


def _no_greed(
    loop: Repeat, before: tuple[Link, ...], after: tuple[Link, ...], around: _Around
) -> Iterator[str]:
    """Why a greedy loop has no meaning at its place, in words that follow "cannot stand"."""
    if around.inside:
        yield f"inside {around.inside}"
    if around.edge and not (before and after):
        yield f"at the edge of {around.edge}: put a step that matches an event beside it"
    if _meets_negation(before[::-1]) or _meets_negation(after):
        yield "beside a negated step"
    if any(isinstance(link.step, Negation) for c in chains(loop.body) for link in c.links):
        yield "around a negated step"
    if after and can_be_empty(Chain(after[:1])):
        yield "before a step that may be empty: it would be unclear where the loop must end"
    if loop.minimum == 0 and can_be_empty(Chain(before)):
        yield "in first place if it may be empty: give it a lower bound of 1"
    if not after and around.counted:
        yield "in last place under WITHIN n EVENTS: such a window does not close at a known time"


def _meets_negation(links: tuple[Link, ...]) -> bool:
    """Whether the nearest of some steps may be negated, as those before it may be empty."""
    for link in links:
        if isinstance(link.step, Negation):
            return True
        if not can_be_empty(Chain((link,))):
            return False
    return False


def check_negations(chain: Chain, query: ast.Query, source: QueryText) -> Iterator[Diagnostic]:
    """The errors of negated steps that have no meaning at their place."""
    for code, message, span in _negation_refusals(
        chain, isinstance(query.window, ast.CountWindow), ""
    ):
        yield Diagnostic("error", code, message, span, source)


def _negation_refusals(chain: Chain, counted: bool, bracket: str) -> Iterator[_Refusal]:
    links = chain.links
    for i, link in enumerate(links):
        step = link.step
        if isinstance(step, Negation):
            yield from _negation(step, _ChainPosition.of(links, i), counted, bracket)
        match step:
            case BinaryStep(kind, operands):
                for operand in operands:
                    yield from _negation_refusals(operand, counted, f"an operand of {kind}")
            case Repeat(body=body):
                yield from _negation_refusals(body, counted, "a repeated step")
            case Negation(body=body):
                yield from _negation_refusals(body, counted, "a negated step")


@record
class _ChainPosition:
    """The position of a negated step: its possible neighbours on either side. Beyond a step that
    may be empty, the next step is a neighbour, too. None is the edge of the sequence.
    """

    link: Link
    is_first: bool
    before: tuple[Link | None, ...]
    after: tuple[Link | None, ...]

    @classmethod
    def of(cls, links: tuple[Link, ...], i: int) -> _ChainPosition:
        before = tuple(_neighbours(links[:i][::-1]))
        return cls(links[i], i == 0, before, tuple(_neighbours(links[i + 1 :])))


def _neighbours(links: Sequence[Link]) -> Iterator[Link | None]:
    for link in links:
        if isinstance(link.step, Negation):
            continue
        yield link
        if not can_be_empty(Chain((link,))):
            return
    yield None


def _negation(
    step: Negation, place: _ChainPosition, counted: bool, bracket: str
) -> Iterator[_Refusal]:
    may_begin, may_end = None in place.before, None in place.after
    if bracket and (may_begin or may_end):
        where = "at the edge of a bracket that is not transparent"
        if place.before == (None,) == place.after:
            where = f"as {bracket}"
        yield (
            "negation-at-edge",
            f"negation {where}: {bracket} must begin and end with a step that matches events",
            step.span,
        )
        return
    if can_be_empty(step.body):
        yield "empty-step", "a negated step must match at least one event", step.span
    if may_begin and may_end and len(place.before) + len(place.after) > 2:
        yield (
            "only-negations",
            "without the steps that may be empty, a sequence of negations only is left",
            step.span,
        )
    if counted and (may_begin or may_end):
        where = "first" if may_begin else "last"
        yield (
            "negation-at-end",
            f"negation in {where} place under WITHIN n EVENTS: such a window does not close at a "
            "known time",
            step.span,
        )
    yield from _gaps(step, place)


def _gaps(step: Negation, place: _ChainPosition) -> Iterator[_Refusal]:
    """Gap bounds that the negated step makes meaningless."""
    if place.link.join.gap_ms is not None and not place.is_first:
        yield (
            "meaningless-gap",
            "a gap bound before a negated step has no meaning: the operator there has no effect",
            step.span,
        )
    follows = (link for link in place.after if link is not None)
    if None in place.before and any(link.join.gap_ms is not None for link in follows):
        yield (
            "meaningless-gap",
            "a gap bound behind a negated step in first place has no meaning: there is no "
            "earlier step",
            step.span,
        )
