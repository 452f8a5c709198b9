"""The physical plan of a query as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.message_text import public_address
from spaseq.plan.evaluators import is_threshold_sequence
from spaseq.plan.query_plan import AnswerPlan, GpmPlan, QueryPlan
from spaseq.plan.rules import RULES, effect_of, name_of
from spaseq.render.memory import memory_text
from spaseq.render.tree import tree


def plan_text(plan: QueryPlan, rate: float | None = None) -> str:
    """Inputs, rules, both stages and answers.

    `rate` is the number of solutions per second for which the memory is estimated.
    """
    parts = (_inputs(plan), _rules(plan), _stages(plan, rate), _answers(plan.answers))
    return "\n".join(line for part in parts for line in part)


def _inputs(plan: QueryPlan) -> Iterator[str]:
    identity, inputs = plan.identity, plan.inputs
    registered = ", a stream that other queries of the run can read" if identity.register else ""
    yield f"answers    {identity.name}{registered}"
    streams = zip(inputs.stream_names, inputs.streams, inputs.predicates, strict=True)
    for name, iri, predicates in streams:
        yield f"stream     {name} <{iri}>"
        yield f"  reads    {_predicates(predicates)}"
    for kb in inputs.kbs:
        yield f"knowledge  <{kb}>"
    for service in inputs.services:
        yield f"endpoint   <{public_address(service)}>"
    schema = plan.expressions.schema
    if schema is not None:
        count = len(schema.axioms)
        yield f"entailment rdfs, by {count} axioms: patterns are rewritten, events are not"
    yield f"window     {tree(plan.sequence.window)}"


def _predicates(predicates: tuple[str, ...] | None) -> str:
    if predicates is None:
        return "all predicates"
    return " ".join(f"<{p}>" for p in predicates) or "no triples"


def _rules(plan: QueryPlan) -> Iterator[str]:
    for rule in RULES:
        name = name_of(rule)
        state = " (disabled)" if name in plan.disabled else ""
        yield f"rule       {name}{state}: {effect_of(rule)}"


def _stages(plan: QueryPlan, rate: float | None) -> Iterator[str]:
    yield "stage 1    ingest and graph patterns, in parallel, per event"
    for gpm in plan.patterns.gpms:
        yield f"  {_gpm(plan, gpm)}"
    sequence = plan.sequence
    key = _names(sequence.key.variables or ()) or "one partition"
    yield f"stage 2    sequence, by {key} ({sequence.key.reason})"
    yield f"  evaluator {_evaluator(plan)}: {sequence.evaluator.reason}"
    if sequence.needs_instants:
        yield "  fed with solutions and the instants of all other events"
    else:
        yield "  fed with solutions only"
    yield f"  memory   {memory_text(plan, rate)}"


def _evaluator(plan: QueryPlan) -> str:
    name = plan.sequence.evaluator.name
    if name != "compiled-registers":
        return name
    kernel = "threshold-sequence" if is_threshold_sequence(plan) else "register"
    return f"{name} ({kernel} kernel)"


def _answers(answers: AnswerPlan) -> Iterator[str]:
    if answers.strategy != "ALL":
        yield f"selection  {answers.strategy}"
    if answers.after_match.kind != "NO SKIP":
        skip = answers.after_match
        yield f"skip       {skip.kind}{f' {skip.gpm}' if skip.gpm else ''}"
    if answers.having is not None:
        yield f"having     {tree(answers.having)}"
    if answers.template is not None:
        yield "construct  one graph event for each match"
        for triple in answers.template.triples:
            yield f"  {' '.join(map(_term, triple.terms))}"
        return
    distinct = "distinct " if answers.distinct else ""
    shown = ", ".join(f"?{p.name}" for p in answers.projection)
    yield f"project    {distinct}{shown or 'nothing'}"


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
