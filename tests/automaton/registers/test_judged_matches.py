"""Matches that Python judges: negated steps and loops that the register kernel cannot test."""

from __future__ import annotations

import pickle
from random import Random

import pytest

from spaseq.automaton.registers.compiled.judged_matches import JudgedMatches
from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.plan.evaluators import for_registers
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, batch, letters, query, run
from tests.automaton.keyed_streams import ODD, agreed, integer, plans, solutions, stream
from tests.automaton.registers.test_loops import STEPS, loop_query
from tests.automaton.registers.test_loops import used as loops_used
from tests.sizes import first_of

STEPS |= {
    "LATER": "?later :k ?k ; :v ?vlater FILTER(?vlater > ?vc + 60)",
    "TIMED": "?timed :k ?k ; :v ?vtimed FILTER(TIMESTAMP(C) > NOW() && ?vtimed > 30)",
    "REPEATED": "?repeated :k ?k ; :v ?vrepeated FILTER(?vrepeated + 40 < AVG(?vr))",
}

SEQUENCES = [
    ("A; (N; E)!; C", "30 SECONDS"),
    ("(N; E)!; A; C", "30 SECONDS"),
    ("A; C; (N; E)!", "20 SECONDS"),
    ("A; C; (N; E)!", "20 SECONDS TUMBLING"),
    ("A; (N, E)!; C", "30 SECONDS"),
    ("A: (N; E)!: PLAIN", "12 EVENTS"),
    ("A; (N | (E; J))!; C", "40 SECONDS"),
    ("A; PLAIN?; LATER!; C", "30 SECONDS"),
    ("A; (PLAIN; LATER!; HIGH)+; C", "60 SECONDS"),
    ("A; TIMED!; C", "30 SECONDS"),
    ("A; (R; REPEATED!; HIGH)+; C", "60 SECONDS"),
    ("A; R+; REPEATED!; C", "30 SECONDS"),
    ("A; B+; B{1,2}+", "60 SECONDS"),
    ("N!; A; R++", "20 SECONDS"),
    ("A; (PLAIN; HIGH)++; C", "40 SECONDS"),
    ("A; (PLAIN; HIGH)+ UNTIL OVER; C", "40 SECONDS"),
    ("A; R+ UNTIL J; B", "30 SECONDS"),
    ("A; (PLAIN; HIGH)++", "30 SECONDS"),
]


@pytest.mark.each_once
@pytest.mark.parametrize("keys", [1, 3])
@pytest.mark.parametrize(("sequence", "within"), SEQUENCES)
def test_the_answers_are_those_of_python(sequence: str, within: str, keys: int) -> None:
    """In pieces, and after restarts."""
    compiled, python = plans(loop_query(sequence, within))
    tested = for_registers(compiled)
    assert not isinstance(tested, str)
    assert tested.judged
    events = stream(_names(sequence), 200, keys, 5, ties=True)
    assert agreed(compiled, python, events, pieces=[37, *[1] * 8], restarts=[60, 120])


@pytest.mark.each_once
@pytest.mark.parametrize("odd", first_of(sorted(ODD), 2))
@pytest.mark.parametrize(
    ("sequence", "within"), [("A; (N; E)!; C", "40 SECONDS"), ("A; C; (N; E)!", "20 SECONDS")]
)
def test_matches_that_wait_are_handed_over(odd: str, sequence: str, within: str) -> None:
    compiled, python = plans(loop_query(sequence, within))
    names, crossing = _names(sequence), 0
    for seed in range(4):
        events, random = stream(names, 90, 2, seed), Random(seed)
        for i in range(60):
            value = integer(random.randrange(100)) if i % 7 else ODD[odd]
            time, name = events[-1].time + 1000, random.choice(names)
            events.append(Event(time, 0, 0, {name: solutions(random, name, value, 2)}))
        answers = agreed(compiled, python, events, pieces=[30], restarts=[80, 120])
        crossing += sum(a.first[0] < 90_000 <= a.end[0] for a in answers)
    assert crossing


@pytest.mark.parametrize(
    ("sequence", "text", "answers"),
    [
        ("A; (B; C)!; D", "a b d a c b d a b c d", ["0 2", "3 6"]),
        ("(B; C)!; A", "b c a x x x x x x x b a c a", ["11"]),
        ("A; (B; C)!", "a b a c", ["2"]),
        ("A; (B, C)!; D", "a b a c d", ["0 4", "2 4"]),
        ("A; (B; C)++; D", "a b c b d a b c b c d", ["0 1 2 4", "5 6 7 8 9 10"]),
    ],
)
def test_small_streams(sequence: str, text: str, answers: list[str]) -> None:
    """Letters, one event a second, within 8 seconds; answers are the places of their events."""
    gpms, events = letters(text, "ABCD")
    used = {name: gpm for name, gpm in gpms.items() if name in sequence}
    compiled, _ = plans(query(sequence, used, "8 SECONDS"))
    found = run(compiled, events)[0]
    assert [" ".join(str(item.time // 1000) for item in a.trace) for a in found] == answers


def test_memory_does_not_grow_with_the_stream() -> None:
    plan, _ = plans(loop_query("A; C; (N; E)!", "20 SECONDS"))
    stage, sizes = SequenceStage(plan), []
    sequencer = stage._sequencer
    assert isinstance(sequencer, RunSequencer)
    assert isinstance(sequencer._outer, JudgedMatches)
    for i in range(40):
        events = [
            Event(event.time + 2_000_000 * i, event.k, event.stream, event.solutions)
            for event in stream(_names("A; C; (N; E)!"), 300, 5, i)
        ]
        stage.push(batch(plan, events))
        stage.advance(events[-1].time)
        sizes.append(len(pickle.dumps(sequencer._outer.snapshot())))
    assert max(sizes[20:]) <= 1.5 * max(sizes[:20])


def _names(sequence: str) -> list[str]:
    return [*loops_used(sequence)]
