"""Searches that are cut off: no cause is named that was not seen, and counts say "at least"."""

from __future__ import annotations

import pytest

from spaseq.diagnosis.report import Report
from spaseq.diagnosis.search import Found, RowSearch, SearchTime
from spaseq.diagnosis.steps import step_report
from spaseq.plan.query_plan import QueryPlan
from tests.diagnosis.small_streams import observed, query_of

NO_TIME = SearchTime(0.0, 0.0)


@pytest.mark.parametrize("head", ["WITHIN 1 SECONDS", "WITHIN 1 EVENTS"])
def test_no_cause_is_named_that_was_not_seen(head: str) -> None:
    seen = observed(query_of("A; B; C", None, head), "x x x x x x x x a a b b c c")
    report = step_report(seen, NO_TIME)
    assert report.causes == ()
    assert report.steps[-1].at_least
    (note,) = report.notes
    assert "cut off" in note


def test_a_complete_search_has_no_note() -> None:
    seen = observed(query_of("A; B"), "b a")
    report = step_report(seen)
    assert [cause.kind for cause in report.causes] == ["order"]
    assert report.notes == ()


def test_an_unknown_form_is_not_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    found = RowSearch.found
    calls = 0

    def cut_once(
        search: RowSearch,
        plan: QueryPlan,
        most: int = 1,
        *rest: object,
    ) -> Found:
        """The form with gap bounds, which has no match, is cut off."""
        nonlocal calls
        gaps = [link.join.gap_ms for link in plan.sequence.chain.links]
        if gaps[-1] and plan.sequence.window.length_ms > 1e9 and len(gaps) > 1:  # type: ignore[union-attr]
            calls += 1
            return Found((), False)
        return found(search, plan, most, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(RowSearch, "found", cut_once)
    seen = observed(query_of("A ;[1 SECONDS] B", None, "WITHIN 2 SECONDS"), "a . . b")
    (cause,) = step_report(seen).causes
    assert calls
    assert cause.kind == "window"
    assert "a constraint before it may be the cause" in cause.text


def test_answers_that_were_not_all_counted() -> None:
    report = Report(12, at_least=True)
    assert report.as_text() == "answers      at least 12"
    assert report.as_json()["at_least"] is True
    assert "at_least" not in Report(12).as_json()
