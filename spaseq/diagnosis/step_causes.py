"""The sentence of each cause between steps: what went wrong, an example, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.automaton.program.window import Counted, Sliding, Tumbling
from spaseq.diagnosis.nearest_terms import as_written, number
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.relaxed import FirstSteps, Stage, StepCondition
from spaseq.diagnosis.report import Cause, plural
from spaseq.diagnosis.search import Found
from spaseq.diagnosis.seen_matches import (
    Miss,
    SeenRows,
    at,
    duration,
    event_text,
    nearest_miss,
    parts_of,
)
from spaseq.diagnosis.step_places import later_binder, span_of, step_number, step_of_gpm, taken_gpms
from spaseq.errors import NOWHERE, Span
from spaseq.lang import ast
from spaseq.lang import sequence as seq
from spaseq.lang.sequence import Chain, Link, occurrences
from spaseq.lang.variables import walk


@dataclass(frozen=True, slots=True)
class StepCauses:
    """Describes the cause at the last of the first steps.

    `near` are matches of the form before the constraint came on; some events of theirs, or all,
    must have failed it.
    """

    steps: FirstSteps
    rows: SeenRows
    near: Found

    def cause(self, stage: Stage) -> Cause:
        """The cause in the constraint of a stage."""
        match stage.kind:
            case "equality-join-empty":
                return self._join()
            case "condition-false":
                assert stage.of is not None
                return self._condition(self.steps.conditions[stage.of])
            case "simultaneity":
                return self._simultaneity()
            case "contiguity":
                return self._contiguity()
            case "gap-bound":
                return self._gap()
            case "window":
                return self._window()
            case "negation" | "until":
                assert stage.of is not None
                return self._negated(stage.kind, stage.of)
        assert stage.of is not None
        return self._greedy(stage.of)

    def cut_off(self, stage: Stage) -> Cause:
        """The cause in the constraint of a stage, where earlier constraints are not known."""
        text = f"no match of {self.step} is left with this constraint; a search with fewer was cut "
        text += "off, so that a constraint before it may be the cause"
        return self.at_step(stage.kind, text)

    # --- places -----------------------------------------------------------------------------------

    @property
    def _question(self) -> Question:
        return self.rows.observed.question

    def at_step(
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
        span = self._span(link or self.steps.last)
        gpms = taken_gpms(link or self.steps.last)
        line, column = self._question.place(span)
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
            " ".join(self._question.text(span).split()),
        )

    def _span(self, link: Link) -> Span:
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

    def _event(self, item: TraceItem) -> str:
        return event_text(self._question.terms, item)

    def _smallest(self, measure: Callable[[Answer], int]) -> tuple[Answer, int]:
        """The match with the least measure, and the measure."""
        best = min(self.near.matches, key=measure)
        return best, measure(best)

    @property
    def _among(self) -> str:
        """The candidates in words."""
        return self.near.counted("candidate")

    @property
    def step(self) -> str:
        """The last step as written."""
        return " ".join(self._question.text(self._span(self.steps.last)).split())

    @property
    def last_before(self) -> str:
        """The step before it, as written."""
        before = [li for li in self.steps.before if not isinstance(li.step, seq.Negation)]
        return (
            " ".join(self._question.text(self._span(before[-1])).split()) if before else "the start"
        )

    # --- kinds ------------------------------------------------------------------------------------

    def order(self, first: TraceItem | None, last: TraceItem | None) -> Cause:
        """The events of the last step come only before those of the steps before."""
        text = f"no {self.step} comes after {self.last_before}"
        example = None
        if first is not None and last is not None:
            example = f"{self._event(last)} is before {self._event(first)}"
            text += f": the last {self.step} is {self._event(last)}, "
            text += f"and {self.last_before} is first reached with {self._event(first)}"
        elif not self.steps.before:
            text = f"the events of {self.step} never come in this order"
        text += "; write the steps in the order of the events, or (X AND Y) for any order"
        count = max(self.rows.observed.counts(name)[0] for name in self.steps.names)
        return self.at_step("order", text, count=count, example=example)

    def _join(self) -> Cause:
        earlier = {n for link in self.steps.before for n in taken_gpms(link)}
        partition = self.steps.plan.sequence.partition
        binds = self.steps.resolved.binds
        own = {v for name in self.steps.names for v in binds[name]}
        shared = own & {v for name in earlier for v in binds[name]}
        ordered = [*partition, *sorted(shared - {*partition})]
        for variable in [v for v in ordered if v in shared]:
            left = self.rows.distinct(variable, earlier)
            right = self.rows.distinct(variable, self.steps.names)
            if left and right and not set(left) & set(right):
                return self._no_common(variable, left, right, variable in partition)
        names = ", ".join(f"?{v}" for v in ordered)
        text = f"no {self.step} after {self.last_before} has the same {names}"
        text += ", although each value occurs in both steps"
        text += "; rename the variable if the values need not be equal"
        return self.at_step("equality-join-empty", text, term=names or None)

    def _no_common(
        self, variable: str, left: Sequence[str], right: Sequence[str], partition: bool
    ) -> Cause:
        terms = self._question.terms
        like = next(((a, b) for a in left[:1000] for b in right[:1000] if _alike(a, b)), None)
        one, other = like or (left[0], right[0])
        text = f"?{variable} is never equal: {as_written(terms, one)} in {self.last_before}, "
        text += f"{as_written(terms, other)} in {self.step}"
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
        return self.at_step("equality-join-empty", text, term=f"?{variable}", example=example)

    def _condition(self, condition: StepCondition) -> Cause:
        if condition.expr is None:
            text = f"the pattern of {condition.gpm} never matches with the values of earlier steps"
            text += f", for {self._among}"
            found = self.at_step("condition-false", text)
            line, column = self._question.place(self._question.gpm(condition.gpm).span)
            return replace(found, gpm=condition.gpm, line=line, column=column)
        miss = nearest_miss(
            condition.expr,
            self.near.matches,
            self._question.terms,
            self.steps.plan.expressions,
        )
        text, example = f"false for {self._among}", None
        if miss is not None:
            example = ", ".join(f"{name} = {value}" for name, value in miss.values) or None
            text += self._missed(condition, miss, example)
        span = self._filter_span(condition)
        found = self.at_step("condition-false", text, example=example)
        line, column = self._question.place(span)
        shown = " ".join(self._question.text(condition.expr.span).split())
        number_ = step_of_gpm(self.steps, condition.gpm)
        return replace(
            found, gpm=condition.gpm, step=number_, line=line, column=column, shown=shown
        )

    def _missed(self, condition: StepCondition, miss: Miss, example: str | None) -> str:
        assert condition.expr is not None
        shown = f"; {example}" if example else ""
        if miss.unbound is not None:
            text = f"{shown}; {miss.unbound} is unbound, so the FILTER is an error"
            if miss.unbound.startswith("PREV"):
                return text + f" in the first repetition: write !BOUND({miss.unbound}) || ..."
            other = later_binder(self.steps, miss.unbound[1:])
            if other is not None:
                return text + f": {other} binds it, move the FILTER there"
            return text + f": write COALESCE({miss.unbound}, ...), or bind it in an earlier step"
        if miss.by is not None:
            return f"; the nearest has {example}, {miss.by:g} off" if miss.by else shown
        return shown

    def _filter_span(self, condition: StepCondition) -> Span:
        """The place of the FILTER that a condition is in."""
        assert condition.expr is not None
        span, gpm = condition.expr.span, self._question.gpm(condition.gpm)
        filters = [n.span for n in walk(gpm.pattern) if isinstance(n, ast.Filter)]
        around = [s for s in filters if s.start <= span.start and span.end <= s.end]
        return max(around, key=lambda s: s.start, default=span if span != NOWHERE else gpm.span)

    def _simultaneity(self) -> Cause:
        def spread(match: Answer) -> int:
            times = [item.time for item in parts_of(match, self.steps)[1]]
            return max(times) - min(times)

        best, least = self._smallest(spread)
        own = parts_of(best, self.steps)[1]
        example = f"{self._event(own[0])} and {self._event(own[-1])}"
        text = f"no events of {self.step} have the same time; "
        text += f"the nearest, {example}, are {duration(least)} apart"
        text += "; & needs one time, AND takes any order: write AND, or a sequence with a gap bound"
        return self.at_step("simultaneity", text, example=example)

    def _next_taken(self) -> Cause | None:
        """The cause if `;` takes an event of the step that comes before that of the candidate."""
        if not isinstance(self.steps.last.step, seq.GpmStep) or self.steps.last.join.kind != ";":
            return None
        for match in self.near.matches[:200]:
            before, own = parts_of(match, self.steps)
            if not before or not own:
                continue
            taken = self.rows.of_gpms(self.steps.names, at(before[-1]), at(own[0]))
            if taken:
                example = self._event(taken[0])
                text = f"; takes {example}, the next {self.step} after {self._event(before[-1])}"
                text += f", and not {self._event(own[0])}; write : to try all events"
                return self.at_step("contiguity", text, suggestion=":", example=example)
        return None

    def _contiguity(self) -> Cause:
        taken = self._next_taken()
        if taken is not None:
            return taken
        best: tuple[int, TraceItem, TraceItem, TraceItem, Answer] | None = None
        for match in self.near.matches[:200]:
            before, own = parts_of(match, self.steps)
            for one, next_ in pairwise([*before[-1:], *own]):
                places = self.rows.between(at(one), at(next_))
                places = self.rows.in_partition(places, match)
                events = {self.rows.item(row)[:2] for row in places[:1000].tolist()}
                if events and (best is None or len(events) < best[0]):
                    best = len(events), one, next_, self.rows.item(int(places[0])), match
        if best is None:
            text = (
                f"; takes only the next event that matches, after which {self.step} does not go on"
            )
            return self.at_step("contiguity", f"{text}; write : to try all events")
        count, one, next_, between, match = best
        example = self._event(between)
        text = f"{example} stands between {self._event(one)} and {self._event(next_)}"
        text += f" ({plural(count, 'event')} between); a comma allows none"
        variable = self._separating(one, next_, match)
        if variable is not None:
            text += f"; PARTITION BY (?{variable}) leaves such events out"
            return self.at_step(
                "contiguity", text, suggestion=f"PARTITION BY (?{variable})", example=example
            )
        return self.at_step(
            "contiguity", f"{text}; write ; instead", suggestion=";", example=example
        )

    def _separating(self, one: TraceItem, next_: TraceItem, match: Answer) -> str | None:
        """A variable of all steps by which the events between two others can be left out."""
        if self.steps.plan.sequence.partition:
            return None
        plans = [gpm for gpm in self.steps.plan.patterns.gpms if not gpm.negated]
        shared = frozenset.intersection(*(gpm.certain for gpm in plans))
        singles = dict(match.singles)
        places = self.rows.between(at(one), at(next_))
        for variable in sorted(shared & singles.keys()):
            texts = self.rows.observed.rows.texts(variable, places)
            if all(text != singles[variable] for text in texts) and any(texts):
                return variable
        return None

    def _gap(self) -> Cause:
        def gap(match: Answer) -> int:
            before, own = parts_of(match, self.steps)
            return max((b.time - a.time for a, b in pairwise([*before[-1:], *own])), default=0)

        best, least = self._smallest(gap)
        before, own = parts_of(best, self.steps)
        pair = max(pairwise([*before[-1:], *own]), key=lambda p: p[1].time - p[0].time)
        bound = self.steps.last.join.gap_ms
        example = f"{self._event(pair[0])} and {self._event(pair[1])}"
        text = f"the smallest gap before {self.step} is {duration(least)}, from {example}"
        if bound is not None:
            text += f"; the bound is {duration(bound)}"
        return self.at_step("gap-bound", f"{text}: raise it to at least that", example=example)

    def _window(self) -> Cause:
        window = self.steps.plan.sequence.window
        if isinstance(window, Counted):
            best, least = self._smallest(self._events_of)
            span, given = plural(least, "event"), plural(window.events, "event")
        else:
            best, least = self._smallest(lambda match: match.trace[-1].time - match.trace[0].time)
            span, given = duration(least), duration(window.length_ms)
        example = f"{self._event(best.trace[0])} to {self._event(best.trace[-1])}"
        text = f"the smallest span up to {self.step} is {span}, {example}; WITHIN is {given}"
        if isinstance(window, Tumbling) and least < window.length_ms:
            text += ", and a boundary of the tumbling window falls in between: leave out TUMBLING"
        elif isinstance(window, Sliding | Counted | Tumbling):
            text += ": widen it to at least that"
        return self.at_step("window", text, example=example)

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
            example = self._event(items[0]) if items else None
            text += f", for example from {example}" if example else ""
        text += f": lower the bound to {most}, or widen WITHIN or the gap bound"
        return self.at_step("repetition", text, count=most, example=example)

    def _negated(self, kind: str, number_: int) -> Cause:
        negation = next(
            step
            for step in seq.steps(self.steps.chain)
            if isinstance(step, seq.Negation) and step.id == number_
        )
        names = tuple(dict.fromkeys(use.gpm for use in occurrences(negation.body)))
        match = self.near.matches[0]
        found = self._taking(names, match)
        shown = " ".join(self._question.text(negation.span).split())
        example = None if found is None else self._event(found)
        whose = "the only candidate" if len(self.near) == 1 else f"each of {self._among}"
        text = f"{whose} has an event that {shown} forbids"
        if found is not None:
            text += f"; for example {example}, beside {self._event(match.trace[0])}"
        if kind == "until":
            text += "; leave out UNTIL, or make its pattern narrower"
        else:
            text += "; make the negated pattern narrower, or shorten WITHIN"
        link = Link(negation, self.steps.last.join)
        cause = self.at_step(kind, text, link, example=example)
        return replace(cause, gpm=names[0] if len(names) == 1 else None)

    def _taking(self, names: Sequence[str], match: Answer) -> TraceItem | None:
        """An event of a negated step: between those of a match, or else beside them in time."""
        window = self.steps.plan.sequence.window
        length = 0 if isinstance(window, Counted) else window.length_ms
        first, last = match.trace[0], match.trace[-1]
        for after, before in (
            (at(first), at(last)),
            (at(last), (last.time + length, 2**31)),
            ((first.time - length, -1), at(first)),
        ):
            items = self.rows.of_gpms(names, after, before)
            if items:
                return items[0]
        return None

    def _greedy(self, number_: int) -> Cause:
        loop = next(
            step
            for step in seq.steps(self.steps.chain)
            if isinstance(step, seq.Repeat) and step.id == number_
        )
        link = Link(loop, self.steps.last.join)
        names = taken_gpms(link)
        match = self.near.matches[0]
        own = [item for item in match.trace if item.gpm in names]
        after = at(own[-1]) if own else at(match.trace[0])
        next_ = next((item for item in match.trace if at(item) > after), None)
        end = (next_.time, next_.k + 1) if next_ is not None else (match.trace[-1].time + 2**40, 0)
        taken = self.rows.of_gpms(names, after, end)
        shown = " ".join(self._question.text(loop.span).split())
        example = self._event(taken[-1]) if taken else None
        text = f"{shown} is greedy and goes on"
        if example is not None:
            text += f": it takes {example}"
            if next_ is not None and at(taken[-1]) == at(next_):
                text += f", which {next_.gpm} needs"
        text += "; leave out the second +, or make the loop's pattern narrower"
        return self.at_step("greedy", text, link, example=example)


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
