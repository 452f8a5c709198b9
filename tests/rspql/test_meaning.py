"""Translated queries give what RSP-QL's definition gives, at each close of their windows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import spaseq
from tests.rspql.oracle import Asked, Window, answered, drawn_events, expected
from tests.sizes import THOROUGH

W1 = Window(":w1", ":s", 4, 2)
W2 = Window(":w2", ":t", 4, 2)
LONG = Window(":w2", ":t", 6, 2)
TWICE = Window(":w2", ":s", 8, 2)
STORED = [(":a", ":r", ":x"), (":b", ":r", ":y"), (":x", ":in", ":z")]

ONE = [
    ("?s ?v", "WINDOW :w1 { ?s :v ?v }", ""),
    ("?s ?v ?o", "WINDOW :w1 { ?s :v ?v . ?s :r ?o FILTER(?v > 1) }", ""),
    ("DISTINCT ?s", "WINDOW :w1 { ?s :v ?v }", ""),
    ("?s", "WINDOW :w1 { ?s :v ?v } FILTER(?v >= 2)", ""),
    ("?s (COUNT(?v) AS ?n)", "WINDOW :w1 { ?s :v ?v }", "GROUP BY ?s"),
    ("?s (SUM(?v) AS ?n)", "WINDOW :w1 { ?s :v ?v }", "GROUP BY ?s HAVING(COUNT(?v) > 1)"),
    ("?s ?v", "WINDOW :w1 { ?s :v ?v OPTIONAL { ?s :r ?o } FILTER(!BOUND(?o)) }", ""),
    ("?s ?v", "WINDOW :w1 { ?s :v ?v FILTER NOT EXISTS { ?s :r ?o } }", ""),
    ("?s ?o", "WINDOW :w1 { ?s :r/:v ?o }", ""),
    ("?s ?v", "{ WINDOW :w1 { ?s :v ?v } } UNION { WINDOW :w1 { ?s :r ?v } }", ""),
    ("?s ?v", "WINDOW :w1 { ?s :v ?v } MINUS { WINDOW :w1 { ?s :r ?o } }", ""),
    ("?s ?n", "{ SELECT ?s (MAX(?v) AS ?n) { WINDOW :w1 { ?s :v ?v } } GROUP BY ?s }", ""),
    ("?s ?v", "WINDOW :w1 { ?s :v ?v } ?s :r ?place", ""),
    ("?s ?z", "WINDOW :w1 { ?s :v ?v } ?s :r ?place . ?place :in ?z", ""),
    ("?s ?v", "WINDOW :w1 { ?s :v ?v } FILTER NOT EXISTS { ?s :r ?place }", ""),
    ("?s ?p", "WINDOW :w1 { ?s ?p ?v } OPTIONAL { ?s :r ?place }", ""),
]
TWO = [
    ("?s ?v ?w", "WINDOW :w1 { ?s :v ?v } WINDOW :w2 { ?s :v ?w }", ""),
    ("?s ?v ?w", "WINDOW :w1 { ?s :v ?v } WINDOW :w2 { ?s :v ?w } FILTER(?v < ?w)", ""),
    ("?v ?w", "WINDOW :w1 { ?s :v ?v . ?s :r ?o } WINDOW :w2 { ?o :v ?w }", ""),
    ("?s ?v ?n", "WINDOW :w1 { ?s :v ?v } WINDOW :w2 { ?s :v ?w } BIND(?v + ?w AS ?n)", ""),
    ("?s (COUNT(*) AS ?n)", "WINDOW :w1 { ?s :v ?v } WINDOW :w2 { ?s :v ?w }", "GROUP BY ?s"),
    ("?s ?v", "{ WINDOW :w1 { ?s :v ?v } } UNION { WINDOW :w2 { ?s :v ?v } }", ""),
    ("?s ?v ?w", "WINDOW :w1 { ?s :v ?v } OPTIONAL { WINDOW :w2 { ?s :v ?w } }", ""),
    ("?s ?v", "WINDOW :w1 { ?s :v ?v } MINUS { WINDOW :w2 { ?s :r ?o } }", ""),
    ("?s ?v", "WINDOW :w1 { ?s :v ?v } FILTER NOT EXISTS { WINDOW :w2 { ?s :r ?o } }", ""),
    ("?s ?v", "WINDOW :w1 { ?s :v ?v } WINDOW :w2 { :a :v 1 }", ""),
    ("?s ?o", "WINDOW :w1 { ?s :r [ :v ?v ] } WINDOW :w2 { ?s :r ?o }", ""),
    ("DISTINCT ?s", "WINDOW :w1 { ?s :v ?v } WINDOW :w2 { ?s :v ?w } ?s :r ?place", ""),
]
CASES = [
    *((case, windows, operator) for case in ONE for windows in [(W1,)] for operator in "RID"),
    *((case, (W1, other), operator) for case in TWO for other in (W2, LONG, TWICE)
      for operator in "RID"),
]  # fmt: skip


def question(case: tuple[str, str, str], windows: tuple[Window, ...], operator: str) -> Asked:
    """The question of a case."""
    items, where, tail = case
    stored = STORED if "?place" in where else ()
    return Asked(f"SELECT {items}", where, windows, f"{operator}STREAM", tail, stored)


def _variables(asked: Asked) -> list[str]:
    words = asked.select.replace("(", " ").replace(")", " ").split()
    computed = [b for a, b in pairwise(words) if a == "AS"]
    plain = [w for w in asked.select.split() if w.startswith("?") and not w.endswith(")")]
    return sorted({v.strip("?)") for v in (*computed, *plain)})


NUMBERS = [
    pytest.param(number, marks=() if number % 3 == (number // 3 + number // 9) % 3 else THOROUGH)
    for number in range(len(CASES))
]
"""By default each case and its windows have one of the three operators."""


@pytest.mark.parametrize("number", NUMBERS)
def test_rspql(number: int, tmp_path: Path) -> None:
    asked = question(*CASES[number])
    query = spaseq.translate(asked.rspql())
    events = drawn_events(number, [":s", ":t"])
    found = answered(query, events, asked.stored, _variables(asked), tmp_path)
    assert found == expected(asked, events), query


MERGED = [
    ("?s ?v", "?s :v ?v", "", ()),
    ("?s ?v ?o", "?s :v ?v . ?s :r ?o", "", ()),
    ("?s (COUNT(?v) AS ?n)", "?s :v ?v", "GROUP BY ?s", ()),
    ("?s ?v ?o", "?s :v ?v ; :r ?o", "", STORED),
    ("?s (COUNT(?o) AS ?n)", "?s :v ?v ; :r ?o", "GROUP BY ?s", STORED),
    ("?s ?z", "?s :v ?v ; :r [ :in ?z ]", "", STORED),
    ("?s ?v", "?s :v ?v FILTER NOT EXISTS { ?s :r ?o }", "", STORED),
    ("?s (COUNT(?v) AS ?n)", "?s :v ?v", "GROUP BY ?s HAVING(?n > 1)", ()),
]


@pytest.mark.parametrize("windows", [(W1,), (W1, W2)])
@pytest.mark.parametrize("number", range(len(MERGED)))
def test_csparql(number: int, windows: tuple[Window, ...], tmp_path: Path) -> None:
    items, where, tail, stored = MERGED[number]
    asked = Asked(f"SELECT {items}", where, windows, "RSTREAM", tail, stored)
    query = spaseq.translate(asked.csparql())
    events = drawn_events(number + 100, [":s", ":t"])
    tail = tail.replace("?n >", "COUNT(?v) >")  # a name of SELECT in HAVING is C-SPARQL's
    standard = Asked(f"SELECT {items}", where, windows, "RSTREAM", tail, stored)
    found = answered(query, events, stored, _variables(asked), tmp_path)
    assert found == expected(standard, events, merged=True), query


def test_ask_is_a_value_at_each_close(tmp_path: Path) -> None:
    asked = Asked("ASK", "WINDOW :w1 { ?s :v 1 }", (W1,))
    events = drawn_events(7, [":s"])
    found = answered(spaseq.translate(asked.rspql()), events, (), ["ask"], tmp_path)
    assert found == expected(asked, events)
    assert len({row for _, row in found}) == 2


def test_any_window(tmp_path: Path) -> None:
    """WINDOW ?w is one window after the other: it does not join what two of them have."""
    asked = Asked("SELECT ?s ?v ?o", "WINDOW ?w { ?s :v ?v ; :r ?o }", (W1, W2))
    events = drawn_events(8, [":s", ":t"])
    variables = ["o", "s", "v"]
    found = answered(spaseq.translate(asked.rspql()), events, (), variables, tmp_path)
    assert found == expected(asked, events)


def test_the_time_of_a_triple(tmp_path: Path) -> None:
    """`f:timestamp` is the latest time at which the window has a triple."""
    text = """REGISTER QUERY q AS PREFIX : <http://e/>
        PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>
        SELECT ?a ?b FROM STREAM :s [RANGE 10s STEP 10s]
        WHERE { ?a :likes ?o . ?b :likes ?o
                FILTER(f:timestamp(?b, :likes, ?o) > f:timestamp(?a, :likes, ?o)) }"""
    events = {
        ":s": [
            (1, [(":ann", ":likes", ":x")]),
            (2, [(":bob", ":likes", ":x")]),
            (3, [(":ann", ":likes", ":x"), (":cy", ":likes", ":x")]),
        ]
    }
    found = answered(spaseq.translate(text), events, (), ["a", "b"], tmp_path)
    names = {(a[10:-1], b[10:-1]) for _, (a, b) in found if a and b}
    assert names == {("bob", "ann"), ("bob", "cy")}
