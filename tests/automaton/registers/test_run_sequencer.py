"""The register kernel gives the same answers as registers in Python.

The tests use long streams, which exercise the kernel's heaps and memory, and values for which the
kernel hands over to Python.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import NoReturn

import pytest

from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.automaton.registers.compiled.run_state import RunState
from spaseq.automaton.registers.compiled.seen_kinds import decides
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import OtherStateError
from spaseq.expr.doubles import double_of
from spaseq.rdf.terms.term import XSD
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, Values, batch, query, run
from tests.automaton.keyed_streams import (
    KEYED,
    ODD,
    agreed,
    in_pieces,
    integer,
    plans,
    solutions,
    stream,
    used,
)
from tests.sizes import first_of
from tests.thresholds import Force

SEQUENCES = [
    ("A; B; C", "40 SECONDS"),
    ("A: B; C", "12 SECONDS"),
    ("A; B: C", "25 SECONDS"),
    ("A, B; C", "40 SECONDS"),
    ("A; N!; B; C", "40 SECONDS"),
    ("A: C!: B", "20 SECONDS"),
    ("A; R+; C", "40 SECONDS"),
    ("A: R{2,3}; C", "6 SECONDS"),
    ("A;[9 SECONDS] B; C?; L", "40 SECONDS"),
    ("A: E", "100 SECONDS"),
    ("A; B; L", "50 SECONDS TUMBLING"),
    ("A; B; L", "60 EVENTS"),
    ("A, R+, B", "90 EVENTS"),
    ("A; B; J; C", "90 SECONDS"),
    ("A; S; C", "40 SECONDS"),
    ("A; G+; C", "30 SECONDS"),
    ("A, G{1,2}; C", "40 SECONDS"),
    ("A: D; S", "15 SECONDS"),
    ("A; B; F", "60 SECONDS"),
    ("A: T; C", "30 SECONDS"),
    ("A; K!; B", "40 SECONDS"),
]


@pytest.mark.parametrize("keys", first_of([1, 3], 1))
@pytest.mark.parametrize(("sequence", "within"), SEQUENCES)
def test_long_streams(sequence: str, within: str, keys: int) -> None:
    partition = "PARTITION BY (?k)" if "," in sequence or "EVENTS" in within else ""
    compiled, python = plans(query(sequence, used(sequence), within, partition=partition))
    events = stream(sorted(used(sequence)), 350, keys, 5, ties=True)
    assert agreed(compiled, python, events)


@pytest.mark.parametrize("sequence", ["A; B", "A: B", "A; N!; B"])
def test_many_wait_for_one_key(sequence: str) -> None:
    """Hundreds of runs wait; an event can satisfy only a few of them."""
    compiled, python = plans(query(sequence, used(sequence), "500 SECONDS"))
    names = sorted(used(sequence))
    random, events = Random(3), list[Event]()
    for i in range(1200):
        name = "A" if i % 10 else random.choice(names)
        value = integer(random.randrange(400, 2000) if name == "A" else random.randrange(450))
        events.append(Event(1000 * i, 0, 0, {name: solutions(random, name, value, 1)}))
    expected = run(python, events)[0]
    assert len(expected) > 5
    assert run(compiled, events)[0] == expected


def test_an_instant_with_more_events_than_the_window() -> None:
    """One event of each of two streams has the same time: the instant is larger than one event."""
    text = query("A", used("A"), "1 EVENTS")
    compiled, python = plans(text)
    value = solutions(Random(1), "A", integer(1), 1)
    events = [
        Event(1000, 0, 1, {"A": value}),
        Event(1000, 0, 0, {"A": value}),
        Event(2000, 0, 0, {"A": value}),
    ]
    expected = run(python, events)[0]
    assert len(expected) == 1
    assert run(compiled, events)[0] == expected


@pytest.mark.parametrize("sequence", ["A; B; C", "A: B; C"])
def test_more_matches_than_are_read_at_a_time(force: Force, sequence: str) -> None:
    force("enumerated_rows=1")  # later pieces have as few as one match
    compiled, python = plans(query(sequence, used(sequence), "60 SECONDS"))
    events = stream("ABC", 400, 1, 7)
    expected = run(python, events)[0]
    assert len(expected) > 100
    assert in_pieces(compiled, events, [400]) == expected


PLAIN = {
    **KEYED,
    "D": "?d :k ?k ; :v ?vd FILTER(?vd <= ?vb && ?vd <= ?va)",
    "F": "?f :k ?k",
}


@pytest.mark.each_once
@pytest.mark.parametrize("keys", [1, 10])
@pytest.mark.parametrize(
    "sequence", ["A; B", "A; B; C", "A; B; D", "A; N; B; C", "A; F; N", "F; A"]
)
def test_plain_sequences(sequence: str, keys: int, force: Force) -> None:
    """The threshold-sequence kernel and the general kernel take turns because of ties.

    Ties may also lie across the end of the lookahead rows.
    """
    force("tied_rows=7")
    force("prepared_rows=5")
    patterns = {name: p for name, p in PLAIN.items() if name in sequence}
    compiled, python = plans(query(sequence, patterns, "120 SECONDS"))
    events = stream(sorted(patterns), 900, keys, 8)
    for i in range(9, 900, 9):
        events[i] = replace(events[i], time=events[i - 1].time, stream=1)
    assert len(agreed(compiled, python, events, restarts=[450])) > 5


@pytest.mark.each_once
@pytest.mark.parametrize("keys", [1, 10])
@pytest.mark.parametrize("sequence", ["A; B", "A; B; C", "A; B; D", "A; N; B; C", "F; A"])
def test_events_that_are_solutions_of_several_steps(
    sequence: str, keys: int, monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    """They need no other kernel than the threshold-sequence kernel."""
    force("enumerated_rows=1")  # matches are read amid the steps of an event
    force("prepared_rows=5")
    patterns = {name: p for name, p in PLAIN.items() if name in sequence}
    compiled, python = plans(query(sequence, patterns, "60 SECONDS"))
    random, names, events = Random(13), sorted(patterns), list[Event]()
    for i in range(500):
        value, key = integer(random.randrange(100)), f"<k{random.randrange(keys)}>"
        steps = random.sample(names, random.randint(1, len(names)))
        own = {n: [{n.lower(): "<e>", "k": key, f"v{n.lower()}": value}] for n in steps}
        events.append(Event(1000 * i, 0, 0, own))
    expected = agreed(compiled, python, events, restarts=[250])
    assert len(expected) > 5
    monkeypatch.setattr(RunState, "_advance", None)
    assert in_pieces(compiled, events, [100]) == expected


def test_a_snapshot_of_other_registers_is_refused_and_changes_nothing() -> None:
    """Earlier versions may have kept others."""
    stages = []
    for letters in ("AB", "ABC"):
        compiled, _ = plans(query("; ".join(letters), used(letters), "40 SECONDS"))
        events = stream(letters, 60, 1, 3)
        stages.append(SequenceStage(compiled))
        stages[-1].push(batch(compiled, events))
        stages[-1].advance(events[-1].time)
    given, other = stages
    runs = given._sequencer
    assert isinstance(runs, RunSequencer) and isinstance(other._sequencer, RunSequencer)
    before = runs.snapshot()
    with pytest.raises(OtherStateError, match="keeps other registers"):
        runs.restore(other._sequencer.snapshot())
    assert repr(runs.snapshot()) == repr(before)


def test_a_snapshot_leaves_out_what_the_window_has_left() -> None:
    compiled, _ = plans(query("A; B; C", used("ABC"), "5 SECONDS"))
    sizes = []
    for size in (2_000, 20_000):
        events = stream("A", size, 1, 14)
        stage = SequenceStage(compiled)
        stage.push(batch(compiled, events))
        stage.advance(events[-1].time)
        sizes.append(len(stage.snapshot()))
    assert sizes[1] < 2 * sizes[0]


def test_several_solutions_of_one_event() -> None:
    text = query("A; B", used("AB"))
    compiled, python = plans(text)
    values: dict[str, list[Values]] = {
        "A": [{"a": f"<a{i}>", "k": "<k>", "va": integer(i)} for i in range(3)],
        "B": [{"b": f"<b{i}>", "k": "<k>", "vb": integer(i)} for i in range(4)],
    }
    events = [Event(0, 0, 0, values), Event(1000, 0, 0, values), Event(1000, 0, 1, values)]
    expected = run(python, events)[0]
    assert len(expected) == 2 * 6
    assert run(compiled, events)[0] == expected


@pytest.mark.each_once
@pytest.mark.parametrize("odd", sorted(ODD))
@pytest.mark.parametrize(
    ("sequence", "within"),
    [
        ("A; B; C", "40 SECONDS"),
        ("A, B, C", "40 SECONDS"),
        ("A; R+; C", "20 EVENTS"),
        ("A; N!; B", "30 SECONDS"),
        ("A; G+; C", "30 SECONDS"),
        ("A; B; F", "40 SECONDS"),
        ("A: K!: D", "20 SECONDS"),
    ],
)
def test_odd_values(odd: str, sequence: str, within: str) -> None:
    """Values that float64 may not represent arrive after some events; partial matches survive."""
    compiled, python = plans(query(sequence, used(sequence), within))
    names, random = sorted(used(sequence)), Random(11)
    events = stream(names, 150, 1, 2)
    for _ in range(200):
        name = random.choice(names)
        value = ODD[odd] if random.random() < 0.3 else integer(random.randrange(100))
        time = events[-1].time + 1000
        events.append(Event(time, 0, 0, {name: solutions(random, name, value, 1)}))
    answers = agreed(compiled, python, events, pieces=[30], restarts=[140, 250])
    assert any(a.first[0] < 150_000 < a.end[0] for a in answers) or "," in sequence


WITHOUT_NUMBERS = {
    "strings": lambda n: f'"s{n % 7}"',
    "IRIs": lambda n: f"<http://e/{n % 5}>",
    "times": lambda n: f'"2024-01-{1 + n % 28:02}T00:00:00Z"^^<{XSD}dateTime>',
    "booleans": lambda n: f'"{str(n % 2 == 0).lower()}"^^<{XSD}boolean>',
    "languages": lambda n: f'"s{n % 7}"@en',
    "some numbers": lambda n: integer(n) if n % 3 else f'"s{n}"',
}


@pytest.mark.parametrize("kind", WITHOUT_NUMBERS)
@pytest.mark.parametrize("sequence", first_of(["A; D: F", "A; N!; B", "A: B; C", "A; R+; L"], 2))
def test_terms_without_numbers(sequence: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FILTERs that compare them are asked from the first row on: Python never takes over."""

    def taken_over(*given: object) -> NoReturn:
        raise AssertionError("the evaluator in Python took over")

    monkeypatch.setattr(RunSequencer, "_hand_over", taken_over)
    compiled, python = plans(query(sequence, used(sequence), "40 SECONDS"))
    names, random, make = sorted(used(sequence)), Random(7), WITHOUT_NUMBERS[kind]
    events = []
    for i in range(400):
        name, value = random.choice(names), make(random.randrange(3, 100) if i else 3)
        events.append(Event(1000 * i, 0, 0, {name: solutions(random, name, value, 2)}))
    for i in range(3):  # no run begins with them
        events.insert(i, Event(1000 * (i - 3), 0, 0, {"C": solutions(random, "C", make(3), 2)}))
    answers = agreed(compiled, python, events, pieces=[1, 30], restarts=[2, 140, 250])
    # Neither IRIs nor texts with a language have an order, and nothing is less than false.
    assert answers or sequence != "A: B; C" or kind in ("IRIs", "languages", "booleans")


def test_a_large_integer_is_compared_as_such() -> None:
    text = query("A; B", used("AB"))
    compiled, _ = plans(text)
    for size, count in ((2**53, 1), (2**53 + 1, 0)):  # equal to 2^53 + 1 as float64
        events = [
            Event(0, 0, 0, {"A": [{"a": "<a>", "k": "<k>", "va": integer(size)}]}),
            Event(1000, 0, 0, {"B": [{"b": "<b>", "k": "<k>", "vb": integer(2**53 + 1)}]}),
        ]
        assert len(run(compiled, events)[0]) == count


@pytest.mark.parametrize(
    ("one", "other", "operator", "expected"),
    [
        (integer(1), integer(2), "<", True),
        (integer(1), '"x"', "<", True),
        (integer(1), '"x"', "!=", False),
        ('"x"', '"x"', "=", False),
        (integer(2**53 + 1), integer(2), "<", False),
        (integer(2**53 + 1), f'"1e0"^^<{XSD}double>', "<", True),
        (f'"1"^^<{XSD}float>', integer(1), "=", False),
        (f'"0.1"^^<{XSD}decimal>', f'"0.10"^^<{XSD}decimal>', "=", True),
        (f'"0.1"^^<{XSD}decimal>', integer(1), "=", True),
        (f'"0.10000000000000001"^^<{XSD}decimal>', integer(1), "=", False),
    ],
)
def test_what_float64_decides(one: str, other: str, operator: str, expected: bool) -> None:
    assert decides(operator, double_of(one)[1], double_of(other)[1]) is expected


def test_memory_does_not_grow_with_the_keys_ever_seen() -> None:
    plan, _ = plans(query("A; B; J; C", used("ABJC"), "50 SECONDS"))
    stage, random, sizes = SequenceStage(plan), Random(1), []
    sequencer = stage._sequencer
    assert isinstance(sequencer, RunSequencer)
    for i in range(40):
        events = []
        for j in range(250):
            name = random.choice("ABJC")
            low = name.lower()
            values: Values = {low: f"<e{i}/{j}>", "k": f"<k{i}/{j // 10}>", f"v{low}": integer(j)}
            if name == "J":
                values["b"] = f"<e{i}/{random.randrange(j + 1)}>"
            events.append(Event(250_000 * i + 1000 * j, 0, 0, {name: [values]}))
        stage.push(batch(plan, events))
        stage.advance(events[-1].time)
        sizes.append(len(stage.snapshot()))
    assert max(sizes[20:]) <= 1.5 * max(sizes[:20])
    assert sequencer.live_runs() < 1000


@pytest.mark.parametrize(
    ("sequence", "gpms", "reason"),
    [
        ("A; B", {"B": "?b :v ?vb FILTER(?vb > ?va + RAND())"}, "more than numbers"),
        ("A; (B; (C; A | B) | C)", {"C": "?c :v ?va"}, "compete after `;`"),
    ],
)
def test_what_is_not_compiled(sequence: str, gpms: dict[str, str], reason: str) -> None:
    text = query(sequence, {**used(sequence), **gpms})
    with pytest.raises(Exception, match=reason):
        compile_query(text, options=CompileOptions(evaluator="compiled-registers"))


@pytest.mark.parametrize("sequence", ["A; N", "A: N", "A; B; L"])
def test_texts_that_are_compared_with_texts(sequence: str) -> None:
    """A run whose value is not a number still exists when a comparable value arrives."""
    compiled, python = plans(query(sequence, used(sequence), "40 SECONDS"))
    random, names = Random(5), sorted(used(sequence))
    events = stream(names, 60, 1, 3)
    for i in range(60, 200):
        name, value = random.choice(names), random.choice(['"a"', '"b"', integer(50)])
        events.append(Event(1000 * (i + 1), 0, 0, {name: solutions(random, name, value, 1)}))
    agreed(compiled, python, events, pieces=[1], restarts=[])


def test_many_partitions_of_a_query_in_which_no_run_waits() -> None:
    text = query("A", {"A": "?a :k ?k ; :v ?va FILTER(?va < ?vb)"}, partition="PARTITION BY (?k)")
    plan, _ = plans(text)
    values: list[Values] = [{"a": "<e>", "k": f"<k{i}>", "va": integer(i)} for i in range(3000)]
    events = [Event(1000 * i, 0, 0, {"A": [own]}) for i, own in enumerate(values)]
    assert run(plan, events) == ([], 0)
