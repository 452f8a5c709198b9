"""The rule shared-patterns."""

from __future__ import annotations

from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules.pattern_evaluation import with_evaluation


def shared_patterns(plan: QueryPlan) -> QueryPlan:
    """Triple patterns that several GPMs have in common are evaluated once.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["shared-patterns"]))
    >>> plan.patterns.evaluation.shared
    False
    >>> shared_patterns(plan).patterns.evaluation.shared
    True
    """
    return with_evaluation(plan, shared=True)
