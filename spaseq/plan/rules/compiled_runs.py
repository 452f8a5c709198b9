"""The rule compiled-runs."""

from __future__ import annotations

from dataclasses import replace

from spaseq.plan.evaluators import for_registers, with_evaluator
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sharing import obstacle_of_correlation


def compiled_runs(plan: QueryPlan) -> QueryPlan:
    """Compiled code advances runs, a batch of solutions at a time, if a kernel can.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A; B) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y }
    ...     DEFINE GPM B ON S { ?z <http://e/at> ?w FILTER (?w > ?y) } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["compiled-runs"]))
    >>> plan.sequence.evaluator.name
    'registers'
    >>> compiled_runs(plan).sequence.evaluator.name
    'compiled-registers'
    """
    choice = plan.sequence.evaluator
    if choice.asked or choice.name != "registers" or obstacle_of_correlation(plan) is not None:
        return plan
    form, reason = for_registers(plan), choice.reason
    if isinstance(form, str):
        return with_evaluator(plan, replace(choice, reason=f"{reason}; not compiled, as {form}"))
    if form.reads_whole_runs:
        reason += "; Python evaluates FILTERs for each partial match"
    if form.judged:
        reason += "; Python judges each match"
    return with_evaluator(plan, replace(choice, name="compiled-registers", reason=reason))
