"""What the sentences of causes between steps have in common: places, steps, events, candidates."""

from __future__ import annotations

from collections.abc import Callable

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.relaxed import FirstSteps
from spaseq.diagnosis.report import Cause
from spaseq.diagnosis.search import Found
from spaseq.diagnosis.seen_matches import SeenRows, event_text
from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang import sequence as seq
from spaseq.lang.sequence import Chain, Link, occurrences
from spaseq.lang.variables import walk
from spaseq.records import record


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
    last_uses = [use for use in occurrences(Chain((steps.last,))) if use.gpm == gpm]
    return step_number(steps, (last_uses or uses)[0].span) if uses else None


def taken_gpms(link: Link) -> tuple[str, ...]:
    """The GPMs of a step that a match takes solutions of."""
    uses = occurrences(Chain((link,)))
    return tuple(dict.fromkeys(use.gpm for use in uses if use.negation is None))


def later_binder(steps: FirstSteps, variable: str) -> str | None:
    """The GPM of a later step that binds a variable."""
    used = {use.gpm for use in occurrences(steps.chain)}
    binds = steps.resolved.binds
    return next((g for g in binds if g not in used and variable in binds[g]), None)


@record
class StepText:
    """The last of the first steps, which no match reaches.

    `near` are matches of the form before the constraint came on; some events of theirs, or all,
    must have failed it.
    """

    steps: FirstSteps
    rows: SeenRows
    near: Found

    @property
    def question(self) -> Question:
        """The query in question."""
        return self.rows.observed.question

    def cause(
        self,
        kind: str,
        text: str,
        link: Link | None = None,
        count: int | None = None,
        term: str | None = None,
        suggestion: str | None = None,
        example: str | None = None,
    ) -> Cause:
        """A cause at a step: the last one, unless another is given."""
        span = self.span(link or self.steps.last)
        gpms = taken_gpms(link or self.steps.last)
        line, column = self.question.place(span)
        return Cause(
            kind,
            gpms[0] if len(gpms) == 1 else None,
            step_number(self.steps, span),
            line,
            column,
            len(self.near) if count is None else count,
            term,
            suggestion,
            example,
            text,
            self.question.line(span),
        )

    def span(self, link: Link) -> Span:
        """The place of a step, its brackets included."""
        span = span_of(link)
        if not isinstance(link.step, seq.BinaryStep):
            return span
        nodes = walk(self.steps.resolved.query.sequence)
        around = [
            node.span
            for node in nodes
            if isinstance(node, ast.Step)
            and node.span.start < span.start
            and span.end < node.span.end
        ]
        return min(around, key=lambda s: s.end - s.start, default=span)

    def event(self, item: TraceItem) -> str:
        """An event with its time."""
        return event_text(self.question.terms, item)

    def smallest(self, measure: Callable[[Answer], int]) -> tuple[Answer, int]:
        """The match with the least measure, and the measure."""
        best = min(self.near.matches, key=measure)
        return best, measure(best)

    @property
    def among(self) -> str:
        """The candidates in words."""
        return self.near.counted("candidate")

    @property
    def step(self) -> str:
        """The last step as written."""
        return self.question.line(self.span(self.steps.last))

    @property
    def last_before(self) -> str:
        """The step before it, as written."""
        before = [li for li in self.steps.before if not isinstance(li.step, seq.Negation)]
        return self.question.line(self.span(before[-1])) if before else "the start"
