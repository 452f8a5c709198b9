"""The sentence of each cause behind the sequence: what drops its matches, and what to do."""

from __future__ import annotations

from itertools import pairwise

from spaseq.algebra.answers import TraceItem
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.relaxed import FirstSteps
from spaseq.diagnosis.report import Cause
from spaseq.diagnosis.search import Found
from spaseq.diagnosis.seen_matches import SeenRows, duration, event_text, instant, nearest_miss
from spaseq.lang import ast
from spaseq.plan.query_plan import AfterMatch
from spaseq.records import record


@record
class AnswerCauses:
    """Describes what leaves no answer of the matches `near` of the whole sequence."""

    steps: FirstSteps
    rows: SeenRows
    near: Found

    def having(self, expr: ast.Expr) -> Cause:
        """HAVING holds for no match."""
        miss = nearest_miss(
            expr, self.near.matches, self._question.terms, self.steps.plan.expressions
        )
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
