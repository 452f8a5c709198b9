"""The chain and the compact evaluator: examples of the language reference, huge counts."""

from __future__ import annotations

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import UsageError
from spaseq.options import StageOptions
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, batch, letters, plans, query, run, words

STREAM = "a1 a2 b1 b2 c"

PAGE = [
    ("A; B", "a1 b1 · a2 b1"),
    ("A: B", "a1 b1 · a2 b1 · a1 b2 · a2 b2"),
    ("A, B", "a2 b1"),
    ("A: B: C", "a1 b1 c · a1 b2 c · a2 b1 c · a2 b2 c"),
    ("A: B+: C", "a1 b1 b2 c · a1 b1 c · a1 b2 c · a2 b1 b2 c · a2 b1 c · a2 b2 c"),
]
"""Examples of docs/meaning.md#operators, in the order of docs/meaning.md#order-of-answers."""

MORE = [
    ("a b1 x b2 c", "A, B+, C", ""),
    ("a b1 b2 c", "A, B+, C", "a b1 b2 c"),
    ("a b1 b2 c", "A; B{2}; C", "a b1 b2 c"),
    ("a b c", "A; B?; C", "a b c · a c"),
    ("a b c", "A, B?, C", "a b c"),
    ("a b1 c b2", "A; (B | C)", "a b1"),
    ("a b1 c b2", "A: (B | C)", "a b1 · a c · a b2"),
    ("a b1 c b2", "A; (B | C)+", "a b1 · a b1 c · a b1 c b2"),
    ("a c b1 b2", "A: (B: B | C)", "a c · a b1 b2"),
    ("a c b1 b2", "A, (B: B | C)", "a c"),
    ("a1 c1 b a2 b2", "A; C!; B", "a2 b2"),
    ("a1 c1 a2 b", "A: C!: B", "a2 b"),
    ("a b1 c b2", "A: C!: B", "a b1"),
    ("b1 b2 b3", "B{2,3}", "b1 b2 · b1 b2 b3 · b2 b3"),
]

LOOPS = [
    ("a b1 b2 x b3 c", "A; B+[:]; C", "a b1 c · a b1 b2 c · a b1 b3 c · a b1 b2 b3 c"),
    ("a b1 b2 x b3 c", "A: B+[,]; C", "a b1 c · a b2 c · a b3 c · a b1 b2 c"),
    ("a b1 b2 x b3 c", "A; B++; C", "a b1 b2 b3 c"),
    ("a b1 b2 x b3 c", "A: B++[,]; C", "a b1 b2 c · a b2 c · a b3 c"),
    ("a b1 b2 x b3 c", "A; B?+; C", "a b1 c"),
    ("a c", "A; B?+; C", "a c"),
    ("a b1 b2 b3 c", "A; B{1,2}+; C", "a b1 b2 c"),
    ("a b1 b2 b3 b4 c", "A; (B; B)++; C", "a b1 b2 b3 b4 c"),
    ("a b1 b2 b3 c", "A; (B; B)++; C", "a b1 b2 c"),
    ("a b1 x b2 x b3 c", "A; (B, B)*+; C", "a c"),
    ("a b1 b2 c b3 x", "A; (B; C)*+; X", "a b1 c x"),
    ("a b1 b2 x b3 c", "A; B+ UNTIL X; C", "a b1 c · a b1 b2 c"),
    ("a b1 b2 x b3 c", "A; B++ UNTIL X; C", "a b1 b2 c"),
    ("a b1 x b2 b3 c", "A; (B; B)+ UNTIL X; C", "a b1 b2 c"),
    ("a b1 x b2 b3 b4 c", "A; (B; B)++ UNTIL X; C", "a b1 b2 c"),
    ("a x b1 b2 c", "A; B+ UNTIL X; C", ""),
    ("a x b1 b2 c", "A; B*+ UNTIL X; C", "a c"),
    ("x b1 b2 x b3", "B+ UNTIL X", "b1 · b1 b2 · b2 · b3"),
    ("a b1 x c b2", "A; (B | C)+ UNTIL X", "a b1"),
    ("a b1 b2 c b3 x b4 c", "A; (B+ UNTIL X; C){2}", "a b1 b2 c b3 c · a b1 c b3 c"),
]
"""Own operators, greedy loops and UNTIL."""


@pytest.mark.parametrize(("stream", "sequence", "expected"), LOOPS)
def test_loops(stream: str, sequence: str, expected: str) -> None:
    names = {name: "[] :is []" for name in "ABCX" if name in sequence.replace("UNTIL", "")}
    _, events = letters(stream, "ABCX")
    found = plans(query(sequence, names))
    assert {"registers", "compiled-compact"} <= found.keys()
    for plan in found.values():
        answers, _ = run(plan, events)
        assert sorted(words(answers, stream)) == sorted(expected.split(" · ") if expected else [])


def test_the_event_after_a_greedy_loop_may_be_one_more_repetition() -> None:
    """A solution of X at the instant of the next step counts, for greedy loops and for UNTIL."""
    names = dict.fromkeys("ABCX", "[] :is []")
    both = [Event(0, 0, 0, {"A": [{}]}), Event(1000, 0, 0, {"B": [{}]})]
    both += [Event(2000, 0, 0, {"B": [{}], "C": [{}], "X": [{}]})]
    lengths = {"A; B++; C": [], "A; B++ UNTIL X; C": [3], "A; B+ UNTIL X; C": [3]}
    for sequence, expected in lengths.items():
        for plan in plans(query(sequence, _used(names, sequence.replace("UNTIL", "")))).values():
            assert [len(a.trace) for a in run(plan, both)[0]] == expected


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ("A; B++", "a1 b1 b2 · a2 b2"),
        ("A; B*+[:]", "a1 b1 b2 · a2 b2"),
        ("B++", "b1 b2 · b2"),
    ],
)
def test_a_greedy_loop_in_last_place_is_compiled(sequence: str, expected: str) -> None:
    stream = "a1 b1 a2 b2"
    _, events = letters(stream, "AB")
    names = {name: "[] :is []" for name in "AB" if name in sequence}
    found = plans(query(sequence, names))
    assert {"registers", "compiled-compact"} <= found.keys()
    for plan in found.values():
        answers, _ = run(plan, events)
        assert sorted(words(answers, stream)) == sorted(expected.split(" · "))


@pytest.mark.parametrize("sequence", ["A; B{1,2}+", "A; B++[,]", "A; (B; B)++", "A; B++ UNTIL C"])
def test_other_greedy_loops_in_last_place_need_registers(sequence: str) -> None:
    with pytest.raises(UsageError, match="a greedy loop in last place looks at the rest"):
        compile_query(
            query(sequence, dict.fromkeys("ABC", "[] :is []")),
            options=CompileOptions(evaluator="compiled-compact"),
        )


@pytest.mark.parametrize("evaluator", ["compiled-chain", "compiled-compact"])
@pytest.mark.parametrize(("sequence", "expected"), PAGE, ids=[s for s, _ in PAGE])
def test_language_examples(sequence: str, expected: str, evaluator: str) -> None:
    gpms, events = letters(STREAM)
    plan = plans(query(sequence, _used(gpms, sequence))).get(evaluator)
    if plan is None:
        assert evaluator == "compiled-chain" and sequence == "A: B+: C"
        return
    answers, _ = run(plan, events)
    assert words(answers, STREAM) == expected.split(" · ")


@pytest.mark.parametrize(("stream", "sequence", "expected"), MORE)
def test_small_streams(stream: str, sequence: str, expected: str) -> None:
    names = dict.fromkeys("ABC", "[] :is []")
    _, events = letters(stream)
    found = plans(query(sequence, _used(names, sequence)))
    assert "compiled-compact" in found
    for plan in found.values():
        answers, _ = run(plan, events)
        assert sorted(words(answers, stream)) == sorted(expected.split(" · ") if expected else [])


def test_two_to_the_sixty_answers() -> None:
    """The evaluator returns the first thousand answers and counts the others."""
    plan, events = _many(60)
    answers, suppressed = run(plan, events, limit=1000)
    assert len({a.order_key() for a in answers}) == 1000
    assert suppressed == 2**60 - 1 - 1000


@pytest.mark.parametrize(
    ("strategy", "kept"), [("NEXT", 1), ("LAST", 1), ("MAX", 1), ("STRICT", 1)]
)
def test_selection_among_too_many_to_enumerate(strategy: str, kept: int) -> None:
    """The match of all events is the greatest, the largest and the only strict match."""
    plan, events = _many(200, strategy)
    answers, suppressed = run(plan, events)
    assert (len(answers), suppressed) == (kept, 0)
    assert len(answers[0].trace) == 202


def test_counts_beyond_64_bits_with_a_window_in_the_middle() -> None:
    """WITHIN 80 EVENTS: 78 Bs fit between an A and the C; the A before has left the window."""
    stream = "a1 " + "a2 " + "b " * 78 + "c"
    gpms, events = letters(stream)
    plan = compile_query(query("A: B+: C", gpms, "80 EVENTS"))
    answers, suppressed = run(plan, events, limit=1)
    assert len(answers) + suppressed == 2**78 - 1


def test_the_limit_is_per_end_and_partition() -> None:
    """Each C ends two matches in each of two partitions."""
    gpms = {"A": "?a :is ?k", "C": "?c :is ?k"}
    events = []
    for i, (name, key) in enumerate(["Ax", "Ay", "Ax", "Ay", "Cx", "Cy"]):
        values: dict[str, str | None] = {name.lower(): f"<e{i}>", "k": f"<{key}>"}
        events.append(Event(i, 0, 0, {name: [values]}))
    for text in (query("A: C", gpms, partition="PARTITION BY (?k)"), query("A: C", gpms)):
        for plan in plans(text).values():
            answers, suppressed = run(plan, events, limit=1)
            assert [a.end for a in answers] == [(4, 0), (5, 0)]
            assert suppressed == 2


def test_the_limit_counts_answers_not_matches() -> None:
    """HAVING and DISTINCT come first."""
    stream = "a1 a2 a3 c"
    gpms, events = letters(stream, "AC")
    having = query("A: C", gpms) + ' HAVING (?a != "a1")'
    for plan in plans(having).values():
        answers, suppressed = run(plan, events, limit=1)
        assert words(answers, stream) == ["a2 c"]
        assert suppressed == 1
    for plan in plans(query("A: C", gpms, select="DISTINCT ?c")).values():
        assert run(plan, events, limit=1)[1] == 0


def test_two_solutions_of_an_event_are_never_in_one_match() -> None:
    gpms = {"B": "?b :is []"}
    both = [{"b": "<o1>"}, {"b": "<o2>"}]
    events = [Event(0, 0, 0, {"B": both}), Event(0, 0, 1, {"B": both})]
    for plan in plans(query("B+", gpms)).values():
        answers, _ = run(plan, events)
        assert [len(a.trace) for a in answers] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("sequence", "evaluator"),
    [
        ("A: B: C", "compiled-chain"),
        ("A: B+: C", "compiled-compact"),
        ("A; B+; D*; C", "compiled-compact"),
    ],
)
def test_what_is_held_does_not_grow_with_the_stream(sequence: str, evaluator: str) -> None:
    """Compares the kept nodes after 2,000 and after 10,000 events, with a window of 50."""
    gpms, _ = letters("", "ABCD")
    text = query(sequence, _used(gpms, sequence), "50 EVENTS")
    plan = compile_query(text, options=CompileOptions(evaluator=evaluator))
    _, events = letters("a b b d " * 2500, "ABCD")
    stage = SequenceStage(plan, StageOptions(limit_per_event=1))
    sizes = []
    for start in range(0, 10_000, 2_000):
        stage.push(batch(plan, events[start : start + 2_000]))
        stage.advance(events[start + 1_999].time)
        sizes.append(len(stage.snapshot()))
    assert max(sizes) < 2.2 * sizes[0]


def test_a_snapshot_of_one_evaluator_does_not_fit_another() -> None:
    gpms, _ = letters(STREAM)
    found = plans(query("A: B: C", gpms))
    assert len({plan.signature.fingerprint for plan in found.values()}) == len(found)


def _many(count: int, strategy: str = "") -> tuple[object, list[Event]]:
    gpms, events = letters("a " + "b " * count + "c")
    plan = compile_query(query("A: B+: C", gpms, select=f"{strategy} *"))
    assert plan.sequence.evaluator.name == "compiled-compact"
    return plan, events


def _used(gpms: dict[str, str], sequence: str) -> dict[str, str]:
    return {name: pattern for name, pattern in gpms.items() if name in sequence}
