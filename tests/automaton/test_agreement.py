"""All evaluators that can run a sequence give the same answers, in the same order.

`SPASEQ_AGREEMENT_EXAMPLES` sets how many examples each test tries.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, given, settings

from spaseq.algebra.answers import Answer
from spaseq.automaton.sets.python import enumeration
from spaseq.errors import QueryError
from spaseq.plan.query_plan import QueryPlan
from tests.automaton.cases import Case, Event, cases, plans, query, run

_EXAMPLES = int(os.environ.get("SPASEQ_AGREEMENT_EXAMPLES", "100"))
_SETTINGS = settings(
    max_examples=_EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
_STRATEGIES = ("", "NEXT", "LAST", "MAX", "STRICT")


def able(case: Case) -> tuple[list[Answer], dict[str, QueryPlan]]:
    """The answers on registers, and the plans for the other evaluators that can run the query."""
    try:
        found = plans(case.text)
    except QueryError:  # what the language refuses has been drawn
        assume(False)
    expected, _ = run(found.pop("registers"), case.events)
    assume(found)
    return expected, found


def test_events_of_one_instant_count_once_however_their_solutions_join() -> None:
    """`WITHIN 5 EVENTS` over two streams, where the solutions of one event have different keys."""
    first, second = "<e0>", "<e1>"
    events = (
        Event(1000, 0, 1, {"A": [{"a": first}, {"a": second}]}),
        Event(1000, 0, 0, {"A": [{"a": first}, {"a": second}]}),
        Event(2000, 0, 0),
        Event(3000, 0, 1, {"A": [{"a": first}]}),
        Event(3000, 0, 0, {"A": [{"a": second}]}),
    )
    found = plans(query("A: A", {"A": "?a :is []"}, "5 EVENTS"))
    expected, _ = run(found.pop("registers"), events)
    assert len(expected) == 4
    for plan in found.values():
        assert run(plan, events)[0] == expected


@_SETTINGS
@given(cases())
def test_any_sequence(case: Case) -> None:
    expected, others = able(case)
    for plan in others.values():
        assert run(plan, case.events)[0] == expected


@_SETTINGS
@given(cases(plain=True))
def test_plain_sequences(case: Case) -> None:
    expected, others = able(case)
    for plan in others.values():
        assert run(plan, case.events)[0] == expected


@pytest.mark.parametrize("few", [1, 32])
def test_selection(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the set (more than `few` matches) as among enumerated matches."""
    monkeypatch.setattr(enumeration, "FEW", few)

    @_SETTINGS
    @given(cases(strategies=_STRATEGIES))
    def check(case: Case) -> None:
        expected, others = able(case)
        for plan in others.values():
            assert run(plan, case.events)[0] == expected

    check()


@_SETTINGS
@given(cases(strategies=("", "", "MAX"), rest=("", "AFTER MATCH SKIP PAST LAST EVENT")))
def test_a_restart_in_the_middle_changes_nothing(case: Case) -> None:
    expected, others = able(case)
    for plan in others.values():
        assert (
            run(plan, case.events, restart_after=len({e.time for e in case.events}) // 2)[0]
            == expected
        )


@_SETTINGS
@given(cases(strategies=_STRATEGIES, select=("*", "*", "DISTINCT ?a ?b")))
def test_a_limit_keeps_some_and_counts_the_others(case: Case) -> None:
    """As many for each end as registers keep, and as many suppressed."""
    expected, others = able(case)
    limit = 1 + len(case.text) % 3
    kept, suppressed = run(plans(case.text)["registers"], case.events, limit)
    assert len(kept) + suppressed == len(expected)
    for plan in others.values():
        found, count = run(plan, case.events, limit)
        assert count == suppressed
        assert Counter(a.end for a in found) == Counter(a.end for a in kept)
        assert set(map(Answer.order_key, found)) <= set(map(Answer.order_key, expected))
        assert found == sorted(found, key=Answer.order_key)
