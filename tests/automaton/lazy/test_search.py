"""Counts of the candidates that the lazy evaluator checks and keeps, for different rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from rdflib import Literal, URIRef

from spaseq.automaton.run.work_counts import WorkCounts
from spaseq.compile import CompileOptions, compile_query
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import STREAMS, Event, batch, query
from tests.automaton.lazy.lazy_cases import Order, solutions, with_order
from tests.oracle.draw_events import term

NUMBER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def gpm(name: str, condition: str = "", key: str = "") -> str:
    low = name.lower()
    return f"?{low} :value ?v{low} {key} {f'FILTER({condition})' if condition else ''}"


def event(second: int, name: str, value: int, key: int = 0) -> Event:
    low = name.lower()
    values: dict[str, str | None] = {low: f"<{low}{second}>", f"v{low}": NUMBER.format(value)}
    return Event(1000 * second, 0, 0, {name: [{**values, "k": f"<k{key}>"}]})


def words(text: str) -> list[Event]:
    """`a5 b3`: an A of value 5, a second later a B of value 3."""
    return [event(i, w[0].upper(), int(w[1:])) for i, w in enumerate(text.split())]


def drawn(weights: dict[str, float], count: int, start: int = 0, keys: int = 1) -> list[Event]:
    """One event a second, its GPM drawn by weight."""
    random = Random(start)
    names = random.choices([*weights], [*weights.values()], k=count)
    return [
        event(start + i, name, random.randrange(100), random.randrange(keys))
        for i, name in enumerate(names)
    ]


def work(
    sequence: str,
    gpms: dict[str, str],
    events: Sequence[Event],
    evaluator: str = "lazy",
    order: Order = None,
    within: str = "1 HOURS",
) -> tuple[WorkCounts, int]:
    """The work counts of an evaluator, and the number of answers."""
    plan = compile_query(query(sequence, gpms, within), options=CompileOptions(evaluator=evaluator))
    stage = SequenceStage(with_order(plan, order))
    stage.push(batch(plan, events))
    found = stage.close()
    return stage.work, len(found)


FALLING = {"A": gpm("A"), "B": gpm("B", "?vb < ?va"), "C": gpm("C", "?vc < ?vb")}


def test_every_candidate_is_counted() -> None:
    """The search from c checks both Bs and, for the B above c, both As before it."""
    lazy, answers = work("A : B : C", FALLING, words("a5 a1 b3 b0 c2"))
    assert (lazy, answers) == (WorkCounts(candidates=5, conditions=4), 1)
    eager, _ = work("A : B : C", FALLING, words("a5 a1 b3 b0 c2"), "registers")
    # Two runs begin with an A; each checks both Bs; a5 b3, a5 b0 and a1 b0 check c.
    assert eager == WorkCounts(candidates=9, conditions=7)


def test_a_rare_last_step_costs_a_small_part_of_arrival_order() -> None:
    key = "; :key ?k"
    gpms = {
        "A": gpm("A", key=key),
        "B": gpm("B", "?vb < ?va", key),
        "C": gpm("C", "?vc < ?vb", key),
    }
    stream = drawn({"A": 1000, "B": 300, "C": 1}, 5000, keys=20)
    lazy, found = work("A : B : C", gpms, stream, within="20 MINUTES")
    eager, expected = work("A : B : C", gpms, stream, "registers", within="20 MINUTES")
    assert found == expected > 0
    assert lazy.candidates * 20 < eager.candidates
    assert lazy.conditions * 20 < eager.conditions


def test_steps_that_cannot_be_last_cost_nothing_by_themselves() -> None:
    lazy, _ = work("A : B : C", FALLING, drawn({"A": 1, "B": 1}, 500))
    assert lazy == WorkCounts()


def test_a_step_that_nothing_is_stored_of_ends_the_search() -> None:
    lazy, _ = work("A : B : C", FALLING, [*drawn({"A": 1}, 500), event(600, "C", 1)])
    assert lazy == WorkCounts(candidates=1)  # c itself


def test_a_negated_step_is_checked_as_soon_as_what_it_depends_on_is_there() -> None:
    """The search skips the 200 Ds between b and c: N lies between the only A and the only B."""
    stream = [*words("a5 n7 b3"), *(event(10 + i, "D", i) for i in range(200)), event(300, "C", 9)]
    gpms = {name: gpm(name) for name in "ABCD"} | {"D": gpm("D", "?vd > ?va")}
    for condition in ("?vn > ?va", "?vn > ?vb", "?vn < ?vc"):
        lazy, found = work("A : N! : B : D : C", {**gpms, "N": gpm("N", condition)}, stream)
        assert found == 0
        assert lazy == WorkCounts(candidates=4, conditions=1, searches=1)
    late, found = work("A : N! : B : D : C", {**gpms, "N": gpm("N", "?vn > ?vd")}, stream)
    assert found == 200 - 7  # n7 is above the Ds up to 6
    assert late.searches == 200 - 6  # for each D above a5


def flipping() -> list[Event]:
    """First As are frequent and Bs are rare; then Bs are frequent and As are rare."""
    return [
        *drawn({"A": 20, "B": 1, "C": 4}, 600),
        *drawn({"A": 1, "B": 20, "C": 4}, 600, 2000),
    ]


def test_the_order_follows_the_rates() -> None:
    """Rates flip half-way; every fixed order does more work."""
    gpms = {name: gpm(name) for name in "AB"}
    gpms["C"] = gpm("C", "?vc > ?va + 80) FILTER(?vc > ?vb + 80")
    counts = {
        order: work("A : B : C", gpms, flipping(), order=order, within="10 MINUTES")
        for order in (None, (0, 1, 2), (1, 0, 2))
    }
    adaptive, answers = counts.pop(None)
    for fixed, found in counts.values():
        assert found == answers > 0
        assert adaptive.candidates < 0.7 * fixed.candidates


def test_a_forced_order_is_kept_to() -> None:
    """The search from c checks the only B and then the As; or the three As, and a B for each."""
    stream = words("a1 a2 a3 b0 c5")
    gpms = {name: gpm(name) for name in "AB"} | {"C": gpm("C", "?vc > ?va + ?vb")}
    assert work("A : B : C", gpms, stream)[0].candidates == 1 + 1 + 3
    assert work("A : B : C", gpms, stream, order=(1, 0, 2))[0].candidates == 1 + 1 + 3
    assert work("A : B : C", gpms, stream, order=(0, 1, 2))[0].candidates == 1 + 3 + 3


def test_filters_on_one_event_come_before_what_is_stored() -> None:
    """9 of 100 Bs are above 90; the part of the FILTER that uses A is evaluated later."""
    gpms = {"A": gpm("A"), "B": gpm("B", "?vb > 90 && ?vb < ?va"), "C": gpm("C")}
    plan = compile_query(query("A : B : C", gpms), options=CompileOptions(evaluator="lazy"))
    assert plan.patterns.gpms[1].name == "B"
    assert len(plan.patterns.gpms[1].conditions) == 1
    value = URIRef("http://example/value")
    events = [(1000 * i, None, [(term(f"e{i}"), value, Literal(i))]) for i in range(100)]
    rows = solutions(plan, {STREAMS[0]: events})
    assert [int((b.gpm == 1).sum()) for b in rows] == [9]


def stored(sequence: str, gpms: dict[str, str], events: Sequence[Event]) -> int:
    plan = compile_query(query(sequence, gpms), options=CompileOptions(evaluator="lazy"))
    stage = SequenceStage(plan)
    stage.push(batch(plan, events))
    stage.advance(events[-1].time)
    return stage.live_runs()


def test_a_step_that_is_always_the_last_is_not_stored() -> None:
    stream = [*drawn({"A": 1, "B": 1}, 40), *drawn({"C": 1}, 100, 100)]
    gpms = {"A": gpm("A"), "B": gpm("B"), "C": gpm("C", "?vc > ?va")}
    assert stored("A : B : C", gpms, stream) <= 40 + 40
    assert stored("(A AND C)", gpms, stream) > 100
    assert stored("A : C! : B", gpms, stream) > 100
    assert stored("A : B : C!", gpms, stream) > 100


def test_what_is_kept_is_bounded_by_what_is_stored() -> None:
    """Memory does not depend on the number of partial matches: about 10,000 before each D."""
    gpms = {
        "A": gpm("A"),
        "B": gpm("B", "?vb != ?va"),
        "C": gpm("C", "?vc != ?va && ?vc != ?vb"),
        "D": gpm("D", "?vd > ?va + ?vb + ?vc + 200"),
    }
    plan = compile_query(query("A : B : C : D", gpms), options=CompileOptions(evaluator="lazy"))
    stage = SequenceStage(plan)
    stream = [*drawn({"A": 1, "B": 1, "C": 1}, 120), *drawn({"D": 1}, 4, 500)]
    most = 0
    for second in _seconds(stream):
        stage.push(batch(plan, [e for e in stream if e.time == second]))
        stage.advance(second)
        most = max(most, stage.live_runs())
    assert stage.work.candidates > 100 * len(stream)
    assert most <= 6 * len(stream)


def _seconds(stream: Iterable[Event]) -> list[int]:
    return sorted({e.time for e in stream})
