"""The algebra of the GPMs of a plan as text."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.plan.query_plan import GpmPlan, QueryPlan
from spaseq.render.tree import tree


def algebra_text(plan: QueryPlan) -> str:
    """The pattern of each GPM as a tree, then its conditions on earlier steps.

    The core of a correlated GPM, which stage 1 evaluates, follows the pattern.
    """
    return "\n".join(line for gpm in plan.patterns.gpms for line in _gpm(gpm))


def _gpm(gpm: GpmPlan) -> Iterator[str]:
    yield f"GPM {gpm.name}"
    yield tree(gpm.pattern)
    if gpm.correlation is not None:
        yield tree(gpm.correlation.core, "core")
        for name, expr in gpm.correlation.parameters:
            yield tree(expr, f"parameter {name}")
    for condition in gpm.conditions:
        yield tree(condition, "condition on earlier steps")
