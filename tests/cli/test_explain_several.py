"""`spaseq explain` of several queries: each below its name; with --analyze others feed it."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_run import Place, place

__all__ = ["place"]

ALERTS = """PREFIX : <http://example/>
REGISTER STREAM <http://example/drops> AS
CONSTRUCT { ?s :fell ?p2 } WITHIN 1 MINUTES PARTITION BY (?s)
FROM STREAM S1 <http://example/stream?a=1>
WHERE {
  SEQ(A; B)
  DEFINE GPM A ON S1 { ?s :price ?p1 }
  DEFINE GPM B ON S1 { ?s :price ?p2 FILTER(?p2 < ?p1) }
}"""

READER = """PREFIX : <http://example/>
SELECT ?s WITHIN 1 MINUTES
FROM STREAM D <http://example/drops>
WHERE { SEQ(F) DEFINE GPM F ON D { ?s :fell ?p } }"""


@pytest.fixture
def queries(place: Place) -> list[str]:
    place.write("reader.rq", READER)
    place.write("alerts.rq", ALERTS)
    return ["reader.rq", "alerts.rq"]


def test_text_has_each_query_below_its_name(place: Place, queries: list[str]) -> None:
    done = place.spaseq("explain", *queries)
    assert done.status == 0
    headings = [line for line in done.out.splitlines() if line.startswith("# ")]
    automata = ["# plan", "# automaton (G-NFA)"]
    assert headings == ["# together", "# query reader", *automata, "# query alerts", *automata]


def test_text_says_what_queries_have_in_common(place: Place) -> None:
    text = """PREFIX : <http://example/> SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
        WHERE { SEQ(A; B) DEFINE GPM A ON S { ?x :kind :k%d ; :price ?p FILTER (?p > %d) }
        DEFINE GPM B ON S { ?y :price ?q FILTER (?q < ?p - %d) } }"""
    for i in range(9):
        place.write(f"q{i}.rq", text % (i % 4, 10 + i, i))
    place.write("other.rq", text.replace("; B", ": B") % (1, 2, 3))
    done = place.spaseq("explain", *(f"q{i}.rq" for i in range(9)), "other.rq")
    common = done.out.split("# together\n\n")[1].split("\n\n# query")[0]
    assert common.splitlines() == [
        "queries    10: 1 family, and 1 by themselves",
        "family     q0, q1 and 7 more: one automaton, and a table of constants with 9 rows",
        "  A: ?x :kind *, by term (hash)",
        "  A: ?p > *, by value (sorted thresholds)",
        "  B: ?q < ?p - *, a column of partial matches",
        "  B: solutions are made once for all members",
        "patterns   3 basic graph patterns for 20 GPMs",
        "  shared by 10 GPMs of 10: ?y :price ?q",
        "  shared by 9 GPMs of 9: ?x :kind * . ?x :price ?p",
    ]


def test_text_says_which_queries_by_themselves_are_matched_together(place: Place) -> None:
    text = """PREFIX : <http://example/> SELECT ?x WITHIN %d MINUTES FROM STREAM S <http://example/s>
        WHERE { SEQ(A) DEFINE GPM A ON S { ?x :kind :k%d ; %s } }"""
    others = [":price ?p", ":cost ?y", "?z ?p", ":a ?u ; :b ?v"]
    for i in range(8):
        place.write(f"q{i}.rq", text % (i + 1, i, others[0 if i < 3 else 1 + i % 3]))
    done = place.spaseq("explain", *(f"q{i}.rq" for i in range(8)))
    (line,) = (line for line in done.out.splitlines() if line.startswith("matched"))
    assert line == (
        "matched    8 queries by themselves together: 3 templates, each for several of 7 GPMs "
        "that are equal but for names and constants"
    )
    few = place.spaseq("explain", *(f"q{i}.rq" for i in range(7)))
    assert "matched    " not in few.out


def test_text_says_which_families_are_matched_together(place: Place) -> None:
    text = """PREFIX : <http://example/> SELECT ?x WITHIN %d MINUTES FROM STREAM S <http://example/s>
        WHERE { SEQ(A; B) DEFINE GPM A ON S { ?x :kind :k%d } DEFINE GPM B ON S { %s } }"""
    for i in range(27):
        other = "?x :price ?p" if i % 3 < 2 else "?x :cost ?p"
        place.write(f"q{i:02}.rq", text % (i % 3 + 1, i, other))
    done = place.spaseq("explain", *(f"q{i:02}.rq" for i in range(27)))
    common = done.out.split("# together\n\n")[1].split("\n\n# query")[0].splitlines()
    assert common[0] == "queries    27: 3 families"
    (line,) = (line for line in common if line.startswith("matched"))
    assert line == (
        "matched    3 families together: 3 joint tables of constants for 6 GPMs, with 54 rows"
    )


def test_json_is_an_array(place: Place, queries: list[str]) -> None:
    found = json.loads(place.spaseq("explain", "--format", "json", *queries).out)
    assert [each["query"] for each in found] == ["reader", "http://example/drops"]


def test_one_query_is_as_before(place: Place, queries: list[str]) -> None:
    assert place.spaseq("explain", "reader.rq").out.startswith("# plan\n")
    assert json.loads(place.spaseq("explain", "--format", "json", "reader.rq").out)["gpms"]


@pytest.mark.parametrize("form", ["svg", "mermaid", "dot"])
def test_a_picture_is_of_one_query(form: str, place: Place, queries: list[str]) -> None:
    done = place.spaseq("explain", "--format", form, *queries)
    assert (done.status, done.out) == (2, "")
    assert f"--format {form} is a picture of one query" in done.err


def test_all_errors_of_all_queries(place: Place) -> None:
    place.write("one.rq", READER.replace("SEQ(F)", "SEQ(G)"))
    place.write("two.rq", READER.replace("SEQ(F)", "SEQ(H)"))
    done = place.spaseq("explain", "one.rq", "two.rq")
    assert done.status == 1
    assert "no GPM is called G" in done.err and "no GPM is called H" in done.err


def test_analyze_feeds_a_reader(place: Place, queries: list[str]) -> None:
    given = ["--analyze", "--stream", "S1=stream.nq", "--format", "json"]
    done = place.spaseq("explain", *queries, *given)
    assert done.status == 0, done.err
    rows = [{n["node"]: n["rows"] for n in q["analysis"]["nodes"]} for q in json.loads(done.out)]
    assert (rows[0]["stream D"], rows[0]["GPM F"], rows[0]["sequence"]) == (2, 2, 2)
    assert (rows[1]["stream S1"], rows[1]["sequence"]) == (3, 2)
    assert place.spaseq("explain", *queries, *given, "--runtime", "spark").status == 2
