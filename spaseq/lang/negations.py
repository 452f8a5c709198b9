"""Refusals of negated steps (docs/language.md#negation)."""

from __future__ import annotations

from collections.abc import Iterator

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
            yield from _negation(links, i, counted, bracket)
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


def _negation(links: tuple[Link, ...], i: int, counted: bool, bracket: str) -> Iterator[_Refusal]:
    link = links[i]
    step = link.step
    assert isinstance(step, Negation)
    before = next((x for x in reversed(links[:i]) if not isinstance(x.step, Negation)), None)
    after = next((x for x in links[i + 1 :] if not isinstance(x.step, Negation)), None)
    if bracket and (before is None or after is None):
        where = "at the edge of a bracket that is not transparent"
        if before is None and after is None:
            where = f"as {bracket}"
        yield (
            "negation-at-edge",
            f"negation {where}: {bracket} must begin and end with a step that matches events",
            step.span,
        )
        return
    if can_be_empty(step.body):
        yield "empty-step", "a negated step must match at least one event", step.span
    if counted and (before is None or after is None):
        place = "first" if before is None else "last"
        yield (
            "negation-at-end",
            f"negation in {place} place under WITHIN n EVENTS: such a window does not close at a "
            "known time",
            step.span,
        )
    for neighbour in (before, after):
        if neighbour is not None and can_be_empty(Chain((neighbour,))):
            yield (
                "negation-beside-optional",
                "negation beside a step that may be empty: its neighbours would be unclear",
                step.span,
            )
            break
    if link.join.gap_ms is not None and i > 0:
        yield (
            "meaningless-gap",
            "a gap bound before a negated step has no meaning: the operator there has no effect",
            step.span,
        )
    leading = before is None and after is not None and links.index(after) == i + 1
    if leading and after is not None and after.join.gap_ms is not None:
        yield (
            "meaningless-gap",
            "a gap bound behind a negated step in first place has no meaning: there is no "
            "earlier step",
            step.span,
        )
