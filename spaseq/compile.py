"""From query text to plan: parse, resolve, check, plan, with all findings collected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spaseq.algebra.schema import Schema
from spaseq.errors import Diagnostic, QueryError, Source
from spaseq.lang import ast
from spaseq.lang.lint import lint
from spaseq.lang.parser import parse_source
from spaseq.lang.resolve import resolve
from spaseq.plan.planner import (
    check_entailment,
    check_expressions,
    check_partition,
    check_services,
    plan_query,
)
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules import disabled_rules


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of a query text; `plan` is None if there are errors."""

    source: Source
    query: ast.Query | None
    plan: QueryPlan | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "warning")


def check_query(
    text: str,
    name: str = "query",
    file: str | None = None,
    evaluator: str | None = None,
    schema: Schema | None = None,
    disable: Iterable[str] = (),
    pushed: bool = False,
) -> Checked:
    """Parse, resolve and plan a query, collecting all errors and warnings.

    `name` is what its answers are called unless the query registers a stream; `file` is the place
    that diagnostics name; `evaluator` forces one, for tests; `schema` is what its patterns are
    entailed by; `disable` names rules of the planner (`spaseq.plan.rules`) to do without; `pushed`
    says that events come one by one.

    Raises:
        UsageError: the forced evaluator cannot run the query, or there is no such rule.
    """
    disabled = disabled_rules(disable)
    source = Source(text, file or "<query>")
    parsed = parse_source(source)
    found = list(parsed.diagnostics)
    query = parsed.query
    plan = None
    if query is not None:
        resolved = resolve(query, source, parsed.broken_gpms, parsed.broken_parts)
        said = {d.span for d in found if d.severity == "error"}
        checks = (resolved.diagnostics, check_services(resolved), check_expressions(resolved))
        found += [d for check in checks for d in check if d.span not in said]
        if not any(d.severity == "error" for d in found):
            found += check_partition(resolved, schema)
        if schema is not None:
            found += check_entailment(resolved, schema)
        if not any(d.severity == "error" for d in found):
            found += lint(resolved)
            plan = plan_query(resolved, name, evaluator, schema, disabled, pushed)
    found.sort(key=lambda d: (d.span.start, d.severity))
    return Checked(source, query, plan, tuple(found))


def compile_query(
    text: str,
    name: str = "query",
    file: str | None = None,
    evaluator: str | None = None,
    schema: Schema | None = None,
    disable: Iterable[str] = (),
    pushed: bool = False,
) -> QueryPlan:
    """The plan of a query.

    Raises:
        QueryError: with every error of the query.
        UsageError: `evaluator`, which tests force, cannot run the query, or there is no rule of
            a name in `disable`.
    """
    checked = check_query(text, name, file, evaluator, schema, disable, pushed)
    if checked.plan is None:
        raise QueryError(checked.errors)
    return checked.plan
