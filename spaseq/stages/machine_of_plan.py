"""The machine of a plan's evaluator, the expressions of stage 2, the limit on partial matches."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.algebra.translate import EVENT
from spaseq.automaton.program.nfa import CorrelatedColumns, GpmColumns
from spaseq.automaton.run.machine import CorrelatedSolver, Machine
from spaseq.automaton.run.waiting_limit import WaitingLimit
from spaseq.lang import ast
from spaseq.lang.shapes import QUERY
from spaseq.options import StageOptions
from spaseq.plan.evaluators import SET_EVALUATORS, consumes, program_of, selects
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import QueryPlan


def machine_of(
    plan: QueryPlan,
    solve: CorrelatedSolver,
    limit: int | None,
    waiting: WaitingLimit | None = None,
) -> Machine:
    """The machine of a plan.

    `solve` evaluates correlated GPMs. `limit` bounds the matches of a partition that end at one
    instant; None if the evaluator does not apply the limit. `waiting` bounds partial matches.
    """
    sequence, gpms = plan.sequence, plan.patterns.gpms
    partition, evaluator = sequence.partition, sequence.evaluator
    return Machine(
        program_of(plan),
        sequence.window,
        [_columns(gpm) for gpm in gpms],
        [gpm.name for gpm in gpms],
        plan.answers.strategy == "STRICT" and evaluator.name == "registers",
        plan.expressions,
        evaluator=evaluator.name,
        partition=partition,
        key=evaluator.key if evaluator.name in SET_EVALUATORS else sequence.own_key,
        strategy=plan.answers.strategy if selects(plan) else "ALL",
        streams=plan.inputs.sources,
        limit=limit,
        consumes=consumes(plan),
        solve=solve,
        waiting=waiting,
        carried=_carried(plan),
    )


def waiting_limit(plan: QueryPlan, options: StageOptions) -> WaitingLimit | None:
    """The limit on the partial matches of a query, or of each member of a family."""
    most, partition = options.most_waiting, plan.sequence.partition
    if most is None:
        return None
    place = partition.index(QUERY) if QUERY in partition else None
    return WaitingLimit(most, place, most, variable=_carried(plan))


def _carried(plan: QueryPlan) -> str | None:
    """The variable that carries a family's member in the first solution of a match, if any."""
    is_there = any(QUERY in gpm.variables for gpm in plan.patterns.gpms)
    return QUERY if is_there and QUERY not in plan.sequence.partition else None


def _columns(gpm: GpmPlan) -> GpmColumns:
    correlation = None
    if gpm.correlation is not None:
        event = gpm.variables.index(EVENT)
        correlation = CorrelatedColumns(event, gpm.correlation.reads, gpm.correlation.parameters)
    return GpmColumns(gpm.variables, gpm.conditions, gpm.certain, correlation)


def expressions_of(plan: QueryPlan) -> Iterator[ast.Expr]:
    """The expressions that stage 2 evaluates."""
    for gpm in plan.patterns.gpms:
        yield from gpm.conditions
        if gpm.correlation is not None:
            yield from (expr for _, expr in gpm.correlation.parameters)
    if plan.answers.having is not None:
        yield plan.answers.having
    yield from (item.expr for item in plan.answers.projection if item.expr is not None)
    yield from (variable.expr for variable in plan.answers.computed)
