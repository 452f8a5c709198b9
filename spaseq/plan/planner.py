"""From a resolved query to its physical plan."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from dataclasses import replace

from spaseq.algebra.construct import Template, template_of
from spaseq.algebra.correlation import EVENT, Correlation
from spaseq.algebra.nodes import is_reserved
from spaseq.algebra.schema import Schema
from spaseq.algebra.translate import GpmAlgebra, split_gpm
from spaseq.automaton.program.compiler import compile_program
from spaseq.automaton.program.window import Counted, Sliding, Tumbling, Window
from spaseq.errors import NOWHERE, Diagnostic
from spaseq.expr.compile import Options, problems
from spaseq.expr.extension import Function, registered
from spaseq.lang import ast
from spaseq.lang.format import format_query
from spaseq.lang.resolve import Resolved
from spaseq.lang.rewriting import without_services
from spaseq.lang.sequence import occurrences
from spaseq.lang.variables import filters_of, service_names, walk
from spaseq.lang.visibility import seen_before
from spaseq.plan.evaluator_choice import Candidate, choose
from spaseq.plan.query_plan import AfterMatch, GpmPlan, ProjectedVariable, QueryPlan
from spaseq.plan.rules import AWAITED_REQUESTS, PRUNED_COLUMNS, Rule
from spaseq.rdf.terms.term import iri_text, literal_text
from spaseq.rdf.terms.times import parse_time
from spaseq.rdf.terms.vocabulary import RDF, XSD_DATE_TIME

STATE_FORMAT = 2
"""Part of every plan's fingerprint: state of another format does not fit."""


def check_services(resolved: Resolved) -> list[Diagnostic]:
    """SERVICE over variables that nothing can have bound to an endpoint."""
    patterns = [g.pattern for g in resolved.query.gpms]
    mentioned = Counter(n.name for p in patterns for n in walk(p) if isinstance(n, ast.Var))
    found = []
    for service in (n for p in patterns for n in walk(p) if isinstance(n, ast.ServiceGraphPattern)):
        match service.name:
            case ast.Var(name) as var:
                own = sum(isinstance(n, ast.Var) and n.name == name for n in walk(service))
                if own == mentioned[name]:
                    message = f"SERVICE ?{name}: nothing binds ?{name} to an endpoint"
                    source = resolved.source
                    found.append(Diagnostic("error", "unbound-service", message, var.span, source))
    return found


def check_entailment(resolved: Resolved, schema: Schema) -> list[Diagnostic]:
    """What cannot be evaluated under entailment: paths whose steps no property is enough for."""
    found = []
    for gpm in resolved.query.gpms:
        for repeat in (n for n in walk(gpm.pattern) if isinstance(n, ast.PathRepeat)):
            for step in walk(repeat):
                negated = isinstance(step, ast.PathNegated)
                if negated or (isinstance(step, ast.Iri) and _holds_types(step, schema)):
                    what = "a negated property set" if negated else _type_name(step)
                    message = f"{what} cannot be repeated in a path under entailment"
                    span = step.span if step.span != NOWHERE else repeat.span
                    found.append(
                        Diagnostic("error", "entailed-path", message, span, resolved.source)
                    )
    return found


def _holds_types(step: ast.Iri, schema: Schema) -> bool:
    return step.value == RDF + "type" or schema.holds_types(iri_text(step.value))


def _type_name(step: ast.Node) -> str:
    match step:
        case ast.Iri(value) if value != RDF + "type":
            return f"<{value}>, which rdf:type entails,"
    return "rdf:type"


def gpm_algebra(
    resolved: Resolved, schema: Schema | None = None, awaited: bool = False
) -> dict[str, GpmAlgebra]:
    """The algebra of each GPM that the sequence uses, by name; see `split_gpm` for `awaited`."""
    seen = seen_before(resolved.chain, resolved.scope, resolved.binds)
    used = {o.gpm for o in occurrences(resolved.chain)}
    gpms = (g for g in resolved.query.gpms if g.name in used)
    partition = {v.name for v in resolved.query.partition}
    found = {}
    for gpm in gpms:
        given = gpm, frozenset(seen.get(gpm.name, ())), schema
        found[gpm.name] = algebra = split_gpm(*given)
        if awaited and algebra.correlation is None:
            awaiting = split_gpm(*given, awaited=True)
            if partition & algebra.certain <= awaiting.certain:
                found[gpm.name] = awaiting
    return found


def check_expressions(resolved: Resolved) -> list[Diagnostic]:
    """Functions and casts that do not exist, or have other arguments."""
    query = resolved.query
    # EXISTS has its own refusal where it is not supported.
    groups = frozenset(resolved.scope.owner)
    options = Options(lambda _, __: False, groups=groups, functions=registered())
    patterns = [without_services(g.pattern) for g in query.gpms]
    exprs = [e for pattern in patterns for e in filters_of(pattern)]
    if isinstance(query.form, ast.Select):
        exprs += [i.expr for i in query.form.items or () if i.expr is not None]
    if query.having is not None:
        exprs.append(query.having)
    calls = (n for p in patterns for n in walk(p) if isinstance(n, ast.FunctionCall))
    # What a call outside of FILTERs is given may be an aggregate, which is not looked at here.
    exprs += [replace(c, args=tuple(ast.Var("x", span=a.span) for a in c.args)) for c in calls]
    found = [
        Diagnostic("error", "expression", str(p), p.node.span, resolved.source, (), p.suggestion)
        for expr in exprs
        for p in problems(expr, options)
    ]
    return list(dict.fromkeys(found))


def check_partition(resolved: Resolved, schema: Schema | None = None) -> list[Diagnostic]:
    """PARTITION BY variables that some solution of a GPM may leave unbound."""
    found = []
    positive = {o.gpm for o in resolved.scope.occurrences if o.negation is None}
    algebra = gpm_algebra(resolved, schema)
    for gpm in resolved.query.gpms:
        if gpm.name not in positive:
            continue
        certain = algebra[gpm.name].certain
        for var in resolved.query.partition:
            if var.name in resolved.binds[gpm.name] and var.name not in certain:
                message = f"PARTITION BY ?{var.name}: GPM {gpm.name} does not always bind it"
                found.append(
                    Diagnostic("error", "unbound-partition", message, var.span, resolved.source)
                )
    return found


def plan_query(
    resolved: Resolved,
    name: str,
    evaluator: str | None = None,
    schema: Schema | None = None,
    disabled: frozenset[Rule] = frozenset(),
    pushed: bool = False,
) -> QueryPlan:
    """The plan of a query without errors; `name` is what its answers are called, and `pushed` says
    that events come one by one.

    Raises:
        UsageError: `evaluator` is asked for and cannot run the query.
    """
    query = resolved.query
    awaited = pushed and AWAITED_REQUESTS not in disabled
    algebra = gpm_algebra(resolved, schema, awaited)
    gpms = [g for g in query.gpms if g.name in algebra]
    certain = {n: a.certain for n, a in algebra.items()}
    program = compile_program(resolved.chain, resolved.scope, [g.name for g in gpms], certain)
    partition = tuple(v.name for v in query.partition)
    strategy = query.form.strategy if isinstance(query.form, ast.Select) else "ALL"
    window = _window(query)
    needs_instants = program.strict or isinstance(window, Counted) or strategy == "STRICT"
    streams = [s.name for s in query.streams]
    positive = {o.gpm for o in resolved.scope.occurrences if o.negation is None}
    spread = any(not set(partition) <= a.certain for a in algebra.values())
    membership = bool(partition) and (needs_instants or spread)
    plans = tuple(_gpm_plan(g, algebra[g.name], streams, membership, positive) for g in gpms)
    variables = tuple(sorted({v for g in plans for v in g.variables}))
    looked_at = {v for g in plans for c in g.conditions for v in _mentioned(c)}
    after_match = _after_match(query)
    key, reason = _key(resolved, plans, partition, needs_instants, strategy, after_match)
    register = query.register.value if query.register else None
    inferred = key if key is not None and not partition else ()
    facts = Candidate(
        resolved.chain, resolved.scope, program, plans, window, partition, inferred, strategy
    )
    choice = choose(facts, evaluator, disabled)
    text = format_query(query)
    state = f"{STATE_FORMAT}\n{choice.evaluator}\n{name}\n{text}"
    if schema is not None:
        state += f"\n{schema.fingerprint}"
    fingerprint = hashlib.sha256(state.encode()).hexdigest()
    projection, template = _projection(query, plans, positive), _template(query)
    public = set(choice.key).union(partition, key or (), _shared(resolved, plans), looked_at)
    public |= _shown(projection, template, query.having)
    public |= {v for g in plans if g.correlation is not None for v in _read_by(g.correlation)}
    if PRUNED_COLUMNS not in disabled:
        plans = tuple(g if g.correlation else _with_private(g, public) for g in plans)
    return QueryPlan(
        name=register or name,
        streams=tuple(s.iri.value for s in query.streams),
        stream_names=tuple(streams),
        kbs=tuple(k.iri.value for k in query.kbs),
        gpms=plans,
        variables=variables,
        numbers=tuple(v for v in variables if v in looked_at),
        partition=partition,
        key=key,
        key_reason=reason,
        needs_instants=needs_instants,
        program=program,
        window=window,
        projection=projection,
        distinct=isinstance(query.form, ast.Select) and query.form.distinct,
        strategy=strategy,
        after_match=after_match,
        having=query.having,
        base=query.prologue.base,
        now_ms=time.time_ns() // 1_000_000,
        fingerprint=fingerprint,
        title=name,
        register=register,
        template=template,
        evaluator=choice.evaluator,
        evaluator_reason=choice.reason,
        evaluator_key=choice.key,
        functions=_functions(query),
        services=tuple(
            name.value
            for gpm in gpms
            for name in service_names(gpm.pattern)
            if isinstance(name, ast.Iri)
        ),
        schema=schema,
        disabled=disabled,
    )


def _functions(query: ast.Query) -> tuple[Function, ...]:
    """The extension functions that the query calls."""
    called = {n.function.value for n in walk(query) if isinstance(n, ast.FunctionCall)}
    return tuple(f for f in registered() if f.iri in called)


def _gpm_plan(
    gpm: ast.Gpm, algebra: GpmAlgebra, streams: list[str], membership: bool, positive: set[str]
) -> GpmPlan:
    variables = sorted(algebra.possible)
    if algebra.correlation is not None:
        variables.append(EVENT)
    return GpmPlan(
        gpm.name,
        tuple(sorted({streams.index(r.name) for r in gpm.streams})),
        algebra.pattern,
        tuple(variables),
        algebra.certain,
        algebra.deferred,
        algebra.membership if membership else None,
        gpm.name not in positive,
        algebra.correlation,
    )


def _window(query: ast.Query) -> Window:
    window = query.window
    assert window is not None
    if isinstance(window, ast.CountWindow):
        return Counted(window.events)
    if not window.tumbling:
        return Sliding(window.length.ms)
    origin = 0
    if window.origin is not None:
        start = parse_time(literal_text(window.origin, XSD_DATE_TIME, None))
        assert start is not None
        origin = start
    return Tumbling(window.length.ms, origin)


def _after_match(query: ast.Query) -> AfterMatch:
    skip = query.skip
    if skip is None:
        return AfterMatch("NO SKIP")
    return AfterMatch(skip.kind, skip.gpm.name if skip.gpm else None)


def _template(query: ast.Query) -> Template | None:
    if not isinstance(query.form, ast.Construct):
        return None
    return template_of(query.form, query.register.value if query.register else None)


def _projection(
    query: ast.Query, gpms: tuple[GpmPlan, ...], positive: set[str]
) -> tuple[ProjectedVariable, ...]:
    form = query.form
    if isinstance(form, ast.Construct):
        return ()
    if form.items is not None:
        return tuple(ProjectedVariable(i.var.name, i.expr) for i in form.items if i.var is not None)
    names: dict[str, None] = {}
    for gpm in gpms:
        if gpm.name in positive:
            names.update(dict.fromkeys(gpm.variables))
    return tuple(ProjectedVariable(n) for n in names if not is_reserved(n))


def _shared(resolved: Resolved, gpms: tuple[GpmPlan, ...]) -> set[str]:
    """The variables that more than one place in the sequence binds."""
    variables = {g.name: g.variables for g in gpms}
    bound = Counter(v for o in resolved.scope.occurrences for v in variables[o.gpm])
    return {v for v, count in bound.items() if count > 1}


def _read_by(correlation: Correlation) -> set[str]:
    """The variables of earlier steps that a correlated GPM reads."""
    return set(correlation.reads).union(*(_mentioned(expr) for _, expr in correlation.parameters))


def _with_private(gpm: GpmPlan, public: set[str]) -> GpmPlan:
    return replace(gpm, private=frozenset(gpm.variables) - public)


def _shown(
    projection: tuple[ProjectedVariable, ...], template: Template | None, having: ast.Expr | None
) -> set[str]:
    """The variables that answers are made of."""
    exprs = [p.expr for p in projection if p.expr is not None]
    found = {p.name for p in projection if p.expr is None}
    found.update(*(_mentioned(e) for e in exprs), _mentioned(having) if having else ())
    terms = [t for triple in template.triples for t in triple.terms] if template else []
    return found.union(t.name for t in terms if isinstance(t, ast.Var))


def _mentioned(expr: ast.Expr) -> set[str]:
    """All variables in an expression, in EXISTS too."""
    return {node.name for node in walk(expr) if isinstance(node, ast.Var)}


def _key(
    resolved: Resolved,
    gpms: tuple[GpmPlan, ...],
    partition: tuple[str, ...],
    needs_instants: bool,
    strategy: str,
    after_match: AfterMatch,
) -> tuple[tuple[str, ...] | None, str]:
    """The variables by whose values stage 2 may be split, and why these or why none."""
    if partition:
        return partition, "PARTITION BY"
    if needs_instants:
        return None, "strict contiguity, WITHIN n EVENTS or STRICT look across keys"
    if strategy != "ALL" or after_match.kind != "NO SKIP":
        return None, "selection and AFTER MATCH look across keys"
    shared = frozenset.intersection(*(g.certain for g in gpms)) - set(resolved.scope.owner)
    if not shared:
        return None, "no variable is certainly bound by every GPM"
    best = sorted(shared)[0]
    return (best,), f"every GPM binds ?{best} in every solution"
