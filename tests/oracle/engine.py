"""The engine's stages, run in process on a streamset, with any evaluator and order of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import get_args
from unittest.mock import patch

from rdflib import Graph

from spaseq import thresholds
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.program import compiler
from spaseq.automaton.run.event_rows import EventRows
from spaseq.compile import check_query
from spaseq.errors import QueryError, UsageError
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_graph import EventGraph
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.lang import ast
from spaseq.lang.resolve import Resolved, resolve
from spaseq.options import StageOptions
from spaseq.plan.planner import plan_query
from spaseq.plan.query_plan import CompileOptions, EvaluatorName, QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.stages.sequence import SequenceStage
from tests.oracle.model import Streamset
from tests.oracle.patterns import nt
from tests.thresholds import forced

EVALUATORS: tuple[EvaluatorName, ...] = get_args(EvaluatorName)

COUNTING: dict[str, EvaluatorName] = {
    "registers, counting": "registers",
    "compiled-compact, counting": "compiled-compact",
    "compiled-registers, counting": "compiled-registers",
}
"""Evaluators that also run programs whose repetitions are counted, however small their bounds."""


def parsed(query: str) -> tuple[ast.Query, dict[str, QueryPlan]]:
    """A query, and the plan of each evaluator that can run it, the planner's own choice first.

    Raises:
        QueryError: the query has errors.
    """
    checked = check_query(query)
    if checked.query is None or checked.plan is None:
        raise QueryError(checked.errors)
    plans: dict[str, QueryPlan] = {checked.plan.sequence.evaluator.name: checked.plan}
    resolved = resolve(checked.query, checked.source)  # `check_query` has done this before
    for name in EVALUATORS:
        if name not in plans:
            try:
                plans[name] = plan_query(resolved, "query", CompileOptions(evaluator=name))
            except UsageError:
                continue
    return checked.query, plans | _counting(resolved)


def _counting(resolved: Resolved) -> dict[str, QueryPlan]:
    """Plans with counted repetitions, if the query bounds some."""
    plans = {}
    with patch.object(compiler, "MOST_STATES", 0):
        for title, name in COUNTING.items():
            try:
                plan = plan_query(resolved, "query", CompileOptions(evaluator=name))
            except UsageError:
                continue
            if plan.sequence.program.bounds:
                plans[title] = plan
    return plans


@dataclass(frozen=True, eq=False)
class Piece:
    """The solutions on consecutive events of one stream, or on one single event."""

    earliest: int  # ms
    solutions: SolutionBatch | EventRows


def solved(
    plan: QueryPlan, streams: Streamset, kb: Mapping[str, Graph] | None, random: Random | None
) -> list[Piece]:
    """The solutions on all events; streams are cut into random pieces (None: one piece each).

    A cut may fall between events of equal time. A piece of one event is matched as a single event.
    """
    matcher = PatternStage(plan, load_kb(list((kb or {}).items())))
    single = SingleEventStage(plan, matcher)
    pieces = []
    for stream, events in streams.items():
        counter = InstantCounter()
        rows = [(t, iri, [(nt(s), nt(p), nt(o)) for s, p, o in ts]) for t, iri, ts in events]
        while rows:
            size = (
                len(rows) if random is None else random.choice([1, 1, random.randint(1, len(rows))])
            )
            if random is not None and size == 1:
                time, iri, triples = rows[0]
                found = single.match(stream, time, counter.next(time), iri, EventGraph(triples))
                pieces += [] if found is None else [Piece(time, found)]
            else:
                batch = batch_from_events(stream, rows[:size], counter)
                pieces.append(Piece(rows[0][0], matcher.match(batch)))
            rows = rows[size:]
    return pieces


@dataclass
class Arrival:
    """The way in which events arrive, and its result. If `random` is None, all arrive at once.

    Otherwise pieces arrive in any order, some before they are due. The watermark rises in steps,
    and new stages sometimes continue from a snapshot. `steps` and `restarts` count these. `hasty`
    answers come before the watermark reaches their end, and `tardy` answers come too late.
    """

    random: Random | None = None
    limit: int | None = None
    knowledge: KnowledgeBase | None = None
    steps: int = 0
    restarts: int = 0
    suppressed: int = 0
    muted: int = 0
    hasty: list[Answer] = field(default_factory=list)
    tardy: list[Answer] = field(default_factory=list)
    partials: list[PartialAnswer] = field(default_factory=list)

    def answers(self, plan: QueryPlan, pieces: list[Piece], times: list[int]) -> list[Answer]:
        """The engine's answers; `times` are the event times in ms, ascending.

        Answers are made as columns, or one by one.
        """
        few = thresholds.current.columnar_matches
        few = 1 if self.random is None else self.random.choice([1, few])
        with forced(f"columnar_matches={few}"):
            return self._answers(plan, pieces, times)

    def _answers(self, plan: QueryPlan, pieces: list[Piece], times: list[int]) -> list[Answer]:
        stage = SequenceStage(plan, StageOptions(self.limit), self.knowledge)
        waiting, found, last = list(pieces), list[Answer](), None
        if self.random is not None:
            self.random.shuffle(waiting)
        for mark in self._marks(times):
            for piece in self._due(waiting, mark):
                stage.push(piece.solutions)
                waiting.remove(piece)
            answers = stage.advance(mark)
            self.hasty += [a for a in answers if a.end[0] > mark]
            self.tardy += [a for a in answers if last is not None and a.end[0] <= last]
            found += answers
            self.partials += stage.partials()
            self.steps, last = self.steps + 1, mark
            stage = self._restarted(stage, plan)
        for piece in waiting:
            stage.push(piece.solutions)
        answers = stage.close()
        self.partials += stage.partials()
        self.tardy += [a for a in answers if last is not None and a.end[0] <= last]
        self.suppressed, self.muted = stage.suppressed, sum(stage.muted.values())
        return [*found, *answers]

    def _marks(self, times: list[int]) -> Iterator[int]:
        """Watermarks, ascending: at, before and between the times of events."""
        if self.random is None or not times:
            return
        picked = self.random.choices(times, k=self.random.randint(0, 4))
        yield from sorted(t + self.random.choice([-1, 0, 0, 0, 500]) for t in picked)

    def _due(self, waiting: list[Piece], mark: int) -> list[Piece]:
        assert self.random is not None
        return [p for p in waiting if p.earliest <= mark or self.random.random() < 0.2]

    def _restarted(self, stage: SequenceStage, plan: QueryPlan) -> SequenceStage:
        """A new stage with the state of the given stage, or the given stage."""
        assert self.random is not None
        if self.random.random() < 0.5:
            return stage
        self.restarts += 1
        other = SequenceStage(plan, StageOptions(self.limit), self.knowledge)
        other.restore(stage.snapshot())
        return other
