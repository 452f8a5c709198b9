"""The set kernels give the same answers as the evaluators in Python.

The tests use long streams, on which the rings wrap round, grow and shrink, and automata with more
states than a word has bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from random import Random

import pytest

from spaseq.algebra.answers import Answer
from spaseq.automaton.sets.compiled.compact_state import CompactState
from spaseq.automaton.sets.compiled.set_sequencer import SetSequencer
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import RunError
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages import columnar_answers as answer_stage
from spaseq.stages import sequence
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, batch, letters, query, run
from tests.sizes import first_of
from tests.thresholds import Force

KEYED = {name: f"?{name.lower()} :k ?k" for name in "ABCD"}


def stream(names: str, size: int, keys: int, seed: int) -> list[Event]:
    """Events a second apart, with one solution each; some share an instant."""
    random, events, time = Random(seed), list[Event](), 0
    for i in range(size):
        name = random.choice(names)
        tied = bool(events) and events[-1].k == 0 and random.random() < 0.1
        time += 0 if tied else 1000
        values = {name.lower(): f"<e{i}>", "k": f"<k{random.randrange(keys)}>"}
        events.append(Event(time, 0, int(tied), {name: [values]}))
    return events


@cache
def by_registers(text: str, size: int, keys: int, seed: int) -> tuple[Answer, ...]:
    """The answers of the evaluator in Python on such a stream."""
    plan = compile_query(text, options=CompileOptions(evaluator="registers"))
    return tuple(run(plan, stream("ABCD", size, keys, seed))[0])


def in_pieces(stage: SequenceStage, plan: QueryPlan, pieces: Sequence[list[Event]]) -> list[Answer]:
    """The answers to events that arrive in these pieces."""
    answers = list[Answer]()
    for piece in pieces:
        stage.push(batch(plan, piece))
        answers += stage.advance(piece[-1].time - 1)
    return answers + stage.close()


def cut(events: list[Event], sizes: Sequence[int]) -> list[list[Event]]:
    """The events in pieces of these sizes, in turn."""
    pieces, first = list[list[Event]](), 0
    while first < len(events):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(events[first : first + size])
        first += size
    return pieces


@pytest.mark.each_once
@pytest.mark.parametrize("keys", [1, 4])
@pytest.mark.parametrize(
    ("evaluator", "sequence"),
    [
        ("compiled-chain", "A: B; C"),
        ("compiled-chain", "A; B; C"),
        ("compiled-chain", "A, B; C"),
        ("compiled-compact", "A: B: C"),
        ("compiled-compact", "A; B+; C"),
        ("compiled-compact", "A: (B | C); D"),
        ("compiled-compact", "A, B+; C"),
    ],
)
def test_long_streams(evaluator: str, sequence: str, keys: int) -> None:
    gpms = {name: pattern for name, pattern in KEYED.items() if name in sequence}
    text = query(sequence, gpms, f"{9 * keys} SECONDS", partition="PARTITION BY (?k)")
    compiled = compile_query(text, options=CompileOptions(evaluator=evaluator))
    expected = run(
        compile_query(text, options=CompileOptions(evaluator="registers")),
        events := stream("ABCD", 2500, keys, 1),
    )
    assert len(expected[0]) > 100
    pieces = cut(events, [900, *[13] * 60, 120])
    assert in_pieces(SequenceStage(compiled), compiled, pieces) == expected[0]
    assert run(compiled, events, restart_after=1300)[0] == expected[0]


@pytest.mark.each_once
@pytest.mark.parametrize("few", [1, 32])
@pytest.mark.parametrize("keys", first_of([1, 3], 1))
@pytest.mark.parametrize(
    "sequence", ["A; B+; C", "B+[:]; C", "A: B+, C", "(A | B; D?): C", "A; B++; C", "A?: B; D*; C"]
)
def test_select_max_over_loops(sequence: str, keys: int, few: int, force: Force) -> None:
    """Above `few` matches of one end, the kernel runs over the window once more."""
    force(f"few_matches={few}")
    gpms = {name: pattern for name, pattern in KEYED.items() if name in sequence}
    within = f"{9 * keys} SECONDS"
    text = query(sequence, gpms, within, select="MAX *", partition="PARTITION BY (?k)")
    events = stream("ABCD", 600, keys, 4)
    expected = list(by_registers(text, 600, keys, 4))
    assert expected
    for evaluator in ("registers", "compiled-compact"):
        plan = compile_query(text, options=CompileOptions(evaluator=evaluator))
        if evaluator == "registers" and few > 1:
            continue  # it does not count matches of an end
        assert run(plan, events)[0] == expected
        assert in_pieces(SequenceStage(plan), plan, cut(events, [1, 50, 7])) == expected
        assert run(plan, events, restart_after=200)[0] == expected


@pytest.mark.each_once
@pytest.mark.parametrize("limit", [None, 3, 1000])
@pytest.mark.parametrize(
    ("evaluator", "sequence", "select"),
    [
        ("compiled-chain", "A: B: C", "*"),
        ("compiled-compact", "A: B+: C", "*"),
        ("compiled-compact", "A: (B | C)+: D", "*"),
        ("compiled-compact", "A: B+: C", "LAST *"),
    ],
)
def test_more_matches_than_are_read_at_a_time(
    force: Force, evaluator: str, sequence: str, select: str, limit: int | None
) -> None:
    force("enumerated_rows=1")  # later pieces have as few as one match
    gpms = {name: pattern for name, pattern in KEYED.items() if name in sequence}
    text = query(sequence, gpms, "14 SECONDS", select, "PARTITION BY (?k)")
    events = stream("ABCD", 300, 1, 2)
    everything = by_registers(text, 300, 1, 2)
    ends = Counter(answer.end for answer in everything)
    expected = sum(min(count, limit or count) for count in ends.values())
    compiled = compile_query(text, options=CompileOptions(evaluator=evaluator))
    stage = SequenceStage(compiled, StageOptions(limit))
    answers = in_pieces(stage, compiled, cut(events, [150]))
    assert (len(answers), stage.suppressed) == (expected, len(everything) - expected)
    assert set(answers) <= set(everything) and len(everything) > 30


def test_more_answers_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_stage, "MOST_BYTES", 1_000_000)
    monkeypatch.setattr(sequence, "MOST_BYTES", 1_000_000)
    text = query("A: B+: C", dict.fromkeys("ABC", "[] :is []"))
    gpms, events = letters("a " + "b " * 70 + "c")  # 2 ** 70 - 1 answers
    assert gpms.keys() == set("ABC")
    plan = compile_query(text, options=CompileOptions(evaluator="compiled-compact"))
    with pytest.raises(RunError, match=r"more answers at once .*--limit-per-event"):
        in_pieces(SequenceStage(plan), plan, [events])
    stage = SequenceStage(plan, StageOptions(limit_per_event=10))
    assert len(in_pieces(stage, plan, [events])) == 10
    assert stage.suppressed == 2**70 - 1 - 10


def test_a_partition_by_several_variables() -> None:
    """The patterns name the variables in different orders; skipping is per partition."""
    gpms = {"A": "?a :j ?j ; :k ?k", "B": "?k :of ?b . ?b :j ?j", "C": "?c :k ?k ; :j ?j"}
    text = query(
        "(A | B): C",
        gpms,
        "9 SECONDS",
        partition="PARTITION BY (?k, ?j)",
        rest="AFTER MATCH SKIP PAST LAST EVENT",
    )
    random, events = Random(4), list[Event]()
    for i in range(400):
        name = random.choice("ABC")
        values = {name.lower(): f"<e{i}>", "k": random.choice(["<x>", "<y>"])}
        events.append(
            Event(1000 * i, 0, 0, {name: [{**values, "j": random.choice(["<x>", "<y>"])}]})
        )
    expected = run(compile_query(text, options=CompileOptions(evaluator="registers")), events)[0]
    assert len(expected) > 30
    assert (
        run(compile_query(text, options=CompileOptions(evaluator="compiled-compact")), events)[0]
        == expected
    )


def test_more_states_than_bits_in_a_word() -> None:
    text = query(": ".join("AB" * 70), dict.fromkeys("AB", "[] :is []"), "1000 SECONDS")
    compiled = compile_query(text, options=CompileOptions(evaluator="compiled-compact"))
    _, events = letters(" ".join("ab"[i % 2] for i in range(143)))
    stage = SequenceStage(compiled)
    answers = in_pieces(stage, compiled, cut(events, [50]))
    assert len(answers) == 141  # three events are too many: no pair is skipped, or one of 140
    sequencer = stage._sequencer
    assert isinstance(sequencer, SetSequencer) and isinstance(sequencer._state, CompactState)
    assert sequencer._state._active.shape[1] == 3
