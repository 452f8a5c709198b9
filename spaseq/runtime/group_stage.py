"""Stage 2 of queries that are connected by registered streams, in one bucket of a followed run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.errors import RunError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.families import QueryUnits
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import OnBad, warn
from spaseq.runtime.job.unit_graph import QueryGroup, UnitGraph, stream_of
from spaseq.runtime.pushed_units import PushedQuery, PushedUnit
from spaseq.stages.unit_stages import LazyStages
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain


class GroupStage:
    """The units of a group; the answers of one are events for the next.

    `push` takes solutions on events of the group's `streams`. Solutions on events of registered
    streams are computed here.

    Args:
        units: of all queries of the run.
        group: the group.
        knowledge: the knowledge base.
        options: the options of each stage.
        on_bad: called for each event that lacks an endpoint's answer or exceeds a limit.
    """

    def __init__(
        self,
        units: QueryUnits,
        group: QueryGroup,
        knowledge: KnowledgeBase,
        options: StageOptions = StageOptions(),
        on_bad: OnBad = warn,
    ) -> None:
        self.group, self._how = group, LazyStages(knowledge, options, on_bad)
        self.plans = {n: units.plans[n] for n in group.members}
        self._numbers: dict[PushedQuery, int] = {}
        self._units = {n: self._unit(units, n) for n in self.plans}
        self._graph = UnitGraph(self._units.values())

    def _unit(self, units: QueryUnits, number: int) -> PushedUnit:
        plans = {n: units.queries[n] for n in units.members(number)}
        members = {n: PushedQuery(plan, stream_of(plan)) for n, plan in plans.items()}
        self._numbers.update((query, n) for n, query in members.items())
        return PushedUnit(members, self._how, units.families.get(number))

    @property
    def reads_knowledge(self) -> bool:
        """Whether this stage, and not only stage 1, reads graphs of the knowledge base."""
        made = {unit.feed.iri for unit in self._graph if unit.feed is not None}
        return any(
            plan.inputs.windows
            or plan.changing is not None
            or any(gpm.correlation for gpm in plan.patterns.gpms)
            or not made.isdisjoint(plan.inputs.streams)
            for plan in self.plans.values()
            if plan.inputs.kbs
        )

    def use(self, knowledge: KnowledgeBase) -> None:
        """Evaluate with this knowledge base from now on; partial matches stay."""
        self._how = replace(self._how, knowledge=knowledge)
        for unit in self._graph:
            unit.use(self._how)

    def push(self, unit: int, rows: SolutionBatch) -> None:
        """Take solutions of a unit, in any order."""
        self._units[unit].push(rows)

    def advance(self, marks: Mapping[str, int]) -> list[tuple[int, Sequence[Answer]]]:
        """The answers that are final at these watermarks, by query.

        Args:
            marks: by stream IRI the time (ms) at or before which no event follows.
        """
        return [
            (self._numbers[query], answers)
            for unit, watermark in self._graph.due(marks).items()
            for query, answers in unit.advance(watermark, False)
        ]

    def partials(self) -> list[tuple[int, Sequence[PartialAnswer]]]:
        """Each query's partial matches whose windows have closed since the last call."""
        return [(number, unit.sequence.partials()) for number, unit in self._units.items()]

    @property
    def suppressed(self) -> int:
        """Number of answers that the limit has left out so far."""
        return sum(unit.sequence.suppressed for unit in self._graph)

    @property
    def muted(self) -> dict[str, int]:
        """Number of answers that MUTE has left out so far, by the title of the query."""
        return {title: n for unit in self._graph for title, n in unit.sequence.muted.items()}

    def exceeded(self) -> dict[int, Excess]:
        """The instants at which queries exceeded the limit on partial matches, by the query."""
        by_unit = (unit.sequence.exceeded() for unit in self._graph)
        return {query: excess for some in by_unit for query, excess in some.items()}

    def live_runs(self) -> dict[int, int]:
        """The number of waiting partial matches, by unit."""
        return {number: unit.sequence.live_runs() for number, unit in self._units.items()}

    def snapshot(self) -> bytes:
        """The state as bytes; the group of a single unit has the snapshot of its stage."""
        parts: list[bytes] = [unit.sequence.snapshot() for unit in self._graph]
        return parts[0] if len(parts) == 1 else dump_plain(parts)

    def restore(self, snapshot: bytes) -> None:
        """Restore from a snapshot of the same queries; RunError as from `SequenceStage.restore`."""
        try:
            parts = [snapshot] if len(self._units) == 1 else load_plain(snapshot)
            pairs = [*zip(self._graph, parts, strict=True)]
        except BROKEN as error:
            names = ", ".join(plan.identity.name for plan in self.plans.values())
            raise RunError(f"the state of {names} is damaged: {error}") from error
        for unit, part in pairs:
            unit.sequence.restore(part)
