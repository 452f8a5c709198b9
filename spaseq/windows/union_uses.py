"""Which GPMs look at the union graph of a window event, and not only at its events."""

from __future__ import annotations

from spaseq.algebra import nodes as n
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import expressions
from spaseq.algebra.schema import Schema
from spaseq.lang.variables import exists_uses
from spaseq.plan.query_plan import GpmPlan


def reads_union(gpm: GpmPlan, schema: Schema | None = None) -> bool:
    """Whether a GPM reads triples outside EVENT."""
    return _reads(gpm.correlation.core if gpm.correlation else gpm.pattern, schema)


def _reads(pattern: n.Pattern, schema: Schema | None) -> bool:
    match pattern:
        case n.BGP(triples):
            return bool(triples)
        case n.Path():
            return True
        case n.EventBlock() | n.Graph() | n.Service():
            return False
    for expr in expressions(pattern):
        for use in exists_uses(expr):
            if _reads(entailed(translate_group(use.pattern), schema), schema):
                return True
    return any(_reads(inner, schema) for inner in n.children(pattern))
