"""`spaseq explain`: the query at every stage, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.compile import Checked, check_query
from spaseq.errors import QueryError
from spaseq.lang.format import format_query
from spaseq.plan.predicates import stream_predicates
from spaseq.plan.query_plan import GpmPlan, QueryPlan
from spaseq.plan.rules import RULES, effect_of, name_of
from spaseq.render.automaton import automaton_text
from spaseq.render.memory import memory_text
from spaseq.render.tree import tree


def explain(text: str, name: str = "query") -> str:
    """A query's canonical text, AST, algebra, plan and automaton.

    Raises:
        QueryError: the query has errors.
    """
    return explain_text(check_query(text, name))


def explain_text(checked: Checked, rate: float | None = None) -> str:
    """Canonical text, AST, algebra, plan and automaton of a checked query.

    `rate` is how many solutions per second its memory is told for.

    Raises:
        QueryError: the query has errors.
    """
    if checked.plan is None or checked.query is None:
        raise QueryError(checked.errors)
    plan = checked.plan
    sections = [
        ("query", format_query(checked.query).rstrip()),
        ("AST", tree(checked.query)),
        ("algebra", "\n".join(_algebra(plan))),
        ("plan", "\n".join(_plan(plan, rate))),
        ("automaton (G-NFA)", automaton_text(plan)),
    ]
    return "\n\n".join(f"# {title}\n\n{body}" for title, body in sections) + "\n"


def _algebra(plan: QueryPlan) -> Iterator[str]:
    for gpm in plan.patterns.gpms:
        yield f"GPM {gpm.name}"
        yield tree(gpm.pattern)
        for condition in gpm.conditions:
            yield tree(condition, "condition on earlier steps")


def _plan(plan: QueryPlan, rate: float | None) -> Iterator[str]:
    registered = (
        ", a stream that other queries of the run can read" if plan.identity.register else ""
    )
    yield f"answers    {plan.identity.name}{registered}"
    for name, iri in zip(plan.inputs.stream_names, plan.inputs.streams, strict=True):
        yield f"stream     {name} <{iri}>"
        read = stream_predicates([plan], iri)
        shown = (
            "all predicates" if read is None else " ".join(f"<{p}>" for p in read) or "no triples"
        )
        yield f"  reads    {shown}"
    for kb in plan.inputs.kbs:
        yield f"knowledge  <{kb}>"
    if plan.expressions.schema is not None:
        count = len(plan.expressions.schema.axioms)
        yield f"entailment rdfs, by {count} axioms: patterns are rewritten, events are not"
    yield f"window     {tree(plan.sequence.window)}"
    for rule in RULES:
        state = " (disabled)" if name_of(rule) in plan.disabled else ""
        yield f"rule       {name_of(rule)}{state}: {effect_of(rule)}"
    yield "stage 1    ingest and graph patterns, in parallel, per event"
    for gpm in plan.patterns.gpms:
        yield f"  {_gpm(plan, gpm)}"
    key = (
        ", ".join(f"?{v}" for v in plan.sequence.key.variables)
        if plan.sequence.key.variables
        else "one partition"
    )
    yield f"stage 2    sequence, by {key} ({plan.sequence.key.reason})"
    yield f"  evaluator {plan.sequence.evaluator.name}: {plan.sequence.evaluator.reason}"
    if plan.sequence.needs_instants:
        yield "  fed with solutions and the instants of all other events"
    else:
        yield "  fed with solutions only"
    yield f"  memory   {memory_text(plan, rate)}"
    if plan.answers.template is not None:
        yield "construct  one graph event for each match"
        yield from (f"  {' '.join(map(_term, t.terms))}" for t in plan.answers.template.triples)
    else:
        shown = ", ".join(f"?{p.name}" for p in plan.answers.projection)
        yield f"project    {shown or 'nothing'}"


def _term(term: PatternTerm) -> str:
    if isinstance(term, str):
        return term
    return term.name if is_reserved(term.name) else f"?{term.name}"


def _gpm(plan: QueryPlan, gpm: GpmPlan) -> str:
    streams = ", ".join(plan.inputs.stream_names[s] for s in gpm.streams)
    binds = _names(v for v in gpm.variables if not is_reserved(v))
    on = _names(v for v in gpm.variables if v not in gpm.private and not is_reserved(v))
    line = f"{gpm.name} on {streams} binds {binds or 'nothing'}; hands on {on or 'no values'}"
    if gpm.private:
        line += f" ({_names(sorted(gpm.private))} only where one event has several solutions)"
    if gpm.correlation is None:
        return line
    return f"{line}; its core only, the rest in stage 2: {gpm.correlation.reason}"


def _names(variables: Iterable[str]) -> str:
    return ", ".join(f"?{v}" for v in variables)
