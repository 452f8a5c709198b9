"""The active graph of a pattern: a graph of the knowledge base, or the graphs of a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from spaseq.gpm.graphs.triple_source import TripleSource
from spaseq.gpm.solutions.lexicon import translated
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.records import record


@record
class ActiveGraph:
    """The active graph of SPARQL 1.1 section 18.6, or the active graphs of `events` events.

    `given` are solutions that the pattern's solutions will be joined with, if they are known. A
    request to an endpoint asks only for solutions that are compatible with one of them. `outer` are
    more such solutions, which the search of a path uses, too. `keeps` says that the solutions will
    be kept for all batches.
    """

    source: TripleSource
    events: int = 0
    given: Solutions | None = None
    outer: tuple[Solutions, ...] = ()
    keeps: bool = False

    @property
    def known(self) -> tuple[Solutions, ...]:
        """All sequences of solutions that the pattern's solutions will be joined with."""
        return self.outer if self.given is None else (self.given, *self.outer)

    def beside(self, solutions: Solutions) -> ActiveGraph:
        """The active graph of a pattern whose solutions are joined with `solutions`."""
        return replace(self, given=solutions, outer=())

    def within(self, solutions: Solutions) -> ActiveGraph:
        """The active graph of another operand of a join of which `solutions` is a part."""
        return replace(self, given=solutions, outer=self.known)

    def alone(self) -> ActiveGraph:
        """The active graph of a pattern of which all solutions are needed."""
        return replace(self, given=None, outer=())

    def projecting(self, variables: Iterable[str]) -> ActiveGraph:
        """The active graph of a pattern whose other variables are not visible outside."""
        if self.given is None:
            return self
        names = list(variables)
        outer = tuple(solutions.only(names) for solutions in self.outer)
        return replace(self, given=self.given.only(names), outer=outer)

    @property
    def of_events(self) -> bool:
        return self.source.of_events

    def spread(self, solutions: Solutions) -> Solutions:
        """The solutions per event, if the pattern is evaluated over events."""
        return solutions.spread(self.events, self.source.lexicon) if self.of_events else solutions


def reduced(solutions: Solutions, active: ActiveGraph) -> Solutions:
    """Solutions over a graph, without most of those that are compatible with no given solution."""
    if active.of_events:
        return solutions
    for given in active.known:
        for v in given.columns.keys() & solutions.columns.keys():
            if not given.may_be_unbound(v) and not solutions.may_be_unbound(v):
                codes = translated(given.columns[v], given.lexicon, solutions.lexicon, add=False)
                solutions = solutions.take(np.isin(solutions.columns[v], np.unique(codes)))
    return solutions
