"""The rule virtual-triples."""

from __future__ import annotations

from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules.pattern_evaluation import with_evaluation


def virtual_triples(plan: QueryPlan) -> QueryPlan:
    """Triple patterns over lifted events are evaluated on the columns of the rows, without triples.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["virtual-triples"]))
    >>> plan.patterns.evaluation.virtual
    False
    >>> virtual_triples(plan).patterns.evaluation.virtual
    True
    """
    return with_evaluation(plan, virtual=True)
