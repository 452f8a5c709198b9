"""Warnings: queries that are valid but hardly intended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spaseq.errors import Diagnostic, Span
from spaseq.lang import ast
from spaseq.lang.lint_filters import lint_filters, unbound_warning
from spaseq.lang.lint_sequences import lint_loops, lint_sequence
from spaseq.lang.resolve import Resolved
from spaseq.lang.variables import leaves
from spaseq.lang.windows import lint_windows


def lint(resolved: Resolved) -> Iterator[Diagnostic]:
    """The warnings of a query without errors."""
    yield from _unused(resolved)
    yield from lint_filters(resolved)
    yield from lint_sequence(resolved)
    yield from lint_loops(resolved)
    yield from lint_windows(resolved.query, resolved.source)
    yield from _unbound_outputs(resolved)


def _warning(resolved: Resolved, code: str, message: str, span: Span) -> Diagnostic:
    return Diagnostic("warning", code, message, span, resolved.source)


def _unused(resolved: Resolved) -> Iterator[Diagnostic]:
    used = {o.gpm for o in resolved.scope.occurrences}
    for gpm in resolved.query.gpms:
        if gpm.name not in used:
            message = f"GPM {gpm.name} is defined but never used in the sequence"
            yield _warning(resolved, "unused-gpm", message, gpm.span)


def _unbound_outputs(resolved: Resolved) -> Iterator[Diagnostic]:
    bound = set(resolved.scope.owner) | set(resolved.scope.singles)
    form = resolved.query.form
    if isinstance(form, ast.Construct):
        if not form.template:
            message = "the template is empty, so there are no answers"
            yield _warning(resolved, "empty-template", message, form.span)
        yield from _template(resolved, form.template, bound)
    if isinstance(form, ast.Maintain):
        yield from _template(resolved, form.inserted, bound)
    if isinstance(form, ast.Select):
        for item in form.items or ():
            if item.expr is None and item.var is not None and item.var.name not in bound:
                message = f"?{item.var.name} is selected, but nothing binds it"
                yield unbound_warning(resolved, message, item.var, bound)


def _template(
    resolved: Resolved, template: Iterable[ast.Triple], bound: set[str]
) -> Iterator[Diagnostic]:
    """Triples of a template that are in no answer (SPARQL 1.1 section 16.2)."""
    for triple in template:
        places = (triple.subject, triple.predicate, triple.object)
        for term in (leaf for place in places for leaf in leaves(place)):
            if isinstance(term, ast.Var) and term.name not in bound:
                message = f"this triple is never in an answer: nothing binds ?{term.name}"
                yield unbound_warning(resolved, message, term, bound)
        if isinstance(triple.subject, ast.Literal):
            message = "this triple is never in an answer: its subject is a literal"
            yield _warning(resolved, "literal-subject", message, triple.subject.span)
