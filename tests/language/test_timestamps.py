"""TIMESTAMP(A), the time of the last event of A, in FILTERs of negated steps."""

from __future__ import annotations

import pytest

import spaseq
from spaseq import Event
from tests.language.test_tables import RUNTIMES


def run(sequence: str, condition: str, words: str, runtime: str) -> list[str]:
    """The answers as words. Each word is an event of the GPM with its letter, one per second."""
    text = " ".join(
        f"DEFINE GPM {x} ON S {{ ?{x} <http://example/is> {x!r} "
        f"{f'FILTER({condition})' if x == 'N' else ''} }}"
        for x in "ABCN"
        if x in sequence
    )
    query = f"""PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    SELECT * WITHIN 1 MINUTES FROM STREAM S <http://example/s> WHERE {{ SEQ({sequence}) {text} }}"""
    given = words.split()
    stream = [
        Event(f'<http://example/{w}> <http://example/is> "{w[0].upper()}" .', 1000 * i)
        for i, w in enumerate(given)
    ]
    matches = spaseq.run(query, {"S": stream}, runtime=runtime)
    return [" ".join(given[round(t.time.timestamp())] for t in m.trace) for m in matches]


def seconds(operator: str, second: int) -> str:
    return f'TIMESTAMP(A) {operator} "1970-01-01T00:00:0{second}Z"^^xsd:dateTime'


@pytest.mark.each_once
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("sequence", "condition", "words", "answers"),
    [
        # Inside a repetition: the A of the same repetition as N.
        ("(A; N!; B){2}", seconds(">=", 3), "a1 n1 b1 a2 b2", ["a1 b1 a2 b2"]),
        ("(A; N!; B){2}", seconds(">=", 3), "a1 b1 x a2 n2 b2", []),
        ("(A; N!; B){2}", seconds("<", 3), "a1 n1 b1 a2 b2", []),
        ("(A; N!; B){2}", seconds("<", 3), "a1 b1 x a2 n2 b2", ["a1 b1 a2 b2"]),
        # ... and an A before the repetition, with its value at that point.
        ("(A; (C; N!; B)+){2}", seconds("=", 0), "a1 c1 n1 b1 a2 c2 b2", []),
        ("(A; (C; N!; B)+){2}", seconds(">", 0), "a1 c1 n1 b1 a2 c2 b2", ["a1 c1 b1 a2 c2 b2"]),
        ("(A+; N!; B){2}", seconds("=", 1), "a1 a2 n1 b1 a3 b2", ["a1 b1 a3 b2"]),
        # An A that is bound only later: the value in the whole match.
        ("(C; N!; B)+; A", seconds("=", 3), "c1 n1 b1 a1", []),
        ("(C; N!; B)+; A", seconds("=", 3), "c1 n1 b1 x a1", ["c1 b1 a1"]),
    ],
)
def test_a_negated_step_inside_a_repetition(
    sequence: str, condition: str, words: str, answers: list[str], runtime: str
) -> None:
    assert run(sequence, condition, words, runtime) == answers


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_same_time_is_the_same_term_everywhere(runtime: str) -> None:
    """TIMESTAMP, NOW() and EVENT AT bind terms that join, with fractions of a second, too."""
    query = """SELECT (TIMESTAMP(A) AS ?time) ?now ?at (TIMESTAMP(A) + ?none AS ?later)
    WITHIN 1 MINUTES FROM STREAM S <http://example/s>
    FROM WINDOW W ON S RANGE 2 EVENTS EACH EVENT WHERE { SEQ(A; B)
    DEFINE GPM A ON S { ?x <http://example/a> ?none BIND(NOW() AS ?now) }
    DEFINE GPM B ON W { BIND(TIMESTAMP(A) AS ?at) EVENT AT ?at { ?y ?p ?o } } }"""
    duration = "<http://www.w3.org/2001/XMLSchema#dayTimeDuration>"
    stream = [
        Event(f'<http://example/x> <http://example/a> "PT0.25S"^^{duration} .', 1500),
        Event('<http://example/x> <http://example/b> "2" .', 2000),
    ]
    (match,) = spaseq.run(query, {"S": stream}, runtime=runtime)
    found = {name: str(match.bindings[name])[1:25] for name in ("time", "now", "at", "later")}
    half = '1970-01-01T00:00:01.5Z"^'
    assert found == {"time": half, "now": half, "at": half, "later": '1970-01-01T00:00:01.75Z"'}
