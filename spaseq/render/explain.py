"""`spaseq explain`: a query at every stage of its compilation, as text."""

from __future__ import annotations

from spaseq.compile import Checked, check_query
from spaseq.errors import QueryError
from spaseq.lang.format import format_query
from spaseq.render.algebra_text import algebra_text
from spaseq.render.automaton import automaton_text
from spaseq.render.plan_text import plan_text
from spaseq.render.tree import tree


def explain(text: str, name: str = "query") -> str:
    """A query's canonical text, AST, algebra, plan and automaton.

    Raises:
        QueryError: the query has errors.
    """
    return explain_text(check_query(text, name))


def explain_text(checked: Checked, rate: float | None = None) -> str:
    """The canonical text, AST, algebra, plan and automaton of a checked query.

    `rate` is the number of solutions per second for which the memory is estimated.

    Raises:
        QueryError: the query has errors.
    """
    if checked.plan is None or checked.query is None:
        raise QueryError(checked.errors)
    plan = checked.plan
    sections = [
        ("query", format_query(checked.query).rstrip()),
        ("AST", tree(checked.query)),
        ("algebra", algebra_text(plan)),
        ("plan", plan_text(plan, rate)),
        ("automaton (G-NFA)", automaton_text(plan)),
    ]
    return "\n\n".join(f"# {title}\n\n{body}" for title, body in sections) + "\n"
