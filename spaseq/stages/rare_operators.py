"""Operators that few queries have, and whose imports others need not pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.automaton.run.machine import CorrelatedSolver
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.limits import Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import OnBad

if TYPE_CHECKING:
    from spaseq.stages.changing_knowledge import ChangingKnowledge
    from spaseq.stages.partial_stage import PartialStage
    from spaseq.windows.window_operator import WindowOperator


def windows_of(
    plan: QueryPlan, knowledge: KnowledgeBase, on_bad: OnBad, limits: Limits
) -> WindowOperator | None:
    """The windows of a query, if it has any."""
    if not plan.inputs.windows:
        return None
    from spaseq.windows.window_operator import WindowOperator

    return WindowOperator(plan, knowledge, on_bad, limits)


def partial_of(plan: QueryPlan, solve: CorrelatedSolver) -> PartialStage | None:
    """What gives the partial matches of a query, if they are asked for."""
    if not plan.levels:
        return None
    from spaseq.stages.partial_stage import PartialStage

    return PartialStage(plan, solve)


def changing_of(
    plan: QueryPlan, knowledge: KnowledgeBase, on_bad: OnBad, limits: Limits
) -> ChangingKnowledge | None:
    """The graphs of a query that change, if it reads any."""
    if plan.changing is None:
        return None
    from spaseq.stages.changing_knowledge import ChangingKnowledge

    return ChangingKnowledge(plan, knowledge, on_bad, limits)
