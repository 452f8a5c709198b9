"""The terms of values that a graph has had go, and its triples stay."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from spaseq.algebra.graph_changes import GraphChange, wildcard
from spaseq.compiled.arrays import Int64s
from spaseq.kb.changing_graph import ChangingGraph, graph_codes, recoded_graph, without_unused
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.kb.knowledge_versions import KnowledgeVersions, TimedChange
from spaseq.rdf.columns.term_tables import ExtendedTerms, ListedTerms
from spaseq.rdf.terms.term import Triple
from tests.thresholds import forced


def all_codes(graph: ChangingGraph, value: KbGraph) -> list[Int64s]:
    return [*graph.codes(), *graph_codes(value)]


@pytest.mark.parametrize("seed", range(3))
def test_a_graph_keeps_its_triples(seed: int) -> None:
    draw, expected = Random(seed), set[Triple]()
    terms = ExtendedTerms(ListedTerms(["<b1>", "<b2>", "<p>"]))
    graph, times, value = ChangingGraph(terms, KbGraph()), 0, KbGraph()
    with forced("unused_terms=5"):
        for number in range(1000):
            s, p = f"<s{draw.randrange(5)}>", draw.choice(["<p>", f"<q{number % 3}>"])
            o = draw.choice([f"<o{number}>", "<b1>"])
            graph.apply(GraphChange(((s, p, wildcard("x")),), ((s, p, o),)))
            expected = {t for t in expected if t[:2] != (s, p)} | {(s, p, o)}
            again = without_unused(terms, partial(all_codes, graph, value))
            if again is not None:
                terms, recoded = again
                graph.use(terms, recoded)
                value, times = recoded_graph(value, recoded), times + 1
                assert terms.added < 300
            if number == 100:
                value, then = graph.relations(), {*expected}
            if not number % 20:
                assert {*graph.triples()} == expected
                assert number < 100 or {*ChangingGraph(terms, value).triples()} == then
    assert times > 3


def test_versions_keep_few_terms() -> None:
    with forced("unused_terms=10"):
        versions = KnowledgeVersions(KnowledgeBase.empty())
        for number in range(500):
            old = (("<s>", "<p>", f"<o{number - 1}>"),)
            change = GraphChange(old, (("<s>", "<p>", f"<o{number}>"),))
            versions.add(TimedChange(number * 10, "http://e/g", change))
            versions.drop(number * 10 - 15)
        graph, terms = versions.last("http://e/g")
        assert ChangingGraph(ExtendedTerms(terms), graph).triples() == [("<s>", "<p>", "<o499>")]
        assert len(terms) < 60
