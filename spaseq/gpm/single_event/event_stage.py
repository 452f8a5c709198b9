"""Stage 1 for one event at a time, in microseconds, with the solutions of `PatternStage`."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.algebra.translate import EVENT
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.runs import Values
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_graph import (
    EventGraph,
    Solution,
    TooManyPairs,
)
from spaseq.gpm.single_event.event_operators import EventOperators
from spaseq.gpm.single_event.event_pattern import EventPattern
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.program_events import batch_of_event
from spaseq.rdf.terms.term import Triple, scoped_term
from spaseq.rdf.terms.triple_terms import blank_nodes, may_have_blank_node
from spaseq.records import record


@record
class _EventGpm:
    """A GPM on single events; `is_decided` if its solutions need no columns.

    If they may leave variables of the partition unbound, they belong to each partition of their
    event, which columns say.
    """

    number: int
    pattern: EventPattern
    is_decided: bool
    private: frozenset[str]


class SingleEventStage:
    """Evaluates every GPM of a plan on single events.

    `matcher` evaluates an event if a GPM on it may have solutions and needs columns, or the pattern
    of its partitions does.
    """

    def __init__(self, plan: QueryPlan, matcher: PatternStage) -> None:
        self._plan, self._matcher = plan, matcher
        self._streams = {iri: i for i, iri in enumerate(plan.inputs.streams)}
        self._partition = plan.sequence.partition
        self._needs_instants = plan.sequence.needs_instants
        self._variables = [*(gpm.variables for gpm in plan.patterns.evaluated), self._partition]
        self._calls = False
        self._gpms: list[list[_EventGpm]] = [[] for _ in plan.inputs.streams]
        for number, gpm in enumerate(plan.patterns.evaluated):
            if not gpm.streams:  # it is on windows
                continue
            pattern = self._pattern(matcher.evaluator(number))
            has_key = gpm.certain.issuperset(self._partition)
            has_event = gpm.correlation is not None or EVENT in gpm.variables
            is_decided = pattern.is_whole and not has_event and has_key
            each = _EventGpm(number, pattern, is_decided, gpm.private)
            for stream in gpm.streams:
                self._gpms[stream].append(each)
        contents = (each for each in plan.patterns.contents if each.operands is not None)
        self._grouped = frozenset(stream for each in contents for stream in each.gpm.streams)
        self._memberships: list[list[EventPattern]] = [[] for _ in plan.inputs.streams]
        for streams, evaluator in matcher.memberships:
            pattern = self._pattern(evaluator)
            for stream in streams:
                self._memberships[stream].append(pattern)

    def _pattern(self, evaluator: GpmEvaluator) -> EventPattern:
        most = self._matcher.limits.solutions
        operators = EventOperators(evaluator, self._plan.expressions, most)
        pattern = operators.pattern()
        self._calls |= operators.calls
        return pattern

    def match(
        self, iri: str, time: int, k: int, name: str | None, triples: Sequence[Triple]
    ) -> EventRows | SolutionBatch | None:
        """The solutions on an event of stream `iri`, at instant (time, k), of graph `name`.

        None if there are none and stage 2 does not need the bare event.
        """
        stream = self._streams[iri]
        rows = self._rows(stream, triples)
        if rows is None:
            batch = self._matcher.match(batch_of_event(iri, time, k, name, triples))
            return batch if len(batch) else None
        if not rows:
            return None
        return EventRows(stream, time, k, name, self._values(rows, iri, time, k, triples))

    def _rows(self, stream: int, triples: Sequence[Triple]) -> list[tuple[int, Solution]] | None:
        """(GPM or BARE, solution) pairs; None if they need columns."""
        try:
            if not self._calls:
                return self._found(stream, EventGraph(triples))
            with spending(Budget(self._matcher.limits, seconds=self._matcher.limits.timeout_s)):
                return self._found(stream, EventGraph(triples))
        except (LimitExceeded, TooManyPairs):
            return None

    def _found(self, stream: int, graph: EventGraph) -> list[tuple[int, Solution]] | None:
        if stream in self._grouped:
            return None
        rows: list[tuple[int, Solution]] = []
        for gpm in self._gpms[stream]:
            solutions = gpm.pattern.solutions(graph)
            if not solutions:
                continue
            if not gpm.is_decided:
                return None
            rows += [(gpm.number, solution) for solution in _without(solutions, gpm.private)]
        if not self._needs_instants:
            return rows
        if not self._partition:
            return rows or [(BARE, {})]
        keys = self._keys(stream, graph)
        return None if keys is None else [*rows, *((BARE, key) for key in keys)]

    def _keys(self, stream: int, graph: EventGraph) -> Sequence[Solution] | None:
        """The partitions of an event: what binds the variables of PARTITION BY, in order.

        None if they need columns.
        """
        keys: dict[tuple[str | None, ...], Solution] = {}
        for membership in self._memberships[stream]:
            for solution in membership.solutions(graph):
                if not membership.is_whole:
                    return None
                key = tuple([solution.get(v) for v in self._partition])
                if None not in key:
                    keys[key] = {v: solution[v] for v in self._partition}
        return [keys[key] for key in sorted(keys, key=str)]

    def _values(
        self,
        rows: list[tuple[int, Solution]],
        iri: str,
        time: int,
        k: int,
        triples: Sequence[Triple],
    ) -> list[tuple[int, Values]]:
        """The solutions as values of their GPMs' variables; blank nodes get their answer labels."""
        values_of_rows = []
        blank: set[str] | None = None  # the blank nodes of the event
        for gpm, solution in rows:
            values = [solution.get(v) for v in self._variables[gpm]]
            for i, text in enumerate(values):
                # Most texts have no "_:", and the usual case is no call.
                if text is not None and "_:" in text and may_have_blank_node(text):
                    if blank is None:
                        blank = {node for t in triples for term in t for node in blank_nodes(term)}
                    values[i] = scoped_term(iri, time, k, text, blank)
            values_of_rows.append((gpm, tuple(values)))
        return values_of_rows


def _without(rows: Sequence[Solution], private: frozenset[str]) -> Sequence[Solution]:
    """The solutions without private variables, unless there are several solutions."""
    if len(rows) > 1 or not private:
        return rows
    return [{v: text for v, text in row.items() if v not in private} for row in rows]
