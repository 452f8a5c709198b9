"""Sequences that hold one event: which matches count, and which rows they may use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spaseq.algebra.answers import Answer
from spaseq.automaton.program.window import Counted
from spaseq.compiled.arrays import Bools
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.relaxed import COPY
from spaseq.diagnosis.watched_event import SeenEvent
from spaseq.errors import Span
from spaseq.lang import sequence as seq
from spaseq.lang.sequence import Chain, Link, occurrences
from spaseq.rdf.columns.solution_batch import BARE
from spaseq.records import record


@record
class HeldEvent:
    """An event that matches must hold, as a solution of a GPM.

    Matches of sequences without the GPM's use at `span` need not hold it.
    """

    event: SeenEvent
    gpm: str
    span: Span

    def concerns(self, chain: Chain) -> bool:
        """Whether the matches of a sequence must hold the event."""
        return any(use.span == self.span for use in occurrences(chain))

    def is_in(self, match: Answer) -> bool:
        """Whether a match holds the event."""
        return holds(match, self.event, self.gpm)


def holds(match: Answer, event: SeenEvent, gpm: str | None = None) -> bool:
    """Whether a match holds an event, as a solution of a GPM if one is given."""
    return any(
        item.time == event.time
        and item.k == event.k
        and item.stream == event.stream
        and gpm in (None, item.gpm.removesuffix(COPY))
        for item in match.trace
    )


def rows_of(observed: Observed, event: SeenEvent) -> Bools:
    """The rows of an event."""
    rows = observed.rows
    stream = observed.question.plan.inputs.streams.index(event.stream)
    mask: Bools = (rows.time == event.time) & (rows.k == event.k) & (rows.stream == stream)
    return mask


def matched_gpms(observed: Observed, event: SeenEvent) -> list[str]:
    """The GPMs that have a solution on an event."""
    gpms = observed.question.watched.patterns.gpms
    numbers = np.unique(observed.rows.gpm[rows_of(observed, event)]).tolist()
    return [gpms[number].name for number in numbers if number != BARE]


def without_other_events(observed: Observed, link: Link, held: HeldEvent) -> Observed:
    """What was seen, where the held GPM has no solution but on the event.

    The matches that hold it stay the same if the GPM stands in one place, is a step by itself, and
    no operator looks for the next of its events. Otherwise everything stays.
    """
    question = observed.question
    chain = question.resolved.chain
    uses = [use for use in occurrences(chain) if use.gpm == held.gpm]
    first = next(li for li in chain.links if not isinstance(li.step, seq.Negation))
    begins = first.step == link.step
    alone = isinstance(link.step, seq.GpmStep) and (begins or link.join.kind == ":")
    if len(uses) > 1 or not alone:
        return observed
    rows = observed.rows
    others = (rows.gpm == question.gpm_number(held.gpm)) & ~rows_of(observed, held.event)
    if question.plan.sequence.partition:  # each event has bare rows
        return replace(observed, rows=rows.take(np.flatnonzero(~others)))
    bare = np.where(others, np.int32(BARE), rows.gpm).astype(np.int32)
    return replace(observed, rows=replace(rows, gpm=bare))


def near_in_time(observed: Observed, event: SeenEvent) -> Observed:
    """The rows that decide which answers hold an event."""
    plan, rows = observed.question.plan, observed.rows
    window = plan.sequence.window
    if isinstance(window, Counted):
        return observed
    reach = 2 * window.length_ms
    keep = rows.time <= event.time + reach
    if plan.answers.after_match.keeps_all and not plan.answers.distinct:
        keep &= rows.time >= event.time - reach
    return replace(observed, rows=rows.take(np.flatnonzero(keep)))
