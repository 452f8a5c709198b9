"""Changes of the way in which stage 1 evaluates graph patterns."""

from __future__ import annotations

from dataclasses import replace

from spaseq.plan.query_plan import QueryPlan


def with_evaluation(plan: QueryPlan, **switches: bool) -> QueryPlan:
    """The plan with some fields of its `PatternEvaluation` changed."""
    evaluation = replace(plan.patterns.evaluation, **switches)
    return replace(plan, patterns=replace(plan.patterns, evaluation=evaluation))
