"""A stage that goes on from a snapshot gives the same answers, and counts the same, as the one
before, wherever it is stopped."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from random import Random

import pytest
from hypothesis import assume

from spaseq.compile import compile_query
from spaseq.errors import QueryError
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Case, Event, batch, cases, plans, query
from tests.automaton.keyed_streams import KEYED, stream
from tests.automaton.test_agreement import on_examples
from tests.sizes import sizes
from tests.thresholds import Force


def restarted(plan: QueryPlan, stage: SequenceStage) -> SequenceStage:
    other = SequenceStage(plan)
    other.restore(stage.snapshot())
    assert other.live_runs() == stage.live_runs()
    assert other.live_states().waiting == stage.live_states().waiting
    assert other.waits() == stage.waits()
    return other


def check(plan: QueryPlan, events: Sequence[Event], size: int) -> None:
    """Check a stage that is stopped after each `size` times of events, against one that is not."""
    whole, parts, stopped = SequenceStage(plan), [], SequenceStage(plan)
    by_time = [list(own) for _, own in groupby(sorted(events, key=lambda e: e.time), _time)]
    for i in range(0, len(by_time), size):
        some = [event for own in by_time[i : i + size] for event in own]
        for stage in (whole, stopped):
            stage.push(batch(plan, some))
        expected = whole.advance(some[-1].time)
        assert list(stopped.advance(some[-1].time)) == list(expected)
        assert stopped.live_runs() == whole.live_runs()
        assert stopped.live_states().waiting == whole.live_states().waiting
        stopped = restarted(plan, stopped)
        parts += expected
    assert list(stopped.close()) == list(whole.close())


def _time(event: Event) -> int:
    return event.time


def test_a_run_whose_next_instant_is_over_does_not_wait() -> None:
    gpms = {"A": "?a :is []", "B": "[] :is []", "Z": "[] :is []"}
    text = query("A!; B, (B, A | (A, A{0,1000})+[,] UNTIL Z); A", gpms)
    a, b, z = {"A": [{"a": "<o1>"}]}, {"B": [{}]}, {"Z": [{}]}
    solutions = [{}, a | b, {}, b, a | z]
    events = [Event(1000 * i, 0, 0, own) for i, own in enumerate(solutions)]
    stages = {name: (plan, SequenceStage(plan)) for name, plan in plans(text).items()}
    assert stages.keys() == {"registers", "compiled-registers"}
    for event in events:
        waiting = []
        for plan, stage in stages.values():
            stage.push(batch(plan, [event]))
            assert [*stage.advance(event.time)] == []
            waiting.append(stage.live_states().waiting)
        assert waiting[0] == waiting[1], event.time
    for plan, _ in stages.values():
        check(plan, events, 2)


@sizes(2, 8, 200)
@pytest.mark.parametrize("loops", [False, True])
def test_any_sequence(loops: bool, examples: int) -> None:
    def check_all(case: Case) -> None:
        try:
            found = plans(case.text)
        except QueryError:  # the language refuses the drawn query
            assume(False)
        for plan in found.values():
            check(plan, case.events, 1 + len(case.text) % 2)

    skip = ("", "AFTER MATCH SKIP PAST LAST EVENT", "AFTER MATCH SKIP TO NEXT EVENT")
    strategies = ("", "", "NEXT", "MAX", "STRICT")
    on_examples(
        examples, check_all, cases(strategies=strategies, rest=skip, loops=loops, ends=True)
    )


@pytest.mark.each_once
@pytest.mark.parametrize(
    ("sequence", "within"),
    [
        ("A: B: C", "3 SECONDS"),
        ("A; B+; C", "5 SECONDS TUMBLING"),
        ("N!; A; B; N!", "4 SECONDS"),
        ("A; B++", "4 SECONDS"),
        ("A, B: C", "6 EVENTS"),
    ],
)
@pytest.mark.parametrize("compares", [False, True])
def test_many_keys(sequence: str, within: str, compares: bool, force: Force) -> None:
    """Keys and rows are dropped all the time."""
    force("least")
    gpms = {n: KEYED[n] if compares else f"?{n.lower()} :k ?k" for n in "ABCN" if n in sequence}
    events = stream(sorted(gpms), 160, 30, 3, ties=True)
    for plan in plans(query(sequence, gpms, within)).values():
        check(plan, events, 7)


def test_counts_at_one_time_after_a_restart() -> None:
    """C begins the bracket at the next instant; at the one after, of an equal time, none may."""
    gpms = {name: f"?{name.lower()} :is []" for name in "ABC"}
    events = [
        Event(1000, 0, 0, {"A": [{"a": "<e0>"}], "B": [{"b": "<e0>"}]}),
        Event(2000, 0, 0, {"C": [{"c": "<e1>"}]}),
        Event(2000, 1, 0, {"A": [{"a": "<e2>"}], "B": [{"b": "<e2>"}]}),
    ]
    for plan in plans(query("A, (B & C)", gpms)).values():
        check(plan, events, 1)


def test_counts_after_a_restart() -> None:
    """The partial matches of a window of a second, after 2,000 events of 1,000 keys."""
    gpms = {name: f"?{name.lower()} :k ?k" for name in "ABC"}
    plan = compile_query(query("A: B: C", gpms, "1 SECONDS", partition="PARTITION BY (?k)"))
    random, stage = Random(4), SequenceStage(plan)
    events = []
    for i in range(2000):
        name = random.choice("ABC")
        values = {name.lower(): f"<e{i}>", "k": f"<k{random.randrange(1000)}>"}
        events.append(Event(10 * i, 0, 0, {name: [values]}))
    stage.push(batch(plan, events))
    stage.advance(events[-1].time)
    waiting = {(e.time, k["k"]) for e in events[-101:] for k in e.solutions.get("A", ())}
    assert stage.live_states().waiting.total() >= len(waiting) > 0
    other = restarted(plan, stage)
    assert restarted(plan, other).live_states().waiting == stage.live_states().waiting
