"""In any set of folders, each test of the suites runs or is excluded with a reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.w3c.manifests import suite_tests
from tests.w3c.running import Outcome, outcomes

HEAD = """@prefix : <manifest#> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#> .
@prefix qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#> .
@prefix ut: <http://www.w3.org/2009/sparql/tests/test-update#> .
@prefix rdft: <http://www.w3.org/ns/rdftest#> . @prefix ent: <http://www.w3.org/ns/entailment/> .
@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
@prefix dawgt: <http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#> .
"""
SRX = """<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#">
<head><variable name="x"/></head><results>{}</results></sparql>"""
ROW = '<result><binding name="x"><uri>http://e/{}</uri></binding></result>'


class Folder:
    """A folder of a suite, written during the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, encoding="utf-8")

    def manifest(self, tests: dict[str, str], name: str = "manifest.ttl", extra: str = "") -> None:
        entries = " ".join(f":{test}" for test in tests)
        bodies = "\n".join(f":{test} {body} ." for test, body in tests.items())
        self.write(name, f"{HEAD} <> a mf:Manifest ; {extra} mf:entries ( {entries} ) .\n{bodies}")


def verdicts(root: Path) -> dict[tuple[str, str], Outcome]:
    return {(t.id, o.way): o for t in suite_tests(root) for o in outcomes(t)}


def query(data: str, text: str, *, result: str = "r.srx", more: str = "") -> str:
    action = f"[ qt:query <{text}> ; qt:data <{data}> {more} ]"
    return f"a mf:QueryEvaluationTest ; mf:action {action} ; mf:result <{result}>"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "w3c"


def test_manifests_are_found_at_any_depth_and_each_test_is_run_once(root: Path) -> None:
    deep = Folder(root / "rdf12" / "rdf-n-triples" / "syntax")
    deep.write("good.nt", "<http://a> <http://b> <http://c> .\n")
    deep.write("bad.nt", "<http://a> <b> .\n")
    deep.write("star.nt", '<http://a> <http://b> <<( <http://a> <http://b> "c" )>> .\n')
    deep.manifest(
        {
            "good": "a rdft:TestNTriplesPositiveSyntax ; mf:action <good.nt>",
            "bad": "a rdft:TestNTriplesNegativeSyntax ; mf:action <bad.nt>",
            "star": "a rdft:TestNTriplesPositiveSyntax ; mf:action <star.nt>",
        }
    )
    deep.manifest(
        {"good": "a rdft:TestNTriplesPositiveSyntax ; mf:action <good.nt>"}, "manifest-all.ttl"
    )
    top = Folder(root / "rdf11")
    top.write("manifest.ttl", f"{HEAD} <> a mf:Manifest ; mf:include ( <rdf-x/manifest.ttl> ) .")
    found = verdicts(root)
    place = "rdf12/rdf-n-triples/syntax"
    assert {key: o.verdict for key, o in found.items()} == {
        (f"{place}/good", "kernel"): "passed", (f"{place}/good", "knowledge"): "passed",
        (f"{place}/bad", "kernel"): "passed", (f"{place}/bad", "knowledge"): "passed",
        (f"{place}/star", "kernel"): "passed", (f"{place}/star", "knowledge"): "passed",
    }  # fmt: skip


def test_relative_iris_of_all_formats_have_the_manifests_base(root: Path) -> None:
    folder = Folder(root / "rdf11" / "formats")
    row = "<http://base/d/s> <http://base/d/{0}#p> <http://base/o> .\n"
    folder.write("a.ttl", "<s> <#p> <../o> .")
    folder.write("a.trig", "{ <s> <#p> <../o> . }")
    folder.write(
        "a.rdf",
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:d='
        '"http://base/d/a.rdf#"><rdf:Description rdf:about="s"><d:p rdf:resource="../o"/>'
        "</rdf:Description></rdf:RDF>",
    )
    for form in ("ttl", "trig", "rdf"):
        folder.write(f"{form}.nq", row.format(f"a.{form}"))
    folder.manifest(
        {
            "ttl": "a rdft:TestTurtleEval ; mf:action <a.ttl> ; mf:result <ttl.nq>",
            "trig": "a rdft:TestTrigEval ; mf:action <a.trig> ; mf:result <trig.nq>",
            "rdf": "a rdft:TestXMLEval ; mf:action <a.rdf> ; mf:result <rdf.nq>",
        },
        extra="mf:assumedTestBase <http://base/d/> ;",
    )
    found = verdicts(root)
    assert len(found) == 6
    assert {o.verdict for o in found.values()} == {"passed"}, found


KINDS = {
    "update": "a mf:UpdateEvaluationTest ; mf:action [ ut:request <u.ru> ] ; mf:result []",
    "update-old": "a ut:UpdateEvaluationTest ; mf:action [ ut:request <u.ru> ] ; mf:result []",
    "update-syntax": "a mf:PositiveUpdateSyntaxTest11 ; mf:action <u.ru>",
    "protocol": "a mf:ProtocolTest",
    "description": "a mf:ServiceDescriptionTest",
    "store": "a mf:GraphStoreProtocolTest",
    "entails": "a mf:PositiveEntailmentTest ; mf:action <d.ttl> ; mf:result false",
    "new": "a rdft:TestOfAKindYetToCome ; mf:action <gone.xyz>",
    "withdrawn": "a mf:PositiveSyntaxTest11 ; dawgt:approval dawgt:Withdrawn ; mf:action <gone.rq>",
    "elsewhere": "a rdft:TestTurtleEval ; mf:action <https://elsewhere.example/x/a.ttl>",
    "no-result": "a mf:QueryEvaluationTest ; mf:action [ qt:query <q.rq> ; qt:data <d.ttl> ]",
    "binary": "a mf:QueryEvaluationTest ; mf:action [ qt:query <q.rq> ] ; mf:result <r.bin>",
    "rif": query("d.ttl", "q.rq", more="; sd:entailmentRegime ent:RIF"),
    "d": query("d.ttl", "q.rq", more="; sd:entailmentRegime ( ent:D ent:RDF )"),
}


def test_what_is_not_run_is_excluded_by_its_kind(root: Path) -> None:
    folder = Folder(root / "sparql11" / "mixed")
    folder.write("d.ttl", "<http://e/a> <http://e/p> <http://e/b> .")
    folder.write("q.rq", "SELECT ?x { ?x <http://e/p> ?y }")
    folder.manifest(KINDS)
    found = verdicts(root)
    assert {test.rpartition("/")[2] for test, _ in found} == set(KINDS)
    for outcome in found.values():
        assert (outcome.verdict, bool(outcome.reason)) == ("excluded", True), outcome
    assert "TestOfAKindYetToCome" in found["sparql11/mixed/new", "none"].reason


def test_what_is_broken_fails_by_itself(root: Path) -> None:
    folder = Folder(root / "sparql11" / "broken")
    folder.write("q.rq", "SELECT ?x { ?x <http://e/p> ?y }")
    folder.write("latin1.rq", "SELECT ?x { ?x <http://e/p> 'x' }")
    (folder.path / "latin1.rq").write_bytes("SELECT ?x { ?x ?p 'é' }".encode("latin-1"))
    folder.write("d.ttl", "<http://e/a> <http://e/p> <http://e/b> .")
    folder.write("r.srx", SRX.format(ROW.format("a")))
    folder.manifest(
        {
            "good": query("d.ttl", "q.rq"),
            "wrong": query("d.ttl", "q.rq", result="other.srx"),
            "no-query": query("d.ttl", "gone.rq"),
            "latin1": query("d.ttl", "latin1.rq"),
            "no-data": query("gone.ttl", "q.rq"),
            "no-file": "a mf:PositiveSyntaxTest ; mf:action <gone.rq>",
            "no-action": "a rdft:TestTurtleEval",
        }
    )
    folder.write("manifest-bad.ttl", "this is no Turtle")
    found = verdicts(root)
    passed = {key for key, o in found.items() if o.verdict == "passed"}
    assert passed == {("sparql11/broken/good", way) for way in ("evaluator", "engine")}
    failed = {test.rpartition("/")[2] for test, _ in set(found) - passed}
    assert failed == {
        "wrong", "no-query", "latin1", "no-data", "no-file", "no-action", "manifest-bad.ttl",
    }  # fmt: skip
    assert all(o.verdict == "failed" and o.reason for k, o in found.items() if k not in passed)


SCHEMA = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:C rdfs:subClassOf :D . :p rdfs:subPropertyOf :q ; rdfs:domain :C . :q owl:inverseOf :r .
:C a owl:Class . :a :p :b .
"""


@pytest.mark.parametrize("regimes", ["ent:RDFS", "( ent:OWL-RDF-Based ent:RDFS )"])
def test_entailment_tests_run_that_need_the_supported_rules_only(root: Path, regimes: str) -> None:
    folder = Folder(root / "sparql11" / "entailment")
    folder.write("d.ttl", SCHEMA)
    folder.write("more.ttl", SCHEMA + ":C owl:disjointWith :E .")
    folder.write("r.srx", SRX.format(ROW.format("a")))
    patterns = {
        "class": "?x a :D", "inverse": "[] :r ?x", "path": "?x :q/^:q :a",
        "union": "{ ?x :z 1 } UNION { ?x a :C }",
        "schema": "?x rdfs:subClassOf :D", "types": ":a a ?x", "predicates": ":a ?x :b",
    }  # fmt: skip
    tests = {}
    for name, pattern in patterns.items():
        prefixes = "PREFIX : <http://e/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>"
        folder.write(f"{name}.rq", f"{prefixes} SELECT ?x {{ {pattern} }}")
        tests[name] = query("d.ttl", f"{name}.rq", more=f"; sd:entailmentRegime {regimes}")
    tests["inverse"] = tests["inverse"].replace("r.srx", "b.srx")
    tests["rule"] = query("more.ttl", "class.rq", more=f"; sd:entailmentRegime {regimes}")
    tests["simple"] = query("d.ttl", "class.rq", more="; sd:entailmentRegime ent:Simple")
    tests["simple"] = tests["simple"].replace("r.srx", "none.srx")
    folder.write("b.srx", SRX.format(ROW.format("a")))
    folder.write("none.srx", SRX.format(""))
    folder.manifest(tests)
    found = verdicts(root)
    run = {"class", "inverse", "path", "union", "simple"}
    for (test, _), outcome in found.items():
        wanted = "passed" if test.rpartition("/")[2] in run else "excluded"
        assert outcome.verdict == wanted, outcome
    assert "disjointWith" in found["sparql11/entailment/rule", "engine"].reason


@pytest.mark.thorough
def test_the_command_line_runs_any_directory(root: Path) -> None:
    folder = Folder(root / "sparql10" / "basic")
    folder.write("d.ttl", "<http://e/a> <http://e/p> <http://e/b> .")
    folder.write("q.rq", "SELECT ?x { ?x <http://e/p> ?y }")
    folder.write("r.srx", SRX.format(ROW.format("a")))
    folder.manifest({"good": query("d.ttl", "q.rq"), "update": KINDS["update"]})
    command = [sys.executable, "-m", "tests.w3c", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "excluded: sparql10/basic/update (none): a GPM changes nothing" in done.stdout
    folder.manifest({"good": query("d.ttl", "q.rq", result="gone.srx")})
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "failed: sparql10/basic/good (evaluator)" in done.stdout
