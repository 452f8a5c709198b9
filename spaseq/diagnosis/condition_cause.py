"""The sentence about a FILTER over earlier steps that holds for no candidate."""

from __future__ import annotations

from dataclasses import replace

from spaseq.diagnosis.relaxed import StepCondition
from spaseq.diagnosis.report import Cause
from spaseq.diagnosis.seen_matches import Miss, nearest_miss
from spaseq.diagnosis.step_places import later_binder, step_of_gpm
from spaseq.diagnosis.step_text import StepText
from spaseq.errors import NOWHERE, Span
from spaseq.lang import ast
from spaseq.lang.variables import walk


def condition_cause(at: StepText, condition: StepCondition) -> Cause:
    """The cause in a condition that holds for no candidate."""
    if condition.expr is None:
        text = f"the pattern of {condition.gpm} never matches with the values of earlier steps"
        text += f", for {at.among}"
        found = at.cause("condition-false", text)
        line, column = at.question.place(at.question.gpm(condition.gpm).span)
        return replace(found, gpm=condition.gpm, line=line, column=column)
    miss = nearest_miss(
        condition.expr,
        at.near.matches,
        at.question.terms,
        at.steps.plan.expressions,
    )
    text, example = f"false for {at.among}", None
    if miss is not None:
        example = miss.shown
        text += _missed(at, miss)
    found = at.cause("condition-false", text, example=example)
    line, column = at.question.place(_filter_span(at, condition.gpm, condition.expr))
    shown = at.question.line(condition.expr.span)
    step = step_of_gpm(at.steps, condition.gpm)
    return replace(found, gpm=condition.gpm, step=step, line=line, column=column, shown=shown)


def _missed(at: StepText, miss: Miss) -> str:
    """How the nearest candidate fails a condition."""
    shown = f"; {miss.shown}" if miss.shown else ""
    if miss.unbound is not None:
        text = f"{shown}; {miss.unbound} is unbound, so the FILTER is an error"
        if miss.unbound.startswith("PREV"):
            return text + f" in the first repetition: write !BOUND({miss.unbound}) || ..."
        other = later_binder(at.steps, miss.unbound[1:])
        if other is not None:
            return text + f": {other} binds it, move the FILTER there"
        return text + f": write COALESCE({miss.unbound}, ...), or bind it in an earlier step"
    return f"; the nearest has {miss.shown}, {miss.by:g} off" if miss.by else shown


def _filter_span(at: StepText, name: str, expr: ast.Expr) -> Span:
    """The place of the FILTER of a GPM that a condition is in."""
    span, gpm = expr.span, at.question.gpm(name)
    filters = [n.span for n in walk(gpm.pattern) if isinstance(n, ast.Filter)]
    around = [s for s in filters if s.start <= span.start and span.end <= s.end]
    return max(around, key=lambda s: s.start, default=span if span != NOWHERE else gpm.span)
