"""The rule lazy-operands."""

from __future__ import annotations

from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules.pattern_evaluation import with_evaluation


def lazy_operands(plan: QueryPlan) -> QueryPlan:
    """OPTIONAL, paths, EXISTS and the like wait until the triple patterns of their group match.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["lazy-operands"]))
    >>> plan.patterns.evaluation.lazy
    False
    >>> lazy_operands(plan).patterns.evaluation.lazy
    True
    """
    return with_evaluation(plan, lazy=True)
