"""Templates of graph patterns: GPMs of different queries, equal but for names and constants.

A template has its own names for the variables, and a parameter in the place of each constant that
is subject or object of a triple pattern. So it is evaluated once for the GPMs of all queries that
use it, and its solutions are joined with their constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spaseq.algebra import nodes as n
from spaseq.algebra.mapping import expressions
from spaseq.expr.casts import CASTS
from spaseq.expr.compile import Options
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.rewriting import rewritten
from spaseq.lang.shapes import MARK
from spaseq.lang.variables import walk
from spaseq.plan.query_plan import GpmPlan, PatternEvaluation, QueryPlan
from spaseq.records import record


@record
class PatternTemplate:
    """A pattern over its own variables, and all that its solutions depend on beside the event.

    `parameters` are the variables that stand for constants.
    """

    pattern: n.Pattern
    parameters: tuple[str, ...]
    private: frozenset[str]
    kbs: tuple[str, ...]
    options: Options
    evaluation: PatternEvaluation


@record
class TemplateUse:
    """A GPM as a template: its name for each variable, by the template's, and its constants."""

    template: PatternTemplate
    names: dict[str, str]
    constants: tuple[str, ...]


def is_stateless(plan: QueryPlan) -> bool:
    """Whether the solutions of each GPM of a query depend on the event and the pattern alone."""
    partition, patterns = {*plan.sequence.partition}, plan.patterns
    return (
        patterns.evaluation.shared
        and not plan.sequence.needs_instants
        and not patterns.memberships
        and not plan.inputs.services
        and all(gpm.correlation is None and partition <= gpm.certain for gpm in patterns.gpms)
    )


def template_of(plan: QueryPlan, gpm: GpmPlan) -> TemplateUse | None:
    """The template of a GPM of a stateless query; None if it has none."""
    tests = [*_tests(gpm.pattern)]
    if not _is_plain(gpm.pattern) or any(map(_depends_on_query, tests)):
        return None
    renaming = _Renaming()
    pattern = renaming.pattern(gpm.pattern, True)
    names = {canonical: own for own, canonical in renaming.names.items()}
    template = PatternTemplate(
        pattern,
        tuple(_parameter(i) for i in range(len(renaming.constants))),
        frozenset(renaming.names[v] for v in gpm.private if v in renaming.names),
        plan.inputs.kbs if tests else (),
        replace(plan.expressions, groups=None) if tests else Options(),
        plan.patterns.evaluation,
    )
    return TemplateUse(template, names, tuple(renaming.constants))


def _is_plain(pattern: n.Pattern) -> bool:
    """Whether a pattern has only operators in which a variable may be renamed."""
    match pattern:
        case n.BGP() | n.Path():
            return True
        case n.Join() | n.LeftJoin() | n.Union() | n.Minus() | n.Filter():
            return all(map(_is_plain, n.children(pattern)))
        case _:
            return False


def _tests(pattern: n.Pattern) -> Iterator[ast.Expr]:
    """The expressions of a pattern and its operands."""
    yield from expressions(pattern)
    for operand in n.children(pattern):
        yield from _tests(operand)


def _depends_on_query(expr: ast.Expr) -> bool:
    """Whether an expression may give each query another value, or fail for one of them."""
    return is_volatile(expr) or any(
        isinstance(node, ast.Aggregate | ast.Prev | ast.Timestamp | ast.SubSelect)
        or (isinstance(node, ast.Call) and node.function == "NOW")
        or (isinstance(node, ast.FunctionCall) and node.function.value not in CASTS)
        for node in walk(expr)
    )


def _parameter(number: int) -> str:
    """A variable that stands for a constant; no query can write it."""
    return f"{MARK}{number}"


class _Renaming:
    """Gives the variables of a pattern names in order of their occurrence."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.constants: list[str] = []

    def pattern(self, pattern: n.Pattern, takes: bool) -> n.Pattern:
        """The pattern with other names; `takes` constants whose values each solution has."""
        match pattern:
            case n.BGP(triples):
                return n.BGP(tuple(self._triple(triple, takes) for triple in triples))
            case n.Path(subject, path, target):
                return n.Path(self._term(subject, False), path, self._term(target, False))
            case n.Join(left, right):
                return n.Join(self.pattern(left, takes), self.pattern(right, takes))
            case n.LeftJoin(left, right, expr):
                first, second = self.pattern(left, takes), self.pattern(right, False)
                return n.LeftJoin(first, second, None if expr is None else self._expr(expr))
            case n.Union(left, right):
                return n.Union(self.pattern(left, False), self.pattern(right, False))
            case n.Minus(left, right):
                return n.Minus(self.pattern(left, takes), self.pattern(right, False))
            case n.Filter(expr, inner):
                own = self.pattern(inner, takes)
                return n.Filter(self._expr(expr), own)
            case _:
                raise TypeError(f"no template has {type(pattern).__name__}")

    def _triple(self, triple: n.TriplePattern, takes: bool) -> n.TriplePattern:
        subject, predicate, target = triple.terms
        first, kind = self._term(subject, takes), self._term(predicate, False)
        return n.TriplePattern(first, kind, self._term(target, takes))

    def _term(self, term: n.PatternTerm, takes: bool) -> n.PatternTerm:
        if isinstance(term, ast.Var):
            return ast.Var(self._name(term.name))
        if not takes:
            return term
        self.constants.append(term)
        return ast.Var(_parameter(len(self.constants) - 1))

    def _name(self, name: str) -> str:
        known = self.names.get(name)
        if known is None:
            reserved = n.RESERVED if n.is_reserved(name) else ""
            known = self.names[name] = f"{reserved}v{len(self.names)}"
        return known

    def _expr(self, expr: ast.Expr) -> ast.Expr:
        def change(node: ast.Node) -> ast.Node | None:
            return ast.Var(self._name(node.name)) if isinstance(node, ast.Var) else None

        return rewritten(expr, change)
