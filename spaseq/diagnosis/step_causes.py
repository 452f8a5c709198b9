"""The sentence of each cause between steps: what went wrong, an example, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.automaton.program.window import Counted, Tumbling
from spaseq.diagnosis.condition_cause import condition_cause
from spaseq.diagnosis.contiguity_cause import contiguity_cause
from spaseq.diagnosis.join_cause import join_cause
from spaseq.diagnosis.relaxed import Stage
from spaseq.diagnosis.report import Cause, plural
from spaseq.diagnosis.seen_matches import duration, instant, parts_of
from spaseq.diagnosis.step_places import taken_gpms
from spaseq.diagnosis.step_text import StepText
from spaseq.lang import sequence as seq
from spaseq.lang.sequence import Chain, Link, occurrences

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
        """The events of the last step come only before those of the steps before."""
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
        own = parts_of(best, self.steps)[1]
        example = f"{self.event(own[0])} and {self.event(own[-1])}"
        text = f"no events of {self.step} have the same time; "
        text += f"the nearest, {example}, are {duration(least)} apart"
        text += "; & needs one time, AND takes any order: write AND, or a sequence with a gap bound"
        return self.cause("simultaneity", text, example=example)

    def _gap(self) -> Cause:
        def gap(match: Answer) -> int:
            before, own = parts_of(match, self.steps)
            return max((b.time - a.time for a, b in pairwise([*before[-1:], *own])), default=0)

        best, least = self.smallest(gap)
        before, own = parts_of(best, self.steps)
        pair = max(pairwise([*before[-1:], *own]), key=lambda p: p[1].time - p[0].time)
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
        text += f": lower the bound to {most}, or widen WITHIN or the gap bound"
        return self.cause("repetition", text, count=most, example=example)

    def _negated(self, kind: str, negation: seq.Negation) -> Cause:
        names = tuple(dict.fromkeys(use.gpm for use in occurrences(negation.body)))
        match = self.near.matches[0]
        found = self._event_of_negated_step(names, match)
        shown = self.question.line(negation.span)
        example = None if found is None else self.event(found)
        whose = "the only candidate" if len(self.near) == 1 else f"each of {self.among}"
        text = f"{whose} has an event that {shown} forbids"
        if found is not None:
            text += f"; for example {example}, beside {self.event(match.trace[0])}"
        if kind == "until":
            text += "; leave out UNTIL, or make its pattern narrower"
        else:
            text += "; make the negated pattern narrower, or shorten WITHIN"
        link = Link(negation, self.steps.last.join)
        cause = self.cause(kind, text, link, example=example)
        return replace(cause, gpm=names[0] if len(names) == 1 else None)

    def with_any_event(self, cause: Cause, match: Answer) -> Cause:
        """The cause of a negated step that a match escapes if `:` stands for `;`."""
        events = ", ".join(self.event(item) for item in match.trace)
        text = f"{cause.text}. ; takes only the next event, also if it is forbidden;"
        text += f" : tries all events, and matches {events}: write : where you mean any event"
        return replace(cause, text=text, suggestion=":")

    def _event_of_negated_step(self, names: Sequence[str], match: Answer) -> TraceItem | None:
        """An event of a negated step: between those of a match, or else beside them in time."""
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
        own = [item for item in match.trace if item.gpm in names]
        after = instant(own[-1]) if own else instant(match.trace[0])
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
