"""Shrunk examples on which engine and oracle once disagreed; they must agree now.

An event is `KIND VALUE @SECONDS`; all events are on one stream. GPM X matches the events of kind X
unless the case defines it otherwise.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.oracle.agreement import Tally, compare
from tests.oracle.draw_events import NS, STREAMS, Arrivals, number, term
from tests.oracle.strategies import Case

CASES = {
    "UNTIL stops no first repetition that its FILTER does not let it stop": (
        "A+ UNTIL U",
        "WITHIN 5 EVENTS",
        {
            "A": "[] ex:v ?a",
            "U": '[] ex:v ?u FILTER(NOW() < "1970-01-01T00:00:03Z"^^xsd:dateTime)',
        },
        "A@1 A@2 A@3 A@5",
    ),
    "one more repetition of a greedy loop counts its own inner repetitions": (
        "(B{2})++",
        "WITHIN 3 SECONDS",
        {},
        "B@2 B@3 B@4 B@5",
    ),
    "an operand of AND is a match by itself, whatever the other operand takes": (
        "A ; (A , B AND C+)",
        "WITHIN 1 SECONDS",
        {"C": "[] ex:v ?c"},
        "A@0 A@0 A@0 B@0 B@0 B@0 C@0 C@0",
    ),
    "an event that one operand of AND takes still forestalls in the other": (
        "(A , B AND (C ; D | E))",
        "WITHIN 1 SECONDS",
        {"A": "[] ex:v ?a", "B": "[] ex:v ?b"},
        "C@2 C@2 D@2 D@2",
    ),
    "a strict operand of AND beside an older partial match": (
        "(A AND (B , C AND D))",
        "WITHIN 1 SECONDS TUMBLING FROM 1970-01-01T00:00:02Z",
        {"A": "[] ex:v ?a", "B": "[] ex:v ?b"},
        "A@0 C@1 C@1 D@1 D@1",
    ),
    "a group variable of the other operand of AND, in a later interval": (
        "((A , B | C)+ AND D)",
        "WITHIN 1 SECONDS TUMBLING FROM 1970-01-01T00:00:02Z",
        {"D": "[] ex:v ?d FILTER(FIRST(?c) >= 0)"},
        "A@0 C@1 D@1",
    ),
    "an older solution of one event twice, before a tumbling interval ends": (
        "((A : B{2} | B) AND C AND D)",
        "WITHIN 5 SECONDS TUMBLING FROM 1970-01-01T00:00:02Z",
        {"D": "[] ex:v ?d"},
        "A@5 B@7 C@7 D@7",
    ),
    "TIMESTAMP of an optional step in a negation in last place": (
        "A? , B , C!",
        "WITHIN 1 SECONDS",
        {"C": '[] ex:v ?c FILTER(TIMESTAMP(A) < "1970-01-01T00:00:04Z"^^xsd:dateTime)'},
        "A@0 B@0 C@0",
    ),
    "TIMESTAMP in a negated step inside a repetition is of that repetition": (
        "(A ; D! ; B){2}",
        "WITHIN 9 SECONDS",
        {"D": '[] ex:is ex:D FILTER(TIMESTAMP(A) >= "1970-01-01T00:00:03Z"^^xsd:dateTime)'},
        "A@0 D@1 B@2 A@3 B@5",
    ),
    "what a sub-SELECT sums up is joined with an earlier sum, beside MINUS too": (
        "A : A+",
        "WITHIN 1 SECONDS",
        {
            "A": "?s ex:is ex:A . { SELECT ?s (SUM(?o) AS ?n) WHERE { ?s ex:v ?o } GROUP BY ?s } "
            "MINUS { ?s ex:w 1 }"
        },
        "A0@0 A1@0 A0@1",
    ),
    "a conjunction in last place begins after what it follows": (
        "A , B* , C , D{2} , (E AND C)!",
        "WITHIN 1 SECONDS",
        {},
        "A@2 C@2 D@2 D@2 E@2",
    ),
    "a negated step in a negated bracket counts what the bracket repeats": (
        "(B+ ; D! ; C)! ; A",
        "WITHIN 3 SECONDS",
        {"D": "[] ex:v ?d ; ex:is ex:D . FILTER(COUNT(?b) > 1)"},
        "B@1 B@2 D@3 C@4 A@4 B@10 B@10 D@11 A@12 C@20 B@21 D@22 C@22 A@22 A@30",
    ),
    "a candidate that has passed over a step behind ; forestalls none": (
        "A ; (B ; C AND D)",
        "WITHIN 9 SECONDS",
        {"C": "{ [] ex:is ex:C } UNION { [] ex:is ex:D }"},
        "A@0 B@1 D@2 B@3 C@4",
    ),
    "an aggregate counts the solution that a correlated GPM has on the event": (
        "A ; B+",
        "WITHIN 9 SECONDS",
        {
            "B": "[] ex:v ?b ; ex:is ex:B . OPTIONAL { [] ex:v ?o FILTER(?o < ?a) } "
            "FILTER(SUM(?b) < 3)"
        },
        "A2@0 B1@1 B1@2 B1@3",
    ),
    "TIMESTAMP in a negated step that is correlated": (
        "A ; B ; D!",
        "WITHIN 9 SECONDS",
        {"D": "[] ex:v ?d ; ex:is ex:D . BIND(TIMESTAMP(A) AS ?t) FILTER(!BOUND(?t))"},
        "A@0 B@1 D@2 C@30",
    ),
    "a candidate is whole once its counted loop has enough repetitions": (
        "A ; (B | D{2})",
        "WITHIN 9 SECONDS",
        {},
        "A@0 D@1 B@2 D@3",
    ),
    "a value of BIND over an earlier step, in the order of answers": (
        "A ; B",
        "WITHIN 9 SECONDS",
        {"A": "[] ex:v ?x", "B": "?s ?p ?b BIND(IF(?b = 1, 2 - ?x, 1) AS ?a)"},
        "A0@0 B1@1",
    ),
}


def arrivals(events: str) -> Arrivals:
    """Events from text such as `A 1 @2`; spaces and value are optional."""
    rows: Arrivals = []
    for i, (kind, value, seconds) in enumerate(re.findall(r"([A-Z])(\d*)@(\d+)", events)):
        subject = term("o1")
        triples = [
            (subject, term("is"), term(kind)),
            (subject, term("v"), number(value or "0")),
        ]
        rows.append((int(seconds) * 1000, f"{NS}event/{i}", triples))
    return rows


def query(sequence: str, window: str, patterns: dict[str, str]) -> str:
    names = sorted(set(re.findall(r"\b[A-Z]\b", sequence)))
    own = {x: f"[] ex:v ?{x.lower()} ; ex:is ex:{x}" for x in names}
    gpms = "\n".join(f"DEFINE GPM {x} ON S {{ {(own | patterns)[x]} }}" for x in names)
    return f"""PREFIX ex: <{NS}>
        PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
        SELECT * {window} FROM STREAM S <{STREAMS[0]}>
        WHERE {{ SEQ({sequence})
        {gpms} }}"""


@pytest.mark.parametrize("chance", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_agreement(name: str, chance: int) -> None:
    sequence, window, patterns, events = CASES[name]
    example = Case(query(sequence, window, patterns), frozenset(), {STREAMS[0]: arrivals(events)})
    tally = Tally()
    wrong = compare(example, tally, Random(chance))
    assert wrong is None, f"{wrong.kind}\n{wrong.text}"
    assert not tally.too_big
