"""Where steps stand in a query, and the GPMs that they use."""

from __future__ import annotations

from spaseq.diagnosis.relaxed import FirstSteps
from spaseq.errors import Span
from spaseq.lang import sequence as seq
from spaseq.lang.sequence import Chain, Link, occurrences


def span_of(link: Link) -> Span:
    """The place of a step of the normal form."""
    match link.step:
        case seq.GpmStep(use):
            return use.span
        case seq.BinaryStep():
            spans = [use.span for use in occurrences(Chain((link,)))]
            return Span(min(s.start for s in spans), max(s.end for s in spans))
        case seq.Repeat(span=span) | seq.Negation(span=span):
            return span


def step_number(steps: FirstSteps, span: Span) -> int | None:
    """The number of the top-level step that a place is in, from 1."""
    for number_, step in enumerate(steps.resolved.query.sequence.steps, 1):
        if step.span.start <= span.start < step.span.end:
            return number_
    return None


def step_of_gpm(steps: FirstSteps, gpm: str) -> int | None:
    """The number of the last step, if it uses the GPM; else of the first step that does."""
    uses = [use for use in occurrences(steps.chain) if use.gpm == gpm]
    own = [use for use in occurrences(Chain((steps.last,))) if use.gpm == gpm]
    return step_number(steps, (own or uses)[0].span) if uses else None


def taken_gpms(link: Link) -> tuple[str, ...]:
    """The GPMs of a step that a match takes solutions of."""
    uses = occurrences(Chain((link,)))
    return tuple(dict.fromkeys(use.gpm for use in uses if use.negation is None))


def later_binder(steps: FirstSteps, variable: str) -> str | None:
    """The GPM of a later step that binds a variable."""
    used = {use.gpm for use in occurrences(steps.chain)}
    binds = steps.resolved.binds
    return next((g for g in binds if g not in used and variable in binds[g]), None)
