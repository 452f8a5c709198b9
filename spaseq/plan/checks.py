"""Findings about a resolved query that need its algebra or its expressions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from spaseq.errors import NOWHERE, Diagnostic
from spaseq.expr.compile import Options, problems
from spaseq.expr.extension import known_functions
from spaseq.lang import ast
from spaseq.lang.resolve import Resolved
from spaseq.lang.scope import seen_before
from spaseq.lang.variables import filters_of, walk, walk_patterns, without_services
from spaseq.lang.windows import is_on_windows
from spaseq.plan.gpm_plans import check_changes, gpm_algebra
from spaseq.rdf.schema import Schema
from spaseq.rdf.terms.term import RDF, iri_text


def check_services(resolved: Resolved) -> list[Diagnostic]:
    """Findings of SERVICE over a variable that nothing else binds."""
    if ast.ServiceGraphPattern not in resolved.kinds:
        return []
    patterns = [g.pattern for g in resolved.query.gpms]
    nodes = (n for p in patterns for n in walk_patterns(p))
    services = [n for n in nodes if isinstance(n, ast.ServiceGraphPattern)]
    mentioned = Counter(n.name for p in patterns for n in walk(p) if isinstance(n, ast.Var))
    errors = []
    for service in services:
        match service.name:
            case ast.Var(name) as var:
                inside = sum(isinstance(n, ast.Var) and n.name == name for n in walk(service))
                if inside == mentioned[name]:
                    message = f"SERVICE ?{name}: nothing binds ?{name} to an endpoint"
                    source = resolved.source
                    errors.append(Diagnostic("error", "unbound-service", message, var.span, source))
    return errors


def check_entailment(resolved: Resolved, schema: Schema) -> list[Diagnostic]:
    """Findings of repeated paths that cannot be evaluated under entailment.

    Their steps are negated property sets, or properties that rdf:type entails.
    """
    errors = []
    nodes = (node for gpm in resolved.query.gpms for node in walk(gpm.pattern))
    for repeat in (node for node in nodes if isinstance(node, ast.PathRepeat)):
        for step in walk(repeat):
            name = _unrepeatable(step, schema)
            if name is not None:
                message = f"{name} cannot be repeated in a path under entailment"
                span = step.span if step.span != NOWHERE else repeat.span
                errors.append(Diagnostic("error", "entailed-path", message, span, resolved.source))
    return errors


def _unrepeatable(step: ast.Node, schema: Schema) -> str | None:
    """The name of a step in the finding; None if the step can be repeated."""
    match step:
        case ast.PathNegated():
            return "a negated property set"
        case ast.Iri(value) if value == RDF + "type":
            return "rdf:type"
        case ast.Iri(value) if schema.holds_types(iri_text(value)):
            return f"<{value}>, which rdf:type entails,"
    return None


def check_expressions(resolved: Resolved) -> list[Diagnostic]:
    """Findings of functions and casts that do not exist, or have wrong arguments."""
    query = resolved.query
    # Another check refuses EXISTS where it is not supported.
    groups = frozenset(resolved.scope.owner)
    options = Options(lambda _, __: False, groups=groups, functions=known_functions())
    patterns = [g.pattern for g in query.gpms]
    if ast.ServiceGraphPattern in resolved.kinds:
        patterns = [*map(without_services, patterns)]
    exprs = [e for pattern in patterns for e in filters_of(pattern)]
    if isinstance(query.form, ast.Select):
        exprs += [i.expr for i in query.form.items or () if i.expr is not None]
    if query.having is not None:
        exprs.append(query.having)
    if ast.FunctionCall in resolved.kinds:
        calls = (n for p in patterns for n in walk_patterns(p) if isinstance(n, ast.FunctionCall))
        # The arguments of a call outside of FILTERs may be aggregates, which are not checked here.
        exprs += [replace(c, args=tuple(ast.Var("x", span=a.span) for a in c.args)) for c in calls]
    if not exprs:
        return []
    errors = [
        Diagnostic("error", "expression", str(p), p.node.span, resolved.source, (), p.suggestion)
        for expr in exprs
        for p in problems(expr, options)
    ]
    return list(dict.fromkeys(errors))


def check_windows(resolved: Resolved, schema: Schema | None = None) -> list[Diagnostic]:
    """Findings of GPMs on changes of windows that need their algebra."""
    if not resolved.query.windows:
        return []
    seen = seen_before(resolved.chain, resolved.scope, resolved.binds)
    return check_changes(resolved, seen, schema)


def check_partition(resolved: Resolved, schema: Schema | None = None) -> list[Diagnostic]:
    """Findings of PARTITION BY over variables that a solution of a GPM may leave unbound."""
    if not resolved.query.partition:
        return []
    errors = []
    positive = {o.gpm for o in resolved.scope.occurrences if o.negation is None}
    algebra = gpm_algebra(resolved, schema)
    for gpm in resolved.query.gpms:
        if gpm.name not in positive or is_on_windows(gpm, resolved.query):
            continue
        certain = algebra[gpm.name].certain
        for var in resolved.query.partition:
            if var.name in resolved.binds[gpm.name] and var.name not in certain:
                message = f"PARTITION BY ?{var.name}: GPM {gpm.name} does not always bind it"
                errors.append(
                    Diagnostic("error", "unbound-partition", message, var.span, resolved.source)
                )
    return errors
