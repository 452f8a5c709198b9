"""The rule compiled-runs."""

from __future__ import annotations

from dataclasses import replace

from spaseq.plan.evaluators import (
    obstacle_to_compiled_registers,
    obstacle_to_compiled_sets,
    with_evaluator,
)
from spaseq.plan.query_plan import EvaluatorName, QueryPlan
from spaseq.plan.sharing import obstacle_of_correlation, obstacle_to_chain


def compiled_runs(plan: QueryPlan) -> QueryPlan:
    """Compiled code processes a batch of solutions at a time, if a kernel can run the sequence.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A; B) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y }
    ...     DEFINE GPM B ON S { ?z <http://e/at> ?w } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["compiled-runs"]))
    >>> plan.sequence.evaluator.name
    'compact'
    >>> compiled_runs(plan).sequence.evaluator.name
    'compiled-chain'
    """
    choice = plan.sequence.evaluator
    if choice.asked or obstacle_of_correlation(plan) is not None:
        return plan
    compiled: EvaluatorName
    match choice.name:
        case "compact":
            against = obstacle_to_compiled_sets(plan)
            compiled = "compiled-chain" if obstacle_to_chain(plan) is None else "compiled-compact"
        case "registers":
            against, compiled = obstacle_to_compiled_registers(plan), "compiled-registers"
        case _:
            return plan
    if against is None:
        return with_evaluator(plan, replace(choice, name=compiled))
    return with_evaluator(
        plan, replace(choice, reason=f"{choice.reason}; not compiled, as {against}")
    )
