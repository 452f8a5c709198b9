"""Triple terms (RDF 1.2): kept in events and KBs, joined, and printed in every format."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib

import spaseq
from spaseq.cli.main import main
from tests.language.test_tables import RUNTIMES

E = "http://example/"
CLAIM = f'<<( <{E}road> <{E}jam> "heavy"@en )>>'
NESTED = f"<<( _:b <{E}says> {CLAIM} )>>"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
STAMP = '"2020-01-01T00:00:0{}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
OTHER = f"<<( <{E}a> <{E}b> <{E}c> )>>"
KB = f"<{E}police> <{E}confirms> {CLAIM} .\n<{E}police> <{E}confirms> {OTHER} ."

QUERY = f"""PREFIX : <{E}>
SELECT ?who ?claim ?source ?by WITHIN 1 MINUTES
FROM STREAM S <{E}s> FROM NAMED <{E}kb>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?who :says ?claim }}
  DEFINE GPM B ON S {{ ?source :repeats ?claim GRAPH <{E}kb> {{ ?by :confirms ?claim }} }}
}}"""


def stream(claim: str, graphs: str = "", apart: str = "\n") -> str:
    first = f"_:b <{E}says> {claim} {graphs.format(1)}.{apart}"
    second = f"<{E}paper> <{E}repeats> {claim} {graphs.format(2)}.{apart}"
    times = [f"<{E}g{n}> {TIME} {STAMP.format(n)} {graphs.format(n)}.{apart}" for n in (1, 2)]
    return first + times[0] + second + times[1]


def trig(claim: str) -> str:
    lines = stream(claim, apart="\n\n").split("\n\n")
    return "".join(f"<{E}g{n + 1}> {{ {' '.join(lines[2 * n : 2 * n + 2])} }}\n" for n in (0, 1))


FILES = {
    "s.nq": stream(CLAIM, graphs=f"<{E}g{{}}> "),
    "s.nt": stream(CLAIM),
    "s.ttl": stream(CLAIM),
    "s.trig": trig(CLAIM),
}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", FILES)
def test_a_triple_term_joins_events_and_knowledge(tmp_path: Path, name: str, runtime: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    (tmp_path / "kb.ttl").write_text(KB)
    per_event = None if name in ("s.nq", "s.trig") else 2
    (match,) = spaseq.run(
        QUERY,
        {"S": tmp_path / name},
        {f"{E}kb": tmp_path / "kb.ttl"},
        runtime=runtime,
        triples_per_event=per_event,
    )
    assert match.bindings["claim"] == CLAIM
    assert match.bindings["by"] == f"<{E}police>"


def test_a_pushed_triple_term_joins(tmp_path: Path) -> None:
    (tmp_path / "kb.nt").write_text(KB)
    engine = spaseq.Engine(QUERY, {f"{E}kb": tmp_path / "kb.nt"})
    found = [*engine.push("S", f"_:b <{E}says> {CLAIM} .", 1000)]
    triple = next(iter(ox.parse(f"<{E}p> <{E}repeats> {CLAIM} .", ox.RdfFormat.N_TRIPLES)))
    found += engine.push("S", [(triple.subject, triple.predicate, triple.object)], 2000)
    found += engine.close()
    assert [m.bindings["claim"] for m in found] == [CLAIM]


def run_cli(tmp_path: Path, query: str, form: str, claim: str = CLAIM) -> str:
    (tmp_path / "s.nq").write_text(stream(claim, graphs=f"<{E}g{{}}> "))
    (tmp_path / "q.rq").write_text(query)
    out = tmp_path / f"out.{form}"
    with pytest.raises(SystemExit) as ended:
        options = f"--stream S={tmp_path}/s.nq --runtime local --format {form} --out {out}"
        main(["run", str(tmp_path / "q.rq"), *options.split()])
    assert ended.value.code in (0, None)
    return out.read_bytes().decode()


PLAIN = f"""PREFIX : <{E}>
SELECT ?claim WITHIN 1 MINUTES FROM STREAM S <{E}s>
WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?who :says ?claim }}
         DEFINE GPM B ON S {{ ?x :repeats ?claim }} }}"""

GRAPHS = PLAIN.replace("SELECT ?claim", "CONSTRUCT { :claims :are ?claim . ?claim :no :subject }")

AS_JSON = {
    "type": "triple",
    "value": {
        "subject": {"type": "uri", "value": f"{E}road"},
        "predicate": {"type": "uri", "value": f"{E}jam"},
        "object": {"type": "literal", "value": "heavy", "xml:lang": "en"},
    },
}


def test_the_formats_of_select(tmp_path: Path) -> None:
    assert json.loads(run_cli(tmp_path, PLAIN, "jsonl"))["bindings"] == {"claim": AS_JSON}
    results = json.loads(run_cli(tmp_path, PLAIN, "json"))
    assert results["results"]["bindings"] == [{"claim": AS_JSON}]
    tsv = run_cli(tmp_path, PLAIN, "tsv")
    assert tsv.splitlines() == ["?claim", CLAIM]
    rows = list(csv.reader(run_cli(tmp_path, PLAIN, "csv").splitlines()))
    assert rows == [["claim"], [CLAIM]]


@pytest.mark.parametrize("form", ["nquads", "trig"])
def test_the_formats_of_construct(tmp_path: Path, form: str) -> None:
    text = run_cli(tmp_path, GRAPHS, form)
    rdf_format = ox.RdfFormat.N_QUADS if form == "nquads" else ox.RdfFormat.TRIG
    objects = {str(q.object) for q in ox.parse(text, rdf_format) if q.predicate.value == f"{E}are"}
    assert objects == {CLAIM[4:-4]}
    assert f"<{E}no>" not in text  # a triple term is no subject


def test_construct_as_jsonl(tmp_path: Path) -> None:
    (triple,) = json.loads(run_cli(tmp_path, GRAPHS, "jsonl"))["graph"]
    assert triple["object"] == AS_JSON


def test_blank_nodes_inside_a_triple_term_belong_to_their_event(tmp_path: Path) -> None:
    query = PLAIN.replace("?claim WITHIN", "?who ?claim ?b WITHIN").replace(
        ":repeats ?claim", ":repeats ?b"
    )
    binding = json.loads(run_cli(tmp_path, query, "jsonl", NESTED))["bindings"]
    inner, other = (binding[name]["value"]["subject"] for name in ("claim", "b"))
    assert inner == binding["who"]  # the same node of the same event
    assert inner != other
    assert binding["claim"]["value"]["object"] == AS_JSON


FILTERS = {
    "ISIRI(?claim)": False,
    "ISBLANK(?claim)": False,
    "ISLITERAL(?claim)": False,
    "sameTerm(?claim, ?again)": True,
    "?claim = ?again": True,
    "?claim != ?again": False,
    "STR(?claim) = ''": False,
    "?claim < ?again": False,
    "?claim IN (1, ?again)": True,
    "BOUND(?claim)": True,
}


def test_functions_of_triple_terms() -> None:
    triples = f"<{E}s> <{E}p> {CLAIM} . <{E}s> <{E}q> {CLAIM} .".replace(" . ", " .\n")
    event = spaseq.Event(triples, 0, f"{E}e")
    for condition, holds in FILTERS.items():
        query = f"""PREFIX : <{E}> SELECT ?s WITHIN 1 MINUTES FROM STREAM S <{E}s> WHERE {{
            SEQ(A) DEFINE GPM A ON S {{ ?s :p ?claim ; :q ?again FILTER ({condition}) }} }}"""
        found = list(spaseq.run(query, {"S": [event]}, runtime="local"))
        assert bool(found) is holds, condition


def test_terms_for_users() -> None:
    term = spaseq.Term(NESTED)
    assert term.kind == "triple"
    s, p, o = term.to_python()
    assert (s, p, o) == ("_:b", f"<{E}says>", CLAIM)
    assert o.to_python()[2].to_rdflib() == rdflib.Literal("heavy", lang="en")
    with pytest.raises(ValueError, match="rdflib has no triple terms"):
        term.to_rdflib()


def test_reifiers_in_turtle(tmp_path: Path) -> None:
    """`<< s p o >>` names a triple term that `rdf:reifies` leads to."""
    (tmp_path / "s.trig").write_text(
        f"""PREFIX : <{E}> :g {{ << :road :jam "heavy"@en >> :by :ada .
        :g {TIME} {STAMP.format(1)} }}"""
    )
    query = f"""PREFIX : <{E}> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
    SELECT ?claim ?who WITHIN 1 MINUTES FROM STREAM S <{E}s>
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?r rdf:reifies ?claim ; :by ?who }} }}"""
    (match,) = spaseq.run(query, {"S": tmp_path / "s.trig"}, runtime="local")
    assert match.bindings["claim"] == CLAIM
