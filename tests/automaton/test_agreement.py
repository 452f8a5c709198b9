"""All evaluators that can run a sequence give the same answers, in the same order.

`SPASEQ_AGREEMENT_EXAMPLES` sets the number of examples per test in a slow run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.strategies import SearchStrategy

from spaseq.algebra.answers import Answer
from spaseq.automaton.program.outer_steps import has_outer_negations
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import QueryError
from spaseq.plan.query_plan import QueryPlan
from tests.automaton.cases import Case, Event, cases, counted_plans, plans, query, run
from tests.sizes import sizes
from tests.thresholds import Force

_EXAMPLES = int(os.environ.get("SPASEQ_AGREEMENT_EXAMPLES", "60"))
_SIZES = sizes(min(5, _EXAMPLES), min(12, _EXAMPLES), _EXAMPLES)
_STRATEGIES = ("", "NEXT", "LAST", "MAX", "STRICT")


def on_examples(
    examples: int, check: Callable[[Case], None], strategy: SearchStrategy[Case]
) -> None:
    """Check this number of drawn cases."""
    unhurried = settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    unhurried(given(strategy)(check))()


def same(case: Case) -> None:
    """Check that all evaluators give the same answers."""
    expected, others = able(case)
    for plan in others.values():
        assert run(plan, case.events)[0] == expected


def able(case: Case) -> tuple[list[Answer], dict[str, QueryPlan]]:
    """The answers by registers, and the plans for the other evaluators that can run the query."""
    try:
        found = plans(case.text)
    except QueryError:  # the language refuses the drawn query
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


@_SIZES
def test_any_sequence(examples: int) -> None:
    on_examples(examples, same, cases())


@_SIZES
def test_negated_steps_at_the_ends(examples: int) -> None:
    """Compiled evaluators check them on each match; the cases really run there."""
    compiled = Counter[str]()

    def check(case: Case) -> None:
        expected, others = able(case)
        for name, plan in others.items():
            assert run(plan, case.events)[0] == expected
            compiled[name] += bool(expected) and has_outer_negations(plan.sequence.program)

    on_examples(examples, check, cases(ends=True))
    for name in ("compiled-registers", "compiled-compact"):
        assert compiled[name] or examples < _EXAMPLES


@_SIZES
def test_plain_sequences(examples: int) -> None:
    on_examples(examples, same, cases(plain=True))


@_SIZES
def test_greedy_loops_and_until(examples: int) -> None:
    on_examples(examples, same, cases(strategies=("", "", *_STRATEGIES), loops=True))


@_SIZES
@pytest.mark.parametrize("few", [1, 32])
def test_selection(few: int, examples: int, force: Force) -> None:
    """Selection on the set (more than `few` matches) agrees with selection among listed matches."""
    force(f"few_matches={few}")
    on_examples(examples, same, cases(strategies=_STRATEGIES))


@pytest.mark.thorough
@_SIZES
def test_counted_repetitions(examples: int) -> None:
    """Counted, repetitions have the same answers as unrolled, whatever restarts in the middle."""

    def check(case: Case) -> None:
        try:
            found = counted_plans(case.text)
        except QueryError:  # the language refuses the drawn query
            assume(False)
        assume(found)
        unrolled = compile_query(case.text, options=CompileOptions(evaluator="registers"))
        expected, _ = run(unrolled, case.events)
        half = len({e.time for e in case.events}) // 2
        for plan in found.values():
            assert run(plan, case.events)[0] == expected
            assert run(plan, case.events, restart_after=half)[0] == expected

    skip = ("", "AFTER MATCH SKIP PAST LAST EVENT")
    on_examples(examples, check, cases(strategies=_STRATEGIES, rest=skip))
    on_examples(examples, check, cases(strategies=_STRATEGIES, loops=True))


@_SIZES
def test_a_restart_in_the_middle_changes_nothing(examples: int) -> None:
    def check(case: Case) -> None:
        expected, others = able(case)
        half = len({e.time for e in case.events}) // 2
        for plan in others.values():
            assert run(plan, case.events, restart_after=half)[0] == expected

    skip = ("", "AFTER MATCH SKIP PAST LAST EVENT")
    on_examples(examples, check, cases(strategies=("", "", "MAX"), rest=skip))
    on_examples(examples, check, cases(loops=True))


@_SIZES
def test_a_limit_keeps_some_and_counts_the_others(examples: int) -> None:
    drawn = cases(strategies=_STRATEGIES, select=("*", "*", "DISTINCT ?a ?b"))
    on_examples(examples, limited, drawn)


def limited(case: Case) -> None:
    """Check that each end has as many kept and as many suppressed answers as with registers."""
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
