"""Basic graph patterns over events of any size, in any order of evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.algebra.nodes import TriplePattern
from spaseq.gpm.graphs.event_bgp import EventBgp, rarest_first
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.kernels.bgp_interpreter import FEW, MANY
from spaseq.lang import ast
from spaseq.plan.pattern_plan import FASTEST, PatternEvaluation
from tests.gpm.graphs import Triple, batch_of

Binding = dict[str, str]

NODES = [f"<http://e/{c}>" for c in "abcdefgh"]
TERMS = st.sampled_from([*NODES[:3], *(ast.Var(v) for v in "xyzw")])
PATTERNS = st.lists(st.builds(TriplePattern, TERMS, TERMS, TERMS), min_size=1, max_size=4)


@st.composite
def events(draw: st.DrawFn) -> list[list[Triple]]:
    """Events with few or many triples; some events repeat a triple."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.sampled_from([0, 3, 8, MANY, MANY + 1, 3 * MANY]))
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        nodes = draw(st.sampled_from([3, 8]))
        picked = rng.integers(0, nodes, (size, 3)).tolist()
        found.append([(NODES[s], NODES[p], NODES[o]) for s, p, o in picked])
    return found


def by_definition(patterns: Sequence[TriplePattern], triples: Sequence[Triple]) -> list[Binding]:
    """The mappings of variables that map every pattern to one of the triples."""
    found: list[Binding] = [{}]
    for pattern in patterns:
        found = [
            extended
            for binding in found
            for triple in set(triples)
            if (extended := extension(binding, pattern, triple)) is not None
        ]
    return found


def extension(binding: Binding, pattern: TriplePattern, triple: Triple) -> Binding | None:
    """The binding extended by a triple, or None if the triple does not match."""
    grown = dict(binding)
    for term, value in zip(pattern.terms, triple, strict=True):
        if (grown.setdefault(term.name, value) if isinstance(term, ast.Var) else term) != value:
            return None
    return grown


def found_by(bgp: EventBgp, given: Sequence[Sequence[Triple]]) -> list[list[Binding]]:
    """The solutions by event."""
    result = bgp.solutions(VerticalPartition(batch_of(given)))
    assert result.event is not None
    assert (np.diff(result.event) >= 0).all()
    rows: list[list[Binding]] = [[] for _ in given]
    for i, event in enumerate(result.event.tolist()):
        rows[event].append({v: result.lexicon[c[i]] for v, c in result.columns.items()})
    return rows


def in_order(bindings: Sequence[Binding]) -> list[list[tuple[str, str]]]:
    return sorted(sorted(b.items()) for b in bindings)


@given(events(), PATTERNS, st.sampled_from([FASTEST, PatternEvaluation()]))
@settings(deadline=None)
def test_solutions_are_those_of_the_definition(
    given: list[list[Triple]], patterns: list[TriplePattern], evaluation: PatternEvaluation
) -> None:
    most = sum(len(e) for e in given) ** max(1, len(patterns) - 1)
    if most > 10**6:
        patterns = patterns[:2]
    found = found_by(EventBgp(patterns, evaluation), given)
    for ours, triples in zip(found, given, strict=True):
        assert in_order(ours) == in_order(by_definition(patterns, triples))


X, Y, Z = (ast.Var(v) for v in "xyz")
A, B, C = NODES[:3]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_any_order_of_the_patterns_gives_the_same(order: tuple[int, ...]) -> None:
    star = [TriplePattern(X, A, Y), TriplePattern(X, B, Z), TriplePattern(Z, C, X)]
    event = [("<e:1>", A, "<e:2>"), ("<e:1>", B, "<e:3>"), ("<e:3>", C, "<e:1>")]
    bgp = EventBgp([star[i] for i in order])
    assert found_by(bgp, [event, event[:2]]) == [[{"x": "<e:1>", "y": "<e:2>", "z": "<e:3>"}], []]


@pytest.mark.parametrize("size", [2, FEW, 3 * FEW, 3 * MANY])
def test_more_solutions_than_there_is_room_for(size: int) -> None:
    event = [("<e:s>", A, f"<e:{i}>") for i in range(size)] * 2
    bgp = EventBgp([TriplePattern(X, A, Y), TriplePattern(X, A, Z)])
    first, second = found_by(bgp, [event, event])
    assert len(first) == len(second) == size**2
    assert in_order(first) == in_order(second)
    assert len({tuple(sorted(b.items())) for b in first}) == size**2


def test_the_rarest_pattern_comes_first_and_then_what_hangs_together_with_it() -> None:
    patterns = [TriplePattern(X, A, Y), TriplePattern(Z, A, A), TriplePattern(Y, B, B)]
    assert rarest_first(patterns, np.array([5.0, 2.0, 1.0])) == (2, 0, 1)
    assert rarest_first(patterns, np.array([5.0, 2.0, 9.0])) == (1, 0, 2)


def test_patterns_that_differ_in_names_only_are_evaluated_once_in_a_batch() -> None:
    index = VerticalPartition(batch_of([[(A, B, C)]]))
    first = EventBgp([TriplePattern(X, B, Y)]).solutions(index)
    second = EventBgp([TriplePattern(Z, B, X)]).solutions(index)
    assert first.columns["x"] is not first.columns["y"]
    assert second.event is first.event
    assert index.lexicon[second.columns["z"][0]] == A
    assert index.lexicon[second.columns["x"][0]] == C
