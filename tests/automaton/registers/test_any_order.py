"""`&` and AND on compiled registers, against registers in Python."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from spaseq.automaton.program import operand_places
from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import UsageError
from spaseq.plan.evaluators import for_registers
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, Values, letters, query, run
from tests.automaton.keyed_streams import (
    KEYED,
    ODD,
    agreed,
    integer,
    places,
    plans,
    solutions,
    stream,
)
from tests.sizes import first_of

PATTERNS = KEYED | {
    "N": "?n :k ?k ; :v ?vn",
    "X": "?x :k ?k ; :v ?vx FILTER(?vx > ?va)",
    "W": "?w :k ?k ; :v ?vw FILTER(?vw > MAX(?vr))",
    "Y": "?y :k ?k ; :v ?vy FILTER(COALESCE(?vy > PREV(?vy), ?vy > ?va))",
    "Z": "?z :k ?k ; :v ?vz FILTER(NOW() > TIMESTAMP(B))",
    "Q": "?q :k ?k ; :v ?vq FILTER(!BOUND(?va) || ?vq > ?va)",
    "M": "?m :k ?k ; :v ?vm FILTER(COUNT(?vy) != 1 && ?vm > ?vn)",
    "G": "?g :k ?k ; :v ?vg FILTER(?va - 60 < ?vg && ?vg <= ?va + 20)",
    "H": "?h :k ?k ; :v ?vh FILTER(ABS(?va - 50) = ?vh || ?vh > ?va)",
}


def names_of(sequence: str) -> list[str]:
    """The GPMs of a sequence."""
    return sorted({*PATTERNS} & {*re.sub("AND|SECONDS", "", sequence)})


def text(sequence: str, within: str = "20 SECONDS") -> str:
    """A query whose GPMs are all on one stream."""
    keyed = any(part in sequence for part in (",", "){", ")+["))
    partition = "PARTITION BY (?k)" if keyed else ""
    used = {name: PATTERNS[name] for name in names_of(sequence)}
    return query(sequence, used, within, partition=partition).replace("ON S0, S1", "ON S0")


def events(sequence: str, keys: int, size: int = 300) -> list[Event]:
    """Events of one stream; some follow each other at one time."""
    made = list[Event]()
    for event in stream(names_of(sequence), size, keys, 7):
        time = event.time // 2000 * 2000
        k = made[-1].k + 1 if made and made[-1].time == time else 0
        made.append(Event(time, k, 0, event.solutions))
    return made


CHECKED = [
    ("(A; C!; B AND N)", "12 SECONDS"),
    ("(A: C!: B & A)", "12 SECONDS"),
    ("(A; R++; B AND N)", "12 SECONDS"),
    ("(A; R+ UNTIL E AND N); B", "30 SECONDS"),
    ("(A, (N; E)!, B AND J)", "20 SECONDS"),
    ("A; (B; E!; C AND N)", "25 SECONDS"),
]
"""Sequences with negated steps and loops in operands."""

LATE = [
    ("(A: R+ AND W)", "8 SECONDS"),
    ("(A AND Y+[:])", "7 SECONDS"),
    ("(A: B AND Z): N", "10 SECONDS"),
    ("(Q AND A)", "12 SECONDS"),
    ("((N AND M) AND (A: Y{1,2}[:]))", "6 SECONDS"),
    ("(A AND Y+[:]){2}[:]", "4 SECONDS"),
    ("(R+[:] & W); N", "20 SECONDS"),
    ("(A AND H+[:])", "7 SECONDS"),
    ("(A: B AND (N: G)+[:])", "7 SECONDS"),
    ("(A AND (G?: N)+[:])", "7 SECONDS"),
]
"""Sequences whose FILTERs must see the operands in order."""

OF_REPETITIONS = [
    ("(A AND X+[:])", "8 SECONDS"),
    ("((A AND N AND B) AND X+[:])", "6 SECONDS"),
    ("(N AND (A AND G+[:])); E", "6 SECONDS"),
    ("(A & X{1,3}[:])", "12 SECONDS"),
    ("(A: B AND (G: N)+[:])", "7 SECONDS"),
]
"""Sequences with FILTERs of repetitions that registers decide."""


@pytest.mark.parametrize("keys", first_of([1, 3], 1))
@pytest.mark.parametrize(
    ("sequence", "within"),
    [
        ("(A AND N); B", "20 SECONDS"),
        ("(A AND N): B; C", "12 SECONDS"),
        ("A, (B AND C)", "40 SECONDS"),
        ("A: (B AND C); E?", "12 SECONDS"),
        ("A: (B AND C AND S); N", "60 SECONDS"),
        ("((A AND N) | (A: N)); B", "20 SECONDS TUMBLING"),
        ("A: N!: (B AND C)", "30 SECONDS"),
        ("(A AND N); B", "9 EVENTS"),
        ("(A AND B); C", "20 SECONDS"),
        ("A: (N AND B AND L)", "15 SECONDS"),
        ("A: X!: (N AND B)", "20 SECONDS"),
        ("X!; (A AND N); B", "20 SECONDS"),
        ("(A; B AND N); C", "12 SECONDS"),
        ("(A; B AND L AND N)", "12 SECONDS"),
        ("(A; B+ AND N)", "8 SECONDS"),
        ("A: (B & N)", "12 SECONDS"),
        ("(A; B & A); C", "20 SECONDS"),
        ("(A & B), N", "20 SECONDS"),
        ("(A ;[5 SECONDS] N AND B)", "12 SECONDS"),
        ("(A :[4 SECONDS] N AND B); C", "12 SECONDS"),
        ("(A; B+[;3 SECONDS] AND N)", "10 SECONDS"),
        ("(A; C!;[3 SECONDS] B AND N)", "12 SECONDS"),
        ("(A : B+ AND N : S AND X)", "12 SECONDS"),  # 87 edges
        ("A; (B AND C)", "30 SECONDS"),
        ("A; (B AND C); E?", "20 SECONDS"),
        ("A; (B & N)", "20 SECONDS"),
        ("A; (B; C AND N); E", "25 SECONDS"),
        ("A;[5 SECONDS] (B AND C AND S); N", "60 SECONDS"),
        ("A; (B AND C)+; N", "8 SECONDS"),
        ("A; (B AND C)", "12 EVENTS"),
        ("A; ((B AND C) | N; E); N", "20 SECONDS TUMBLING"),
        *CHECKED,
        *LATE,
        *OF_REPETITIONS,
    ],
)
def test_long_streams(sequence: str, within: str, keys: int) -> None:
    compiled, python = plans(text(sequence, within))
    assert isinstance(SequenceStage(compiled)._sequencer, RunSequencer)
    found = agreed(compiled, python, events(sequence, keys), restarts=[90])
    assert found or keys > 1  # few match then


@pytest.mark.parametrize(("sequence", "within"), CHECKED)
def test_matches_are_judged(sequence: str, within: str) -> None:
    compiled, _ = plans(text(sequence, within))
    tested = for_registers(compiled)
    assert not isinstance(tested, str)
    assert tested.judged


@pytest.mark.parametrize(
    ("sequence", "asks"),
    [*((given, False) for given, _ in OF_REPETITIONS), *((given, True) for given, _ in LATE[-3:])],
)
def test_registers_decide_late_filters(sequence: str, asks: bool) -> None:
    compiled, _ = plans(text(sequence))
    tested = for_registers(compiled)
    assert not isinstance(tested, str)
    assert tested.reads_whole_runs == asks


@pytest.mark.parametrize(
    ("sequence", "letters_of_events", "answers"),
    [
        ("(A; N!; B AND C)", "a c n b", []),
        ("(A; N!; B AND C)", "a n c b", []),
        ("(A; N!; B AND C)", "c n a b n", ["0 2 3"]),
        ("(A; B++; D AND C)", "a b c b d", ["0 1 2 3 4"]),
        ("(A; B+ UNTIL N AND C)", "a b n c b", ["0 1 3"]),
        ("(A ;[2 SECONDS] B AND C)", "a c b", ["0 1 2"]),
        ("(A ;[2 SECONDS] B AND C)", "a c n b", []),
        ("(A :[2 SECONDS] B AND C)", "a c b n b", ["0 1 2"]),
        ("(A ;[2 SECONDS] B AND C)", "c n n a b", ["0 3 4"]),
        ("(A; B AND C ;[1 SECONDS] D)", "c a n b d", []),
        ("((A ;[2 SECONDS] B AND C) :[1 SECONDS] D AND N)", "a c b n d", []),
        ("((A ;[2 SECONDS] B AND C) :[2 SECONDS] D AND N)", "a c b n d", ["0 1 2 3 4"]),
    ],
)
def test_what_stands_between_steps_begins_at_their_operand(
    sequence: str, letters_of_events: str, answers: list[str]
) -> None:
    """Letters, one event a second, within 8 seconds; answers are the places of their events."""
    for found in places(sequence, letters_of_events, "8 SECONDS"):
        assert found == answers


@pytest.mark.parametrize(
    ("sequence", "letters_of_events", "answers"),
    [
        ("(A; B AND C)", "a c b2 b1", []),
        ("(A; B AND C)", "a c b1 b2", ["0 1 2"]),
        ("(A: B AND C)", "a c b2 b1", ["0 1 3"]),
        ("(A; B AND C AND D)", "a c b2 d b1", []),
        ("(A; B AND C AND D)", "a c d b2 b1", []),
        ("(A; B AND C AND D)", "a c d b1 b2", ["0 1 2 3"]),
        ("(A; B AND C AND D)", "a d c b1 b2", ["0 1 2 3"]),
        ("(A: B AND C AND D)", "a c d b2 b1", ["0 1 2 4"]),
    ],
)
def test_a_filter_of_the_other_operand_does_not_choose_what_comes_next(
    sequence: str, letters_of_events: str, answers: list[str]
) -> None:
    """C asks for b1, and stands before it."""
    gpms, events = letters(letters_of_events, "".join(names_of(sequence)))
    gpms["C"] += ' FILTER(?b = "b1")'
    for plan in plans(query(sequence, gpms, "8 SECONDS").replace("ON S0, S1", "ON S0")):
        found = run(plan, events)[0]
        assert [" ".join(str(item.time // 1000) for item in a.trace) for a in found] == answers


@pytest.mark.each_once
@pytest.mark.parametrize("odd", ["a text", "beyond 2^53", "a float"])
@pytest.mark.parametrize(
    ("sequence", "within"),
    [
        ("(A AND N); B", "20 SECONDS"),
        ("A: (B AND C); N", "20 SECONDS"),
        ("(A; C!; B AND N)", "20 SECONDS"),
        ("(A; B+ UNTIL E AND N)", "20 SECONDS"),
        ("(A ;[9 SECONDS] B AND N)", "20 SECONDS"),
        ("(A: R+ AND W)", "20 SECONDS"),
        ("(A: B AND Z)", "20 SECONDS"),
        ("(A AND X+[:])", "8 SECONDS"),
        ("A; (B AND C); N", "20 SECONDS"),
    ],
)
def test_the_evaluator_in_python_goes_on(odd: str, sequence: str, within: str) -> None:
    compiled, python = plans(text(sequence, within))
    given, random = events(sequence, 1, 100), Random(11)
    names = sorted(given[0].solutions.keys() | {"A", "B", "N"} & {*names_of(sequence)})
    for _ in range(80):
        name = random.choice(names)
        value = ODD[odd] if random.random() < 0.1 else integer(random.randrange(100))
        given.append(Event(given[-1].time + 1000, 0, 0, {name: solutions(random, name, value, 1)}))
    assert agreed(compiled, python, given, pieces=[30], restarts=[])


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [
        ("(A; N AND N); B", "what comes next in an operand of AND depends on the other one"),
    ],
)
def test_what_is_not_compiled(sequence: str, reason: str) -> None:
    options = CompileOptions(evaluator="compiled-registers")
    with pytest.raises(UsageError, match=reason):
        compile_query(text(sequence), options=options)


def test_operands_on_two_streams_may_share_an_instant() -> None:
    two = text("(A AND N); B").replace("DEFINE GPM N ON S0", "DEFINE GPM N ON S1")
    compiled, python = plans(two)
    given, at = list[Event](), Counter[tuple[int, int]]()
    for event in events("(A AND N); B", 3):
        place = event.time // 4000 * 4000, int("N" in event.solutions)
        given.append(Event(place[0], at[place], place[1], event.solutions))
        at[place] += 1
    given.sort(key=lambda event: (event.time, event.k))
    assert agreed(compiled, python, given, restarts=[40])


@pytest.mark.parametrize(
    ("letters_of_instants", "answers"),
    [
        ("a b1 b2+d2 c+d1", ["a0 b1 c3 d3"]),
        ("a b1 b2+d2 c+d2", ["a0 b2 d2 c3", "a0 b2 c3 d3"]),
        ("a b1 b2+d2 c c+d1", ["a0 b2 d2 c3", "a0 b1 c3 d4", "a0 b1 c4 d4"]),
        ("a b2+d2 b1 c+d1", ["a0 b1 d1 c3"]),
        ("a b1 b1 c+d1 c", ["a0 b1 c3 d3", "a0 b1 d3 c4"]),
    ],
)
def test_candidates_are_compared_after_all_solutions_of_an_instant(
    letters_of_instants: str, answers: list[str]
) -> None:
    """Letters of the events of each instant, all of one time; D asks for the digit of B.

    Answers are the letters with the places of their instants.
    """
    gpms, _ = letters("", "ABCD")
    gpms["D"] += " FILTER(SUBSTR(?d, 2) = SUBSTR(?b, 2))"
    for found in at_instants("A; (B: C & D)", gpms, letters_of_instants):
        assert found == answers


def at_instants(sequence: str, gpms: dict[str, str], instants: str) -> Iterator[list[str]]:
    """The answers of each evaluator; events of one instant are on several streams."""
    given = [
        Event(0, k, stream, letters(word, "ABCD")[1][0].solutions)
        for k, instant in enumerate(instants.split())
        for stream, word in enumerate(instant.split("+"))
    ]
    for plan in plans(query(sequence, gpms, "8 SECONDS")):
        answers, _ = run(plan, given)
        yield [" ".join(f"{item.gpm.lower()}{item.k}" for item in a.trace) for a in answers]


@pytest.mark.parametrize(
    ("letters_of_instants", "answers"),
    [
        ("a+c b+d", ["a0 c0 b1 d1"]),
        ("a+c b+d b+d", ["a0 c0 b1 d1"]),
        ("a+c d b+d", ["a0 c0 d1 b2"]),
        ("a+c b b+d", ["a0 c0 b1 d2"]),
        ("c+a d+b", ["a0 c0 b1 d1"]),
    ],
)
def test_both_operands_may_wait_behind_semicolons(
    letters_of_instants: str, answers: list[str]
) -> None:
    gpms, _ = letters("", "ABCD")
    for found in at_instants("(A; B & C; D)", gpms, letters_of_instants):
        assert found == answers


@pytest.mark.parametrize("restart", [40, 90])
@pytest.mark.parametrize("sequence", ["(A AND N); B", "(A; B AND N)"])
def test_operands_may_share_one_of_several_streams(sequence: str, restart: int) -> None:
    """One event may match both, and so may two events of one instant."""
    several = text(sequence).replace("DEFINE GPM N ON S0", "DEFINE GPM N ON S0, S1")
    compiled, python = plans(several)
    at = dict[tuple[int, int], dict[str, list[Values]]]()
    for event in events(sequence, 1, 200):
        place = event.time // 2000 * 1000, int("N" in event.solutions and event.k)
        at.setdefault(place, {}).update(event.solutions)
    given = [Event(time, 0, stream, found) for (time, stream), found in sorted(at.items())]
    answers = agreed(compiled, python, given, pieces=[7], restarts=[restart])
    assert any(
        len({(i.time, i.stream) for i in a.trace}) > len({i.time for i in a.trace}) for a in answers
    )
    assert all(len({(i.time, i.stream) for i in a.trace}) == len(a.trace) for a in answers)


def test_a_product_with_too_many_edges_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operand_places, "MOST_PRODUCT_EDGES", 0)
    with pytest.raises(UsageError, match="the operands of AND have too many orders"):
        compile_query(text("(A AND N)"), options=CompileOptions(evaluator="compiled-registers"))
