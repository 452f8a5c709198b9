"""Queries with answers: the report has no cause, and counts the answers of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

import spaseq
from tests.cases.engine import inputs
from tests.cases.expected import LOOPS, ONTOLOGIES, queries
from tests.cases.real_expected import QUERIES, REAL, real_answers
from tests.diagnosis.right_queries import DATA

CASES = [query for case in LOOPS for query in queries(case)]


@pytest.mark.parametrize("query", CASES, ids=lambda q: f"{q.parent.name}-{q.stem}")
def test_the_queries_of_the_cases(query: Path) -> None:
    streams, kb = inputs(query)
    ontology = ONTOLOGIES.get(f"{query.parent.name}/{query.stem}")
    entailment = None if ontology is None else "rdfs"
    report = spaseq.why(query, streams, kb, ontology=ontology, entailment=entailment)
    found = spaseq.run(query, streams, kb, "local", ontology=ontology, entailment=entailment)
    assert report.answers == len(list(found)) > 0
    assert report.causes == ()


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA}")
@pytest.mark.parametrize("name", REAL)
def test_the_queries_on_real_data(name: str) -> None:
    case = REAL[name]
    entailment = None if case.ontology is None else "rdfs"
    report = spaseq.why(
        QUERIES / f"{name}.rq",
        case.streams,
        case.kb,
        ontology=case.ontology,
        entailment=entailment,
    )
    assert report.answers == len(real_answers(name))
    assert report.causes == ()
