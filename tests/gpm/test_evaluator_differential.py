"""The evaluator against other SPARQL engines, on random events and patterns."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings

from tests.gpm import patterns as p
from tests.gpm.graphs import by_rdflib, oxigraph, solutions

A, P, N = "<http://e/a>", "<http://e/p>", "_:n"


@pytest.mark.filterwarnings("ignore:Dataset.default_context")
@given(p.lexical_events, p.term_groups)
@example([[(A, P, A), (A, P, A)]], "{ ?x ?p ?x }")
@example([[(A, P, N), (N, P, A)]], "{ ?x :p [] . [] :p ?x }")
@settings(max_examples=150, deadline=None)
def test_basic_graph_patterns_as_rdflib(events, group):
    assert solutions(group, events) == by_rdflib(group, events)


@given(p.events, p.kbs, p.groups)
@settings(max_examples=400, deadline=None)
def test_joins_filters_and_graphs_as_oxigraph(events, kb, group):
    assert solutions(group, events, kb) == oxigraph(group, events, kb)


@given(p.events, p.kbs, p.any_groups)
@settings(max_examples=600, deadline=None)
def test_optional_union_minus_bind_and_values_as_oxigraph(events, kb, group):
    assert solutions(group, events, kb) == oxigraph(group, events, kb)
