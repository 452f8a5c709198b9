"""The values of the knowledge base at the times of events, where its graphs are replaced."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import EARLIEST
from spaseq.kb.versions import versions_of
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.records import record


@record
class GraphValues:
    """The values of a knowledge base, and the time (ms) since which each holds; ascending."""

    since: tuple[int, ...]
    values: tuple[KnowledgeBase, ...]

    @classmethod
    def of(cls, knowledge: KnowledgeBase, graphs: Collection[str]) -> GraphValues:
        """The values of a knowledge base that has versions of some graphs."""
        found = {EARLIEST: knowledge}
        given = ((time, iri, name) for iri in graphs for time, name in versions_of(knowledge, iri))
        for time, iri, name in sorted(given):
            last = [*found.values()][-1]
            found[time] = replace(last, graphs={**last.graphs, iri: knowledge.graphs[name]})
        return cls((*found,), (*found.values(),))

    def number(self, time: int) -> int:
        """The number of the value at a time (ms)."""
        return bisect_right(self.since, time) - 1

    def parts(self, batch: EventBatch) -> Iterator[tuple[int, EventBatch]]:
        """The events of a batch by their values' numbers."""
        if len(self.since) == 1:
            yield 0, batch
            return
        numbers = np.searchsorted(np.array(self.since), batch.time, side="right") - 1
        for number in np.unique(numbers).tolist():
            yield number, batch.take(np.flatnonzero(numbers == number))
