"""Alternatives on compiled registers, against registers in Python."""

from __future__ import annotations

from random import Random

import pytest

from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import UsageError
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, query
from tests.automaton.keyed_streams import (
    ODD,
    agreed,
    integer,
    places,
    plans,
    solutions,
    stream,
    used,
)
from tests.sizes import first_of

SEQUENCES = [
    ("A; (B | C)", "30 SECONDS"),
    ("A: (B | C); E?", "15 SECONDS"),
    ("A, (B | C), N", "40 SECONDS"),
    ("A; (B | C | E); N", "40 SECONDS"),
    ("A; ((B | N) | C); E", "40 SECONDS"),
    ("A; (B | C)+; N", "12 SECONDS"),
    ("A; N!; (B | E)", "40 SECONDS"),
    ("A;[3 SECONDS] (B | C)", "40 SECONDS"),
    ("(A | N); B", "20 SECONDS"),
    ("C!; A; (B | E); C!", "20 SECONDS"),
    ("A; (B | A); C", "20 SECONDS TUMBLING"),
    ("A, (B | C)", "9 EVENTS"),
    ("A: (B; C | E): N", "25 SECONDS"),
    ("A: (B; C | E; N)", "20 SECONDS"),
    ("A:[3 SECONDS] (B; E | C)", "20 SECONDS TUMBLING"),
    ("A, (B; C | E)", "60 SECONDS"),
    ("(A; B | A; E; N)", "30 SECONDS"),
    ("(A; B+ | A, C)", "15 SECONDS"),
    ("(A; B+ | A: C)", "15 EVENTS"),
    ("(A; R++; B | A: C): N", "15 SECONDS"),
    ("(A; R+ UNTIL N; B | A: C)", "20 SECONDS"),
    ("A: (B; E? | E): N", "12 SECONDS"),
    ("A: (B: (C | N; E) | E): N", "25 SECONDS"),
    ("C!; (A; B | A; N!; E); C!", "30 SECONDS"),
    ("A: (B+ UNTIL N | C; E)", "20 SECONDS"),
    ("A: (R{2,} UNTIL N; C | B; E)", "40 SECONDS"),
    ("A, (B+ UNTIL N; C | E)", "30 SECONDS"),
    ("A; (B; C | E)", "30 SECONDS"),
    ("A; (B; C | N): E", "25 SECONDS"),
    ("A; (B: C | N; E | E); N", "20 SECONDS"),
    ("A;[4 SECONDS] (B; C | N; E)", "20 SECONDS TUMBLING"),
    ("A; (B; (C | E) | C; E); N", "40 SECONDS"),
    ("A; ((B | E); C | N)", "25 SECONDS"),
    ("A; (B+; C | E)+; N", "9 SECONDS"),
    ("A; (B, C | E; N)", "30 SECONDS"),
    ("A; (B; C | E)", "12 EVENTS"),
    ("A; N!; (B; C | E); N!", "25 SECONDS"),
    ("A; (B; N!; C | E; C): N", "25 SECONDS"),
    ("A; (B; R++; N | E; C)", "20 SECONDS"),
    ("A; (B+ UNTIL N; C | E)", "25 SECONDS"),
    ("A; (J; C | B; J)", "40 SECONDS"),
    ("A: ((B; C | N) | E); N", "20 SECONDS"),
    ("A; ((B; C | N) | E)", "25 SECONDS"),
    ("A, ((B: C) | (N | E)), B", "60 SECONDS"),
    ("((A; B) | (A AND N)); C", "12 SECONDS"),
    ("A; (N | (B & C))", "25 SECONDS"),
    ("A: (N | (C AND E))", "12 SECONDS"),
    ("(A | (A; B)): N", "12 EVENTS"),
    ("A; (B; E | N; E)+; C", "30 SECONDS"),
    ("A: (E | (B: E) | B){2}[:]; N", "12 SECONDS"),
    ("(A; B | A)+; C", "12 SECONDS"),
]
"""Brackets of single GPMs; those of several steps become ways of their own."""


@pytest.mark.parametrize("keys", first_of([1, 3], 1))
@pytest.mark.parametrize(("sequence", "within"), SEQUENCES)
def test_long_streams(sequence: str, within: str, keys: int) -> None:
    partition = "PARTITION BY (?k)" if "," in sequence else ""
    patterns = used(sequence)
    if sequence == "(A | N); B":
        patterns["N"] = "?n :k ?k ; :v ?va"
    if sequence == "A; (B | C)+; N":
        patterns["C"] = "?c :k ?k ; :v ?vc FILTER(?vc < ?va)"
    text = query(sequence, patterns, within, partition=partition)
    compiled, python = plans(text)
    assert isinstance(SequenceStage(compiled)._sequencer, RunSequencer)
    events = stream(sorted(patterns), 400, keys, 5, ties=True)
    for event in events:
        for found in event.solutions.get("N", ()):
            found["va"] = found["vn"]
    assert agreed(compiled, python, events) or keys > 1  # few match then


@pytest.mark.each_once
@pytest.mark.parametrize("odd", ["a text", "beyond 2^53", "a float"])
@pytest.mark.parametrize(
    "sequence",
    [
        "A; (B | C); N",
        "A, (B | C)",
        "A; (B | C)+; N",
        "A: (B; C | N)",
        "(A; B | A: C)",
        "A; (B; C | N: E)",
        "A; (B; C | E); N",
        "A; ((B; C | E) | N)",
        "(A; B | A)+; C",
    ],
)
def test_the_evaluator_in_python_goes_on(odd: str, sequence: str) -> None:
    """A run that waits for several alternatives goes on as one run."""
    partition = "PARTITION BY (?k)" if "," in sequence else ""
    compiled, python = plans(query(sequence, used(sequence), "20 SECONDS", partition=partition))
    names, random = sorted(used(sequence)), Random(11)
    events = stream(names, 100, 1, 2)
    for _ in range(100):
        name = random.choice(names)
        value = ODD[odd] if random.random() < 0.1 else integer(random.randrange(100))
        given = solutions(random, name, value, 1)
        events.append(Event(events[-1].time + 1000, 0, 0, {name: given}))
    assert agreed(compiled, python, events, pieces=[30], restarts=[])


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [
        ("A; (B; (C; N | E) | E)", "the matches of an alternative of several steps compete"),
        ("A; (B; E | B: B)+", "the steps of a repetition join on"),
    ],
)
def test_what_is_not_compiled(sequence: str, reason: str) -> None:
    patterns = {name: p.replace(":k ?k ; ", "") for name, p in used(sequence).items()}
    text = query(sequence, patterns)
    with pytest.raises(UsageError, match=reason):
        compile_query(text, options=CompileOptions(evaluator="compiled-registers"))


@pytest.mark.parametrize(
    ("sequence", "letters_of_events", "answers"),
    [
        ("A; (B; C | D)", "a b b c", ["0 1 3"]),
        ("A; (B; C | D)", "a b d c", ["0 2", "0 1 3"]),
        ("A; (B; C | D)", "a d b c", ["0 1"]),
        ("A; (B; C | B; D)", "a b c d", ["0 1 2", "0 1 3"]),
        ("A; (B: C | D)", "a b c b c", ["0 1 2", "0 1 4"]),
        ("A; (B; N!; C | D)", "a b n b c", []),
        ("A; N!; (B; C | D)", "a b n d c", ["0 1 4"]),
        ("A; (B; C | D)+", "a d b c", ["0 1", "0 1 2 3"]),
        ("A; (B AND C)", "a b b c c", ["0 1 3", "0 1 4"]),
        ("A; (B AND C)", "a c b b", ["0 1 2", "0 1 3"]),
        ("A; (B; D AND C)", "a b c b d", ["0 1 2 4"]),
    ],
)
def test_the_candidates_of_a_bracket_compete(
    sequence: str, letters_of_events: str, answers: list[str]
) -> None:
    """Letters, one event a second; answers are the places of their events."""
    for found in places(sequence, letters_of_events, "30 SECONDS"):
        assert found == answers
