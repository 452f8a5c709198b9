"""The rule rare-steps-first."""

from __future__ import annotations

from dataclasses import replace

from spaseq.automaton.program.partial_order import patterns_of
from spaseq.plan.evaluators import (
    obstacle_to_compiled_registers,
    obstacle_to_reordering,
    with_evaluator,
)
from spaseq.plan.query_plan import EvaluatorChoice, QueryPlan
from spaseq.plan.sharing import obstacle_of_correlation, obstacle_to_sharing


def rare_steps_first(plan: QueryPlan) -> QueryPlan:
    """Steps are matched from the rarest on, if they look at one another and their order is free.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A: B) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y }
    ...     DEFINE GPM B ON S { ?z <http://e/at> ?w FILTER (?w > ?y) } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["rare-steps-first"]))
    >>> plan.sequence.evaluator.name
    'compiled-registers'
    >>> rare_steps_first(plan).sequence.evaluator.name
    'lazy'
    """
    choice = plan.sequence.evaluator
    sharing = obstacle_to_sharing(plan)
    if choice.asked or sharing is None:
        return plan
    against = obstacle_of_correlation(plan)
    against = against or obstacle_to_reordering(plan) or _obstacle_of_size(plan)
    against = against or _obstacle_of_contiguity(plan)
    if against is None:
        reason = f"{sharing}; its steps can be matched in any order, the rarest first"
        return with_evaluator(plan, EvaluatorChoice("lazy", reason))
    reason = sharing if against in sharing else f"{sharing}; {against}"
    return with_evaluator(plan, replace(choice, reason=reason))


def _obstacle_of_size(plan: QueryPlan) -> str | None:
    """Why a sequence is too short for a choice among its steps."""
    most = max(len(pattern.steps) for pattern in patterns_of(plan.sequence.program))
    return "there is one step only" if most < 2 else None


def _obstacle_of_contiguity(plan: QueryPlan) -> str | None:
    """Why the order of the steps is fixed, although their operators leave it free."""
    if plan.answers.strategy != "STRICT" or obstacle_to_compiled_registers(plan) is not None:
        return None
    return "under SELECT STRICT each step takes the next instant"
