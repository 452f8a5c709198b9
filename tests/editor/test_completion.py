"""What is proposed at a place of a query that is being typed."""

from __future__ import annotations

import pytest

from spaseq.editor.completion import completions
from spaseq.editor.document import Document
from spaseq.editor.vocabulary import Vocabulary, add_source
from spaseq.lang.syntax_errors import UNITS
from tests.editor.queries import QUERY, ROOT, marked

HEAD = """\
PREFIX : <http://example/>
PREFIX t: <http://traffic.example/ns#>
SELECT ?a WITHIN 5 MINUTES FROM STREAM S <http://example/s> FROM NAMED <http://example/kb>
WHERE { SEQ(A: B+)
DEFINE GPM A ON S { ?x :p ?a }
"""


@pytest.fixture(scope="module")
def traffic() -> Vocabulary:
    vocabulary = Vocabulary()
    add_source(vocabulary, str(ROOT / "ontologies" / "traffic.ttl"))
    return vocabulary


def labels(text: str, vocabulary: Vocabulary | None = None) -> list[str]:
    plain, offset = marked(text)
    return [c.label for c in completions(Document(plain), offset, vocabulary or Vocabulary())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("‸", ["BASE", "CONSTRUCT", "MAINTAIN", "PREFIX", "REGISTER STREAM", "SELECT", "VERSION"]),
        ("sel‸", ["select"]),
        ("SELECT * WITHIN 5 ‸", ["EVENTS", *UNITS]),
        ("SELECT * WITHIN 5 mi‸", ["milliseconds", "minutes"]),
        ("SELECT * WITHIN 5 MINUTES T‸", ["TUMBLING"]),
        ("SELECT * PARTITION ‸", ["BY"]),
        ("SELECT * AFTER MATCH ‸", ["CONSUME", "MUTE", "NO", "SKIP"]),
        ("SELECT * AFTER MATCH SKIP TO ‸", ["FIRST", "LAST", "NEXT"]),
        ("SELECT * FROM ‸", ["NAMED", "STREAM", "WINDOW"]),
        ("SELECT M‸", ["MAX"]),
        ("SELECT * SEQ(A) { ‸", ["DEFINE GPM"]),
        ("SELECT * SEQ(A) { DEFINE ‸", ["GPM"]),
        ("SELECT * SEQ(A; B) { DEFINE GPM ‸", ["A", "B"]),
        ("SELECT * SEQ(A; B) { DEFINE GPM A ON S {} DEFINE GPM ‸", ["B"]),
        ("SELECT * SEQ(A) { DEFINE GPM A ‸", ["ON"]),
        ("SELECT * SEQ(A) { DEFINE GPM A ON S { ?s ?p ?o } } ‸", ["HAVING"]),
        (
            "SELECT * FROM STREAM S <s> FROM STREAM T <t> SEQ(A) { DEFINE GPM A ON ‸",
            ["S", "T", "NEW", "GONE"],
        ),
        ("SELECT * FROM STREAM ‸ SEQ(A) { DEFINE GPM A ON S1 { ?s ?p ?o } }", ["S1"]),
        ("SELECT * SEQ(‸) { DEFINE GPM A ON S {} DEFINE GPM B ON S {} }", ["A", "B"]),
        ("SELECT * SEQ(A:B‸) { DEFINE GPM A ON S {} DEFINE GPM Bee ON S {} }", ["Bee"]),
        ("SELECT * SEQ((A ‸)) { DEFINE GPM A ON S {} }", ["AND"]),
        ("SELECT * SEQ(A+ ‸) { DEFINE GPM A ON S {} }", ["UNTIL"]),
        ("SELECT * SEQ(A?‸) { DEFINE GPM A ON S { ?x ?y ?z } }", []),
    ],
)
def test_by_place(text: str, expected: list[str]) -> None:
    assert labels(text) == expected


@pytest.mark.parametrize("text", ["# com‸", '?x :p "abc ‸', "?x :p '''abc\nde‸", '?x :p "‸'])
def test_nothing_in_comments_and_strings(text: str) -> None:
    assert labels(f"{HEAD}DEFINE GPM B ON S {{ {text}") == []


@pytest.mark.parametrize(
    ("text", "some", "none"),
    [
        ("?‸", ["?a", "?x"], []),
        ("$‸", ["$a", "$x"], ["?a"]),
        ("?x ‸", ["t:avgSpeed", "a", "?a"], ["t:Street", "FILTER"]),
        ("?x t:sp‸", ["t:speedLimit"], ["t:Street", "?a"]),
        ("?x a ‸", ["t:Street", "t:MainStreet", "?a"], ["t:avgSpeed", "FILTER"]),
        ("?x a main‸", ["t:MainStreet"], ["t:Street"]),
        ("?x a <http://traffic‸", ["<http://traffic.example/ns#Street>"], ["t:Street"]),
        ("?x :p ?a . ‸", ["FILTER", "OPTIONAL", "GRAPH", "?a"], ["WITHIN", "t:Street"]),
        ("?x :p ?a FILTER(‸", ["?a", "EXISTS", "REGEX"], ["WITHIN", "FILTER"]),
        ("?x :p ?a FILTER(?a > 3 && re‸", ["regex", "replace"], ["?a"]),
        ("?x :p ?a FILTER(TIMESTAMP(‸", ["A", "B"], ["?a"]),
        ("GRAPH ‸", [":kb"], ["t:Street"]),
        ('?x :p "1"^^‸', ["xsd:integer"], ["t:Street"]),
        ("?x sosa:‸", ["sosa:"], []),
        ("?x :p ( . ?y ?‸", ["?a", "?x"], []),  # broken before the place
    ],
)
def test_in_a_pattern(text: str, some: list[str], none: list[str], traffic: Vocabulary) -> None:
    found = (
        labels(f"{HEAD}DEFINE GPM B ON S {{ {text} ", traffic)
        if "‸" not in text
        else labels(f"{HEAD}DEFINE GPM B ON S {{ {text}\n}}\n}}", traffic)
    )
    assert set(some) <= set(found)
    assert not set(none) & set(found)


def test_a_term_brings_its_prefix(traffic: Vocabulary) -> None:
    plain, offset = marked(f"{HEAD}DEFINE GPM B ON S {{ ?x a Sens‸ ")
    found = completions(Document(plain), offset, traffic)
    sensor = next(c for c in found if c.label == "sosa:Sensor")
    assert sensor.added == "PREFIX sosa: <http://www.w3.org/ns/sosa/>\n"
    assert plain[sensor.span.start : sensor.span.end] == "Sens"


def test_variables_say_where_they_are() -> None:
    plain, offset = marked(QUERY.replace("SELECT ?room", "SELECT ?‸room"))
    found = completions(Document(plain), offset, Vocabulary())
    assert {c.label: c.detail for c in found}["?room"] == "in Low, High, Off"


def test_functions_of_places_bring_their_prefix() -> None:
    plain, offset = marked(HEAD + "DEFINE GPM B ON S { ?x :p ?b FILTER(geof:sfWi‸")
    (found,) = completions(Document(plain), offset, Vocabulary())
    assert found.text == "geof:sfWithin("
    assert found.detail == "geof:sfWithin(a, b): whether the first geometry lies in the second."
    assert "PREFIX geof: <http://www.opengis.net/def/function/geosparql/>" in found.added
    assert labels(HEAD + "DEFINE GPM B ON S { ?x :p ?b FILTER(geof:dist‸") == ["geof:distance"]
