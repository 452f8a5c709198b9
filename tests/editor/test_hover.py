"""What an editor shows beside a word."""

from __future__ import annotations

import pytest

from spaseq.editor.document import Document
from spaseq.editor.hover import hover
from spaseq.editor.vocabulary import Vocabulary
from tests.editor.queries import QUERY, at


def knowledge() -> Vocabulary:
    vocabulary = Vocabulary()
    street = "<http://traffic.example/ns#Street>"
    rdfs = "http://www.w3.org/2000/01/rdf-schema#"
    vocabulary.add(
        [
            (street, f"<{rdfs}label>", '"Straße"@de'),
            (street, f"<{rdfs}label>", '"street"@en'),
            (street, f"<{rdfs}label>", '"ulice"@cs'),
            (street, f"<{rdfs}comment>", '"A [link](x) *road*"'),
            ("<http://example/x>", f"<{rdfs}subClassOf>", street),
        ]
    )
    return vocabulary


def shown(place: int, text: str = QUERY) -> str:
    found = hover(Document(text), place, knowledge())
    assert found is not None
    return found.text


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        (at("?room"), ["GPM `Low` over `S`: a triple pattern of the event, line 11"]),
        (at("?room"), ["GRAPH `<http://example/kb>`, line 14"]),
        (at("?more"), ["GPM `High` over `S`: BIND, line 15"]),
        (at("?high"), ["a group variable"]),
        (at("?mean"), ["SELECT: AS gives it a value, line 4"]),
        (at("t:Street"), ["<http://traffic.example/ns#Street>", "**street** class"]),
        (at("t:Street"), [r"A \[link\]\(x\) \*road\*"]),
        (at("Low:"), ["GPM `Low` over `S` (`http://example/readings`), line 11", "`?low`"]),
        (at("Low)"), ["GPM `Low`"]),
        (at("Off)"), ["GPM `Off`"]),
        (at("S {"), ["stream `S` (`http://example/readings`). GPMs over it: `Low`, `High`"]),
        (at("http://example/kb"), ["a graph of the knowledge base"]),
        (at(": High"), ["Skip-till-any"]),
        (at("+["), ["Once or more often"]),
        (at("; 5 SECONDS"), ["Skip-till-next"]),
        (at("UNTIL"), ["the loop ends where"]),
        (at("WITHIN"), ["How far apart"]),
        (at("AVG"), ["AVG([DISTINCT] expression)", "the mean"]),
        (at("a t:"), ["rdf:type"]),
    ],
)
def test_hover(place: int, parts: list[str]) -> None:
    for part in parts:
        assert part in shown(place)


def test_nothing_in_comments() -> None:
    assert hover(Document(QUERY), 3, Vocabulary()) is None


def test_unknown_names() -> None:
    text = "SELECT * SEQ(A) { DEFINE GPM B ON T { ?x foaf:name ?y ; no:p 1 } }"
    assert "no DEFINE GPM" in shown(text.index("A)"), text)
    assert "no FROM STREAM" in shown(text.index("T {"), text)
    assert "PREFIX foaf: <http://xmlns.com/foaf/0.1/>" in shown(text.index("foaf"), text)
    assert "`no:` is not declared" in shown(text.index("no:p"), text)


def test_a_broken_gpm() -> None:
    text = "SELECT ?x SEQ(A) { DEFINE GPM A ON S { ?x ?p } }"
    assert "GPM `A` mentions it, line 1" in shown(text.index("?x"), text)
