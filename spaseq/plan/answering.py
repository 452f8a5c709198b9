"""From the clauses of a query around its sequence to its answers."""

from __future__ import annotations

from spaseq.algebra.construct import change_template_of, template_of
from spaseq.algebra.nodes import is_reserved
from spaseq.lang import ast
from spaseq.plan.query_plan import AfterMatch, AnswerPlan, GpmPlan, ProjectedVariable, Strategy


def answer_plan(query: ast.Query, gpms: tuple[GpmPlan, ...]) -> AnswerPlan:
    """Projection or template, HAVING, selection strategy and AFTER MATCH."""
    form, skip = query.form, query.skip
    after_match = AfterMatch("NO SKIP")
    if skip is not None:
        after_match = AfterMatch(
            skip.kind, skip.gpm.name if skip.gpm else None, skip.mute.ms if skip.mute else 0
        )
    if isinstance(form, ast.Construct):
        template = template_of(form, query.register.value if query.register else None)
        return AnswerPlan((), False, "ALL", after_match, query.having, template)
    if isinstance(form, ast.Maintain):
        template = change_template_of(form)
        return AnswerPlan((), False, "ALL", after_match, query.having, template)
    strategy: Strategy = form.strategy
    projection = _projection(form, gpms)
    return AnswerPlan(projection, form.distinct, strategy, after_match, query.having, None)


def _projection(form: ast.Select, gpms: tuple[GpmPlan, ...]) -> tuple[ProjectedVariable, ...]:
    """The items of SELECT; `*` stands for the variables of the GPMs that are not negated."""
    if form.items is not None:
        return tuple(ProjectedVariable(i.var.name, i.expr) for i in form.items if i.var is not None)
    names = dict.fromkeys(v for gpm in gpms if not gpm.negated for v in gpm.variables)
    return tuple(ProjectedVariable(n) for n in names if not is_reserved(n))
