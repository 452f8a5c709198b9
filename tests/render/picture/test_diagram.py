"""Counts of partial matches in the drawn automaton, worked out by hand."""

from __future__ import annotations

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.lang.parser import parse
from spaseq.plan.query_plan import EvaluatorName
from spaseq.render.picture.diagram import picture_of
from spaseq.render.picture.live import drawn_counts
from spaseq.render.plan_json import Json, automaton_json
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import batch, letters, query

SEQUENCES = [
    # sequence, events, partial matches by label, solutions by edge
    ("A: B: C", "a1 a2 b1", {"A": 2, "B": 2}, {"A": 2, "B": 1, "C": 0}),
    # Only the next A repeats: a1 and a2 have been repeated, a3 waits.
    ("A{2}: B", "a1 a2 a3", {"A #1": 1, "A #2": 2}, {"A": 3, "B": 0}),
    ("A{2,100}[:]: B", "a1 a2 a3", {"A": 7}, {"A": 3, "B": 0}),  # every selection of the three
    ("A: (B: C | C: B)", "a1 b1 c1 c2", {"A": 1, "B": 1, "C": 2}, {"A": 1, "B": 1, "C": 2}),
]


def drawn(sequence: str, text: str, evaluator: EvaluatorName | None) -> Json:
    gpms, events = letters(text)
    whole = query(sequence, gpms)
    plan = compile_query(whole, options=CompileOptions(evaluator=evaluator))
    stage = SequenceStage(plan)
    stage.push(batch(plan, events))
    stage.advance(events[-1].time)
    picture = picture_of(plan, parse(whole), "")
    return automaton_json(picture, drawn_counts(picture, plan, stage.live_states()))


def collected(diagram: Json) -> tuple[dict[str, int], dict[str, set[int]]]:
    """Partial matches by label where there are some, and the counts of edges by what they take."""
    waiting: dict[str, int] = {}
    counts: dict[str, set[int]] = {}
    takes = {state["id"]: state["takes"] for state in diagram["states"]}
    for edge in diagram["edges"]:
        if edge["count"] is not None:
            counts.setdefault(takes[edge["to"]], set()).add(edge["count"])
    inside = [collected(o) for state in diagram["states"] for o in state["operands"]]
    own = {s["label"]: s["partial_matches"] for s in diagram["states"] if s["partial_matches"]}
    for more, others in [(own, {}), *inside]:
        for label, number in more.items():
            waiting[label] = waiting.get(label, 0) + number
        for name, found in others.items():
            counts.setdefault(name, set()).update(found)
    return waiting, counts


@pytest.mark.parametrize("evaluator", [None, "registers", "compiled-compact"])
@pytest.mark.parametrize(("sequence", "text", "waiting", "counts"), SEQUENCES)
def test_counts(
    sequence: str,
    text: str,
    waiting: dict[str, int],
    counts: dict[str, int],
    evaluator: EvaluatorName | None,
) -> None:
    found, by_edge = collected(drawn(sequence, text, evaluator))
    assert found == waiting
    assert by_edge == {name: {count} for name, count in counts.items()}
