"""The rules shared-runs and compiled-runs, which choose the evaluator, and query-families."""

from __future__ import annotations

from dataclasses import replace

from spaseq.automaton.program.outer_steps import GREEDY_PLACE, outer_place
from spaseq.plan.evaluators import (
    for_registers,
    obstacle_of_correlation,
    obstacle_to_chain,
    obstacle_to_compiled_sets,
    obstacle_to_sharing,
    sharing_key,
    with_evaluator,
)
from spaseq.plan.query_plan import EvaluatorChoice, EvaluatorName, QueryPlan


def shared_runs(plan: QueryPlan) -> QueryPlan:
    """Partial matches share their parts if no step reads the event of another.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A; B+) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y }
    ...     DEFINE GPM B ON S { ?z <http://e/at> ?w } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["shared-runs"]))
    >>> plan.sequence.evaluator.name
    'compiled-registers'
    >>> evaluator = shared_runs(plan).sequence.evaluator
    >>> evaluator.name, evaluator.reason
    ('compiled-compact', "no step looks at another's event; it repeats a step")
    """
    choice = plan.sequence.evaluator
    if choice.asked:
        return plan
    obstacle = obstacle_to_sharing(plan)
    if obstacle is not None:
        return with_evaluator(plan, replace(choice, reason=obstacle))
    if _keeps_longest_loops(plan):
        reason = f"{GREEDY_PLACE}, and a run there keeps only its longest loop"
        return with_evaluator(plan, replace(choice, reason=reason))
    independent, more = "no step looks at another's event", obstacle_to_chain(plan)
    reason = f"GPMs in a row; {independent}" if more is None else f"{independent}; {more}"
    against, outer = obstacle_to_compiled_sets(plan), outer_place(plan.sequence.program)
    if against is not None:
        return with_evaluator(plan, replace(choice, reason=f"{outer or independent}; {against}"))
    if outer is not None:
        one_more = outer == GREEDY_PLACE
        checked = "one more repetition in last" if one_more else "negated steps in first and last"
        reason = f"{reason}; each match is checked for {checked} place"
    name: EvaluatorName = "compiled-chain" if more is None else "compiled-compact"
    return with_evaluator(plan, EvaluatorChoice(name, reason, sharing_key(plan)))


def _keeps_longest_loops(plan: QueryPlan) -> bool:
    """Whether registers visit few runs to find the ends of a greedy loop in last place.

    Sets list every shorter loop, too. Under `:` they are still better, as they share the runs.
    """
    program = plan.sequence.program
    if outer_place(program) != GREEDY_PLACE:
        return False
    if any(edge.join is not None and edge.join.kind == ":" for edge in program.edges):
        return False
    found = for_registers(plan)
    return not isinstance(found, str) and not found.judged


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


def query_families(plan: QueryPlan) -> QueryPlan:
    """Queries of a run that differ in constants only run as one query with a table of constants.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> "hot" } }'''
    >>> options = CompileOptions(several=True, disable=["query-families"])
    >>> plan = compile_query(query, options=options)
    >>> plan.is_member, query_families(plan).is_member
    (False, True)
    """
    return replace(plan, is_member=plan.shaped is not None)
