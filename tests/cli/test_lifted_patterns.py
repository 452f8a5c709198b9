"""`spaseq check Q.rq --lift S=LIFT.rq`: patterns that no graph of a lift can match."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from spaseq.cli.main import cli
from tests.cases.test_tables import REAL_TABLES, STREAMS
from tests.docs.pages import ROOT, blocks, pages
from tests.lift.lifting import PREFIXES

LIFT = f"""{PREFIXES}CONSTRUCT {{
  GRAPH ?e {{ ?c :price ?price ; :kind "trade" ; :of :market ; :note ?note ; a ?class ; :item ?v .
    :market :open ?open . [] :row ?_line }}
  ?e prov:generatedAtTime ?at
}}
WHERE {{
  VALUES ?v {{ :a "b" }}
  BIND (IRI(CONCAT("http://e/trade/", STR(?id))) AS ?e)
  BIND (IRI(CONCAT("http://e/company/", ?ticker)) AS ?c)
  BIND (COALESCE(IRI(?type), "none") AS ?class)
  BIND (xsd:boolean(?isopen) AS ?open)
}}"""


def checked(
    place: Path, query: str, *more: str, lift: str = LIFT
) -> tuple[int, list[tuple[int, int, str, str]]]:
    """(exit status, (line, column, code, message) of each finding)."""
    (place / "q.rq").write_text(query)
    (place / "a.lift.rq").write_text(lift)
    words = ["check", str(place / "q.rq"), "--lift", f"S={place / 'a.lift.rq'}", "--json", *more]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.exception is None, done.exception
    found = json.loads(done.stdout)
    return done.return_value, [
        (one["line"], one["column"], one["code"], one["message"]) for one in found
    ]


def query_of(pattern: str, streams: str = "S") -> str:
    """A query with a GPM, whose pattern begins in the second line."""
    return (
        f"{PREFIXES.replace(chr(10), ' ')} SELECT * WITHIN 1 MINUTES FROM STREAM S <http://e/s> "
        "FROM STREAM T <http://e/t> FROM NAMED <http://e/kb> WHERE { SEQ (A; B) "
        f"DEFINE GPM B ON T {{ ?anything :at ?all }} DEFINE GPM A ON {streams} {{\n{pattern} }} }}"
    )


MATCHED = (
    "?c :price ?p",
    "?c :price 5",
    '?c :price "5"',
    "<http://e/company/IBM> :price ?p ; :kind ?k",
    '?c :kind "trade" ; :of :market ; :of/:open true',
    "?c :of ?m . ?m :open ?o",
    "?c :of ?m . ?m :open true . :market :open ?p",
    "?c a :Trade . ?d a 5",
    "?c :item :z . ?d :item 7",
    "[] :row ?n ; :row 7",
    "?c ?p <http://elsewhere/> . ?x ?p ?y",
    "?c :price|:cost ?p . ?c ^:of ?m . ?c !:nothing ?x . ?c :cost* ?y",
    "?c :price ?p GRAPH <http://e/kb> { ?c :employees ?n OPTIONAL { ?c :ceo ?m } }",
    "?c :price ?p FILTER EXISTS { GRAPH <http://e/kb> { ?c :employees ?n } }",
    "?c :price ?p FILTER (?p > 5) BIND (?p + 1 AS ?q)",
    "{ ?c :price ?p } UNION { ?c :note ?p }",
    "{ SELECT ?c (MAX(?p) AS ?most) { ?c :price ?p } GROUP BY ?c }",
)


@pytest.mark.parametrize("pattern", MATCHED)
def test_patterns_that_may_match(pattern: str, tmp_path: Path) -> None:
    assert checked(tmp_path, query_of(pattern)) == (0, [])


UNMATCHED = (
    ("?c :cost ?p", [1]),
    ("<http://e/firm/IBM> :price ?p", [1]),
    ("<http://e/company> :price ?p", [1]),
    ("?c :price :high", [1]),  # fields are literals
    ("?c :price ?p ; :cost ?q ; :kind ?k", [16]),
    ("?c :price ?p . ?c :prize ?q . ?c :vol ?v", [16, 31]),
    ('?c :kind "quote"', [1]),
    ("?c :of :fair", [1]),
    ('?c :of "market"', [1]),
    ("?e prov:generatedAtTime ?at", [1]),  # it stands outside of the graph
    (":market :row 7", [1]),  # a blank node's
    (":market :open :yes", [1]),
    ("<http://e/company/IBM> :open true", [1]),
    ("?c :price ?p OPTIONAL { ?c :cost ?q }", [25]),
    ("{ ?c :price ?p } UNION { ?c :cost ?p }", [26]),
    ("?c :price ?p MINUS { ?c :cost 5 }", [22]),
    ("?c :price ?p FILTER NOT EXISTS { ?c :cost ?q }", [34]),
    ("{ SELECT ?c { ?c :cost ?p } }", [15]),
    ("?c :kind ?same . ?d :of ?same", [1]),  # each may match, both together not
)


@pytest.mark.parametrize(("pattern", "columns"), UNMATCHED)
def test_patterns_that_never_match(pattern: str, columns: list[int], tmp_path: Path) -> None:
    status, found = checked(tmp_path, query_of(pattern))
    assert status == 0  # warnings are no errors
    assert [(line, column) for line, column, _, _ in found] == [(2, c) for c in columns]
    assert {code for _, _, code, _ in found} == {"pattern-never-matches"}


def test_words_and_the_nearest_predicate(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(query_of("?c :prise ?p . ?c :of :fair"))
    (tmp_path / "a.lift.rq").write_text(LIFT)
    words = ["check", str(tmp_path / "q.rq"), "--lift", f"S={tmp_path / 'a.lift.rq'}"]
    shown = CliRunner().invoke(cli, words, standalone_mode=False).stdout
    lift = tmp_path / "a.lift.rq"
    assert f"q.rq:2:1: warning: no graph of the lift {lift} has a triple with" in shown
    assert "did you mean: http://e/price" in shown
    assert f"q.rq:2:16: warning: no graph of the lift {lift} has such a triple with" in shown


def test_a_stream_that_is_not_lifted_may_have_any_triple(tmp_path: Path) -> None:
    assert checked(tmp_path, query_of("?c :cost ?p", "S, T")) == (0, [])
    other = tmp_path / "b.lift.rq"
    other.write_text(LIFT.replace(":price", ":cost"))
    both = ("--lift", f"T={other}")
    _, found = checked(tmp_path, query_of("?c :cost ?p . ?c :vol ?v", "S, T"), *both)
    of_b, of_a = found
    assert (of_b[0], "http://e/at" in of_b[3]) == (1, True)
    assert (of_a[:2], "http://e/vol" in of_a[3]) == ((2, 15), True)


def test_entailed_triples_are_not_in_the_template(tmp_path: Path) -> None:
    ontology = tmp_path / "o.ttl"
    ontology.write_text(
        "<http://e/price> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <http://e/cost> ."
    )
    entailed = ("--ontology", str(ontology), "--entailment", "rdfs")
    assert checked(tmp_path, query_of("?c :cost ?p"), *entailed) == (0, [])


def test_a_stream_of_rdf_is_not_lifted_by_a_lift_without_name(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(query_of("?c :cost ?p"))
    (tmp_path / "a.lift.rq").write_text(LIFT)
    (tmp_path / "s.nq").write_text(
        '<http://e/c> <http://e/cost> "5" <http://e/g> .\n'
        '<http://e/g> <http://www.w3.org/ns/prov#generatedAtTime> "5" .\n'
    )
    (tmp_path / "t.jsonl").write_text("{}\n")
    words = ["check", str(tmp_path / "q.rq"), "--lift", str(tmp_path / "a.lift.rq"), "--json"]
    alone = json.loads(CliRunner().invoke(cli, words, standalone_mode=False).stdout)
    assert [one["line"] for one in alone] == [1, 2]
    (tmp_path / "kb.ttl").write_text("")
    words += [
        "--kb",
        str(tmp_path / "kb.ttl"),
        "--stream",
        f"S={tmp_path / 's.nq'}",
        "--stream",
        f"T={tmp_path / 't.jsonl'}",
    ]
    beside = json.loads(CliRunner().invoke(cli, words, standalone_mode=False).stdout)
    assert [one["line"] for one in beside if one["code"] != "sample"] == [1]


def test_a_query_with_errors_beside_one_with_a_vain_pattern(tmp_path: Path) -> None:
    (tmp_path / "b.rq").write_text(query_of("?c :price ?p").replace("SEQ (A; B)", "SEQ (A; D)"))
    status, found = checked(tmp_path, query_of("?c :cost ?p"), str(tmp_path / "b.rq"))
    assert status == 1
    assert [code for _, _, code, _ in found] == ["unknown-gpm", "pattern-never-matches"]


def test_mistakes_in_a_lift_are_reported(tmp_path: Path) -> None:
    status, found = checked(tmp_path, query_of("?c :cost ?p"), lift=LIFT.replace("BIND", "BNID"))
    assert status == 1
    assert found


def with_lifts() -> Iterator[tuple[str, str, str]]:
    """(query, its stream, lift) of right queries: those of the cases, and of the page."""
    case = STREAMS / "trades-parquet"
    yield (case / "query.rq").read_text(), "Trades", (case / "trades.lift.rq").read_text()
    for name, lift in REAL_TABLES.items():
        for path in sorted((ROOT / "benchmarks" / "queries").rglob(f"{name}.rq")):
            yield path.read_text(), "", lift
    for page in pages():
        if page.name == "lift.md":
            texts = {b.title: b.text for b in blocks(page) if b.language == "sparql"}
            yield texts["rise.rq"], "Trades", texts["trades.lift.rq"]
            yield texts["slower.rq"], "Readings", texts["readings.lift.rq"]


@pytest.mark.parametrize(("query", "stream", "lift"), [*with_lifts()])
def test_right_queries_have_no_warnings(query: str, stream: str, lift: str, tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(query)
    (tmp_path / "l.rq").write_text(lift)
    value = f"{stream}={tmp_path / 'l.rq'}" if stream else str(tmp_path / "l.rq")
    words = ["check", str(tmp_path / "q.rq"), "--lift", value, "--json"]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert (done.exception, json.loads(done.stdout)) == (None, [])
