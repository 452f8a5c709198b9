"""From a resolved query to its physical plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spaseq.algebra.construct import change_template_of, template_of
from spaseq.algebra.graph_changes import changes_of
from spaseq.algebra.nodes import is_reserved
from spaseq.automaton.program.compiler import FEW_STATES
from spaseq.expr.compile import Options
from spaseq.expr.extension import Function, known_functions
from spaseq.lang import ast
from spaseq.lang import sequence as seq
from spaseq.lang.format import format_query
from spaseq.lang.resolve import Resolved
from spaseq.lang.shapes import Shaped, shape_of
from spaseq.lang.variables import service_names, walk_patterns
from spaseq.lang.windows import windows_of
from spaseq.plan.evaluators import (
    asked_evaluator,
    check_evaluator,
    consumes,
    may_be_better_unrolled,
    with_evaluator,
)
from spaseq.plan.gpm_plans import gpm_plans, membership_plans, window_plans, with_awaited
from spaseq.plan.late_binds import with_joined_exists, without_late_binds
from spaseq.plan.levels import with_levels
from spaseq.plan.pattern_plan import GpmPlan, Membership, WindowPlan
from spaseq.plan.query_plan import (
    AS_USUAL,
    AfterMatch,
    AnswerPlan,
    CompileOptions,
    ComputedVariable,
    Identity,
    Inputs,
    ProjectedVariable,
    QueryPlan,
    SequencePlan,
    Strategy,
)
from spaseq.plan.rules import apply_rules, known_rules
from spaseq.plan.sequencing import pattern_plan, sequence_plan
from spaseq.plan.signatures import Hashes, Signature, hash_of
from spaseq.rdf.schema import Schema


def answer_plan(
    query: ast.Query, gpms: tuple[GpmPlan, ...], computed: tuple[ComputedVariable, ...] = ()
) -> AnswerPlan:
    """Projection or template, HAVING, selection strategy and AFTER MATCH."""
    form, skip = query.form, query.skip
    after_match = AfterMatch("NO SKIP")
    if skip is not None:
        after_match = AfterMatch(
            skip.kind, skip.gpm.name if skip.gpm else None, skip.mute.ms if skip.mute else 0
        )
    if isinstance(form, ast.Construct):
        template = template_of(form, query.register.value if query.register else None)
        return AnswerPlan((), False, "ALL", after_match, query.having, template, computed)
    if isinstance(form, ast.Maintain):
        template = change_template_of(form)
        return AnswerPlan((), False, "ALL", after_match, query.having, template, computed)
    strategy: Strategy = form.strategy
    projection = _projection(form, gpms, computed)
    return AnswerPlan(
        projection, form.distinct, strategy, after_match, query.having, None, computed
    )


def _projection(
    form: ast.Select, gpms: tuple[GpmPlan, ...], computed: tuple[ComputedVariable, ...]
) -> tuple[ProjectedVariable, ...]:
    """The items of SELECT; `*` stands for the variables of the GPMs that are not negated."""
    if form.items is not None:
        return tuple(ProjectedVariable(i.var.name, i.expr) for i in form.items if i.var is not None)
    names = dict[str, None]()
    for gpm in gpms:
        if not gpm.negated:
            own = (each.name for each in computed if each.gpm == gpm.name)
            names |= dict.fromkeys(sorted({*gpm.variables, *own}))
    return tuple(ProjectedVariable(n) for n in names if not is_reserved(n))


STATE_FORMAT = 2
"""A part of every plan's fingerprint: state of another format is incompatible."""


def plan_query(resolved: Resolved, name: str, options: CompileOptions = AS_USUAL) -> QueryPlan:
    """The plan of a query without errors; `name` is the name of its answers.

    Raises:
        UsageError: the evaluator in `options` cannot run the query, or a rule to disable does not
            exist.
    """
    disabled = known_rules(options.disable)
    if options.evaluator is not None:
        few = FEW_STATES if options.evaluator == "compiled-registers" else None
        plan = plan_as_written(resolved, name, options, few)
        plan = with_evaluator(plan, asked_evaluator(plan, options.evaluator))
        plan = apply_rules(plan, disabled)
        check_evaluator(plan)
    else:
        plan = apply_rules(plan_as_written(resolved, name, options, FEW_STATES), disabled)
        if may_be_better_unrolled(plan):
            unrolled = apply_rules(plan_as_written(resolved, name, options), disabled)
            plan = plan if unrolled.evaluator == "registers" else unrolled
    if options.partial:
        plan = with_levels(plan, resolved, disabled)
    return with_fingerprint(plan, resolved.query)


def plan_as_written(
    resolved: Resolved, name: str, options: CompileOptions, most_states: int | None = None
) -> QueryPlan:
    """The plan before any rule: triple patterns in the order of the text, and runs in registers.

    `most_states` is as for `compile_program`.
    """
    resolved, computed = without_late_binds(with_joined_exists(resolved), options.partial)
    query, schema = resolved.query, options.schema
    gpms = gpm_plans(resolved, schema)
    answers = answer_plan(query, gpms, computed)
    sequence = sequence_plan(resolved, gpms, answers, most_states)
    memberships = membership_plans(resolved, schema, gpms, sequence)
    windows, contents = window_plans(resolved, gpms, schema)
    if options.pushed:
        gpms = with_awaited(resolved, schema, gpms)
    return QueryPlan(
        identity=_identity(query, name),
        inputs=_inputs(resolved, gpms, memberships, windows),
        patterns=pattern_plan(gpms, memberships, contents),
        sequence=sequence,
        answers=answers,
        expressions=_expressions(resolved, sequence, schema),
        shaped=None if computed else _shaped(resolved, sequence, options),
    )


def _identity(query: ast.Query, name: str) -> Identity:
    if isinstance(query.form, ast.Maintain):
        return Identity(name, name, changes_of(query.form.graph.value))
    register = query.register.value if query.register else None
    return Identity(register or name, name, register)


def _shaped(resolved: Resolved, sequence: SequencePlan, options: CompileOptions) -> Shaped | None:
    """The shape of a query that may join a family, else None.

    Such queries must concern their own events only, so none counts all events of a stream. Only the
    groups of their GPMs may depend on the constants.
    """
    alone = options.schema is not None or options.partial or options.evaluator is not None
    query = resolved.query
    feeds = query.register is not None or isinstance(query.form, ast.Maintain)
    if not options.several or alone or sequence.needs_instants or feeds:
        return None
    if query.windows and (query.partition or any(not windows_of(g, query) for g in query.gpms)):
        return None
    if ast.ServiceGraphPattern in resolved.kinds:
        return None
    return shape_of(resolved)


def _inputs(
    resolved: Resolved,
    gpms: tuple[GpmPlan, ...],
    memberships: tuple[Membership, ...],
    windows: tuple[WindowPlan, ...],
) -> Inputs:
    query, services = resolved.query, list[ast.Var | ast.Iri]()
    if ast.ServiceGraphPattern in resolved.kinds:
        used = {gpm.name for gpm in gpms} | {membership.gpm for membership in memberships}
        services += [n for g in query.gpms if g.name in used for n in service_names(g.pattern)]
    return Inputs(
        streams=tuple(s.iri.value for s in query.streams),
        stream_names=tuple(s.name for s in query.streams),
        kbs=tuple(k.iri.value for k in query.kbs),
        services=tuple(name.value for name in services if isinstance(name, ast.Iri)),
        predicates=(None,) * len(query.streams),
        windows=windows,
    )


def _expressions(resolved: Resolved, sequence: SequencePlan, schema: Schema | None) -> Options:
    groups, base = frozenset(sequence.program.owner), resolved.query.prologue.base
    return Options(None, base, groups, _functions(resolved), schema)


def _functions(resolved: Resolved) -> tuple[Function, ...]:
    """The extension functions that the query calls."""
    if ast.FunctionCall not in resolved.kinds:
        return ()
    nodes = walk_patterns(resolved.query)
    called = {n.function.value for n in nodes if isinstance(n, ast.FunctionCall)}
    return tuple(f for f in known_functions() if f.iri in called)


def with_fingerprint(plan: QueryPlan, query: ast.Query) -> QueryPlan:
    """The plan with the hash of everything that its state depends on."""
    fingerprint = signature(plan, plan.identity.title, lambda: format_query(query))
    return replace(plan, signature=fingerprint)


def _is_of_single_gpms(step: seq.BinaryStep) -> bool:
    """Whether a bracket has alternatives of single GPMs only."""
    return step.kind == "|" and all(
        len(operand.links) == 1 and isinstance(operand.links[0].step, seq.GpmStep)
        for operand in step.operands
    )


def signature(plan: QueryPlan, title: str, text: Callable[[], str]) -> Signature:
    """The hashes of a query, given its title and the function of its canonical text.

    Of `plan`, only the parts count that queries of one family share.
    """
    schema, evaluator = plan.expressions.schema, plan.sequence.evaluator.name
    state = ""
    if plan.sequence.program.bounds:
        state += "\ncounted"
    steps = seq.steps(plan.sequence.chain) if evaluator.endswith("registers") else ()
    if any(isinstance(step, seq.BinaryStep) and not _is_of_single_gpms(step) for step in steps):
        state += "\nways of brackets"  # earlier versions ran the bracket, or other ways
    if schema is not None:
        state += f"\n{schema.fingerprint}"
    if plan.patterns.kept:
        state += "\nkept rows of all partitions"  # earlier versions kept each partition's
    if consumes(plan):
        state += "\nconsumes"
    if plan.answers.distinct and plan.sequence.key.variables is None:
        state += "\nas one"  # earlier versions split it
    if evaluator == "registers" and plan.sequence.own_key:
        state += "\nsplit by key"
    if plan.answers.computed:
        state += "\ncomputed"
    if plan.levels:
        names = (level.plan.sequence.evaluator.name for level in plan.levels)
        state += f"\npartial {' '.join(names)}"

    def made() -> Hashes:
        canonical = text()
        hashed = f"{STATE_FORMAT}\n{evaluator}\n{title}\n{canonical}{state}"
        return hash_of(hashed), hash_of(canonical)

    return Signature(made)
