"""Stage 1 of a query: from event batches to the solutions of all its GPMs, without state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.gpm.evaluator import EventSolutions, GpmEvaluator
from spaseq.gpm.graphs.vertical_partition import SomeEvents, VerticalPartition
from spaseq.gpm.solution_rows import SolutionRows, distinct_solutions, with_events, without_private
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.measures import Measures
from spaseq.plan.query_plan import ChangingGraphs, QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, over_limit, warn
from spaseq.rdf.terms.times import format_time


class JoinedQueries(Protocol):
    """Queries whose GPMs are evaluated together."""

    def add(self, stage: PatternStage) -> None:
        """Add the stage of one more query."""

    def solutions(self, stage: PatternStage, index: VerticalPartition) -> SolutionBatch | None:
        """The solutions of a stage on a whole batch; None if the stage must compute them itself."""


class PatternStage:
    """Evaluates every GPM of a plan on the events of its streams.

    It calls `on_bad` for each event that lacks an endpoint's answer, and for each event that
    exceeds one of the `limits`. An event of the second kind has no solution at all; `exceeding` has
    such events of the last batch. `measures`, if given, get the measures. Stages that share `joint`
    are evaluated together, unless they are measured. `may_ask` says whether an event may need
    requests to an endpoint.
    """

    def __init__(
        self,
        plan: QueryPlan,
        knowledge: KnowledgeBase,
        on_bad: OnBad = warn,
        limits: Limits = DEFAULT_LIMITS,
        measures: Measures | None = None,
        joint: JoinedQueries | None = None,
    ) -> None:
        self.plan, self._on_bad, self.limits = plan, on_bad, limits
        self.knowledge, self._measures = knowledge, measures
        self.may_ask = bool(plan.inputs.services or (plan.inputs.kbs and knowledge.endpoints))
        self.exceeding: list[int] = []
        self._streams = {iri: i for i, iri in enumerate(plan.inputs.streams)}
        self._evaluators: dict[int, GpmEvaluator] = {}  # those that have been asked for
        options, evaluation = plan.expressions, plan.patterns.evaluation
        known = knowledge.only(plan.inputs.kbs) if plan.patterns.memberships else knowledge
        self.memberships = [
            (each.streams, GpmEvaluator(each.pattern, known, options, evaluation, limits))
            for each in plan.patterns.memberships
        ]
        alone = plan.changing is not None or plan.inputs.windows
        self._joint = joint = None if alone else joint
        if joint is not None and measures is None:
            joint.add(self)

    def evaluator(self, gpm: int) -> GpmEvaluator:
        """The evaluator of a GPM, by index."""
        known = self._evaluators.get(gpm)
        if known is None:
            plan, pattern = self.plan, self.plan.patterns.evaluated[gpm].core
            if plan.changing is not None and not plan.changing.by_windows:
                pattern = plan.changing.candidates[gpm]
            known = self._evaluators[gpm] = GpmEvaluator(
                pattern,
                self.knowledge.only(plan.inputs.kbs),
                plan.expressions,
                plan.patterns.evaluation,
                self.limits,
                self._measures,
            )
        return known

    def match(self, batch: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of the batch's events.

        If stage 2 counts events, those without a solution are rows, too: *bare* events.

        There are none if the query does not read the batch's stream. Stages that match one batch
        with one `index` evaluate each shared basic graph pattern once.
        """
        self.exceeding = []
        if self._joint is not None and index is not None:
            joint = self._joint.solutions(self, index)
            if joint is not None:
                return joint
        stream = self._streams.get(batch.stream)
        if stream is None or not len(batch):
            return SolutionBatch.empty(self.plan.patterns.columns)
        index = index or VerticalPartition(batch)
        changing = self.plan.changing
        if changing is not None and not self._is_matched(changing, stream):
            return self._handed_on(changing, index, stream)
        rows = SolutionRows(self.plan, stream, index)
        for number, gpm in enumerate(self.plan.patterns.evaluated):
            if stream in gpm.streams:
                if self._measures is None:
                    solutions = self.solutions(number, index, stream)
                else:
                    with self._measures.inside("gpm", gpm.name) as measure:
                        solutions = self.solutions(number, index, stream)
                    measure.took(len(solutions.event), _bytes(solutions), len(batch))
                rows.add(number, solutions)
                self._add_bare_content(rows, number, solutions, len(batch))
        if self.plan.sequence.needs_instants:
            self._add_bare(rows, index, stream)
        self.exceeding = self._report(batch)
        return rows.batch(without=self.exceeding)

    def _brings_events(self, changing: ChangingGraphs, stream: int) -> bool:
        """Whether a stream brings events, and not changes of a graph."""
        return stream < len(self._streams) - len(changing.makers)

    def _is_matched(self, changing: ChangingGraphs, stream: int) -> bool:
        """Whether stage 1 matches the events, or candidates, instead of passing them on."""
        is_matched = changing.splits is not None or changing.by_windows
        return is_matched and self._brings_events(changing, stream)

    def _handed_on(
        self, changing: ChangingGraphs, index: VerticalPartition, stream: int
    ) -> SolutionBatch:
        """The events on which a GPM may match, for stage 2, which has the graphs of their time."""
        from spaseq.gpm.handed_on import handed_on  # few queries need it

        events = np.arange(len(index.batch), dtype=np.int64)
        if self._brings_events(changing, stream) and not changing.every_event:
            of_streams = [
                self.evaluator(number).evaluate(index).event
                for number, gpm in enumerate(self.plan.patterns.gpms)
                if stream in gpm.streams
            ]
            events = np.unique(np.concatenate([events[:0], *of_streams]))
            self.exceeding = self._report(index.batch)
            events = np.setdiff1d(events, self.exceeding)
        return handed_on(index, events, stream, self.plan.patterns.columns)

    def take_exceeding(self) -> bool:
        """Whether an event has exceeded a limit since the last call or `match`."""
        evaluators = (*self._evaluators.values(), *(each for _, each in self.memberships))
        taken = [evaluator.take_exceeding() for evaluator in evaluators]
        return any(taken)

    def solutions(self, number: int, index: VerticalPartition, stream: int) -> EventSolutions:
        """The distinct solutions of a GPM, with the columns for stage 2."""
        found = self.evaluator(number).evaluate(index)
        return self.finished(number, found, SomeEvents(index), stream)

    def finished(
        self, number: int, solutions: EventSolutions, events: SomeEvents, stream: int
    ) -> EventSolutions:
        """The same, from the solutions of the GPM's evaluator on some events."""
        gpm = self.plan.patterns.evaluated[number]
        if not len(solutions.event):
            return solutions
        content = number - len(self.plan.patterns.gpms)
        if content >= 0:
            operands = self.plan.patterns.contents[content].operands
            if operands is not None:
                from spaseq.gpm.handed_on import of_groups  # few queries need it

                return of_groups(solutions, gpm, operands, events.index)
        if gpm.correlation is not None:
            certain = {v: solutions.columns[v] for v in gpm.certain}
            solutions = EventSolutions(solutions.event, certain, solutions.terms)
        solutions = distinct_solutions(solutions)
        if gpm.correlation is not None:
            solutions = with_events(solutions, events.index)
        if content >= 0:
            return with_events(
                solutions, events.index, self.plan.patterns.contents[content].predicates
            )
        if not set(self.plan.sequence.partition) <= gpm.certain:
            solutions = self._spread(solutions, events.index, stream)
        changing, private = self.plan.changing, gpm.private
        if changing is not None and changing.splits is not None:
            private -= changing.splits[number].handed_on
        return without_private(solutions, private)

    def _report(self, batch: EventBatch) -> list[int]:
        """Report the bad events of the batch; returns the ones that exceed a limit."""
        exceeding: dict[int, str] = {}
        for evaluator in (*self._evaluators.values(), *(each for _, each in self.memberships)):
            for failed in evaluator.take_failures():
                events = np.arange(len(batch)) if failed.event is None else failed.event
                for at in _descriptions(batch, events):
                    self._on_bad(BadInput(failed.url, None, f"no answer: {failed.reason}", at))
            exceeding.update(evaluator.take_exceeding())
        if not exceeding:  # the usual case
            return []
        for i, at in zip(
            exceeding, _descriptions(batch, np.array([*exceeding], np.int64)), strict=True
        ):
            self._on_bad(over_limit(self.plan.identity.name, exceeding[i], at))
        return [*exceeding]

    def _add_bare_content(
        self, rows: SolutionRows, number: int, solutions: EventSolutions, events: int
    ) -> None:
        """Add a row for each event without a solution, if groups need it."""
        patterns = self.plan.patterns
        content = number - len(patterns.gpms)
        if content < 0 or patterns.contents[content].operands is None:
            return
        if self.plan.sequence.own_partition:  # the pattern says which events are in partitions
            return
        missing = np.ones(events, np.bool_)
        missing[solutions.event] = False
        bare = EventSolutions(np.flatnonzero(missing), {}, solutions.terms)
        rows.add(patterns.number_of(content, bare=True), bare)

    def _add_bare(self, rows: SolutionRows, index: VerticalPartition, stream: int) -> None:
        partition = self.plan.sequence.partition
        if not partition:
            rows.add(BARE, EventSolutions(rows.unseen(), {}, index.batch.terms))
            return
        for keys in self._keys(index, stream):
            rows.add(BARE, keys)

    def _keys(self, index: VerticalPartition, stream: int) -> Iterator[EventSolutions]:
        """The partitions of events: the values that GPMs without FILTERs give the variables."""
        partition = self.plan.sequence.partition
        for streams, membership in self.memberships:
            if stream in streams:
                solutions = membership.evaluate(index)
                if not all(v in solutions.columns for v in partition):
                    continue  # no solution binds them
                bound = np.logical_and.reduce([solutions.columns[v] >= 0 for v in partition])
                keys = {v: solutions.columns[v][bound] for v in partition}
                yield distinct_solutions(
                    EventSolutions(solutions.event[bound], keys, solutions.terms)
                )

    def _spread(
        self, solutions: EventSolutions, index: VerticalPartition, stream: int
    ) -> EventSolutions:
        """The solutions of a negated GPM that leaves partition variables unbound.

        A solution is repeated for each partition of its event that it is compatible with.
        """
        partition = self.plan.sequence.partition
        keys: dict[int, set[tuple[str, ...]]] = {}
        for bindings in self._keys(index, stream):
            columns = [[bindings.terms[c] for c in bindings.columns[v]] for v in partition]
            for event, key in zip(bindings.event.tolist(), zip(*columns, strict=True), strict=True):
                keys.setdefault(event, set()).add(key)
        picked: list[int] = []
        spread: dict[str, list[str]] = {v: [] for v in partition}
        for i, event in enumerate(solutions.event.tolist()):
            known = [_text(solutions, v, i) for v in partition]
            for texts in sorted(keys.get(event, ())):
                if all(o in (None, k) for o, k in zip(known, texts, strict=True)):
                    picked.append(i)
                    for v, text in zip(partition, texts, strict=True):
                        spread[v].append(text)
        columns_out = {v: c[picked] for v, c in solutions.columns.items()}
        columns_out.update({v: index.lexicon.encode(texts) for v, texts in spread.items()})
        return EventSolutions(solutions.event[picked], columns_out, solutions.terms)


def _bytes(solutions: EventSolutions) -> int:
    """The bytes of the columns of some solutions."""
    return int(solutions.event.nbytes) + sum(int(c.nbytes) for c in solutions.columns.values())


def _text(solutions: EventSolutions, variable: str, row: int) -> str | None:
    codes = solutions.columns.get(variable)
    return None if codes is None or codes[row] < 0 else solutions.terms[codes[row]]


def _descriptions(batch: EventBatch, events: Int64s) -> Iterator[str]:
    """The names of events, in words."""
    for i, name in zip(events.tolist(), batch.names(events).texts(), strict=True):
        time = format_time(int(batch.time[i]))
        yield f"{name or 'an event'} of <{batch.stream}> at {time}"
