"""All evaluators that can run a sequence give the same answers in the same order."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, assume, given, settings

from spaseq.errors import QueryError
from tests.automaton.cases import Case, cases, plans, run

_SETTINGS = settings(
    max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)

SEEN: Counter[str] = Counter()


def compare(case: Case) -> None:
    try:
        able = plans(case.text)
    except QueryError:
        assume(False)
    assume(len(able) > 1)
    expected, _ = run(able["registers"], case.events)
    for name in able:
        SEEN[name] += 1
        SEEN[name + " answered"] += bool(expected)
        assert run(able[name], case.events)[0] == expected, name


@_SETTINGS
@given(cases())
def test_any_sequence(case: Case) -> None:
    compare(case)
