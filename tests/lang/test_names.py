"""Prefixes, relative IRIs, assumed names (SPARQL 1.1 section 4.1; docs/lookup.md#grammar)."""

from __future__ import annotations

import pytest

from spaseq.errors import Diagnostic, QueryText
from spaseq.lang.parser import parse, parse_source
from tests.lang.good_queries import query


def findings(text: str) -> tuple[Diagnostic, ...]:
    return parse_source(QueryText(text)).diagnostics


def pointed_at(found: Diagnostic) -> str:
    return found.source.text[found.span.start : found.span.end]


def test_every_use_of_an_undeclared_prefix_is_an_error_with_the_nearest_prefix() -> None:
    prologue = "PREFIX traffic: <http://t/> PREFIX kb: <http://k/>"
    found = findings(query(prologue=prologue, pattern="?s trafic:p ?x ; zzz:q ?y ; trafic:r ?z"))
    assert [(d.code, d.severity, pointed_at(d), d.suggestion) for d in found] == [
        ("undeclared-prefix", "error", "trafic:", "traffic:"),
        ("undeclared-prefix", "error", "zzz:", None),
        ("undeclared-prefix", "error", "trafic:", "traffic:"),
    ]


@pytest.mark.parametrize("prefix", ["xsd", "rdf", "rdfs"])
def test_well_known_prefixes_may_be_used_undeclared_with_one_warning(prefix: str) -> None:
    text = query(pattern=f"?s {prefix}:p ?x . ?x {prefix}:q ?y")
    (found,) = findings(text)
    assert (found.code, found.severity) == ("assumed-prefix", "warning")
    assert pointed_at(found) == f"{prefix}:p"


def test_an_assumed_prefix_becomes_part_of_the_prologue() -> None:
    tree = parse(query(prologue="", pattern="?s rdf:type ?x"))
    assert [(p.prefix, p.iri) for p in tree.prologue.prefixes] == [
        ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#")
    ]


def test_a_declared_prefix_wins_over_the_well_known_one() -> None:
    text = query(prologue="PREFIX rdf: <http://mine/>", pattern="?s rdf:type ?x")
    assert findings(text) == ()
    assert "http://mine/type" in str(parse(text).gpms)


def test_the_last_declaration_of_a_prefix_holds() -> None:
    text = query(prologue="PREFIX e: <http://one/> PREFIX e: <http://two/>", pattern="?s e:p ?o")
    assert "http://two/p" in str(parse(text).gpms)


def test_a_declaration_with_an_error_does_not_make_its_uses_errors() -> None:
    found = findings(query(prologue="PREFIX e: <http://one two/>", pattern="?s e:p e:o"))
    assert [d.code for d in found] == ["syntax"]


def test_a_relative_iri_without_base_stays_as_written_with_a_warning() -> None:
    text = query(pattern="?s <p> ?o")
    assert [(d.code, d.severity) for d in findings(text)] == [("relative-iri", "warning")]
    assert "Iri(value='p')" in str(parse(text).gpms)


def test_the_datatype_of_a_tumbling_origin_is_checked() -> None:
    text = query(clauses="WITHIN 1 HOURS TUMBLING FROM '2014'^^xsd:gYear")
    found = [d for d in findings(text) if d.severity == "error"]
    assert [(d.message, pointed_at(d)) for d in found] == [
        ("TUMBLING FROM takes an xsd:dateTime", "'2014'^^xsd:gYear")
    ]
