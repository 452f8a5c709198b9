"""Refusals of negated steps (docs/meaning.md#negation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
)
from spaseq.records import record


def check_negations(chain: Chain, query: ast.Query, source: QueryText) -> Iterator[Diagnostic]:
    """The errors of negated steps that have no meaning at their place."""
    for code, message, span in _check(chain, isinstance(query.window, ast.CountWindow), ""):
        yield Diagnostic("error", code, message, span, source)


_Refusal = tuple[str, str, Span]


def _check(chain: Chain, counted: bool, bracket: str) -> Iterator[_Refusal]:
    links = chain.links
    for i, link in enumerate(links):
        step = link.step
        if isinstance(step, Negation):
            yield from _negation(step, _ChainPosition.of(links, i), counted, bracket)
        yield from _inside(step, counted)


def _inside(step: ChainStep, counted: bool) -> Iterator[_Refusal]:
    match step:
        case BinaryStep(kind, operands):
            for operand in operands:
                yield from _check(operand, counted, f"an operand of {kind}")
        case Repeat(body=body):
            yield from _check(body, counted, "a repeated step")
        case Negation(body=body):
            yield from _check(body, counted, "a negated step")


@record
class _ChainPosition:
    """The place of a negated step: the steps that may be its neighbours on either side.

    A step that may be empty is a neighbour, and so is what then stands there. None is the edge of
    the sequence.
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
