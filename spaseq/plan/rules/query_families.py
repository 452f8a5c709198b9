"""The rule query-families."""

from __future__ import annotations

from dataclasses import replace

from spaseq.plan.query_plan import QueryPlan


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
