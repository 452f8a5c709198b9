"""A knowledge base whose graphs change during a run: its value at each time.

The changes of a graph come in order of their times, and each is later than all events that a reader
of the graph has had. So events of several values of a graph meet only while streams are out of
order, and old values are dropped when no event can need them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TypeAlias

import numpy as np

from spaseq.algebra.graph_changes import GraphChange, together
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.kb.changing_graph import (
    ChangingGraph,
    graph_codes,
    recoded_graph,
    without_unused,
)
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.columns.term_tables import ExtendedTerms, TermsSoFar
from spaseq.records import record

EARLIEST = -(2**63)
"""The time (ms) since which the first value holds."""

LATEST = 2**63 - 2
"""A time (ms) after all changes."""

Values: TypeAlias = "Sequence[tuple[int, KnowledgeBase]]"
"""The time (ms) since which each value of a knowledge base holds, and the value; ascending."""


@record
class TimedChange:
    """A change of a graph from a time (ms) on."""

    time: int
    graph: str
    change: GraphChange


class KnowledgeVersions:
    """The values of a knowledge base that events may need.

    Args:
        base: the first value.
        changes: the changes known at the start.
    """

    def __init__(self, base: KnowledgeBase, changes: Iterable[TimedChange] = ()) -> None:
        self._base = base
        self._terms = ExtendedTerms(base.terms)
        self._now: dict[str, ChangingGraph] = {}  # after all changes
        self._values: dict[str, list[tuple[int, KbGraph]]] = {}  # of each changed graph
        self._coming: dict[str, list[TimedChange]] = {}  # that no value has yet
        self._made: dict[tuple[int, ...], KnowledgeBase] = {}  # by the values of its graphs
        for change in changes:
            self.add(change)

    @property
    def changed(self) -> Collection[str]:
        """The graphs that have changed."""
        return self._values.keys() | self._coming.keys()

    @property
    def have_changed(self) -> bool:
        """Whether some graph has changed."""
        return bool(self._values or self._coming)

    def add(self, change: TimedChange) -> None:
        """Take another change, without wildcards; none of its graph has a later time."""
        self._coming.setdefault(change.graph, []).append(change)

    def _known(self, iri: str) -> list[tuple[int, KbGraph]]:
        """The time (ms) since which each value of a graph holds, and the value."""
        for change in self._coming.pop(iri, ()):
            self._apply(change)
        return self._values.get(iri, [])

    def _apply(self, change: TimedChange) -> None:
        graph = self._now.get(change.graph)
        if graph is None:
            first = self._base.graphs.get(change.graph, KbGraph())
            graph = self._now[change.graph] = ChangingGraph(self._terms, first)
            self._values[change.graph] = [(EARLIEST, first)]
        graph.apply(change.change)
        values = self._values[change.graph]
        if values[-1][0] == change.time:
            values.pop()
        values.append((change.time, graph.relations()))

    def since(self, iri: str) -> int:
        """The time (ms) of the last change of a graph that some event may need."""
        values = self._known(iri)
        return values[-1][0] if values else EARLIEST

    def last(self, iri: str) -> tuple[KbGraph, TermsSoFar]:
        """A graph after all changes, and the texts of its codes."""
        values = self._known(iri)
        graph = values[-1][1] if values else self._base.graphs.get(iri, KbGraph())
        return graph, TermsSoFar(self._terms)

    def of(self, graphs: Collection[str]) -> Values:
        """The values for a reader of some graphs: a new one wherever one of these changes."""
        changed = [iri for iri in graphs if self._known(iri)]
        if not changed:
            return [(EARLIEST, self._base)]
        times = sorted({time for iri in changed for time, _ in self._known(iri)})
        return [(time, self._at(time, changed)) for time in times]

    def at(self, time: int) -> KnowledgeBase:
        """The value at a time (ms)."""
        return self._at(time, [*self.changed]) if self.changed else self._base

    def _at(self, time: int, changed: Sequence[str]) -> KnowledgeBase:
        newer = {}
        for iri in changed:
            values = self._known(iri)
            newer[iri] = values[bisect_right(values, time, key=itemgetter(0)) - 1][1]
        key = tuple(map(id, newer.values()))
        if key not in self._made:
            graphs = {**self._base.graphs, **newer}
            self._made[key] = replace(self._base, terms=TermsSoFar(self._terms), graphs=graphs)
        return self._made[key]

    def whole(self) -> KnowledgeBase:
        """The last value, with only the terms that it has."""
        texts = TermsSoFar(self._terms)
        names, columns = [*self._base.graphs], dict[str, list[Int32s]](g=[], s=[], p=[], o=[])
        names += [iri for iri in self.changed if iri not in self._base.graphs]
        for number, name in enumerate(names):
            for predicate, own in self.last(name)[0].items():
                n = len(own)
                of_row = np.full(n, number, np.int32), own.s, np.full(n, predicate, np.int32), own.o
                for column, values in zip(columns.values(), of_row, strict=True):
                    column.append(values)
        g, *others = (np.concatenate([np.empty(0, np.int32), *c]) for c in columns.values())
        used = distinct(np.concatenate(others)).astype(np.int32)
        s, p, o = (np.searchsorted(used, codes).astype(np.int32) for codes in others)
        given = {"g": g, "s": s, "p": p, "o": o}
        return KnowledgeBase.of_quads(texts.strings(used), names, names, given)

    def drop(self, before: int) -> bool:
        """Forget the values that no event after a time (ms) needs; whether there were any."""
        dropped = False
        for iri, coming in [*self._coming.items()]:
            old = bisect_right(coming, before + 1, key=attrgetter("time"))
            if old:
                change = together(own.change for own in coming[:old])
                self._apply(TimedChange(coming[old - 1].time, iri, change))
                self._coming[iri] = coming[old:]
        for values in self._values.values():
            needed = bisect_right(values, before + 1, key=itemgetter(0)) - 1
            if needed > 0:
                values[: needed + 1] = [(EARLIEST, values[needed][1])]
                dropped = True
        dropped |= self._forget_terms()
        if dropped:
            kept = {id(graph) for values in self._values.values() for _, graph in values}
            self._made = {key: own for key, own in self._made.items() if kept.issuperset(key)}
        return dropped

    def _forget_terms(self) -> bool:
        """Forget terms that no value has; whether the values have other codes now."""
        values = [graph for versions in self._values.values() for _, graph in versions]
        graphs = self._now.values()

        def used() -> Iterator[Int64s]:
            yield from chain(*(graph.codes() for graph in graphs), *map(graph_codes, values))

        again = without_unused(self._terms, used)
        if again is None:
            return False
        self._terms, recoded = again
        for graph in graphs:
            graph.use(*again)
        for versions in self._values.values():
            versions[:] = [(time, recoded_graph(graph, recoded)) for time, graph in versions]
        return True
