"""A class or property never occurs, but one below it does: the report hints at entailment."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

import spaseq
from spaseq.cli.main import cli
from spaseq.options import OntologyInput
from tests.diagnosis.small_streams import NS, query_of

KB = """
@prefix : <http://example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:Van rdfs:subClassOf :Car . :Car rdfs:subClassOf :Vehicle . :Boat rdfs:subClassOf :Ship .
:connected rdfs:subPropertyOf :near . :holds owl:inverseOf :within . :pays rdfs:domain :Customer .
:home a :Flat . :Flat rdfs:subClassOf :Dwelling . :home :connected :work .
"""

STREAM = """
@prefix : <http://example/> . @prefix prov: <http://www.w3.org/ns/prov#> .
:e1 { :v a :Van ; :connected :station } :e1 prov:generatedAtTime 0 .
:e2 { :v a :Van ; :holds :parcel . :ann :pays 7 } :e2 prov:generatedAtTime 1000 .
:e3 { :v a :Lorry ; :at :home } :e3 prov:generatedAtTime 2000 .
"""


class Case(NamedTuple):
    """A pattern, the kind of its cause, and what the hint says; None if there is none."""

    pattern: str
    kind: str
    hint: str | None


CASES = (
    Case("?x a :Vehicle", "constant-never-occurs", "a subclass of it, :Van, is (2)"),
    Case("?x a :Ship", "constant-never-occurs", None),
    Case("?x a :Customer", "constant-never-occurs", "the knowledge base entails it (1)"),
    Case("?x :near ?y", "predicate-never-occurs", "a subproperty of it, :connected, is (1)"),
    Case("?x :near :station", "predicate-never-occurs", "a subproperty of it, :connected, is (1)"),
    Case("?x :near :harbour", "predicate-never-occurs", None),
    Case("?x :within ?y", "predicate-never-occurs", "the knowledge base entails it (1)"),
    Case("GRAPH :kb { ?x a :Dwelling }", "constant-never-occurs", "a subclass of it, :Flat, is"),
    Case("GRAPH :kb { ?x :near ?y }", "predicate-never-occurs", "a subproperty of it, :connected"),
    Case("GRAPH :kb { ?x a :Vehicle }", "constant-never-occurs", None),
    Case("GRAPH :kb { ?x :near :harbour }", "predicate-never-occurs", None),
)


def report(pattern: str, place: Path, ontology: OntologyInput | None = None) -> spaseq.Report:
    (place / "kb.ttl").write_text(KB)
    (place / "s.trig").write_text(STREAM)
    query = query_of("A", {"A": pattern}).replace("WHERE", f"FROM NAMED <{NS}kb> WHERE")
    rdfs = None if ontology is None else "rdfs"
    kb = {f"{NS}kb": place / "kb.ttl"}
    given = {"S": place / "s.trig"}
    return spaseq.why(query, given, kb, ontology=ontology, entailment=rdfs)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.pattern)
def test_the_hint(case: Case, tmp_path: Path) -> None:
    found = report(case.pattern, tmp_path)
    (cause,) = found.causes
    assert (found.answers, cause.kind) == (0, case.kind)
    if case.hint is None:
        assert "entail" not in cause.text
    else:
        assert case.hint in cause.text
        assert "try --entailment rdfs, with the knowledge base as --ontology" in cause.text
        assert cause.suggestion == "--entailment rdfs"


@pytest.mark.parametrize("case", [c for c in CASES if c.hint], ids=lambda c: c.pattern)
def test_the_hint_is_true(case: Case, tmp_path: Path) -> None:
    assert report(case.pattern, tmp_path, ontology=tmp_path / "kb.ttl").answers > 0


@pytest.mark.parametrize("pattern", ["?x a :Ship", "?x :near :harbour"])
def test_no_hint_with_entailment(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "kb.ttl").write_text(KB)
    found = report(pattern, tmp_path, ontology=tmp_path / "kb.ttl")
    assert found.answers == 0
    assert not any("entail" in cause.text for cause in found.causes)


def test_check_gives_the_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kb.ttl").write_text(KB)
    Path("s.trig").write_text(STREAM)
    query = query_of("A", {"A": "?x a :Vehicle"}).replace("WHERE", f"FROM NAMED <{NS}kb> WHERE")
    Path("q.rq").write_text(query)
    done = CliRunner().invoke(cli, ["check", "q.rq", "--stream", "S=s.trig", "--kb", "kb.ttl"])
    assert "a subclass of it, :Van, is (2): try --entailment rdfs" in done.stdout
