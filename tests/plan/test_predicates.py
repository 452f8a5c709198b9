"""The predicates that a query uses; other triples of events do not change its answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.algebra.groups import translate_group
from spaseq.algebra.needs import predicates_read
from spaseq.api.explain import explain
from spaseq.compile import CompileOptions, compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.predicates import stream_predicates
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime import local
from spaseq.runtime.job.job import Job
from spaseq.sources.files import FileSource
from tests.gpm import patterns as p
from tests.gpm.graphs import group_of, solutions

P, Q, R = "<http://e/p>", "<http://e/q>", "<http://e/r>"


@pytest.mark.parametrize(
    ("pattern", "predicates"),
    [
        ("{ ?x :p ?y ; :q 1 }", {P, Q}),
        ("{ }", set()),
        ("{ ?x :p ?y OPTIONAL { ?x :q ?z } }", {P, Q}),
        ("{ { ?x :p ?y } UNION { ?x :q ?y } MINUS { ?x :r ?z } }", {P, Q, R}),
        ("{ ?x :p ?y FILTER (?y > 1 && NOT EXISTS { ?x :q ?z }) }", {P, Q}),
        ("{ ?x :p ?y OPTIONAL { ?x :q ?z FILTER EXISTS { ?z :r ?y } } }", {P, Q, R}),
        ("{ ?x :p ?y BIND (EXISTS { ?x :q 1 } AS ?z) }", {P, Q}),
        ("{ { SELECT ?x (SUM(?y) AS ?z) WHERE { ?x :p ?y } GROUP BY ?x } }", {P}),
        ("{ ?x (:p|^:q)+ ?y }", {P, Q}),
        ("{ ?x :p ?y GRAPH <http://e/kb0> { ?y ?any ?z FILTER EXISTS { ?z :q 1 } } }", {P}),
        ("{ ?x ?any ?y }", None),
        ("{ ?x :p ?y FILTER NOT EXISTS { ?x ?any 1 } }", None),
        ("{ ?x :p* ?y }", None),
        ("{ ?x :p? ?y }", None),
        ("{ ?x !:p ?y }", None),
        ("{ ?x :p/(:q|!:r) ?y }", None),
    ],
)
def test_predicates_read(pattern: str, predicates: set[str] | None) -> None:
    found = predicates_read(translate_group(group_of(pattern)))
    assert found == (None if predicates is None else frozenset(predicates))


anything = st.one_of(
    p.any_groups, p.exists_groups, p.graph_groups, p.path_groups, p.subselect_groups
)


@given(p.events, p.kbs, anything)
@settings(max_examples=150, deadline=None)
def test_solutions_need_no_other_triples(events, kb, pattern):
    read = predicates_read(translate_group(group_of(pattern)))
    kept = [[t for t in event if read is None or t[1] in read] for event in events]
    assert solutions(pattern, kept, kb) == solutions(pattern, events, kb)


HEAD = "PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>"
HOT = HEAD + "FROM STREAM T <http://e/t> SEQ(A; B) {"
HOT += "DEFINE GPM A ON S { ?x :is :hot } DEFINE GPM B ON T, S { ?x :cools ?v } }"
COLD = HEAD + "SEQ(A!; B) { DEFINE GPM A ON S { ?x :stops ?w } DEFINE GPM B ON S { ?x :is :cold } }"
ALL = HEAD + "SEQ(A) { DEFINE GPM A ON S { ?x ?p :cold } }"
LOOKS_BACK = HEAD + "SEQ(A; B) { DEFINE GPM A ON S { ?x :is ?v }"
LOOKS_BACK += "DEFINE GPM B ON S { ?y :cools ?w FILTER (?w != ?v) } }"


@pytest.mark.parametrize(
    ("queries", "predicates"),
    [
        ([HOT], ("http://e/cools", "http://e/is")),
        ([COLD], ("http://e/is", "http://e/stops")),
        ([HOT, COLD], ("http://e/cools", "http://e/is", "http://e/stops")),
        ([HOT, ALL], None),
        ([LOOKS_BACK], ("http://e/cools", "http://e/is")),
    ],
)
def test_of_all_queries(queries: list[str], predicates: tuple[str, ...] | None) -> None:
    plans = [compile_query(query) for query in queries]
    assert stream_predicates(plans, "http://e/s") == predicates


def test_of_one_stream() -> None:
    assert stream_predicates([compile_query(HOT)], "http://e/t") == ("http://e/cools",)


def test_explained() -> None:
    assert "reads    :cools :is\n" in str(explain(HOT))
    assert "reads    all predicates\n" in str(explain(ALL))
    assert "reads    no triples\n" in str(explain(HEAD + "SEQ(A) { DEFINE GPM A ON S { } }"))


_TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
STREAM = "".join(
    f"<http://e/x{i % 3}> <http://e/is> <http://e/{what}> <http://e/g{i}> .\n"
    f'<http://e/x{i % 3}> <http://e/cools> "{i}" <http://e/g{i}> .\n'
    + (f'<http://e/x{i % 3}> <http://e/other> "\\q" <http://e/g{i}> .\n' if what == "warm" else "")
    + f'<http://e/g{i}> {_TIME} "{i}"^^<http://www.w3.org/2001/XMLSchema#long> .\n'
    for i, what in enumerate(["hot", "cold", "cold", "warm", "hot", "hot", "cold", "hot"])
)


@pytest.mark.parametrize("query", [HOT, COLD, ALL, LOOKS_BACK])
def test_answers_and_reports_are_the_same(tmp_path, query: str) -> None:
    path = tmp_path / "s.nq"
    path.write_text(STREAM)

    def run(*disabled: str) -> tuple[list[object], int, int, list[object]]:
        plan = compile_query(query, options=CompileOptions(disable=disabled))
        streams = tuple(FileSource(StreamOptions(iri, (str(path),))) for iri in plan.inputs.streams)
        bad: list[object] = []
        job = Job((plan,), streams, KnowledgeBase.empty(), on_bad=bad.append)
        answers = list(local.run(job))
        return answers, job.stats.events, job.stats.triples, bad

    with_all = run("pushed-predicates")
    assert with_all[0]
    # The line that cannot be read, though no query reads its predicate, and the event that lost it.
    assert len(with_all[3]) == 2 * len(compile_query(query).inputs.streams)
    assert run() == with_all
