"""FILTERs between steps that Python evaluates for the register kernel, once for the same terms."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pytest

from spaseq.automaton.registers.compiled import answer_grid, answers
from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, Values, query, run
from tests.automaton.keyed_streams import (
    KEYED,
    agreed,
    in_pieces,
    integer,
    plans,
    solutions,
    stream,
    used,
)
from tests.thresholds import forced

WORDS = ["up", "down", "open", "shut", "on", "off"]

STEPS = {
    **KEYED,
    "P": "?p :k ?k ; :v ?vp FILTER(?vp - ?va > 10)",
    "Q": "?q :k ?k ; :v ?vq FILTER(?vq > ?va + 50 || ?vq < ?va - 50)",
    "X": "?x :k ?k ; :v ?vx FILTER(STRENDS(STR(?vx), SUBSTR(STR(?va), 1, 1)))",
    "Y": "?y :k ?k ; :v ?vy FILTER(COALESCE(STR(?vy) > STR(PREV(?vy)), true))",
    "Z": "?z :k ?k ; :v ?vz FILTER(?vz > ?va && STRLEN(STR(?vz)) + ?vb > STRLEN(STR(?va)) + ?vz)",
    "M": "?m :k ?k ; :v ?vm FILTER(?vm + SECONDS(NOW()) > ?va + SECONDS(TIMESTAMP(A)))",
    "U": "?u :k ?k ; :v ?vu FILTER(STRENDS(STR(?vu), SUBSTR(STR(?va), 1, 1)))",
    "V": "?v :k ?k ; :v ?vv FILTER(?vv + SECONDS(NOW()) > ?va + 30)",
    "AA": "?aa :k ?k ; :v ?vaa FILTER(COALESCE(AVG(?vaa) < ?va + 20, true))",
    "CC": "?cc :k ?k ; :v ?vcc FILTER(COUNT(DISTINCT ?vcc) < 4)",
    "GG": "?gg :k ?k ; :v ?vgg FILTER(STRLEN(GROUP_CONCAT(?vgg; SEPARATOR='-')) < 9)",
    "II": "?ii :k ?k ; :v ?vii FILTER(!CONTAINS(STR(LIST(?vii)), '7'))",
    "LL": "?ll :k ?k ; :v ?vll FILTER(STRLEN(STR(LIST(?vll))) < ?va + 90)",
    "HH": "?hh :k ?k ; :v ?vhh FILTER(?vhh > AVG(?vr) || COUNT(DISTINCT ?vr) > 2)",
    "MM": "?mm :k ?k ; :v ?vmm FILTER(SUM(?vmm) > ?va && NOW() > TIMESTAMP(R) || COUNT(?vmm) < 3)",
    "O": "?o :k ?k ; :v ?vo FILTER(!BOUND(?vb) || STR(?vo) > STR(?vb))",
}


def names_in(sequence: str) -> list[str]:
    """The GPMs of a sequence."""
    return [*dict.fromkeys(re.findall("[A-Z]+", sequence.replace("UNTIL", "")))]


def asking(
    sequence: str, window: str = "30 SECONDS", partition: str = ""
) -> tuple[QueryPlan, QueryPlan]:
    """The plans of a sequence, compiled and not."""
    names = {name: STEPS[name] for name in names_in(sequence)}
    compiled, python = plans(query(sequence, names, window, partition=partition))
    assert isinstance(SequenceStage(compiled)._sequencer, RunSequencer)
    return compiled, python


SEQUENCES = [
    "A; P",
    "A: Q",
    "A; X; C",
    "A; Y+; C",
    "A; Y++; C",
    "A; Y+[:] UNTIL N; C",
    "A; B; Z",
    "A; M",
    "A; B?; O",
    "A; (P | X); C",
    "A, Q",
    "A; N!; X",
    "A; Y{2,80}; C",
    "A; B; X+",
    "A; U!; C",
    "A: V!; B; U!; C",
    "A; R+ UNTIL U; C",
    "A; R++ UNTIL V; C",
    "A; B?; J",
    "A: B*; J; C",
]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_answers_are_those_of_registers(sequence: str) -> None:
    compiled, python = asking(sequence)
    names = names_in(sequence)
    assert agreed(compiled, python, stream(names, 400, 2, 4, ties=True), pieces=[1, 37])


def _hashed(monkeypatch: pytest.MonkeyPatch, words: str) -> str:
    """Thresholds to force; answers are hashed if `words` are "hashed"."""
    if words != "hashed":
        return words
    monkeypatch.setattr(answer_grid, "_MOST_BYTES", 0)
    return "few_rows=0"


@pytest.mark.parametrize("words", ["few_rows=0", "few_rows=never", "hashed"])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_answers_in_columns_are_those_one_by_one(
    monkeypatch: pytest.MonkeyPatch, sequence: str, words: str
) -> None:
    words = _hashed(monkeypatch, words)
    compiled, python = asking(sequence, "60 SECONDS")
    events = stream(names_in(sequence), 300, 2, 6, ties=True)
    expected = run(python, events)[0]
    with forced(words):
        assert run(compiled, events)[0] == expected
        assert in_pieces(compiled, events, (1, 50)) == expected


OVER_TEXTS = [
    "STRENDS(STR(?y), SUBSTR(STR(?x), 2))",
    "CONTAINS(?y, ?x)",
    "STRSTARTS(?y, STRBEFORE(CONCAT(STR(?x), 'b'), 'b'))",
    "CONTAINS(UCASE(STR(?y)), REPLACE(UCASE(STR(?x)), 'A+', 'A'))",
    "STRLEN(STR(?y)) > STRLEN(STR(COALESCE(?x, ?y)))",
    "!STRENDS(COALESCE(STRAFTER(?y, 'a'), STR(?y)), STR(?x))",
    "STRSTARTS(STR(?y), LANG(?x)) && STRLEN(?x) < 9",
    "IF(STRLEN(?x) > 2, STRENDS(?y, ?x), STRSTARTS(?x, ?y))",
]
OF_REPETITIONS = "STRSTARTS(STR(?y), STR(PREV(?y))) || !BOUND(PREV(?y)) && STRENDS(?y, ?x)"
TEXTS = ['"a"', '"ab"', '""', '"bab"@en', '"a"@en', "<ab>", "<b>", '"aab"', integer(7), '"b"@de']


@pytest.mark.each_once
@pytest.mark.parametrize("words", ["", "few_rows=0", "hashed", "least"])
@pytest.mark.parametrize(
    ("condition", "sequence"),
    [*product(OVER_TEXTS, ["A; B", "A: B", "A; B+", "A; B!; C"]), (OF_REPETITIONS, "A; B+")],
)
def test_filters_over_texts(
    monkeypatch: pytest.MonkeyPatch, condition: str, sequence: str, words: str
) -> None:
    words = _hashed(monkeypatch, words)
    steps = {
        "A": "?a :x ?x",
        "B": f"?b :y ?y FILTER({condition})",
        "C": "?c :z ?z",
    }
    names = [name for name in steps if name in sequence]
    window = "9 SECONDS" if "+" in sequence else "30 SECONDS"
    compiled, python = plans(query(sequence, {n: steps[n] for n in names}, window))
    assert isinstance(SequenceStage(compiled)._sequencer, RunSequencer)
    random, events = Random(condition), list[Event]()
    for i in range(200):
        name = random.choice(names)
        values: Values = {name.lower(): f"<e{random.randrange(3)}>"}
        values["xyz"["ABC".index(name)]] = random.choice(TEXTS)
        events.append(Event(1000 * (i - i % 2), 0, i % 2, {name: [values]}))
    with forced(words):
        assert agreed(compiled, python, events, (37, 1), (60,))


MAYBE = "{ ?%s :b ?b } UNION { ?%s :u 1 }"
OPTIONAL_STEPS = {
    "A": "?a :k ?k ; :v ?va",
    "B": f"?x :k ?k ; :v ?vx . {MAYBE % ('x', 'x')}",
    "C": f"?c :k ?k ; :v ?vc . {MAYBE % ('c', 'c')}",
    "J": "?j :k ?k ; :j ?b ; :v ?vj",
    "F": "?f :k ?k ; :v ?vf FILTER(!BOUND(?b) || STR(?b) < 'e2')",
    "N": "?n :k ?k ; :b ?b",
}


@pytest.mark.parametrize(
    "sequence",
    [
        "A; B; C",
        "B: C",
        "A: B; B",
        "C; F",
        "B: J; C",
        "(A; B+): F",
        "B, C: F",
        "A; B?; C",
        "J: C; J",
        "J; B: C; J",
    ],
)
def test_joins_with_what_may_be_unbound(sequence: str) -> None:
    """A solution that leaves a variable unbound joins with any, and the run keeps its value."""
    names = {name: OPTIONAL_STEPS[name] for name in names_in(sequence)}
    text = query(sequence, names, "20 SECONDS", partition="PARTITION BY (?k)")
    compiled, python = plans(text)
    assert isinstance(SequenceStage(compiled)._sequencer, RunSequencer)
    random, events = Random(5), list[Event]()
    for i in range(300):
        name = random.choice([*names])
        low = {"B": "x"}.get(name, name.lower())
        values: Values = {low: f"<o{i % 3}>", "k": f"<k{i % 2}>"}
        values[f"v{low}"] = integer(random.randrange(2))
        if name in "BCJ":
            values["b"] = random.choice(["<e1>", "<e2>", *([None] if name != "J" else [])])
        events.append(Event(1000 * i, 0, 0, {name: [values]}))
    assert agreed(compiled, python, events, restarts=[90])


def test_pairs_with_equal_or_missing_names() -> None:
    """A plain loop over the events pairs what has equal names, or no name."""
    maybe = MAYBE % ("x", "x")
    text = query("B: B", {"B": f"?x :v ?vx . {maybe}"}, "6 SECONDS")
    compiled, _ = plans(text)
    assert isinstance(SequenceStage(compiled)._sequencer, RunSequencer)
    random, rows, events = Random(5), list[tuple[str | None, int]](), list[Event]()
    for i in range(200):
        name, number = random.choice(["<e1>", "<e2>", None]), random.randrange(3)
        rows.append((name, number))
        values: Values = {"x": f"<o{i % 4}>", "vx": integer(number), "b": name}
        events.append(Event(1000 * i, 0, 0, {"B": [values]}))
    expected = [
        (1000 * i, 1000 * j)
        for i, (name, number) in enumerate(rows)
        for j in range(i + 1, min(i + 7, len(rows)))
        if i % 4 == j % 4
        and number == rows[j][1]
        and (None in (name, rows[j][0]) or name == rows[j][0])
    ]
    found = [(answer.first[0], answer.end[0]) for answer in run(compiled, events)[0]]
    assert sorted(found) == sorted(expected) and found


OF_WHOLE_RUNS = [
    "A; AA+; C",
    "A: CC{1,4}; B",
    "A; GG+[:] UNTIL N; C",
    "A; II+[:]; C",
    "A; R+; HH; C",
    "A; R+; MM*; C",
    "A; (GG | CC)+; C",
    "A; (R; II)+; C",
    "(R | A)+",
    "A; LL+",
]
"""FILTERs that depend on all that a run has taken."""


@pytest.mark.parametrize("sequence", OF_WHOLE_RUNS)
def test_filters_that_read_whole_runs(monkeypatch: pytest.MonkeyPatch, sequence: str) -> None:
    compiled, python = asking(sequence, "15 SECONDS", "PARTITION BY (?k)")
    events = stream(names_in(sequence), 160, 2, 4, ties=True)
    assert agreed(compiled, python, events, pieces=[1, 37], restarts=[80])
    monkeypatch.setattr(answers, "_FEW", 2)
    monkeypatch.setattr(answers, "_MOST", 4)
    with forced("least"):
        assert in_pieces(compiled, events, [50]) == run(python, events)[0]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_table_that_is_too_small(monkeypatch: pytest.MonkeyPatch, sequence: str) -> None:
    """It is emptied, and grows where one instant needs more."""
    monkeypatch.setattr(answers, "_FEW", 2)
    monkeypatch.setattr(answers, "_MOST", 4)
    monkeypatch.setattr(answers, "_NOTED", 1)
    monkeypatch.setattr(answer_grid, "_MOST_BYTES", 0)
    compiled, python = asking(sequence)
    names = names_in(sequence)
    events = stream(names, 300, 2, 5)
    assert run(compiled, events)[0] == run(python, events)[0]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_few_answers_at_once(monkeypatch: pytest.MonkeyPatch, sequence: str) -> None:
    """The kernel asks again for those that it could not note."""
    monkeypatch.setattr(answers, "_NOTED", 2)
    monkeypatch.setattr(answers, "_FEW", 4)
    compiled, python = asking(sequence)
    events = stream(names_in(sequence), 200, 2, 7)
    assert run(compiled, events)[0] == run(python, events)[0]


def test_a_loop_that_is_entered_again_has_no_repetition_before() -> None:
    rises = "FILTER(COALESCE(STR(?vy) > STR(PREV(?vy)), true))"
    text = query("(A; Y{1,2}){2}", {"A": "?a :v ?va", "Y": f"?y :v ?vy {rises}"}, "20 SECONDS")
    compiled, python = plans(text)
    random, events = Random(6), list[Event]()
    for i in range(150):
        low = random.choice("ay")
        values = {low: f"<e{i}>", f"v{low}": integer(random.randrange(100))}
        events.append(Event(1000 * i, 0, 0, {low.upper(): [values]}))
    assert agreed(compiled, python, events, restarts=[70])


def test_words_in_order() -> None:
    """A plain loop over the events says which words are later in the alphabet."""
    text = query(
        "A; W",
        {"A": "?a :k ?k ; :v ?va", "W": "?w :k ?k ; :v ?vw FILTER(STR(?vw) > STR(?va))"},
        "20 SECONDS",
    )
    compiled, _ = plans(text)
    random, rows, events = Random(7), list[tuple[str, str, str]](), list[Event]()
    for i in range(500):
        name, word = random.choice("AW"), random.choice(WORDS)
        values = solutions(random, name, f'"{word}"', 3)
        rows.append((name, str(values[0]["k"]), word))
        events.append(Event(1000 * i, 0, 0, {name: values}))
    expected = []
    for i, (name, key, word) in enumerate(rows):
        for j in range(i + 1, min(i + 21, len(rows))):
            if name == "A" and rows[j][:2] == ("W", key) and rows[j][2] > word:
                expected.append((1000 * i, 1000 * j))
                break
    found = [(answer.first[0], answer.end[0]) for answer in run(compiled, events)[0]]
    assert sorted(found) == sorted(expected) and found


def test_ids_of_terms_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are forgotten when terms are."""
    forgotten, forget = list[None](), answers.AskedAnswers.forget

    def noted(own: answers.AskedAnswers) -> None:
        forgotten.append(forget(own))

    monkeypatch.setattr(answers.AskedAnswers, "forget", noted)
    compiled, python = asking("A; X", "5 SECONDS")
    random, events = Random(3), list[Event]()
    for i in range(1500):
        name = random.choice("AX")
        values = solutions(random, name, integer(i * 7919 % 100_003), 2)
        events.append(Event(1000 * i, 0, 0, {name: values}))
    with forced("least"):
        found = in_pieces(compiled, events, [50])
    assert found == run(python, events)[0] and len(forgotten) > 5


def test_distinct_words_so_far() -> None:
    """A plain loop over the events counts the words that a match has."""
    loop = "FILTER(COUNT(DISTINCT ?vw) < 3)"
    text = query(
        "A; W+", {"A": "?a :k ?k ; :v ?va", "W": f"?w :k ?k ; :v ?vw {loop}"}, "20 SECONDS"
    )
    compiled, _ = plans(text)
    assert isinstance(SequenceStage(compiled)._sequencer, RunSequencer)
    random, rows, events = Random(8), list[tuple[str, str, str]](), list[Event]()
    for i in range(200):
        name, word = random.choice("AW"), random.choice(WORDS)
        values = solutions(random, name, f'"{word}"', 3)
        rows.append((name, str(values[0]["k"]), word))
        events.append(Event(1000 * i, 0, 0, {name: values}))
    expected = []
    for i, (name, key, _) in enumerate(rows):
        words = set[str]()
        for j in range(i + 1, min(i + 21, len(rows))):
            own = name == "A" and rows[j][:2] == ("W", key)
            if own and len(words | {rows[j][2]}) < 3:
                words.add(rows[j][2])
                expected.append((1000 * i, 1000 * j))
    found = [(answer.first[0], answer.end[0]) for answer in run(compiled, events)[0]]
    assert sorted(found) == sorted(expected) and found


def test_waiting_runs_are_not_looked_at_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds of terms that have come before need no look at what waits."""
    looks = 0
    live_runs = RunSequencer.live_runs

    def counted(sequencer: RunSequencer) -> int:
        nonlocal looks
        looks += 1
        return live_runs(sequencer)

    monkeypatch.setattr(RunSequencer, "live_runs", counted)
    plan, _ = plans(query("A; C", used("AC")))
    assert in_pieces(plan, stream("AC", 400, 9, 3), [10])
    assert looks == 0


@pytest.mark.parametrize("size", [4, 9, 60])
def test_texts_among_the_first_terms_ask_for_tests_with_other_formulas(size: int) -> None:
    """The program that begins anew compares `?va + 1`, which the one before left to no run."""
    names = {
        "A": KEYED["A"],
        "C": "?c :k ?k ; :v ?vc FILTER(?vc >= ?va)",
        "P": "?p :k ?k ; :v ?vp FILTER(?vp != ?va + 1) FILTER(?vp > ?vc)",
    }
    compiled, python = plans(query("A; (C | P)", names))
    found = []
    for seed in range(20):
        random, values = Random(seed), [*map(integer, range(4)), '"1"']
        drawn = [(random.choice("AACP"), random.choice(values)) for _ in range(size)]
        events = [
            Event(1000 * n, 0, 0, {name: solutions(random, name, value, 1)})
            for n, (name, value) in enumerate(drawn)
        ]
        found += agreed(compiled, python, events, pieces=[size, 1], restarts=[size // 2])
    assert found
