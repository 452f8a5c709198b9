"""From query text to plan: parse, resolve, check, plan, with all findings collected."""

from __future__ import annotations

from dataclasses import replace

from spaseq.automaton.program.compiler import TooManyEdges
from spaseq.errors import Diagnostic, QueryError, QueryText, UsageError
from spaseq.lang import ast
from spaseq.lang.lint import lint
from spaseq.lang.parser import parse_source
from spaseq.lang.resolve import Resolved, resolve
from spaseq.plan.checks import (
    check_entailment,
    check_expressions,
    check_partition,
    check_services,
    check_windows,
)
from spaseq.plan.levels import NoPartialMatches
from spaseq.plan.planner import plan_query
from spaseq.plan.query_plan import AS_USUAL, CompileOptions, QueryPlan
from spaseq.plan.rules import known_rules
from spaseq.plan.templates import QueryTemplates
from spaseq.records import record

__all__ = ["Checked", "CompileOptions", "check_query", "compile_query"]


NO_PARTIAL_MATCHES = "no-partial-matches"
"""The code of the warning about a query that runs without its partial matches."""


@record
class Checked:
    """A query text with its findings; `plan` is None if there are errors.

    `parsed` is None if the text has a syntax error, or fits a template and so was not parsed.
    """

    source: QueryText
    parsed: ast.Query | None
    plan: QueryPlan | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def query(self) -> ast.Query | None:
        """The syntax tree; None if the text cannot be read."""
        if self.parsed is None and self.plan is not None:
            return parse_source(self.source).query
        return self.parsed

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "warning")


def check_query(
    text: str,
    name: str = "query",
    options: CompileOptions = AS_USUAL,
    templates: QueryTemplates | None = None,
) -> Checked:
    """Parse, resolve and plan a query, collecting all errors and warnings.

    `name` is the name of its answers, unless the query registers a stream. A query that fits one of
    `templates` is not parsed; any other may become one.

    Raises:
        UsageError: the evaluator that `options` asks for cannot run the query, a rule to disable
            does not exist, or `options` ask a query by itself for partial matches that it lacks.
    """
    known_rules(options.disable)
    source = QueryText(text, options.file or "<query>")
    known = None if templates is None else templates.plan(text, name, options)
    if known is not None:
        return Checked(source, None, known, ())
    checked = _checked(source, name, options)
    if templates is not None and checked.plan is not None and not checked.diagnostics:
        templates.learn(text, checked.plan, options)
    return checked


def _checked(source: QueryText, name: str, options: CompileOptions) -> Checked:
    """Check a query that is parsed."""
    parsed = parse_source(source)
    diagnostics = list(parsed.diagnostics)
    query = parsed.query
    plan = None
    if query is not None:
        resolved = resolve(query, source, parsed.broken_gpms, parsed.broken_clauses)
        said = {d.span for d in diagnostics if d.severity == "error"}
        checks = (resolved.diagnostics, check_services(resolved), check_expressions(resolved))
        diagnostics += [d for check in checks for d in check if d.span not in said]
        if not any(d.severity == "error" for d in diagnostics):
            diagnostics += check_partition(resolved, options.schema)
            diagnostics += check_windows(resolved, options.schema)
        if options.schema is not None:
            diagnostics += check_entailment(resolved, options.schema)
        diagnostics += lint(resolved, parsed)
        if not any(d.severity == "error" for d in diagnostics):
            try:
                plan, warnings = _planned(resolved, name, options)
                diagnostics += warnings
            except TooManyEdges as reason:
                diagnostics.append(_too_large(resolved, reason))
    wrong = {d.span for d in diagnostics if d.severity == "error"}
    shown = [d for d in diagnostics if d.severity == "error" or d.span not in wrong]
    shown.sort(key=lambda d: (d.span.start, d.severity))
    return Checked(source, query, plan, tuple(shown))


def _planned(
    resolved: Resolved, name: str, options: CompileOptions
) -> tuple[QueryPlan, list[Diagnostic]]:
    """The plan of a query; beside others without the partial matches that it cannot have."""
    try:
        return plan_query(resolved, name, options), []
    except NoPartialMatches as reason:
        if not options.several:
            raise UsageError(f"query {name} has no partial matches: {reason}") from None
        message, where = f"no partial matches: {reason}", resolved.query.sequence.span
        warning = Diagnostic("warning", NO_PARTIAL_MATCHES, message, where, resolved.source)
        return plan_query(resolved, name, replace(options, partial=False)), [warning]


def _too_large(resolved: Resolved, reason: TooManyEdges) -> Diagnostic:
    """The finding of a sequence whose automaton would take too much time and memory."""
    hint = "write fewer steps, or divide them among several queries that read each other's streams"
    span = resolved.query.sequence.span
    return Diagnostic("error", "too-large", f"{reason}: {hint}", span, resolved.source)


def compile_query(text: str, name: str = "query", options: CompileOptions = AS_USUAL) -> QueryPlan:
    """The plan of a query; takes the same arguments as `check_query`.

    Raises:
        QueryError: with every error of the query.
        UsageError: as for `check_query`.
    """
    checked = check_query(text, name, options)
    if checked.plan is None:
        raise QueryError(checked.errors)
    return checked.plan
