"""The evaluator against other SPARQL engines, on random events and patterns."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given, settings

from tests.gpm import patterns as p
from tests.gpm.graphs import by_rdflib, oxigraph, solutions

SCALE = int(os.environ.get("SPASEQ_EXAMPLES", "1"))
"""Factor for the usual number of examples."""

A, P, N = "<http://e/a>", "<http://e/p>", "_:n"


@pytest.mark.filterwarnings("ignore:Dataset.default_context")
@given(p.lexical_events, p.term_groups)
@example([[(A, P, A), (A, P, A)]], "{ ?x ?p ?x }")
@example([[(A, P, N), (N, P, A)]], "{ ?x :p [] . [] :p ?x }")
@settings(max_examples=60 * SCALE, deadline=None)
def test_basic_graph_patterns_as_rdflib(events, group):
    assert solutions(group, events) == by_rdflib(group, events)


@given(p.events, p.kbs, p.groups)
@settings(max_examples=120 * SCALE, deadline=None)
def test_joins_filters_and_graphs_as_oxigraph(events, kb, group):
    assert solutions(group, events, kb) == oxigraph(group, events, kb)


@given(p.events, p.kbs, p.any_groups)
@settings(max_examples=200 * SCALE, deadline=None)
def test_optional_union_minus_bind_and_values_as_oxigraph(events, kb, group):
    assert solutions(group, events, kb) == oxigraph(group, events, kb)


@given(p.events, p.exists_groups)
@settings(max_examples=100 * SCALE, deadline=None)
def test_exists_as_oxigraph(events, group):
    assert solutions(group, events) == oxigraph(group, events)


@given(p.events, p.kbs, p.graph_groups)
@settings(max_examples=80 * SCALE, deadline=None)
def test_graph_variables_as_oxigraph(events, kb, group):
    assert solutions(group, events, kb) == oxigraph(group, events, kb)


@given(p.events, p.path_groups)
@settings(max_examples=100 * SCALE, deadline=None)
def test_property_paths_as_oxigraph(events, group):
    # Oxigraph counts `?x (:p|:p) ?x` once, so multiplicities are left to the tables.
    ours, theirs = solutions(group, events), oxigraph(group, events)
    assert [set(rows) for rows in ours] == [set(rows) for rows in theirs]


@given(p.events, p.subselect_groups)
@settings(max_examples=100 * SCALE, deadline=None)
def test_sub_selects_as_oxigraph(events, group):
    assert solutions(group, events) == oxigraph(group, events)
