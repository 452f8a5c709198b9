"""The sentence of each cause between steps: the failure, an example, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from typing import TypeVar

import numpy as np

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.automaton.program.window import Counted, Tumbling
from spaseq.diagnosis.nearest_terms import as_written, numeric
from spaseq.diagnosis.relaxed import Stage, StepCondition
from spaseq.diagnosis.report import Cause, plural
from spaseq.diagnosis.search import RowSearch, SearchTime
from spaseq.diagnosis.seen_matches import (
    Miss,
    StepText,
    duration,
    instant,
    later_binder,
    misses_of,
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
from spaseq.rdf.terms.term import split_literal

_MOST_TRIED = 100
"""Number of events that are tried for an example, and of matches for each."""


def join_cause(at: StepText) -> Cause:
    """The cause in a variable that the last step shares with those before, or its GPMs share."""
    partition, binds = at.steps.plan.sequence.partition, at.steps.resolved.binds
    first = [n for link in at.steps.before for n in taken_gpms(link)] or at.steps.names[:1]
    second = [n for n in at.steps.names if at.steps.before or n not in first]
    shared = {v for n in first for v in binds[n]} & {v for n in second for v in binds[n]}
    ordered = [*partition, *sorted(shared - {*partition})]
    for variable in [v for v in ordered if v in shared]:
        sides = [[n for n in names if variable in binds[n]] for names in (first, second)]
        left, right = (at.rows.distinct(variable, names) for names in sides)
        if left and right and not set(left) & set(right):
            gpms = [" or ".join(dict.fromkeys(names)) for names in sides]
            return _no_common(at, variable, (left, right), gpms)
    names = ", ".join(f"?{v}" for v in ordered or sorted(binds[first[0]]))
    text = f"no {at.step} " + (f"after {at.last_before} " if at.steps.before else "")
    text += f"has the same {names}" + ", although some values occur in both" * bool(shared)
    text += "; rename the variable if the values need not be equal"
    return at.cause("equality-join-empty", text, term=names)


def _no_common(
    at: StepText, variable: str, values: Sequence[Sequence[str]], names: Sequence[str]
) -> Cause:
    terms, (one, other), advice = at.question.terms, (values[0][0], values[1][0]), ""
    for said, key, test in _ALIKE:
        seen = {key(text): text for text in values[0]}
        like = next(
            (text for text in values[1] if key(text) is not None and key(text) in seen), None
        )
        if like is not None:
            one, other = seen[key(like)], like
            advice = f"; they {said}, but a join needs the same term"
            advice += test and f": use another variable and FILTER({test.format(variable)})"
            break
    text = f"?{variable} is never equal: {as_written(terms, one)} in {names[0]}, "
    text += f"{as_written(terms, other)} in {names[1]}"
    if variable in at.steps.plan.sequence.partition:
        text += "; so no partition has events of both"
    text += advice or "; rename the variable in one step if the values need not be equal"
    example = f"{as_written(terms, one)} and {as_written(terms, other)}"
    return at.cause("equality-join-empty", text, term=f"?{variable}", example=example)


def _characters(text: str) -> str | None:
    """What STR gives for a term."""
    if text.startswith('"'):
        return split_literal(text)[0]
    return text[1:-1] if text.startswith("<") and not text.startswith("<<") else None


def _plain(text: str) -> str:
    """The characters of a term without its case, spaces around it, or last slash."""
    return (_characters(text) or text).strip().rstrip("/#").casefold()


_ALIKE: tuple[tuple[str, Callable[[str], object], str], ...] = (
    ("are equal by value", numeric, "?x = ?{}"),
    ("look alike", _characters, "STR(?x) = STR(?{})"),
    (
        "look alike",
        lambda text: (_characters(text) or text).lower(),
        "LCASE(STR(?x)) = LCASE(STR(?{}))",
    ),
    ("look alike", _plain, ""),
)
"""What to say of terms that a function makes equal, the function, and the FILTER that they pass."""


def contiguity_cause(at: StepText) -> Cause:
    """The cause in an operator that allows no other event in between."""
    begins, goes_on = at.steps.last.join.kind == ",", _has_inner_comma(at.steps.last.step)
    best: tuple[int, TraceItem, TraceItem, TraceItem, Answer] | None = None
    for match in at.near.matches[:200]:
        before, of_last = parts_of(match, at.steps)
        joined = [*before[-1:]][: len(of_last) * begins] + (of_last if goes_on else of_last[:1])
        for one, next_ in pairwise(joined):
            places = at.rows.between(instant(one), instant(next_))
            places = at.rows.in_partition(places, match)
            events = {at.rows.item(row)[:2] for row in places[:1000].tolist()}
            if events and (best is None or len(events) < best[0]):
                best = len(events), one, next_, at.rows.item(int(places[0])), match
    if best is None:
        return _next_taken(at)
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


def _has_inner_comma(step: seq.ChainStep) -> bool:
    """Whether a comma joins events of a step."""
    if isinstance(step, seq.Repeat) and (step.own or step.body.links[0].join).kind == ",":
        return True
    links = [link for chain in seq.inner_chains(step) for link in chain.links[1:]]
    inner = [link.step for chain in seq.inner_chains(step) for link in chain.links]
    return any(link.join.kind == "," for link in links) or any(map(_has_inner_comma, inner))


def _next_taken(at: StepText) -> Cause:
    """The cause if `;` takes an event of the step that comes before that of the candidate."""
    for match in at.near.matches[:200]:
        before, of_last = parts_of(match, at.steps)
        if not before or not of_last:
            continue
        item = next(
            at.rows.of_gpms([of_last[0].gpm], instant(before[-1]), instant(of_last[0])), None
        )
        if item is not None:
            example = at.event(item)
            text = f"; takes {example}, the next {item.gpm} after {at.event(before[-1])}"
            text += f", and not {at.event(of_last[0])}; write : to try all events"
            return at.cause("contiguity", text, suggestion=":", example=example)
    text = f"; takes only the next event that matches, after which {at.step} does not go on"
    return at.cause("contiguity", f"{text}; write : to try all events", suggestion=":")


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
    options = at.steps.plan.expressions
    misses = misses_of(condition.expr, at.near.matches, at.question.terms, options)
    miss = nearest_miss(misses)
    errors, example = sum(miss.is_error for miss in misses), None
    text = "false" if not errors else "an error" if errors == len(misses) else "false or an error"
    text += f" for {at.among}"
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
    return f"; {at.least('nearest')} has {miss.shown}, {miss.by:g} off" if miss.by else shown


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
                return self._negated(stage, self._numbered(seq.Negation, stage.of))
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
        text += f"{self.least('nearest')}, {example}, are {duration(least)} apart"
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
        text = (
            f"{self.least('smallest')} gap before {self.step} is {duration(least)}, from {example}"
        )
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
        text = f"{self.least('smallest')} span up to {self.step} is {span}, {example}"
        text += f"; WITHIN is {given}"
        if isinstance(window, Tumbling) and least <= window.length_ms:
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

    def _negated(self, stage: Stage, negation: seq.Negation) -> Cause:
        names = tuple(dict.fromkeys(use.gpm for use in occurrences(negation.body)))
        match = self.near.matches[0]
        item = self._deciding(stage, self._events_of_negated_step(names, match))
        shown = self.question.line(negation.span)
        example = None if item is None else self.event(item)
        whose = "the only candidate" if len(self.near) == 1 else f"each of {self.among}"
        text = f"{whose} has an event that {shown} forbids"
        if item is not None:
            text += f"; for example {example}, beside {self.event(match.trace[0])}"
        if stage.kind == "until":
            text += "; leave out UNTIL, or make its pattern narrower"
        else:
            text += "; make the negated pattern narrower, or shorten WITHIN"
        link = Link(negation, self.steps.last.join)
        cause = self.cause(stage.kind, text, link, example=example)
        return replace(cause, gpm=names[0] if len(names) == 1 else None)

    def with_any_event(self, cause: Cause, match: Answer) -> Cause:
        """The cause of a negated step that a match escapes with `:` in place of `;`."""
        events = ", ".join(self.event(item) for item in match.trace)
        text = f"{cause.text}. ; takes only the next event, also if it is forbidden;"
        text += f" : tries all events, and matches {events}: write : where you mean any event"
        return replace(cause, text=text, suggestion=":")

    def _deciding(self, stage: Stage, items: Iterable[TraceItem]) -> TraceItem | None:
        """The first event that, by itself, takes the first candidate away at a stage.

        None if no event does, or the candidate's own events do.
        """
        match, form = self.near.matches[0], self.steps.form(stage.constraints)
        observed, places = self.rows.observed, [self.rows.at(item) for item in match.trace]
        for item in chain(match.trace[:1], islice(items, _MOST_TRIED)):
            rows = observed.rows.take(np.unique(np.concatenate([*places, self.rows.at(item)])))
            search = RowSearch(replace(observed, rows=rows), SearchTime())
            found = search.found(form.plan, _MOST_TRIED, form.copies).matches
            if all(other.trace != match.trace for other in found):
                return None if item is match.trace[0] else item
        return None

    def _events_of_negated_step(self, names: Sequence[str], match: Answer) -> Iterator[TraceItem]:
        """Events of a negated step: between the events of a match, then near them in time."""
        window = self.steps.plan.sequence.window
        length = 0 if isinstance(window, Counted) else window.length_ms
        first, last = match.trace[0], match.trace[-1]
        for after, before in (
            (instant(first), instant(last)),
            (instant(last), (last.time + length, 2**31)),
            ((first.time - length, -1), instant(first)),
        ):
            yield from self.rows.of_gpms(names, after, before)

    def _greedy(self, loop: seq.Repeat) -> Cause:
        link = Link(loop, self.steps.last.join)
        names = taken_gpms(link)
        match = self.near.matches[0]
        looped = [item for item in match.trace if item.gpm in names]
        after = instant(looped[-1]) if looped else instant(match.trace[0])
        next_ = next((item for item in match.trace if instant(item) > after), None)
        end = (next_.time, next_.k + 1) if next_ is not None else (match.trace[-1].time + 2**40, 0)
        taken = [*self.rows.of_gpms(names, after, end)]
        shown = self.question.line(loop.span)
        example = self.event(taken[-1]) if taken else None
        text = f"{shown} is greedy and goes on"
        if example is not None:
            text += f": it takes {example}"
            if next_ is not None and instant(taken[-1]) == instant(next_):
                text += f", which {next_.gpm} needs"
        text += "; leave out the second +, or make the loop's pattern narrower"
        return self.cause("greedy", text, link, example=example)
