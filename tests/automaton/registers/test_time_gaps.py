"""Times of events in compiled registers: what compiles, and the same answers as in Python."""

from __future__ import annotations

from random import Random

import pytest

import spaseq
from spaseq import Event
from spaseq.automaton.registers.filter_tests import TimeGap, gap_of
from spaseq.compile import compile_query
from spaseq.lang import ast
from spaseq.lang.parser import parse
from spaseq.lang.variables import walk
from tests.docs.language_page import NS, expand

XSD = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
A, B, NOW = ast.Timestamp(ast.Ref("A")), ast.Timestamp(ast.Ref("B")), ast.Call("NOW", ())


def length(text: str) -> str:
    return f'"{text}"^^xsd:dayTimeDuration'


@pytest.mark.parametrize(
    ("condition", "gap"),
    [
        (f"NOW() - TIMESTAMP(A) < {length('PT5M')}", TimeGap(NOW, "<", A, 300_000)),
        (f"{length('PT5M')} < NOW() - TIMESTAMP(A)", TimeGap(NOW, ">", A, 300_000)),
        (f"TIMESTAMP(B) - TIMESTAMP(A) = {length('-PT0.5S')}", TimeGap(B, "=", A, -500)),
        (f"NOW() <= TIMESTAMP(A) + {length('PT1S')}", TimeGap(NOW, "<=", A, 1000)),
        (f"{length('PT1S')} + NOW() <= TIMESTAMP(A)", TimeGap(NOW, "<=", A, -1000)),
        (f"NOW() - {length('PT1S')} != TIMESTAMP(A)", TimeGap(NOW, "!=", A, 1000)),
        ("TIMESTAMP(B) > TIMESTAMP(A)", TimeGap(B, ">", A, 0)),
        (
            f"(NOW() + {length('PT1S')}) - TIMESTAMP(A) >= {length('PT3S')}",
            TimeGap(NOW, ">=", A, 2000),
        ),
        # None: they need the values as they are.
        (f"NOW() - TIMESTAMP(A) < {length('PT0.0001S')}", None),
        (f"NOW() - TIMESTAMP(A) < {length('5M')}", None),
        ('NOW() - TIMESTAMP(A) < "P1M"^^xsd:yearMonthDuration', None),
        (f"NOW() - TIMESTAMP(A) < {length('P99999999999D')}", None),
        ("NOW() - TIMESTAMP(A) < 5", None),
        ("NOW() < ?deadline", None),
        (f"{length('PT1S')} < {length('PT2S')}", None),
    ],
)
def test_gap_of(condition: str, gap: TimeGap | None) -> None:
    query = parse(XSD + expand(["SEQ(A; B)", f"B: FILTER({condition})"]))
    (compared,) = (node for node in walk(query) if isinstance(node, ast.Compare))
    assert gap_of(compared.op, compared.left, compared.right) == gap


COMPILED = [
    ("SEQ(A; B)", f"B: FILTER(NOW() - TIMESTAMP(A) <= {length('PT3S')})"),
    ("SEQ(A; B)", f"B: FILTER(NOW() - TIMESTAMP(A) > {length('PT1.5S')})"),
    ("SEQ(A; B)", f"B: FILTER(TIMESTAMP(A) + {length('PT2S')} = NOW())"),
    ("SEQ(A; B)", f"B: FILTER(NOW() != TIMESTAMP(A) + {length('PT2S')})"),
    ("SEQ(A; B+; C)", f"B: FILTER(NOW() - TIMESTAMP(A) < {length('PT4S')})"),
    ("SEQ(A: B+[:]; C)", f"C: FILTER(NOW() - TIMESTAMP(B) >= {length('PT2S')})"),
    ("SEQ(A: B; C)", f"C: FILTER(TIMESTAMP(B) - TIMESTAMP(A) <= {length('PT2S')})"),
    ("SEQ(A: B; C)", "C: FILTER(NOW() - TIMESTAMP(A) >= " + length("PT2S") + " && ?c >= ?a)"),
    ("SEQ(A; B?; C)", f"C: FILTER(TIMESTAMP(B) - TIMESTAMP(A) < {length('PT3S')})"),
    ("SEQ(A+; B)", f"B: FILTER(NOW() - TIMESTAMP(A) > {length('PT1S')})"),
    ("SEQ(A; B)", "B: FILTER(SECONDS(NOW()) > 3)"),
    ("SEQ(A; B)", f"B: FILTER(NOW() - TIMESTAMP(A) < {length('PT0.0001S')})"),
    ("SEQ(A; B!; C)", f"B: FILTER(NOW() - TIMESTAMP(A) < {length('PT2S')})"),
]


def query_of(sequence: str, condition: str) -> str:
    return XSD + expand([f"WITHIN 8 SECONDS {sequence}", condition])


@pytest.mark.parametrize(("sequence", "condition"), COMPILED)
def test_the_answers_are_those_in_python(sequence: str, condition: str) -> None:
    query = query_of(sequence, condition)
    plan = compile_query(query)
    assert plan.sequence.evaluator.name == "compiled-registers"
    found = 0
    for seed in range(6):
        chance, time = Random(seed), 0
        events = []
        for _ in range(14):
            time += chance.choice([0, 500, 1000, 1000, 2000])
            letter, value = chance.choice("aabbc"), chance.randrange(3)
            events.append(Event(f'<{NS}it> <{NS}{letter}> "{value}"^^{INTEGER} .', time))
        streams = {"S": events, "T": []}
        compiled = [m.answer for m in spaseq.run(query, streams, runtime="local")]
        python = [
            m.answer for m in spaseq.run(query, streams, runtime="local", disable=["compiled-runs"])
        ]
        engine = spaseq.Engine(query)
        pushed = [m for e in events for m in engine.push("S", e.graph, e.time)]
        pushed += engine.close()
        assert compiled == python == [m.answer for m in pushed]
        found += len(compiled)
    assert found
