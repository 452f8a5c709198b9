"""Times and windows near the bounds of int64: all evaluators agree, or a query is refused."""

from __future__ import annotations

from random import Random

import pytest

import spaseq
from spaseq import Engine, Event
from spaseq.errors import QueryError
from spaseq.rdf.terms.times import LIMIT_MS, LONGEST_MS
from tests.sizes import sizes

PLAIN = """DEFINE GPM A ON S { ?a <http://e/is> "A" ; <http://e/v> ?v }
DEFINE GPM B ON S { ?b <http://e/is> "B" ; <http://e/v> ?w }
DEFINE GPM C ON S { ?c <http://e/is> "C" ; <http://e/v> ?u }"""
CORRELATED = PLAIN.replace("?w }", "?w FILTER (?w >= ?v) }")

SEQUENCES = {
    "chain": ("A; B; C", PLAIN),
    "simultaneous": ("A: B", PLAIN),
    "gap": ("A;[{gap} MILLISECONDS] B", PLAIN),
    "repetition": ("A; B+; C", PLAIN),
    "registers": ("A; B; C", CORRELATED),
    "register kernel": ("A; B+; C", CORRELATED),
    "negation": ("A; B!; C", PLAIN),
    "negation at the end": ("A; B!", PLAIN),
    "any order": ("A: B: C", CORRELATED),
}

EVALUATORS = ((), ("compiled-runs",), ("shared-runs", "compiled-runs"), ("lazy-operands",))
"""Rules without which other evaluators run the query."""


def query(name: str, window: str, gap: int) -> str:
    sequence, gpms = SEQUENCES[name]
    used = [line for line in gpms.splitlines() if line.split()[2] in sequence]
    text = sequence.format(gap=gap)
    lines = "\n".join(used)
    return f"SELECT * WITHIN {window} FROM STREAM S <http://e/s> SEQ({text}) {{ {lines} }}"


def events(random: Random, times: list[int]) -> list[Event]:
    return [
        Event(
            f'<http://e/x{i}> <http://e/is> "{random.choice("AABBC")}" ; '.replace(" ; ", " .\n")
            + f'<http://e/x{i}> <http://e/v> "{random.randrange(4)}"'
            "^^<http://www.w3.org/2001/XMLSchema#integer> .",
            time,
        )
        for i, time in enumerate(times)
    ]


def spread(random: Random) -> list[int]:
    """Ascending times at both ends, in the middle, and a longest window apart."""
    most = LIMIT_MS - 1
    middle = random.choice([0, -most + LONGEST_MS, most - LONGEST_MS])
    places = [-most, most, middle, middle + LONGEST_MS, middle - LONGEST_MS]
    near = [place + random.randint(-2, 2) for place in places for _ in range(5)]
    return sorted(max(-most, min(most, time)) for time in near)


@sizes(4, 12, 60)
@pytest.mark.parametrize("name", SEQUENCES)
def test_evaluators_agree_near_the_bounds(name: str, examples: int) -> None:
    found = 0
    for seed in range(examples):
        random = Random(f"{name}:{seed}")
        length = random.choice([LONGEST_MS, LONGEST_MS - 1, 1])
        kind = random.choice(["", " TUMBLING", " TUMBLING FROM 9999-12-31T23:59:59Z"])
        text = query(name, f"{length} MILLISECONDS{kind}", random.choice([1, LONGEST_MS]))
        given = events(random, spread(random))
        expected = None
        for disable in EVALUATORS:
            matches = spaseq.run(text, {"S": given}, runtime="local", disable=disable)
            answers = [(m.answer.first, m.answer.end, m.answer.bindings) for m in matches]
            engine = Engine(text, disable=disable)
            pushed = [m for e in given for m in engine.push("S", e.graph, e.time)] + engine.close()
            assert [(m.answer.first, m.answer.end, m.answer.bindings) for m in pushed] == answers
            expected = answers if expected is None else expected
            assert answers == expected, (disable, text)
        found += len(expected or ())
    assert found > 0


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        (f"{LONGEST_MS} MILLISECONDS", None),
        (f"{LONGEST_MS + 1} MILLISECONDS", "long-duration"),
        ("999999999999999 DAYS", "long-duration"),
        ("999999999999999 DAYS TUMBLING", "long-duration"),
        ("9" * 5000 + " DAYS", "syntax"),
        (f"{2**60} EVENTS", None),
        (f"{2**63} EVENTS", "long-window"),
        ("9" * 5000 + " EVENTS", "syntax"),
        (
            "1 DAYS TUMBLING FROM '292278994-01-01T00:00:00Z'^^<http://www.w3.org/2001/XMLSchema#dateTime>",
            "not-a-time",
        ),
    ],
)
def test_windows_have_a_bound(clause: str, code: str | None) -> None:
    text = query("chain", clause, 1)
    if code is None:
        Engine(text)
        return
    with pytest.raises(QueryError) as caught:
        Engine(text)
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_gaps_have_a_bound() -> None:
    for operator in (";", ",", ":"):
        with pytest.raises(QueryError) as caught:
            Engine(query("chain", "1 DAYS", 1).replace("A; B", f"A{operator}[{'9' * 30} DAYS] B"))
        assert [d.code for d in caught.value.diagnostics] == ["long-duration"]


def test_a_count_window_at_the_bound() -> None:
    given = events(Random(1), list(range(12)))
    small = query("registers", "100 EVENTS", 1)
    large = query("registers", f"{2**60} EVENTS", 1)
    for disable in EVALUATORS:
        pair = [
            [
                m.answer.bindings
                for m in spaseq.run(t, {"S": given}, runtime="local", disable=disable)
            ]
            for t in (small, large)
        ]
        assert pair[0] == pair[1] != []


FAR_YEARS = [
    "292278994-08-17T07:12:55.807Z", "292278995-01-01T00:00:00Z", "-292275055-05-16T16:47:04.192Z",
    "-0001-01-01T00:00:00Z", "9999-12-31T24:00:00Z", "999999999-01-01T00:00:00Z",
    "99999999999999999999-01-01T00:00:00Z", "-999999999-12-31T23:59:59+14:00",
]  # fmt: skip


def test_evaluators_agree_on_dates_beyond_int64() -> None:
    """The first and the third one are the bounds of int64 in milliseconds."""
    date_time = "http://www.w3.org/2001/XMLSchema#dateTime"
    given = [
        Event(f'<http://e/a> <http://e/p> "{text}"^^<{date_time}> .', time)
        for time, text in enumerate(FAR_YEARS)
    ]
    text = """SELECT ?t ?u (YEAR(?u) AS ?year) WITHIN 1 MINUTES FROM STREAM S <http://e/s>
        SEQ(A; B) { DEFINE GPM A ON S { ?x <http://e/p> ?t }
                    DEFINE GPM B ON S { ?z <http://e/p> ?u FILTER (?u < ?t) } }"""
    found = [
        [m.answer.bindings for m in spaseq.run(text, {"S": given}, runtime="local", disable=rules)]
        for rules in EVALUATORS
    ]
    assert all(answers == found[0] for answers in found)
    pairs = {(dict(b)["t"].split('"')[1], dict(b)["u"].split('"')[1]) for b in found[0]}
    assert (FAR_YEARS[1], FAR_YEARS[2]) in pairs
    assert (FAR_YEARS[3], FAR_YEARS[7]) in pairs
    assert (FAR_YEARS[0], FAR_YEARS[1]) not in pairs
