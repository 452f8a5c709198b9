"""Stage 1 for one event at a time, in microseconds: the same solutions as `Matcher` gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from spaseq.expr.doubles import double_of
from spaseq.gpm.single import EventPattern, Solution
from spaseq.gpm.stage import Matcher
from spaseq.plan.nodes import QueryPlan
from spaseq.rdf.batches import BARE, SolutionBatch
from spaseq.rdf.columns import UNBOUND, NumberColumn, TermColumn, texts_array
from spaseq.rdf.events import Triple, batch_of_event
from spaseq.rdf.kinds import OTHER
from spaseq.rdf.terms import scoped_blank


class EventMatcher:
    """Evaluates every GPM of a plan on single events.

    An event is left to `matcher` if a GPM on it may have solutions and is more than triple patterns
    and conditions over them, or if the events' partitions have to be known.
    """

    def __init__(self, plan: QueryPlan, matcher: Matcher) -> None:
        self._plan, self._matcher = plan, matcher
        self._streams = {iri: i for i, iri in enumerate(plan.streams)}
        self._patterns = [
            EventPattern(g.late.core if g.late else g.pattern, plan.expressions) for g in plan.gpms
        ]
        partition = set(plan.partition)
        spread = any(not partition <= g.certain for g in plan.gpms)
        self._by_partition = spread or bool(plan.needs_instants and partition)

    def match(
        self, iri: str, time: int, k: int, name: str | None, triples: Sequence[Triple]
    ) -> SolutionBatch | None:
        """The solutions on an event of a stream, given by its instant, its graph's IRI and triples.

        None if there are none, and stage 2 does not need to know of the event.
        """
        stream = self._streams[iri]
        rows = None if self._by_partition else self._rows(stream, triples)
        if rows is None:
            found = self._matcher.match(batch_of_event(iri, time, k, name, triples))
            return found if len(found) else None
        if not rows and self._plan.needs_instants:
            rows.append((BARE, {}))
        return self._batch(stream, time, k, name, rows) if rows else None

    def _rows(self, stream: int, triples: Sequence[Triple]) -> list[tuple[int, Solution]] | None:
        """(GPM, solution) pairs; None if they cannot be known here."""
        graph = list(dict.fromkeys(triples))
        rows: list[tuple[int, Solution]] = []
        for number, (gpm, pattern) in enumerate(zip(self._plan.gpms, self._patterns, strict=True)):
            if stream in gpm.streams:
                found = pattern.solutions(graph)
                if found and (gpm.late is not None or not pattern.is_whole):
                    return None
                rows += [(number, solution) for solution in _without(found, gpm.private)]
        return rows

    def _batch(
        self, stream: int, time: int, k: int, name: str | None, rows: list[tuple[int, Solution]]
    ) -> SolutionBatch:
        columns, size = self._plan.columns, len(rows)
        codes: dict[str, int] = {}
        values, numbers = {}, {}
        for v in columns.variables:
            texts = [solution.get(v) for _, solution in rows]
            values[v] = [UNBOUND if t is None else codes.setdefault(t, len(codes)) for t in texts]
            if v in columns.numbers:
                doubles = [(np.nan, OTHER) if t is None else double_of(t) for t in texts]
                value, kind = zip(*doubles, strict=True)
                numbers[v] = NumberColumn(np.array(value), np.array(kind, np.int8))
        scope = self._plan.streams[stream], time, k
        terms = texts_array([scoped_blank(*scope, t[2:]) if t[0] == "_" else t for t in codes])
        return SolutionBatch(
            np.full(size, stream, np.int32),
            np.full(size, time, np.int64),
            np.full(size, k, np.int32),
            np.array([gpm for gpm, _ in rows], np.int32),
            texts_array([name] * size),
            {v: TermColumn(np.array(c, np.int32), terms) for v, c in values.items()},
            numbers,
        )


def _without(found: Iterable[Solution], private: frozenset[str]) -> Iterable[Solution]:
    """Solutions without the values of private variables, but if there are several."""
    rows = list(found)
    if len(rows) > 1:
        return rows
    return [{v: text for v, text in row.items() if v not in private} for row in rows]
