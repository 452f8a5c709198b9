"""The sentence of each cause between steps: the failure, an example, and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.automaton.program.window import Counted, Tumbling
from spaseq.diagnosis.nearest_terms import as_written, number
from spaseq.diagnosis.relaxed import Stage, StepCondition
from spaseq.diagnosis.report import Cause, plural
from spaseq.diagnosis.seen_matches import (
    Miss,
    StepText,
    duration,
    instant,
    later_binder,
    nearest_miss,
    parts_of,
    step_of_gpm,
    taken_gpms,
)
from spaseq.errors import NOWHERE, Span
from spaseq.lang import ast
from spaseq.lang import sequence as seq
from spaseq.lang.sequence import Chain, Link, occurrences
from spaseq.lang.variables import group_function_uses, prev_uses, walk


def join_cause(at: StepText) -> Cause:
    """The cause in a variable that the last step shares with those before."""
    earlier = {n for link in at.steps.before for n in taken_gpms(link)}
    partition = at.steps.plan.sequence.partition
    binds = at.steps.resolved.binds
    bound = {v for name in at.steps.names for v in binds[name]}
    shared = bound & {v for name in earlier for v in binds[name]}
    ordered = [*partition, *sorted(shared - {*partition})]
    for variable in [v for v in ordered if v in shared]:
        left = at.rows.distinct(variable, earlier)
        right = at.rows.distinct(variable, at.steps.names)
        if left and right and not set(left) & set(right):
            return _no_common(at, variable, left, right, variable in partition)
    names = ", ".join(f"?{v}" for v in ordered)
    text = f"no {at.step} after {at.last_before} has the same {names}"
    text += ", although each value occurs in both steps"
    text += "; rename the variable if the values need not be equal"
    return at.cause("equality-join-empty", text, term=names or None)


def _no_common(
    at: StepText, variable: str, left: Sequence[str], right: Sequence[str], partition: bool
) -> Cause:
    terms = at.question.terms
    like = next(((a, b) for a in left[:1000] for b in right[:1000] if _alike(a, b)), None)
    one, other = like or (left[0], right[0])
    text = f"?{variable} is never equal: {as_written(terms, one)} in {at.last_before}, "
    text += f"{as_written(terms, other)} in {at.step}"
    if partition:
        text += "; so no partition has events of both"
    if like is not None and _type(one) == _type(other) == "number":
        text += "; they are equal by value, but a join needs the same term"
        text += f": use another variable and FILTER(?x = ?{variable})"
    elif like is not None:
        text += "; they look alike, but a join needs the same term"
        text += f": use another variable and FILTER(STR(?x) = STR(?{variable}))"
    else:
        text += "; rename the variable in one step if the values need not be equal"
    example = f"{as_written(terms, one)} and {as_written(terms, other)}"
    return at.cause("equality-join-empty", text, term=f"?{variable}", example=example)


def _type(text: str) -> str:
    return "number" if number(text) is not None else text[:1]


def _alike(one: str, other: str) -> bool:
    """Whether two terms are equal by value, or would be with another type."""
    values = number(one), number(other)
    if values[0] is not None and values[0] == values[1]:
        return True
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    """The characters of a term without its kind, case or last slash."""
    if text.startswith('"'):
        return text[1:].rpartition('"')[0].strip().casefold()
    return text.strip("<>").rstrip("/#").casefold()


def contiguity_cause(at: StepText) -> Cause:
    """The cause in an operator that allows no other event in between."""
    taken = _next_taken(at)
    if taken is not None:
        return taken
    best: tuple[int, TraceItem, TraceItem, TraceItem, Answer] | None = None
    for match in at.near.matches[:200]:
        before, of_last = parts_of(match, at.steps)
        for one, next_ in pairwise([*before[-1:], *of_last]):
            places = at.rows.between(instant(one), instant(next_))
            places = at.rows.in_partition(places, match)
            events = {at.rows.item(row)[:2] for row in places[:1000].tolist()}
            if events and (best is None or len(events) < best[0]):
                best = len(events), one, next_, at.rows.item(int(places[0])), match
    if best is None:
        text = f"; takes only the next event that matches, after which {at.step} does not go on"
        return at.cause("contiguity", f"{text}; write : to try all events")
    count, one, next_, between, match = best
    example = at.event(between)
    text = f"{example} stands between {at.event(one)} and {at.event(next_)}"
    text += f" ({plural(count, 'event')} between); a comma allows none"
    variable = _separating(at, one, next_, match)
    if variable is not None:
        text += f"; PARTITION BY (?{variable}) leaves such events out"
        return at.cause(
            "contiguity", text, suggestion=f"PARTITION BY (?{variable})", example=example
        )
    return at.cause("contiguity", f"{text}; write ; instead", suggestion=";", example=example)


def _next_taken(at: StepText) -> Cause | None:
    """The cause if `;` takes an event of the step that comes before that of the candidate."""
    if not isinstance(at.steps.last.step, seq.GpmStep) or at.steps.last.join.kind != ";":
        return None
    for match in at.near.matches[:200]:
        before, of_last = parts_of(match, at.steps)
        if not before or not of_last:
            continue
        taken = at.rows.of_gpms(at.steps.names, instant(before[-1]), instant(of_last[0]))
        if taken:
            example = at.event(taken[0])
            text = f"; takes {example}, the next {at.step} after {at.event(before[-1])}"
            text += f", and not {at.event(of_last[0])}; write : to try all events"
            return at.cause("contiguity", text, suggestion=":", example=example)
    return None


def _separating(at: StepText, one: TraceItem, next_: TraceItem, match: Answer) -> str | None:
    """A variable of all steps by which the events between two others can be left out."""
    if at.steps.plan.sequence.partition:
        return None
    plans = [gpm for gpm in at.steps.plan.patterns.gpms if not gpm.negated]
    shared = frozenset.intersection(*(gpm.certain for gpm in plans))
    singles = dict(match.singles)
    places = at.rows.between(instant(one), instant(next_))
    for variable in sorted(shared & singles.keys()):
        texts = at.rows.observed.rows.texts(variable, places)
        if all(text != singles[variable] for text in texts) and any(texts):
            return variable
    return None


def condition_cause(at: StepText, condition: StepCondition) -> Cause:
    """The cause in a condition that holds for no candidate."""
    if condition.expr is None:
        text = f"the pattern of {condition.gpm} never matches with the values of earlier steps"
        text += f", for {at.among}"
        cause = at.cause("condition-false", text)
        line, column = at.question.place(at.question.gpm(condition.gpm).span)
        return replace(cause, gpm=condition.gpm, line=line, column=column)
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
    cause = at.cause("condition-false", text, example=example)
    line, column = at.question.place(_filter_span(at, condition.gpm, condition.expr))
    shown = at.question.line(condition.expr.span)
    step = step_of_gpm(at.steps, condition.gpm)
    return replace(cause, gpm=condition.gpm, step=step, line=line, column=column, shown=shown)


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


def _looks_at_repetitions(expr: ast.Expr) -> bool:
    """Whether a condition compares a repetition with those before it."""
    return bool(prev_uses(expr) or group_function_uses(expr))


S = TypeVar("S", seq.Negation, seq.Repeat)


class StepCauses(StepText):
    """Describes the cause at the last of the first steps."""

    __slots__ = ()

    def of(self, stage: Stage) -> Cause:
        """The cause in the constraint of a stage."""
        match stage.kind:
            case "equality-join-empty":
                return join_cause(self)
            case "simultaneity":
                return self._simultaneity()
            case "contiguity":
                return contiguity_cause(self)
            case "gap-bound":
                return self._gap()
            case "window":
                return self._window()
        assert stage.of is not None
        match stage.kind:
            case "condition-false":
                return condition_cause(self, self.steps.conditions[stage.of])
            case "negation" | "until":
                return self._negated(stage.kind, self._numbered(seq.Negation, stage.of))
            case _:
                return self._greedy(self._numbered(seq.Repeat, stage.of))

    def _numbered(self, kind: type[S], number: int) -> S:
        """The negated step or the loop with this number."""
        steps = (step for step in seq.steps(self.steps.chain) if isinstance(step, kind))
        return next(step for step in steps if step.id == number)

    def cut_off(self, stage: Stage) -> Cause:
        """The cause in the constraint of a stage, where earlier constraints are not known."""
        text = f"no match of {self.step} is left with this constraint; a search with fewer was cut "
        text += "off, so that a constraint before it may be the cause"
        return self.cause(stage.kind, text)

    # --- kinds ------------------------------------------------------------------------------------

    def order(self, first: TraceItem | None, last: TraceItem | None) -> Cause:
        """The events of the last step come only before the events of the steps before."""
        text = f"no {self.step} comes after {self.last_before}"
        example = None
        if first is not None and last is not None:
            example = f"{self.event(last)} is before {self.event(first)}"
            text += f": the last {self.step} is {self.event(last)}, "
            text += f"and {self.last_before} is first reached with {self.event(first)}"
        elif not self.steps.before:
            text = f"the events of {self.step} never come in this order"
        text += "; write the steps in the order of the events, or (X AND Y) for any order"
        count = max(self.rows.observed.counts(name)[0] for name in self.steps.names)
        return self.cause("order", text, count=count, example=example)

    def _simultaneity(self) -> Cause:
        def spread(match: Answer) -> int:
            times = [item.time for item in parts_of(match, self.steps)[1]]
            return max(times) - min(times)

        best, least = self.smallest(spread)
        of_last = parts_of(best, self.steps)[1]
        example = f"{self.event(of_last[0])} and {self.event(of_last[-1])}"
        text = f"no events of {self.step} have the same time; "
        text += f"the nearest, {example}, are {duration(least)} apart"
        text += "; & needs one time, AND takes any order: write AND, or a sequence with a gap bound"
        return self.cause("simultaneity", text, example=example)

    def _gap(self) -> Cause:
        def gap(match: Answer) -> int:
            before, of_last = parts_of(match, self.steps)
            return max((b.time - a.time for a, b in pairwise([*before[-1:], *of_last])), default=0)

        best, least = self.smallest(gap)
        before, of_last = parts_of(best, self.steps)
        pair = max(pairwise([*before[-1:], *of_last]), key=lambda p: p[1].time - p[0].time)
        bound = self.steps.last.join.gap_ms
        example = f"{self.event(pair[0])} and {self.event(pair[1])}"
        text = f"the smallest gap before {self.step} is {duration(least)}, from {example}"
        if bound is not None:
            text += f"; the bound is {duration(bound)}"
        return self.cause("gap-bound", f"{text}: raise it to at least that", example=example)

    def _window(self) -> Cause:
        window = self.steps.plan.sequence.window
        if isinstance(window, Counted):
            best, least = self.smallest(self._events_of)
            span, given = plural(least, "event"), plural(window.events, "event")
        else:
            best, least = self.smallest(lambda match: match.trace[-1].time - match.trace[0].time)
            span, given = duration(least), duration(window.length_ms)
        example = f"{self.event(best.trace[0])} to {self.event(best.trace[-1])}"
        text = f"the smallest span up to {self.step} is {span}, {example}; WITHIN is {given}"
        if isinstance(window, Tumbling) and least < window.length_ms:
            text += ", and a boundary of the tumbling window falls in between: leave out TUMBLING"
        else:
            text += ": widen it to at least that"
        return self.cause("window", text, example=example)

    def _events_of(self, match: Answer) -> int:
        first, last = match.trace[0], match.trace[-1]
        places = self.rows.between((first.time, first.k - 1), (last.time, last.k + 1))
        places = self.rows.in_partition(places, match)
        rows = self.rows.observed.rows
        return len({(int(rows.time[i]), int(rows.k[i]), int(rows.stream[i])) for i in places})

    def repetition(self, most: int) -> Cause:
        """A loop repeats too few times."""
        loop = next(
            step
            for step in seq.steps(Chain((self.steps.last,)))
            if isinstance(step, seq.Repeat) and step.minimum > 1
        )
        body = " ".join(occurrence.gpm for occurrence in occurrences(loop.body))
        text = f"{body} repeats at most {plural(most, 'time')} in a row"
        text += f" where {loop.minimum} are asked for"
        example = None
        if self.near.matches:
            items = parts_of(self.near.matches[0], self.steps)[1]
            example = self.event(items[0]) if items else None
            text += f", for example from {example}" if example else ""
        tests = [c.expr for c in self.steps.conditions if c.expr and _looks_at_repetitions(c.expr)]
        if tests:
            shown = " and ".join(self.question.line(expr.span) for expr in tests)
            text += f": each further one must pass {shown}; loosen that, lower the bound to {most}"
        else:
            text += f": lower the bound to {most}"
        text += ", or widen WITHIN or the gap bound"
        return self.cause("repetition", text, count=most, example=example)

    def _negated(self, kind: str, negation: seq.Negation) -> Cause:
        names = tuple(dict.fromkeys(use.gpm for use in occurrences(negation.body)))
        match = self.near.matches[0]
        item = self._event_of_negated_step(names, match)
        shown = self.question.line(negation.span)
        example = None if item is None else self.event(item)
        whose = "the only candidate" if len(self.near) == 1 else f"each of {self.among}"
        text = f"{whose} has an event that {shown} forbids"
        if item is not None:
            text += f"; for example {example}, beside {self.event(match.trace[0])}"
        if kind == "until":
            text += "; leave out UNTIL, or make its pattern narrower"
        else:
            text += "; make the negated pattern narrower, or shorten WITHIN"
        link = Link(negation, self.steps.last.join)
        cause = self.cause(kind, text, link, example=example)
        return replace(cause, gpm=names[0] if len(names) == 1 else None)

    def with_any_event(self, cause: Cause, match: Answer) -> Cause:
        """The cause of a negated step that a match escapes with `:` in place of `;`."""
        events = ", ".join(self.event(item) for item in match.trace)
        text = f"{cause.text}. ; takes only the next event, also if it is forbidden;"
        text += f" : tries all events, and matches {events}: write : where you mean any event"
        return replace(cause, text=text, suggestion=":")

    def _event_of_negated_step(self, names: Sequence[str], match: Answer) -> TraceItem | None:
        """An event of a negated step: between the events of a match, or else near them in time."""
        window = self.steps.plan.sequence.window
        length = 0 if isinstance(window, Counted) else window.length_ms
        first, last = match.trace[0], match.trace[-1]
        for after, before in (
            (instant(first), instant(last)),
            (instant(last), (last.time + length, 2**31)),
            ((first.time - length, -1), instant(first)),
        ):
            items = self.rows.of_gpms(names, after, before)
            if items:
                return items[0]
        return None

    def _greedy(self, loop: seq.Repeat) -> Cause:
        link = Link(loop, self.steps.last.join)
        names = taken_gpms(link)
        match = self.near.matches[0]
        looped = [item for item in match.trace if item.gpm in names]
        after = instant(looped[-1]) if looped else instant(match.trace[0])
        next_ = next((item for item in match.trace if instant(item) > after), None)
        end = (next_.time, next_.k + 1) if next_ is not None else (match.trace[-1].time + 2**40, 0)
        taken = self.rows.of_gpms(names, after, end)
        shown = self.question.line(loop.span)
        example = self.event(taken[-1]) if taken else None
        text = f"{shown} is greedy and goes on"
        if example is not None:
            text += f": it takes {example}"
            if next_ is not None and instant(taken[-1]) == instant(next_):
                text += f", which {next_.gpm} needs"
        text += "; leave out the second +, or make the loop's pattern narrower"
        return self.cause("greedy", text, link, example=example)
