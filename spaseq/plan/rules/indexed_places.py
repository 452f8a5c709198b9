"""The rule indexed-places."""

from __future__ import annotations

from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules.pattern_evaluation import with_evaluation


def indexed_places(plan: QueryPlan) -> QueryPlan:
    """FILTERs that compare an event's place with places of the KB ask a spatial index.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["indexed-places"]))
    >>> plan.patterns.evaluation.places
    False
    >>> indexed_places(plan).patterns.evaluation.places
    True
    """
    return with_evaluation(plan, places=True)
