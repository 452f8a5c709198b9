"""Common parts of the sentences about causes between steps: places, steps, events, candidates.

Also matches of relaxed forms: their parts, their values, and the instants between their events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np

from spaseq.algebra.answers import Answer, Instant, TraceItem, extent_of
from spaseq.compiled.arrays import Indices
from spaseq.diagnosis.nearest_terms import as_written, numeric
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.relaxed import COPY, FirstSteps
from spaseq.diagnosis.report import Cause, plural
from spaseq.diagnosis.search import Found
from spaseq.errors import Span
from spaseq.expr.compile import Options, compile_filter, compile_term
from spaseq.lang import ast
from spaseq.lang import sequence as seq
from spaseq.lang.format import ExpressionText
from spaseq.lang.format_triples import TermText
from spaseq.lang.sequence import Chain, Link, occurrences
from spaseq.lang.variables import (
    conjuncts,
    expression_variables,
    group_function_uses,
    prev_uses,
    walk,
)
from spaseq.rdf.terms.term import split_literal
from spaseq.rdf.terms.times import format_time
from spaseq.records import record

_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))


def duration(ms: int) -> str:
    """A duration in the largest unit that gives a short number.

    >>> duration(300_000), duration(1_000), duration(5_400_000), duration(1_500)
    ('5 minutes', '1 second', '1.5 hours', '1.5 seconds')
    """
    for unit, length in _UNITS:
        if ms >= length and (ms * 10) % length == 0:
            amount = ms / length
            return f"{amount:,g} {unit}" + ("" if ms == length else "s")
    return f"{ms:,} ms"


def event_text(terms: TermText, item: TraceItem) -> str:
    """An event with its time, as a report names it."""
    time = format_time(item.time).removesuffix("Z")
    name = item.event
    if extent_of(name) is not None:
        return f"the window event of {item.stream} at {time}"
    if name is None:
        return f"the event at {time}"
    return f"{terms.iri(name.removeprefix('<').removesuffix('>'))} at {time}"


def value_text(terms: TermText, text: str) -> str:
    """A value that a FILTER compares: a number without its type, another term as written."""
    if numeric(text) is not None:
        return split_literal(text)[0]
    return as_written(terms, text)


def parts_of(match: Answer, steps: FirstSteps) -> tuple[list[TraceItem], list[TraceItem]]:
    """The events of the steps before, and the events of the last step."""
    trace = match.trace
    copies = {item.gpm for item in trace if item.gpm.endswith(COPY)}
    of_step = copies or {*steps.names}
    if isinstance(steps.last.step, seq.GpmStep):
        cut = max((i for i, item in enumerate(trace) if item.gpm in of_step), default=len(trace))
        return [*trace[:cut]], [*trace[cut:]]
    cut = len(trace)
    while cut and trace[cut - 1].gpm in of_step:
        cut -= 1
    return [*trace[:cut]], [*trace[cut:]]


def instant(item: TraceItem) -> Instant:
    """The instant of an event."""
    return item.time, item.k


class MatchValues:
    """The variables of a match as a condition of its last event sees them."""

    def __init__(self, match: Answer) -> None:
        self._singles, self._lists = dict(match.singles), dict(match.lists)
        self._trace, self._end = match.trace, match.trace[-1].time

    def value(self, name: str) -> str | None:
        values = self._lists.get(name)
        return values[-1] if values else self._singles.get(name)

    def previous(self, name: str) -> str | None:
        values = self._lists.get(name, ())
        return values[-2] if len(values) > 1 else None

    def group(self, name: str) -> Sequence[str]:
        value = self._singles.get(name)
        return self._lists.get(name, () if value is None else (value,))

    def time(self, gpm: str) -> int | None:
        return max((t.time for t in self._trace if t.gpm.removesuffix(COPY) == gpm), default=None)

    def now(self) -> int | None:
        return self._end


@record
class Miss:
    """A condition that does not hold for a match.

    `by` is the distance of the compared numbers; None if it compares no numbers. `unbound` is a
    variable, or PREV of one, without a value.
    """

    match: Answer
    values: tuple[tuple[str, str], ...]  # the variables of the condition, as written
    by: float | None = None
    unbound: str | None = None
    is_error: bool = False

    @property
    def shown(self) -> str | None:
        """The values in words."""
        return ", ".join(f"{name} = {value}" for name, value in self.values) or None


def misses_of(
    expr: ast.Expr, matches: Iterable[Answer], terms: TermText, options: Options
) -> list[Miss]:
    """Matches for which a condition does not hold."""
    return [_miss(expr, match, terms, options) for match in matches]


def nearest_miss(misses: Sequence[Miss]) -> Miss | None:
    """The match for which a condition nearly holds; None if there are no matches.

    Without a first repetition there is no second. So a match whose PREV is unbound comes first.
    """
    first = next((m for m in misses if (m.unbound or "").startswith("PREV")), None)
    return first or min(
        misses, key=lambda m: (m.by is None, m.by or 0.0, m.unbound or ""), default=None
    )


def _miss(expr: ast.Expr, match: Answer, terms: TermText, options: Options) -> Miss:
    env = MatchValues(match)
    values: list[tuple[str, str]] = []
    unbound: str | None = None
    guarded, aggregates = _guarded(expr), dict.fromkeys(group_function_uses(expr))
    previous = {prev.var.name for prev in prev_uses(expr)}
    called = previous | {name for use in aggregates for name in expression_variables(use)}
    plain = expression_variables(expr) - (called - _plainly(expr))
    written = ExpressionText(terms, lambda pattern: "{ ... }")
    for name, read in [
        *((f"?{v}", env.value(v)) for v in sorted(plain)),
        *((f"PREV(?{v})", env.previous(v)) for v in sorted(previous)),
        *((written.text(use), compile_term(use, options)(env)) for use in aggregates),
    ]:
        if read is not None:
            values.append((name, value_text(terms, read)))
        elif name not in guarded and unbound is None:
            unbound = name
    distances = [
        d for part in conjuncts([expr]) if (d := _distance(part, env, options)) is not None
    ]
    is_error = not compile_filter(ast.Not(expr), options)(env)
    return Miss(match, tuple(values), max(distances, default=None), unbound, is_error)


def _plainly(expr: ast.Expr) -> set[str]:
    """The variables that an expression reads outside PREV and aggregates."""
    inside = {id(prev.var) for prev in prev_uses(expr)}
    inside |= {id(node) for use in group_function_uses(expr) for node in walk(use)}
    return {n.name for n in walk(expr) if isinstance(n, ast.Var) and id(n) not in inside}


def _guarded(expr: ast.Expr) -> set[str]:
    """The variables that BOUND, COALESCE or IF guards."""
    guarded = set[str]()
    for node in walk(expr):
        if isinstance(node, ast.Call) and node.function in ("BOUND", "COALESCE", "IF"):
            for part in walk(node):
                if isinstance(part, ast.Prev):
                    guarded.add(f"PREV(?{part.var.name})")
                elif isinstance(part, ast.Var):
                    guarded.add(f"?{part.name}")
    return guarded


def _distance(expr: ast.Expr, env: MatchValues, options: Options) -> float | None:
    """The distance of the two numbers of a comparison that is false."""
    if not isinstance(expr, ast.Compare) or compile_filter(expr, options)(env):
        return None
    sides = [compile_term(side, options)(env) for side in (expr.left, expr.right)]
    numbers = [numeric(side) for side in sides if side is not None]
    if len(numbers) < 2 or numbers[0] is None or numbers[1] is None:
        return None
    return abs(numbers[0] - numbers[1])


@record
class SeenRows:
    """The rows of a run by their place in time."""

    observed: Observed

    def between(self, after: Instant, before: Instant) -> Indices:
        """The rows, bare ones too, after one instant and before another."""
        rows = self.observed.rows
        first = int(np.searchsorted(rows.time, after[0], "left"))
        last = int(np.searchsorted(rows.time, before[0], "right"))
        time, k = rows.time[first:last], rows.k[first:last]
        later = (time > after[0]) | (k > after[1])
        earlier = (time < before[0]) | (k < before[1])
        return np.flatnonzero(later & earlier) + first

    def item(self, row: int) -> TraceItem:
        """The event of a row; its GPM is empty for a bare one."""
        rows, question = self.observed.rows, self.observed.question
        gpms, number = question.watched.patterns.gpms, int(rows.gpm[row])
        return TraceItem(
            int(rows.time[row]),
            int(rows.k[row]),
            gpms[number].name if 0 <= number < len(gpms) else "",
            question.plan.inputs.sources[int(rows.stream[row])],
            rows.event[row],
        )

    def in_partition(self, places: Indices, match: Answer) -> Indices:
        """The rows that are in the partition of a match."""
        rows, singles = self.observed.rows, dict(match.singles)
        for variable in self.observed.question.plan.sequence.partition:
            texts = rows.texts(variable, places)
            keep = [i for i, text in enumerate(texts) if text == singles.get(variable)]
            places = places[np.array(keep, np.intp)]
        return places

    def at(self, item: TraceItem) -> Indices:
        """The rows of an event."""
        rows = self.between((item.time, item.k - 1), (item.time, item.k + 1))
        return rows[[self.item(row).stream == item.stream for row in rows.tolist()]]

    def of_gpms(
        self, names: Collection[str], after: Instant, before: Instant
    ) -> Iterator[TraceItem]:
        """The events with a solution of some GPMs between two instants."""
        items = (self.item(row) for row in self.between(after, before).tolist())
        return (item for item in items if item.gpm in names)

    def distinct(self, variable: str, names: Collection[str]) -> list[str]:
        """Different values of a variable in the solutions of some GPMs."""
        gpms = self.observed.question.watched.patterns.gpms
        numbers = [i for i, gpm in enumerate(gpms) if gpm.name in names]
        rows = self.observed.rows
        column = rows.values.get(variable)
        if column is None:
            return []
        places = np.flatnonzero(np.isin(rows.gpm, numbers))
        _, first = np.unique(column.codes[places], return_index=True)
        texts = rows.texts(variable, places[np.sort(first)])
        return [*dict.fromkeys(text for text in texts if text is not None)]


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

    def least(self, which: str) -> str:
        """The `which` of the candidates, in words; there may be more than those at hand."""
        among = "" if self.near.complete else f"of the first {plural(len(self.near), 'candidate')} "
        return f"{among}the {which}"

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
