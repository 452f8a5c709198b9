"""The numbers of partial matches by state, and of solutions taken by GPM, worked out by hand."""

from __future__ import annotations

import pytest

from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, batch, counted_plans, letters, plans, query

CASES = [
    # sequence, events, partial matches by the last step taken, solutions taken
    ("A: B: C", "a1 a2 b1 b2", {"A": 2, "B": 4}, {"A": 2, "B": 2}),
    ("A: B: C", "b1 a1 b2 c1 a2", {"A": 2, "B": 1}, {"A": 2, "B": 1, "C": 1}),
    ("A; B; C", "a1 a2 b1 a3", {"A": 1, "B": 2}, {"A": 3, "B": 1}),
    ("A; B; C", "a1 b1 c1 c2", {}, {"A": 1, "B": 1, "C": 1}),
    ("A: B; C", "a1 b1 c1 c2 b2", {"A": 1, "B": 1}, {"A": 1, "B": 2, "C": 1}),
    ("A: (B | C)", "a1 a2 b1 c1 c2", {"A": 2}, {"A": 2, "B": 1, "C": 2}),
    ("A: B+: C", "a1 b1 b2", {"A": 1, "B": 3}, {"A": 1, "B": 2}),
]


def by_step(stage: SequenceStage) -> dict[str, int]:
    """The partial matches by the GPMs of the edges that lead to their states."""
    live = stage.live_states()
    automaton = live.program.automaton
    into = {e.target: e.label for state in automaton.states for e in state.edges}
    found: dict[str, int] = {}
    for (number, state), count in live.waiting.items():
        assert number == automaton.id
        name = getattr(into[state], "name", "bracket")
        found[name] = found.get(name, 0) + count
    return {name: count for name, count in found.items() if count}


def taken(stage: SequenceStage, plan: QueryPlan) -> dict[str, int]:
    names = [gpm.name for gpm in plan.patterns.gpms]
    return {names[gpm]: n for gpm, n in sorted(stage.live_states().taken.items())}


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(("sequence", "text", "waiting", "solutions"), CASES)
def test_states(
    sequence: str, text: str, waiting: dict[str, int], solutions: dict[str, int], one_by_one: bool
) -> None:
    gpms, events = letters(text)
    whole = query(sequence, gpms)
    found = plans(whole)
    assert {"registers", "compiled-compact"} <= found.keys()
    for plan in [*found.values(), *counted_plans(whole).values()]:
        stage = fed(plan, events, one_by_one)
        assert (by_step(stage), taken(stage, plan)) == (waiting, solutions), plan.sequence.evaluator


def fed(plan: QueryPlan, events: list[Event], one_by_one: bool) -> SequenceStage:
    stage = SequenceStage(plan, StageOptions())
    for some in [[e] for e in events] if one_by_one else [events]:
        stage.push(batch(plan, some))
        list(stage.advance(some[-1].time))
    return stage


def test_what_the_window_has_left_does_not_wait() -> None:
    """The window of 3 seconds that ends at 4 s, at b2, begins at 1 s: after a1, at a2."""
    gpms, events = letters("a1 a2 b1 c1 b2")
    for name, plan in plans(query("A: B: C", gpms, "3 SECONDS")).items():
        stage = fed(plan, events, True)
        assert by_step(stage) == {"A": 1, "B": 2}, name


def test_partial_matches_are_counted_though_there_are_more_than_could_be_listed() -> None:
    """After n solutions of a loop under `:`, any of 2^n - 1 selections is a partial match."""
    gpms, events = letters(" ".join(f"a{i}" for i in range(70)))
    stage = fed(plans(query("A+[:]: B", gpms))["compiled-compact"], events, False)
    (live,) = by_step(stage).values()
    assert live == pytest.approx(2**70 - 1, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [("a1", 1, 0), ("b1", 0, 1), ("b1 a1 a2", 2, 1)],
)
def test_a_bracket_shows_how_far_its_operands_are(text: str, left: int, right: int) -> None:
    """`(A AND B)`: a partial match is in the operand that has been taken."""
    gpms, events = letters(text)
    plan = plans(query("(A AND B): C", gpms))["compiled-compact"]
    live = fed(plan, events, False).live_states()
    (edge,) = live.program.automaton.states[0].edges
    one, other = (operand.id for operand in edge.label.operands)  # type: ignore[union-attr]
    inside = (live.waiting.get((one, 1), 0), live.waiting.get((other, 1), 0))
    complete = live.waiting.get((live.program.automaton.id, edge.target), 0)
    assert complete == text.count("a") * text.count("b")
    assert inside == (left, right)


@pytest.mark.parametrize("sequence", ["A: B; C!", "A: (B | C); D!"])
def test_matches_that_wait_for_the_close_of_their_window_are_in_its_last_state(
    sequence: str,
) -> None:
    gpms, events = letters("a1 b1 a2 b2", "ABCD")
    for name, plan in plans(query(sequence, gpms, "10 SECONDS")).items():
        stage = fed(plan, events, False)
        last = "bracket" if "|" in sequence else "B"
        assert by_step(stage) == {"A": 2, last: 3}, name
        list(stage.advance(10_500))  # the window of a1 has closed
        assert by_step(stage)[last] == 1, name
        list(stage.advance(13_000))
        assert last not in by_step(stage), name
