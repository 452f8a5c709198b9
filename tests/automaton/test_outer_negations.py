"""Negated steps in first and last place: compiled evaluators and registers in Python agree."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from spaseq.algebra.answers import Answer
from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.automaton.sets.compiled.set_sequencer import SetSequencer
from spaseq.compile import CompileOptions, compile_query
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, batch, plans, query, run
from tests.automaton.keyed_streams import (
    ODD,
    agreed,
    integer,
    solutions,
    stream,
    used,
)
from tests.sizes import SLOW, first_of

PLAIN = {n: f"?{n.lower()} :k ?k" for n in "ABCNM"}
"""GPMs that do not look at one another."""


def check(text: str, events: list[Event], sequencer: type, evaluator: str | None = None) -> None:
    """Check that the planner's evaluator is compiled, and agrees with registers in Python."""
    compiled = compile_query(text, options=CompileOptions(evaluator=evaluator))
    assert isinstance(SequenceStage(compiled)._sequencer, sequencer)
    assert agreed(
        compiled, python(text), events, pieces=[37, *[1] * 8], restarts=[len(events) // 3]
    )


def python(text: str) -> QueryPlan:
    return compile_query(text, options=CompileOptions(evaluator="registers"))


@pytest.mark.each_once
@pytest.mark.parametrize("keys", first_of([1, 3], 1))
@pytest.mark.parametrize("partition", ["", "PARTITION BY (?k)"])
@pytest.mark.parametrize(
    ("sequence", "within"),
    [
        ("N!; A; B", "9 SECONDS"),
        ("A; B; N!", "9 SECONDS"),
        ("N!; A: B: C; M!", "8 SECONDS"),
        ("N!; M!; A", "2 SECONDS"),
        ("A: B; N!; M!", "9 SECONDS TUMBLING"),
        ("N!; A; B+; C", "12 SECONDS TUMBLING"),
        ("N!; A; (B | C)", "9 SECONDS"),
        ("N!; A, B; N!", "4 SECONDS"),
        ("A; N!; B; N!", "9 SECONDS"),
        ("A; B?; N!; C?", "9 SECONDS"),
        ("A?; N!; B; C", "9 SECONDS"),
    ],
)
def test_sets(sequence: str, within: str, partition: str, keys: int) -> None:
    patterns = {name: p for name, p in PLAIN.items() if name in sequence}
    if keys == 3 and not partition:
        patterns = {n: p.replace("?k", f"?k{n.lower()}") for n, p in patterns.items()}
    events = stream(sorted(patterns), 400, keys, 5, ties=True)
    for event in events:
        for name, found in event.solutions.items():
            found[0][f"k{name.lower()}"] = found[0]["k"]
    check(query(sequence, patterns, within, partition=partition), events, SetSequencer)


@pytest.mark.parametrize(
    "size", [*first_of([(250, 1), (500, 3)], 1), pytest.param((500, 1), marks=SLOW)], ids=str
)
@pytest.mark.parametrize(
    ("sequence", "within"),
    [
        ("N!; A; B", "12 SECONDS"),
        ("A; B; N!", "12 SECONDS"),
        ("K!; A: B; C", "9 SECONDS"),
        ("J!; A; B", "12 SECONDS"),
        ("A; B; J!", "9 SECONDS TUMBLING"),
        ("A; R+; F!", "12 SECONDS"),
        ("T!; A; B; D!", "8 SECONDS"),
        ("A; N!; B; N!", "12 SECONDS"),
        ("A; N!; B?", "9 SECONDS"),
        ("A: L!: N: B", "9 SECONDS"),
        ("A; B; B!", "12 SECONDS"),
        ("A!; A; B", "2 SECONDS"),
        ("G!; A; B", "12 SECONDS"),
    ],
)
def test_registers(sequence: str, within: str, size: tuple[int, int]) -> None:
    """`size` is the number of events and the number of keys."""
    length, keys = size
    patterns = used(sequence)
    if "F" in sequence:
        patterns["F"] = "?f :k ?k ; :v ?vf FILTER(?vf < ?vr + 20 && ?va > 2 * ?vr)"
    if "G" in sequence:
        patterns["G"] = "?b :k ?k ; :v ?vg FILTER(?vg != ?vb)"
    events = stream(sorted(patterns), length, keys, 5, ties=True)
    for event in events:
        for found in event.solutions.get("G", ()):
            found["b"] = found["g"]
    check(query(sequence, patterns, within), events, RunSequencer)


@pytest.mark.each_once
@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX", "STRICT"])
@pytest.mark.parametrize("sequence", ["N!; A: B", "A: B; N!"])
@pytest.mark.parametrize("patterns", first_of([used("ABN"), PLAIN], 1))
def test_selection(sequence: str, strategy: str, patterns: dict[str, str]) -> None:
    """A match that a negated step forbids is not selected, and forestalls none that is."""
    patterns = {n: patterns[n] for n in "ABN"}
    text = query(sequence, patterns, "5 SECONDS", f"{strategy} *", "PARTITION BY (?k)")
    events = stream("ABN", 400, 1, 3, ties=True)
    if "FILTER" in patterns["B"]:
        check(text, events, RunSequencer, "compiled-registers")
    else:
        check(text, events, SetSequencer)


@pytest.mark.parametrize("odd", first_of(sorted(ODD), 2))
@pytest.mark.parametrize("sequence", ["N!; A; B", "A; B; N!", "C!; A; R+; C!"])
def test_the_evaluator_in_python_goes_on(odd: str, sequence: str) -> None:
    """It takes over solutions of negated steps, and matches that wait for their windows."""
    text, names = query(sequence, used(sequence), "20 SECONDS"), sorted(used(sequence))
    compiled = compile_query(text)
    events, random = stream(names, 150, 1, 2), Random(11)
    for _ in range(150):
        name = random.choice(names)
        value = ODD[odd] if random.random() < 0.2 else integer(random.randrange(100))
        given = solutions(random, name, value, 1)
        events.append(Event(events[-1].time + 1000, 0, 0, {name: given}))
    assert agreed(compiled, python(text), events, pieces=[30], restarts=[140, 200])


def orders(count: int) -> list[Event]:
    """Orders (A) 100 ms apart, each with a key and paid (B) after 500 ms; one in seven is not."""
    events = []
    for i in range(count):
        key = f"<k{i}>"
        events.append(Event(100 * i, 0, 0, {"A": [{"a": "<a>", "k": key, "va": integer(i)}]}))
        if i % 7:
            paid = {"b": "<b>", "k": key, "vb": integer(i)}
            events.append(Event(100 * i + 500, 0, 1, {"B": [paid]}))
    return sorted(events, key=lambda event: (event.time, event.stream))


def keys_of(answers: Sequence[Answer]) -> list[str]:
    return [dict(answer.bindings)["k"] for answer in answers]


def with_late_watermark(plan: QueryPlan, events: list[Event], late: int, size: int) -> list[Answer]:
    """The answers if events in pieces are processed long before the watermark (ms) comes."""
    stage, answers = SequenceStage(plan), list[Answer]()
    for i in range(0, len(events), size):
        some = events[i : i + size]
        stage.push(batch(plan, some))
        answers += stage.advance(some[-1].time - late, ahead=True)
    return answers + stage.close()


@pytest.mark.each_once
@pytest.mark.parametrize("partition", ["", "PARTITION BY (?k)"])
@pytest.mark.parametrize("pattern", ["?b :k ?k", "?b :k ?k ; :v ?vb FILTER(?vb >= ?va)"])
@pytest.mark.parametrize("within", ["1 SECONDS", "10 SECONDS TUMBLING FROM 1969-12-31T23:59:59Z"])
def test_windows_that_close_inside_a_batch(within: str, pattern: str, partition: str) -> None:
    """Solutions and keys stay until the matches that need them have been checked."""
    if "FROM" in within:
        within = within.replace("FROM ", 'FROM "').replace("Z", 'Z"^^xsd:dateTime')
    text = query("A; B!", {"A": "?a :k ?k ; :v ?va", "B": pattern}, within, partition=partition)
    text = f"PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> {text}"
    events, unpaid = orders(400), [f"<k{i}>" for i in range(0, 400, 7)]
    if "TUMBLING" in within:  # some are paid when the interval is over
        close = [9000 + 10_000 * ((100 * i + 1000) // 10_000) for i in range(400)]
        unpaid = [f"<k{i}>" for i in range(400) if i % 7 == 0 or 100 * i + 500 >= close[i]]
    for plan in plans(text).values():
        assert keys_of(run(plan, events)[0]) == unpaid
        assert keys_of(run(plan, events, restart_after=300)[0]) == unpaid
        assert keys_of(with_late_watermark(plan, events, 5000, 37)) == unpaid


@pytest.mark.parametrize("patterns", [PLAIN, used("ABN")])
def test_memory_does_not_grow(patterns: dict[str, str]) -> None:
    text = query("N!; A; B; N!", {n: patterns[n] for n in "ABN"}, "50 SECONDS")
    plan, sizes = compile_query(text), []
    stage = SequenceStage(plan)
    for i in range(30):
        events = stream("ABN", 500, 40, i)
        moved = [Event(e.time + 600_000 * i, 0, 0, e.solutions) for e in events]
        for event in moved:
            for found in event.solutions.values():
                found[0]["k"] = f"<k{i}/{found[0]['k']}>"
        stage.push(batch(plan, moved))
        stage.advance(moved[-1].time)
        sizes.append(len(stage.snapshot()))
    assert max(sizes[15:]) <= 1.5 * max(sizes[:15])
