"""Aggregates of variables that the same event binds (docs/meaning.md#group-variables).

`FILTER(SUM(?v) < 9)` in the pattern that binds `?v` ranges over the value that the event itself
adds. So each value that the event could give `?v` is tried in turn, and only the solutions that do
bind `?v` to it are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from rdflib import Dataset, Graph
from rdflib.term import Identifier

from spaseq.lang import ast
from tests.oracle.model import Bindings, Map
from tests.oracle.patterns import Pattern, binds, without_filters


class Running:
    """A GPM whose solutions may depend on aggregates of what it binds itself."""

    def __init__(self, pattern: ast.GroupGraphPattern, groups: frozenset[str]) -> None:
        self._pattern = Pattern.of(pattern)
        counted = {
            node.operand.name
            for node in self._pattern.specials.values()
            if isinstance(node, ast.Aggregate) and isinstance(node.operand, ast.Var)
        }
        self._own = groups & binds(pattern) & counted
        self._bare = Pattern.of(_widest(pattern)) if self._own else self._pattern

    def key(self, mu: Bindings) -> object:
        """The part of μ on which the solutions depend."""
        return self._pattern.inputs(mu), mu.lists.only(self._own)

    def solutions(self, graph: Graph, kb: Dataset, mu: Bindings) -> frozenset[Map]:
        """The set of solutions ν that join with μ."""
        own = sorted(self._own - mu.values.keys())
        if not own:
            return self._pattern.solutions(graph, kb, self._pattern.inputs(mu))
        bare = self._bare.solutions(graph, kb, self._bare.inputs(mu))
        values = [{s.get(v) for s in bare} | {None} for v in own]
        return frozenset(
            solution
            for guess in product(*values)
            for solution in self._guessed(graph, kb, mu, dict(zip(own, guess, strict=True)))
        )

    def _guessed(
        self, graph: Graph, kb: Dataset, mu: Bindings, guess: dict[str, Identifier | None]
    ) -> Iterator[Map]:
        """The solutions that bind the variables as guessed; None means unbound."""
        longer = {v: (*mu.lists.get(v, ()), t) for v, t in guess.items() if t is not None}
        inputs = self._pattern.inputs(replace(mu, lists=mu.lists.plus(longer)))
        for solution in self._pattern.solutions(graph, kb, inputs):
            if all(solution.get(v) == term for v, term in guess.items()):
                yield solution


def _widest(pattern: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
    """The pattern without what can only take solutions away: FILTERs and MINUS."""
    kept = without_filters(pattern).elements
    return ast.GroupGraphPattern(tuple(e for e in kept if not isinstance(e, ast.MinusGraphPattern)))
