"""The causes between steps: the first step that no match reaches, and the constraint at fault.

The first steps of the sequence are searched as separate queries, one step more at a time. At the
first step without a match, the relaxed forms of that step are searched until one has no match. The
constraint that it adds is the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from spaseq.algebra.answers import TraceItem
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.relaxed import Constraints, FirstSteps, Form, Stage, all_first_steps
from spaseq.diagnosis.report import Cause, StepCount
from spaseq.diagnosis.search import Found, RowSearch, SearchTime
from spaseq.diagnosis.seen_matches import (
    SeenRows,
    duration,
    event_text,
    instant,
    misses_of,
    nearest_miss,
    span_of,
    step_number,
)
from spaseq.diagnosis.step_causes import StepCauses
from spaseq.lang import ast
from spaseq.lang.sequence import Chain, GpmStep, Link, can_be_empty, needed_gpms
from spaseq.plan.query_plan import AfterMatch, AnswerPlan, QueryPlan
from spaseq.records import record


@record
class AnswerCauses:
    """Describes the cause that leaves no answer of the matches `near` of the whole sequence."""

    steps: FirstSteps
    rows: SeenRows
    near: Found

    def having(self, expr: ast.Expr) -> Cause:
        """HAVING holds for no match."""
        options = self.steps.plan.expressions
        miss = nearest_miss(misses_of(expr, self.near.matches, self._question.terms, options))
        text, example = f"false for {self._matches}", None
        if miss is not None:
            example = miss.shown
            text += f"; the nearest has {example}" if example else ""
            text += f", {miss.by:g} off" if miss.by else ""
            text += f"; {miss.unbound} is unbound, so it is an error" if miss.unbound else ""
        return self._at(expr, "having", text, example)

    def selection(self, strategy: str) -> Cause:
        """The selection strategy leaves no match, or CONSTRUCT makes no triples of any."""
        form = self.steps.resolved.query.form
        if strategy not in ("ALL", "STRICT"):
            text = f"SELECT {strategy} keeps other matches and drops {self._matches}"
            last = self._event(self.near.matches[0].trace[-1])
            return self._at(form, "selection", f"{text}; leave out {strategy}", last)
        if strategy != "STRICT":
            text = "CONSTRUCT makes no triple of any match: its variables are unbound"
            return self._at(form, "construct-empty", text, None)
        match = self.near.matches[0]
        places = [
            int(row)
            for one, next_ in pairwise(match.trace)
            for row in self.rows.between(instant(one), instant(next_))[:1]
        ]
        example = self._event(self.rows.item(places[0])) if places else None
        text = f"SELECT STRICT drops {self._matches}"
        text += ": it keeps only matches without another event between theirs"
        text += f", such as {example}" if example else ""
        return self._at(form, "selection", f"{text}; leave out STRICT", example)

    def after_match(self, skip: AfterMatch) -> Cause:
        """AFTER MATCH leaves out the matches because of other answers."""
        text = f"AFTER MATCH {skip.kind} leaves out {self._matches}: they overlap earlier answers"
        example = self._event(self.near.matches[0].trace[0])
        form = self.steps.resolved.query.form
        return self._at(form, "after-match", f"{text}; leave out AFTER MATCH", example)

    def muted(self, mute_ms: int) -> Cause:
        """MUTE leaves out the matches because an answer came shortly before."""
        text = (
            f"MUTE leaves out {self._matches}: an answer ended less than {duration(mute_ms)} before"
        )
        example = self._event(self.near.matches[0].trace[-1])
        query = self.steps.resolved.query
        return self._at(
            query.skip or query.form,
            "muted",
            f"{text}; leave out MUTE, or make it shorter",
            example,
        )

    def distinct(self) -> Cause:
        """DISTINCT leaves out the matches because other answers have their values."""
        text = f"DISTINCT drops {self._matches}: other answers have the same values"
        form = self.steps.resolved.query.form
        return self._at(form, "distinct", f"{text}; leave out DISTINCT", None)

    @property
    def _matches(self) -> str:
        return self.near.counted("match")

    @property
    def _question(self) -> Question:
        return self.rows.observed.question

    def _event(self, item: TraceItem) -> str:
        return event_text(self._question.terms, item)

    def _at(self, node: ast.Node, kind: str, text: str, example: str | None) -> Cause:
        """A cause at a node that is in no step."""
        line, column = self._question.place(node.span)
        shown = self._question.line(node.span)
        count = len(self.near)
        return Cause(kind, None, None, line, column, count, None, None, example, text, shown[:60])


MOST_COUNTED = 10_000
"""The matches of a step are counted up to this number."""

_SAMPLE = 1_000
"""Number of candidates that are examined for an example."""

_NO_SKIP = AfterMatch("NO SKIP")

_CUT_OFF = "the search was cut off at {}: no cause is named, because none is certain"


@record
class StepReport:
    """The counts of the steps and, if the sequence has no match, the cause.

    `notes` say that a search was cut off, so that there may be a cause that was not seen.
    """

    steps: tuple[StepCount, ...]
    causes: tuple[Cause, ...]
    notes: tuple[str, ...] = ()


def step_report(
    observed: Observed,
    time: SearchTime | None = None,
    search: RowSearch | None = None,
    whole: RowSearch | None = None,
) -> StepReport:
    """The progress of the sequence, and the cause of its end.

    There is no cause if the query has an answer, or if a step is not reached because one of its
    GPMs has no solution by itself. For sequences with a given event, `search` finds the matches of
    steps, and `whole` the answers.
    """
    search = search or RowSearch(observed, time or SearchTime())
    return _Diagnosis(observed, search, whole or search).report()


class _Diagnosis:
    def __init__(self, observed: Observed, search: RowSearch, whole: RowSearch) -> None:
        self._observed, self._search, self._whole = observed, search, whole
        question = observed.question
        self._levels = all_first_steps(question.resolved, question.watched)
        self._rows = SeenRows(observed)
        self._cut: str | None = None  # the first step of which a search stopped too early

    def report(self) -> StepReport:
        """The counts, and the cause or the note that there may be one."""
        steps, cause = self._outcome()
        if cause is not None:
            return StepReport(steps, (cause,))
        return StepReport(steps, (), () if self._cut is None else (_CUT_OFF.format(self._cut),))

    def _outcome(self) -> tuple[tuple[StepCount, ...], Cause | None]:
        counts: dict[int, StepCount] = {}
        for steps in self._levels:
            found = self._found(_whole(steps), MOST_COUNTED)
            counted = self._count(steps, found)
            self._note(found, counted.name)
            counts[counted.step] = counted
            if found or not self._must_match(steps):
                continue
            if self._lacks_solutions(steps) or self._is_answered():
                return tuple(counts.values()), None
            cause = self._cause(steps)
            if cause is not None or found.unknown:
                return tuple(counts.values()), cause and self._nothing_new(steps, cause)
        return tuple(counts.values()), self._after_sequence(self._levels[-1])

    def _must_match(self, steps: FirstSteps) -> bool:
        """Whether the query has no match if these first steps have none.

        Steps that may all be empty match without an event, but a match of the query has an event.
        Then the first of them that has any events is to blame.
        """
        if not can_be_empty(steps.chain):
            return True
        whole = self._levels[-1]
        if not can_be_empty(whole.chain) or not self._found(_whole(whole)).nothing:
            return False
        return steps is whole or bool(self._found(steps.alone()))

    def _found(self, form: Form, most: int = 1) -> Found:
        return self._search.found(form.plan, most, form.copies)

    def _lacks_solutions(self, steps: FirstSteps) -> bool:
        """Whether the last step has no events because of a GPM by itself."""
        if _is_optional(steps.last) and not can_be_empty(steps.chain):
            return False
        counts, chain = self._observed.counts, self._observed.question.resolved.chain
        needed = needed_gpms(chain, lambda name: counts(name)[0] > 0)
        if all(counts(name)[0] for name in needed if name in steps.names):
            return False
        return not self._found(steps.alone())

    def _note(self, found: Found, name: str) -> None:
        """Keep in mind that a search of a step found nothing because it stopped."""
        if found.unknown and self._cut is None:
            self._cut = name

    def _count(self, steps: FirstSteps, found: Found) -> StepCount:
        question = self._observed.question
        span = span_of(steps.last)
        number = step_number(steps, span) or 1
        step = question.resolved.query.sequence.steps[number - 1]
        name = question.line(step.span)
        return StepCount(number, name, len(found), not found.complete)

    # --- one step ---------------------------------------------------------------------------------

    def _cause(self, steps: FirstSteps) -> Cause | None:
        """Why no match reaches the last of some steps."""
        alone = steps.alone()
        if can_be_empty(steps.chain) or not _is_optional(steps.last):
            early = self._too_early(steps, alone)
            if early is not None:
                return early
        before, cut = alone, False
        for stage, form in _distinct_stages(steps):
            found = self._found(form)
            if found.nothing:
                return self._cut_off(steps, stage) if cut else self._described(steps, stage, before)
            cut = cut or found.unknown
            before = form
        return None

    def _nothing_new(self, steps: FirstSteps, cause: Cause) -> Cause:
        """The cause if the last step waits for something new that was there before."""
        observed = self._observed
        news = [
            (name, ref.name)
            for name in steps.names
            for ref in observed.question.gpm(name).streams
            if ref.change == "NEW"
        ]
        if not news or not steps.before or observed.windows is None:
            return cause
        form = _whole(steps)
        for gpm, window in news:
            levels = replace(observed, rows=observed.windows.solutions((gpm, window)))
            if replace(self._search, observed=levels).found(form.plan, 1, form.copies):
                break
        else:
            return cause
        text = f"{gpm} stands on NEW {window}, and what it matches is there before, and not new "
        text += f"after, the steps before it: on {window}, without NEW, there is a match"
        return replace(
            cause, kind="nothing-new", gpm=gpm, text=text, term=f"NEW {window}", suggestion=window
        )

    def _cut_off(self, steps: FirstSteps, stage: Stage) -> Cause | None:
        """The cause if a search of a form with fewer constraints stopped before it found any."""
        causes = StepCauses(steps, self._rows, Found((), False))
        return causes.cut_off(stage)

    def _described(self, steps: FirstSteps, stage: Stage, before: Form) -> Cause | None:
        near = self._found(before, _SAMPLE) or self._found(before)
        causes = StepCauses(steps, self._rows, near)
        if not near:
            return causes.cut_off(stage)
        if stage.kind == "repetition":
            most = self._most_repetitions(steps, stage.constraints)
            return causes.cut_off(stage) if most is None else causes.repetition(most)
        cause = causes.of(stage)
        wide = steps.trying_all_events() if stage.kind in ("negation", "until") else None
        others = None if wide is None else self._found(_whole(wide))
        return causes.with_any_event(cause, others.matches[0]) if others else cause

    def _too_early(self, steps: FirstSteps, alone: Form) -> Cause | None:
        """The cause if the last step's events all come before the events of the steps before."""
        causes = StepCauses(steps, self._rows, Found((), True))
        found = self._found(alone)
        if not found:
            return causes.order(None, None) if found.nothing else None
        places = [i for i, other in enumerate(self._levels) if other is steps]
        if not places[0] or can_be_empty(self._levels[places[0] - 1].chain):
            return None
        before = self._found(_unfiltered(self._levels[places[0] - 1]), _SAMPLE)
        if not before:
            return None
        first = min(before.matches, key=lambda match: match.last)
        after = self._search.found(alone.plan, 1, alone.copies, first.last)
        if not after.nothing:
            return None
        last = self._last_of_gpm(steps) or self._last_alone(alone)
        return causes.order(first.trace[-1], last)

    def _last_of_gpm(self, steps: FirstSteps) -> TraceItem | None:
        """The last event of the last step, if it is one GPM."""
        if not isinstance(steps.last.step, GpmStep) or self._search.held is not None:
            return None
        gpm = self._observed.rows.gpm
        places = np.flatnonzero(gpm == self._observed.question.gpm_number(*steps.names))
        return self._rows.item(int(places[-1]))

    def _last_alone(self, alone: Form) -> TraceItem | None:
        found = self._search.found(alone.plan, _SAMPLE, alone.copies)
        if not found.complete:  # later ones may follow
            return None
        return max(found.matches, key=lambda match: match.last).trace[-1]

    def _most_repetitions(self, steps: FirstSteps, on: Constraints) -> int | None:
        """Maximum number of repetitions of the last step; None if a search stopped too early."""
        most = 1
        while most < 64:
            found = self._found(steps.form(replace(on, repetition=most + 1)))
            if found.unknown:
                return None
            if not found:
                break
            most += 1
        return most

    def _is_answered(self) -> bool:
        """Whether the query has an answer, or may have one that the search did not reach.

        A step may have no match although the query has one: a variable that a later step binds,
        too, is no group variable in the query, but one in its first steps.
        """
        answers, whole = self._observed.question.watched.answers, _whole(self._levels[-1])
        found = self._whole.found(_answering(whole, answers))
        self._note(found, "the whole sequence")
        return not found.nothing

    # --- the whole sequence -----------------------------------------------------------------------

    def _after_sequence(self, steps: FirstSteps) -> Cause | None:
        """Why the sequence has matches, but the query no answers."""
        if self._is_answered():
            return None
        answers, whole = self._observed.question.watched.answers, _whole(steps)
        near = self._found(whole, _SAMPLE)
        if not near:
            return None
        causes = AnswerCauses(steps, self._rows, near)
        if answers.having is not None:
            only = AnswerPlan((), False, "ALL", _NO_SKIP, answers.having, None)
            found = self._whole.found(_answering(whole, only))
            if not found:
                return causes.having(answers.having) if found.nothing else None
        if self._lost(whole, replace(answers, after_match=_NO_SKIP, distinct=False)):
            return causes.selection(answers.strategy)
        if self._lost(whole, replace(answers, distinct=False)):
            skip = answers.after_match
            unmuted = replace(answers, after_match=replace(skip, mute_ms=0), distinct=False)
            is_muted = skip.mute_ms and not self._lost(whole, unmuted)
            return causes.muted(skip.mute_ms) if is_muted else causes.after_match(skip)
        return causes.distinct() if answers.distinct else None

    def _lost(self, whole: Form, answers: AnswerPlan) -> bool:
        """Whether no match is left, which is certain."""
        return self._whole.found(_answering(whole, answers)).nothing


def _answering(form: Form, answers: AnswerPlan) -> QueryPlan:
    """A query with the original's answer clauses."""
    sequence = form.plan.sequence
    instants = sequence.needs_instants or answers.strategy == "STRICT"
    return replace(form.plan, answers=answers, sequence=replace(sequence, needs_instants=instants))


def _unfiltered(steps: FirstSteps) -> Form:
    """The steps without the constraints that only take matches away."""
    *_, last = steps.stages()
    nothing = Constraints()
    return steps.form(
        replace(
            last.constraints,
            window=False,
            negations=nothing.negations,
            untils=nothing.untils,
            greedy=nothing.greedy,
        )
    )


def _is_optional(link: Link) -> bool:
    return can_be_empty(Chain((link,)))


def _whole(steps: FirstSteps) -> Form:
    """The steps with all their constraints."""
    *_, last = steps.stages()
    return steps.form(last.constraints)


def _distinct_stages(steps: FirstSteps) -> Iterator[tuple[Stage, Form]]:
    """The stages whose forms differ from the form before."""
    before: Form | None = None
    for stage in steps.stages():
        form = steps.form(stage.constraints)
        if before is None or _key(form) != _key(before):
            yield stage, form
        before = form


def _key(form: Form) -> object:
    plan = form.plan
    return plan.sequence.chain, plan.patterns.gpms, plan.sequence.window
