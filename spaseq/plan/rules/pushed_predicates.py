"""The rule pushed-predicates."""

from __future__ import annotations

from dataclasses import replace

from spaseq.algebra.needs import (
    Predicates,
    predicates_of_expression,
    predicates_read,
    together,
)
from spaseq.plan.pattern_plan import ContentPlan, GpmPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.schema import Schema


def pushed_predicates(plan: QueryPlan) -> QueryPlan:
    """Readers keep only the triples of an event that the query can read.

    >>> from spaseq.compile import CompileOptions, compile_query
    >>> query = '''SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {
    ...     DEFINE GPM A ON S { ?x <http://e/is> ?y } }'''
    >>> plan = compile_query(query, options=CompileOptions(disable=["pushed-predicates"]))
    >>> plan.inputs.predicates
    (None,)
    >>> pushed_predicates(plan).inputs.predicates
    (('http://e/is',),)
    """
    streams = range(len(plan.inputs.streams))
    predicates = tuple(_read(plan, stream) for stream in streams)
    return replace(plan, inputs=replace(plan.inputs, predicates=predicates))


def _read(plan: QueryPlan, stream: int) -> tuple[str, ...] | None:
    """The predicate IRIs, sorted, that the GPMs on a stream read; None if they may read all."""
    schema, patterns = plan.expressions.schema, plan.patterns
    gpms = (gpm for gpm in patterns.gpms if stream in gpm.streams)
    memberships = (
        membership for membership in patterns.memberships if stream in membership.streams
    )
    read = together(
        [
            *(_of_gpm(gpm, schema) for gpm in gpms),
            *(predicates_read(membership.pattern, schema) for membership in memberships),
            *(
                _of_content(content, schema)
                for content in patterns.contents
                if stream in content.gpm.streams
            ),
        ]
    )
    return None if read is None else tuple(sorted(text[1:-1] for text in read))


def _of_content(content: ContentPlan, schema: Schema | None) -> Predicates:
    kept = content.predicates
    return together(
        [predicates_read(content.gpm.pattern, schema), None if kept is None else frozenset(kept)]
    )


def _of_gpm(gpm: GpmPlan, schema: Schema | None) -> Predicates:
    return together(
        [
            predicates_read(gpm.pattern, schema),
            *(predicates_of_expression(e, schema) for e in gpm.conditions),
        ]
    )
