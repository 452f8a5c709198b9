"""The rule rare-triples-first."""

from __future__ import annotations

from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules.pattern_evaluation import with_evaluation


def rare_triples_first(plan: QueryPlan) -> QueryPlan:
    """The triple pattern with the fewest matches in the stream comes first.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["rare-triples-first"]))
    >>> plan.patterns.evaluation.rare_first
    False
    >>> rare_triples_first(plan).patterns.evaluation.rare_first
    True
    """
    return with_evaluation(plan, rare_first=True)
