"""Brackets with `&` and AND, by every evaluator: rows derived by hand, and long streams."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from spaseq.algebra.answers import Answer
from spaseq.automaton.sets.compiled.compact_state import CompactState
from spaseq.automaton.sets.compiled.set_sequencer import SetSequencer
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import UsageError
from spaseq.options import StageOptions
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, Values, batch, plans, query, run
from tests.automaton.sets.test_set_sequencer import KEYED, cut, in_pieces, stream
from tests.sizes import first_of

PATTERNS = {name: f"?x{name} :is ?{name.lower()}" for name in "ABCX"}


@dataclass(frozen=True)
class Row:
    """Words of one second are joined by dots; `a1+b1` is one event that A and B match."""

    events: str
    sequence: str
    answers: str  # in any order
    within: str = "1 HOURS"


ROWS = [
    # `&`: one timestamp, the same event or several.
    Row("a1.b1 a2 b2", "(A & B)", "a1 b1"),
    Row("a1.b1.a2.b2", "(A & B)", "a1 b1 · b1 a2 · a1 b2 · a2 b2"),
    Row("a1+b1 c1", "(A & B); C", "a1 b1 c1"),
    Row("a1.b1.b2 c1 c2", "(A & B): C", "a1 b1 c1 · a1 b2 c1 · a1 b1 c2 · a1 b2 c2"),
    Row("a1.b1.c1 c2.a2.b2", "(A & B & C)", "a1 b1 c1 · c2 a2 b2"),
    Row("a1.a2", "(A & A)", "a1 · a2"),
    Row("a1.b1.c1 a2.c2 b2", "(A; B & C)", "a1 b1 c1"),
    Row("a1.c1.b1", "(A, B & C)", ""),
    Row("c1.a1.b1", "(A, B & C)", "c1 a1 b1"),
    Row("a1.b1.b2 b3", "(A & B+)", "a1 b1 · a1 b2 · a1 b1 b2"),
    # `;` before it: the candidates that begin first at the first time that has any.
    Row("c1 a1 b1 a2.b2.b3 a3.b4", "C; (A & B)", "c1 a2 b2 · c1 a2 b3"),
    Row("c1 b1.a1.a2", "C; (A & B)", "c1 b1 a1 · c1 b1 a2"),
    Row("c1 a1.a2.b1.b2", "C; (A & B)", "c1 a1 b1 · c1 a1 b2"),
    Row("c1.a1.b1", "C; (A & B)", "c1 a1 b1"),
    Row("a1.c1.b1 b2.a2", "C; (A & B)", "c1 b2 a2"),
    Row("c1 a1.x1 a2.b1", "C; X!; (A & B)", ""),
    Row("c1 a1.x1.b1", "C; X!; (A & B)", "c1 a1 b1"),
    # Other operators before it.
    Row("c1 a1.b1 a2.b2", "C: (A & B)", "c1 a1 b1 · c1 a2 b2"),
    Row("c1 a1.x1.b1", "C, (A & B)", "c1 a1 b1"),
    Row("c1 x1.a1.b1", "C, (A & B)", ""),
    Row("a1.b1 a2.b2", "(A & B)+", "a1 b1 · a2 b2 · a1 b1 a2 b2"),
    # AND: in any order, without an event in common.
    Row("a1 x1 b1 a2", "(A AND B)", "a1 b1 · b1 a2"),
    Row("a1+b1 b2", "(A AND B)", "a1 b2"),
    Row("a1 c1 b1 c2", "(A AND B); C", "a1 b1 c2"),
    Row("c1 a1 a2 b1 b2", "C; (A AND B)", "c1 a1 b1 · c1 a1 b2"),
    Row("c1 b1 a1 a2 b2", "C; (A AND B)", "c1 b1 a1 · c1 b1 a2"),
    Row("c1 a1 b1", "C, (A AND B)", "c1 a1 b1"),
    Row("c1 x1 a1 b1", "C, (A AND B)", ""),
    Row("b1 a1 c1 c2", "(A; C AND B)", "b1 a1 c1"),
    Row("a1 b1 c1", "(A, C AND B)", ""),
    Row("b1 a1 c1", "(A, C AND B)", "b1 a1 c1"),
    Row("a1 b1 c1 c2 b2", "A; (B AND C)+", "a1 b1 c1 · a1 b1 c2 · a1 b1 c1 c2 b2"),
    Row("b1 a1 x1 c1 c2", "((A | B) AND C)", "b1 c1 · b1 c2 · a1 c1 · a1 c2"),
    Row("a1 x1 b1 a2", "(A AND B)", "b1 a2", "2 EVENTS"),
    # Both.
    Row("a1.b1 c1", "((A & B) AND C)", "a1 b1 c1"),
    Row("c1+a1.b1", "((A & B) AND C)", ""),
    Row("c1 a1.b1 c2", "((A & B) AND C); X?", "c1 a1 b1 · a1 b1 c2"),
    Row("a1.c1.b1", "((A AND C) & B)", "a1 c1 b1"),
]


def events_of(text: str) -> list[Event]:
    events = []
    for second, together in enumerate(text.split()):
        for k, event in enumerate(together.split(".")):
            solutions: dict[str, list[Values]] = {}
            for word in event.split("+"):
                name = word[0].upper()
                solutions[name] = [{f"x{name}": "<e>", word[0]: f'"{word}"'}]
            events.append(Event(1000 * second, k, 0, solutions))
    return events


def words(row: Row, answer: Answer) -> str:
    """The words of an answer, in the order of the stream."""
    traced = {(item.time, item.k, item.gpm) for item in answer.trace}
    return " ".join(
        word
        for event in events_of(row.events)
        for name, (values,) in event.solutions.items()
        for word in [(values[name.lower()] or "").strip('"')]
        if (event.time, event.k, name) in traced
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.events}, {row.sequence}")
def test_rows(row: Row) -> None:
    used = {name: p for name, p in PATTERNS.items() if name in row.sequence.replace("AND", "")}
    found = plans(query(row.sequence, used, row.within))
    assert {"registers", "compiled-compact"} <= found.keys()
    expected = row.answers.split(" · ") if row.answers else []
    for name, plan in found.items():
        answers, _ = run(plan, events_of(row.events))
        assert sorted(words(row, a) for a in answers) == sorted(expected), name


SEQUENCES = [
    ("A; (B & C)", "30 SECONDS"),
    ("A, (B & C)", "30 SECONDS"),
    ("(A & (B | D)); C", "20 SECONDS"),
    ("(A & B)+; C", "20 SECONDS"),
    ("A; (B AND C); D", "15 SECONDS"),
    ("(A AND B AND C)", "8 SECONDS TUMBLING"),
    ("(A; B AND C+)", "8 SECONDS"),
    ("((A & B) AND C): D", "20 EVENTS"),
    ("D!; (A AND B); D!", "9 SECONDS"),
]


@pytest.mark.each_once
@pytest.mark.parametrize("keys", first_of([1, 3], 1))
@pytest.mark.parametrize("select", ["ALL", "NEXT", "LAST", "STRICT"])
@pytest.mark.parametrize(("sequence", "within"), SEQUENCES)
def test_long_streams(sequence: str, within: str, select: str, keys: int) -> None:
    """The kernel finds what registers find; events come at once, in pieces, with a restart."""
    used = {name: p for name, p in KEYED.items() if name in sequence.replace("AND", "")}
    partition = "PARTITION BY (?k)" if "EVENTS" not in within and "," in sequence else ""
    text = query(sequence, used, within, f"{select} *", partition)
    by = plans(text)
    compiled, events = by["compiled-compact"], crowded(stream("ABCD", 200, keys, 3))
    sequencer = SequenceStage(compiled)._sequencer
    assert isinstance(sequencer, SetSequencer) and isinstance(sequencer._state, CompactState)
    expected, _ = run(by["registers"], events)
    assert run(compiled, events)[0] == expected
    assert in_pieces(SequenceStage(compiled), compiled, cut(events, [1, 40, 7])) == expected
    assert run(compiled, events, restart_after=60)[0] == expected


def crowded(events: list[Event]) -> list[Event]:
    """The events with two or three at each time."""
    made, k = list[Event](), 0
    for event in events:
        time = event.time // 2000 * 2000
        k = k + 1 if made and made[-1].time == time else 0
        made.append(Event(time, k, 0, event.solutions))
    return made


def test_solutions_of_one_event_share_nodes() -> None:
    """Two hundred solutions each of A and B make a few hundred nodes, not forty thousand."""
    plan = plans(query("(A & B); C", {n: PATTERNS[n] for n in "ABC"}))["compiled-compact"]
    many: dict[str, list[Values]] = {
        name: [{f"x{name}": f"<{i}>", name.lower(): '"v"'} for i in range(200)] for name in "AB"
    }
    events = [Event(0, 0, 0, many), Event(1000, 0, 0, {"C": [{"xC": "<c>", "c": '"c"'}]})]
    stage = SequenceStage(plan, StageOptions(5))
    stage.push(batch(plan, events[:1]))
    stage.advance(0)
    sequencer = stage._sequencer
    assert isinstance(sequencer, SetSequencer)
    assert sequencer._state.nodes.used < 3000
    stage.push(batch(plan, events[1:]))
    assert len(stage.close()) == 5
    assert stage.suppressed == 200 * 200 - 5


@pytest.mark.parametrize(
    ("sequence", "head", "reason"),
    [
        ("A; (B & C)", "MAX *", "SELECT MAX compares matches of &, which may share events"),
        ("A; B++; (C AND D)", "*", "AND stands beside a greedy loop or UNTIL"),
        ("A; B{2,5000}; (C & D)", "*", "the repetitions of a sequence with & would be counted"),
        ("A: (B; C | (C & D))", "*", None),
        ("A; (B | (C & D))", "*", "an alternative behind ; has several steps"),
        ("A; (B AND C AND D AND E AND F AND G)", "*", "AND can be in more than 32 stages"),
    ],
)
def test_what_sets_cannot_run(sequence: str, head: str, reason: str | None) -> None:
    names = [n for n in "ABCDEFG" if n in sequence.replace("AND", "")]
    text = query(sequence, {n: f"?x{n} :is ?{n.lower()}" for n in names}, select=head)
    options = CompileOptions(evaluator="compiled-compact")
    if reason is None:
        compile_query(text, options=options)
        return
    with pytest.raises(UsageError, match=reason):
        compile_query(text, options=options)
