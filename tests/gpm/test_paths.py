"""Property paths against a brute force written from SPARQL 1.1 section 9 and 18.4."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpm.graphs import solutions
from tests.hostile import run_bounded
from tests.thresholds import forced

SCALE = int(os.environ.get("SPASEQ_EXAMPLES", "1"))

NODES = [f"<http://e/{c}>" for c in "abcd"]
ABSENT = "<http://e/nowhere>"
PREDICATES = [f"<http://e/{c}>" for c in "pq"]
FROM = "<http://e/from>"

Graph = Sequence[tuple[str, str, str]]
Pairs = set[tuple[str, str]]
Row = frozenset[tuple[str, str]]

triples = st.tuples(*map(st.sampled_from, (NODES, PREDICATES, [*NODES, '"x"'])))
graphs = st.lists(triples, max_size=8)
steps = st.sampled_from(PREDICATES).map(lambda p: ("step", p))
sets = st.tuples(st.lists(st.sampled_from(PREDICATES), max_size=2), st.booleans()).map(
    lambda drawn: ("not", *drawn)
)
paths = st.recursive(
    steps | sets,
    lambda inner: st.one_of(
        st.tuples(st.just("inverse"), inner),
        st.tuples(st.sampled_from(["/", "|"]), inner, inner),
        st.tuples(st.sampled_from("*+?"), inner),
    ),
    max_leaves=4,
)
repetitions = st.tuples(st.sampled_from("*+?"), paths)


def text(path) -> str:
    """A path in SPARQL."""
    match path:
        case "step", p:
            return p
        case "not", names, inverse:
            return f"!({'|'.join('^' * inverse + p for p in names) or '<http://e/none>'})"
        case "inverse", inner:
            return f"^({text(inner)})"
        case ("/" | "|") as sign, first, second:
            return f"({text(first)}{sign}{text(second)})"
        case sign, inner:
            return f"({text(inner)}){sign}"


def ends(graph: Graph, path, start: str) -> Iterator[str]:
    """The nodes that the path leads to from a term, possibly repeated."""
    match path:
        case "step", p:
            yield from (o for s, q, o in graph if (s, q) == (start, p))
        case "not", [], _:
            yield from (o for s, _, o in graph if s == start)
        case "not", names, inverse:
            here = 2 if inverse else 0
            yield from (t[2 - here] for t in graph if t[here] == start and t[1] not in names)
        case "inverse", inner:
            terms = {start, *nodes(graph)}
            yield from (term for term in terms for end in ends(graph, inner, term) if end == start)
        case "/", first, second:
            for middle in ends(graph, first, start):
                yield from ends(graph, second, middle)
        case "|", first, second:
            yield from ends(graph, first, start)
            yield from ends(graph, second, start)
        case "?", inner:
            yield from {start, *ends(graph, inner, start)}
        case ("*" | "+") as sign, inner:  # the function ALP
            visited: set[str] = set()
            waiting = [start] if sign == "*" else list(ends(graph, inner, start))
            while waiting:
                term = waiting.pop()
                if term not in visited:
                    visited.add(term)
                    waiting += ends(graph, inner, term)
            yield from visited


def nodes(graph: Graph) -> set[str]:
    return {term for s, _, o in graph for term in (s, o)}


def rows(graph: Graph, subject: str, path, object_: str) -> set[Row]:
    """The solutions of a path pattern by definition: from each node, or from the constant."""
    starts = [subject] if subject[0] == "<" else nodes(graph)
    found = {(x, y) for x in starts for y in ends(graph, path, x)}
    if subject[0] != "<" and object_[0] == "<":  # evaluated from the object, by the inverse path
        terms = {object_, *nodes(graph)}
        found = {(x, object_) for x in terms for y in ends(graph, path, x) if y == object_}
    return {row for x, y in found if (row := _row((subject, x), (object_, y))) is not None}


def _row(*ends: tuple[str, str]) -> Row | None:
    """The binding of terms of a pattern to terms of a graph."""
    values: dict[str, str] = {}
    for term, value in ends:
        if (term if term[0] == "<" else values.setdefault(term[1:], value)) != value:
            return None
    return frozenset(values.items())


def joined(*operands: set[Row]) -> set[Row]:
    found = set()
    for parts in product(*operands):
        row = frozenset().union(*parts)
        if len(dict(row)) == len(row):
            found.add(row)
    return found


variables = st.sampled_from(["?x", "?y", "?x", "?y", *NODES, ABSENT])
patterns = st.tuples(variables, repetitions, variables)


def ours(pattern: str, events: Sequence[Graph], kb: Graph = ()) -> list[set[Row]]:
    return [set(found) for found in solutions(pattern, events, {"http://e/kb0": kb})]


@given(st.lists(graphs, min_size=1, max_size=3), patterns)
@settings(max_examples=150 * SCALE, deadline=None)
def test_a_path_alone(events, pattern):
    s, path, o = pattern
    expected = [rows(event, s, path, o) for event in events]
    assert ours(f"{{ {s} {text(path)} {o} }}", events) == expected


@given(st.lists(graphs, min_size=1, max_size=3), patterns, st.sampled_from(["?x", "?y"]))
@settings(max_examples=150 * SCALE, deadline=None)
def test_a_path_beside_a_triple(events, pattern, start):
    s, path, o = pattern
    step = ("step", PREDICATES[0])
    expected = [joined(rows(e, start, step, "?z"), rows(e, s, path, o)) for e in events]
    own = f"{{ {start} {PREDICATES[0]} ?z . {s} {text(path)} {o} }}"
    assert ours(own, events) == expected


@given(st.lists(graphs, min_size=1, max_size=3), patterns, patterns)
@settings(max_examples=100 * SCALE, deadline=None)
def test_paths_beside_values_and_in_optional_and_union(events, pattern, other):
    s, path, o = pattern
    t, further, p = other
    first, second = f"{s} {text(path)} {o}", f"{t} {text(further)} {p}"
    values = {frozenset({("x", NODES[0])}), frozenset({("x", ABSENT)})}
    own = f"{{ VALUES ?x {{ {NODES[0]} {ABSENT} }} {{ {first} }} UNION {{ {second} }} }}"
    expected = [joined(values, rows(e, *pattern) | rows(e, *other)) for e in events]
    assert ours(own, events) == expected


@pytest.mark.parametrize("kept", [0, 2**20])
@given(st.lists(graphs, min_size=1, max_size=3), graphs, patterns, patterns)
@settings(max_examples=100 * SCALE, deadline=None)
def test_paths_of_a_knowledge_base(kept, events, kb, pattern, other):
    first, second = (f"{s} {text(path)} {o}" for s, path, o in (pattern, other))
    own = f"{{ ?x {PREDICATES[0]} ?y GRAPH <http://e/kb0> {{ {first} . {second} }} }}"
    with forced(f"closure_pairs={kept}"):
        found = ours(own, events, kb)
    there = joined(rows(kb, *pattern), rows(kb, *other))
    expected = [joined(rows(e, "?x", ("step", PREDICATES[0]), "?y"), there) for e in events]
    assert found == expected


@given(graphs, st.lists(patterns, min_size=2, max_size=2))
@settings(max_examples=100 * SCALE, deadline=None)
def test_searches_by_component_find_the_same(event, both):
    for s, path, o in both:
        with (
            pytest.MonkeyPatch.context() as patch,
            forced("path_steps=0 path_overlap=0 path_pairs=0"),
        ):
            patch.setattr("spaseq.gpm.graphs.paths.STEPS", 0)
            found = ours(f"{{ {s} {text(path)} {o} }}", [event])
        assert found == [rows(event, s, path, o)]


_CYCLE = """
from tests.gpm.graphs import solutions
P = "<http://e/p>"
event = [(f"<http://e/n{i}>", P, f"<http://e/n{(i + 1) % 100_000}>") for i in range(100_000)]
def size(pattern, events=(event,), kb=None):
    return [sum(found.values()) for found in solutions(pattern, events, kb)]
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (":n5 :p+ ?y", 100_000),
        ("?x :p* :n5", 100_000),
        (":n5 :p+ :n4", 1),
        ("?x (:p/:p)+ :n5", 50_000),
        ("VALUES (?x ?y) { (:n5 :n4) (:n5 :n6) (:n6 :n4) } ?x :p+ ?y", 3),
        (":n5 :p+ ?y . ?y :q ?z", 0),
        ("?x (:p*/:q)+ ?y", 0),
    ],
)
def test_a_cycle_of_100_000_nodes_with_a_bound_end(pattern, expected):
    found = run_bounded(f'{_CYCLE}\nprint(size("{{ {pattern} }}"))', seconds=100)
    assert (found.stdout, found.returncode) == (f"[{expected}]\n", 0), found.stderr


@pytest.mark.thorough
def test_a_knowledge_base_is_searched_from_the_nodes_of_the_events():
    code = f"""{_CYCLE}
events = [[("<http://e/s>", "<http://e/at>", f"<http://e/n{{i}}>")] for i in (7, 9)]
kb = {{"http://e/kb0": event}}
print(size("{{ ?s :at ?x GRAPH :kb0 {{ ?x :p+ ?y . ?y :p :n3 }} }}", events, kb))
"""
    found = run_bounded(code, seconds=100)
    assert (found.stdout, found.returncode) == ("[1, 1]\n", 0), found.stderr
