"""Stage 1 for one event at a time, in microseconds, with the solutions of `PatternStage`."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.runs import Values
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.expr.compile import Options
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_pattern import EventGraph, EventPattern
from spaseq.gpm.single_event.known_parts import Solution
from spaseq.plan.query_plan import GpmPlan, QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.in_memory.program_events import batch_of_event
from spaseq.rdf.terms.term import Triple, scoped_term
from spaseq.rdf.terms.triple_terms import may_have_blank_node
from spaseq.records import record


@record
class _EventGpm:
    """A GPM on single events; `is_decided` if its pattern needs no other evaluator."""

    number: int
    pattern: EventPattern
    is_decided: bool
    private: frozenset[str]


def _event_gpm(
    number: int, gpm: GpmPlan, options: Options, evaluator: GpmEvaluator, most: int
) -> _EventGpm:
    pattern = EventPattern(evaluator.parts, options, evaluator.constant, most)
    return _EventGpm(number, pattern, pattern.is_whole and gpm.correlation is None, gpm.private)


class SingleEventStage:
    """Evaluates every GPM of a plan on single events.

    `matcher` evaluates an event if a GPM on it may have solutions and has parts beyond triple
    patterns, parts that read no event, and their conditions; or if the plan needs the partitions of
    events.
    """

    def __init__(self, plan: QueryPlan, matcher: PatternStage) -> None:
        self._plan, self._matcher = plan, matcher
        self._streams = {iri: i for i, iri in enumerate(plan.inputs.streams)}
        self._gpms: list[list[_EventGpm]] = [[] for _ in plan.inputs.streams]
        most = matcher.limits.solutions
        for number, gpm in enumerate(plan.patterns.gpms):
            own = _event_gpm(number, gpm, plan.expressions, matcher.evaluator(number), most)
            for stream in gpm.streams:
                self._gpms[stream].append(own)
        self._by_partition = bool(plan.patterns.memberships)
        self._calls = any(gpm.pattern.calls for gpms in self._gpms for gpm in gpms)

    def match(
        self, iri: str, time: int, k: int, name: str | None, triples: Sequence[Triple]
    ) -> EventRows | SolutionBatch | None:
        """The solutions on an event of stream `iri`, at instant (time, k), of graph `name`.

        None if there are none and stage 2 does not need the bare event.
        """
        stream = self._streams[iri]
        rows = None if self._by_partition else self._rows(stream, triples)
        if rows is None:
            found = self._matcher.match(batch_of_event(iri, time, k, name, triples))
            return found if len(found) else None
        if not rows and self._plan.sequence.needs_instants:
            return EventRows(stream, time, k, name, [(BARE, ())])
        return (
            EventRows(stream, time, k, name, self._values(rows, iri, time, k, triples))
            if rows
            else None
        )

    def _rows(self, stream: int, triples: Sequence[Triple]) -> list[tuple[int, Solution]] | None:
        """(GPM, solution) pairs; None if another evaluator must decide."""
        if not self._calls:
            return self._found(stream, triples)
        try:
            with spending(Budget(self._matcher.limits, seconds=self._matcher.limits.timeout_s)):
                return self._found(stream, triples)
        except LimitExceeded:
            return None

    def _found(self, stream: int, triples: Sequence[Triple]) -> list[tuple[int, Solution]] | None:
        graph = EventGraph(triples)
        rows: list[tuple[int, Solution]] = []
        for gpm in self._gpms[stream]:
            found = gpm.pattern.solutions(graph)
            if found is None:
                return None
            if found:
                if not gpm.is_decided:
                    return None
                rows += [(gpm.number, solution) for solution in _without(found, gpm.private)]
        return rows

    def _values(
        self,
        rows: list[tuple[int, Solution]],
        iri: str,
        time: int,
        k: int,
        triples: Sequence[Triple],
    ) -> list[tuple[int, Values]]:
        """The solutions as values of their GPMs' variables; blank nodes get their answer labels."""
        found = []
        for gpm, solution in rows:
            values = [solution.get(v) for v in self._plan.patterns.gpms[gpm].variables]
            for i, text in enumerate(values):
                if (
                    text is not None
                    and may_have_blank_node(text)
                    and any(text in t for t in triples)
                ):
                    values[i] = scoped_term(iri, time, k, text)
            found.append((gpm, tuple(values)))
        return found


def _without(rows: Sequence[Solution], private: frozenset[str]) -> Sequence[Solution]:
    """The solutions without private variables, unless there are several solutions."""
    if len(rows) > 1 or not private:
        return rows
    return [{v: text for v, text in row.items() if v not in private} for row in rows]
