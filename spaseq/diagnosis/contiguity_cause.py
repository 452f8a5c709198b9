"""The sentence about an event that stands where `,` or `;` allows none."""

from __future__ import annotations

from itertools import pairwise

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.diagnosis.report import Cause, plural
from spaseq.diagnosis.seen_matches import instant, parts_of
from spaseq.diagnosis.step_text import StepText
from spaseq.lang import sequence as seq


def contiguity_cause(at: StepText) -> Cause:
    """The cause in an operator that allows no other event in between."""
    taken = _next_taken(at)
    if taken is not None:
        return taken
    best: tuple[int, TraceItem, TraceItem, TraceItem, Answer] | None = None
    for match in at.near.matches[:200]:
        before, own = parts_of(match, at.steps)
        for one, next_ in pairwise([*before[-1:], *own]):
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
        before, own = parts_of(match, at.steps)
        if not before or not own:
            continue
        taken = at.rows.of_gpms(at.steps.names, instant(before[-1]), instant(own[0]))
        if taken:
            example = at.event(taken[0])
            text = f"; takes {example}, the next {at.step} after {at.event(before[-1])}"
            text += f", and not {at.event(own[0])}; write : to try all events"
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
