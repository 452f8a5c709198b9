"""Templates of graph patterns: GPMs of different queries that differ in names and constants only.

A template has canonical names for the variables, and a parameter in place of each constant that is
subject or object of a triple pattern. So it is evaluated once for the GPMs of all queries that use
it, and its solutions are joined with their constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import conjoined
from spaseq.algebra.nodes import certain, expressions
from spaseq.expr.casts import CASTS
from spaseq.expr.compile import Options
from spaseq.expr.uses import calls_functions, is_volatile
from spaseq.lang import ast
from spaseq.lang.variables import (
    MARK,
    NodeT,
    conjuncts,
    exists_uses,
    expression_variables,
    rewritten,
    walk,
)
from spaseq.plan.pattern_plan import GpmPlan, PatternEvaluation
from spaseq.plan.query_plan import QueryPlan
from spaseq.records import record


@record
class PatternTemplate:
    """A pattern over canonical variables, with everything beside the event that affects its
    solutions.

    `parameters` are the variables that replace constants.
    """

    pattern: n.Pattern
    parameters: tuple[str, ...]
    kbs: tuple[str, ...]
    options: Options
    evaluation: PatternEvaluation


@record
class TemplateUse:
    """A GPM as a template: its name for each variable, by the template's, and its constants.

    `private` are its private variables and `tests` conjuncts of its FILTER, both by the template's
    names. They are no part of the template.
    """

    template: PatternTemplate
    names: dict[str, str]
    constants: tuple[str, ...]
    private: frozenset[str]
    tests: tuple[ast.Expr, ...]


def template_of(
    plan: QueryPlan, gpm: GpmPlan, known: dict[PatternTemplate, PatternTemplate]
) -> TemplateUse | None:
    """The template of a GPM of a stateless query; None if it has none.

    `known` has the templates of other GPMs, and gets this one if it is new.
    """
    if gpm.correlation is not None or not gpm.certain.issuperset(plan.sequence.partition):
        return None
    exprs = [*_tests(gpm.pattern)]
    if not _is_plain(gpm.pattern) or any(map(_depends_on_query, exprs)):
        return None
    inner, tests = _without_tests(gpm.pattern)
    renaming = _Renaming()
    pattern = renaming.pattern(inner, True)
    renamed = tuple(map(renaming.expr, tests))
    names = {canonical: name for name, canonical in renaming.names.items()}
    template = PatternTemplate(
        pattern,
        tuple(map(_parameter, range(len(renaming.constants)))),
        plan.inputs.kbs if exprs else (),
        replace(plan.expressions, groups=None) if exprs else Options(),
        plan.patterns.evaluation,
    )
    private = frozenset(renaming.names[v] for v in gpm.private if v in renaming.names)
    template = known.setdefault(template, template)
    return TemplateUse(template, names, tuple(renaming.constants), private, renamed)


def _without_tests(pattern: n.Pattern) -> tuple[n.Pattern, list[ast.Expr]]:
    """(the pattern without simple conjuncts of its FILTER, these conjuncts)."""
    if not isinstance(pattern, n.Filter):
        return pattern, []
    sure, every = certain(pattern.pattern), [*conjuncts([pattern.expr])]
    simple = [
        expr
        for expr in every
        if expression_variables(expr) <= sure
        and not exists_uses(expr)
        and not calls_functions(expr)
    ]
    rest = conjoined([expr for expr in every if expr not in simple])
    return pattern.pattern if rest is None else n.Filter(rest, pattern.pattern), simple


def _is_plain(pattern: n.Pattern) -> bool:
    """Whether the solutions of a pattern's operators depend on the event and the KB only."""
    match pattern:
        case n.BGP() | n.Path() | n.Table():
            return True
        case n.Group(_, _, aggregates):
            safe = all(aggregate.function in _SAFE for _, aggregate in aggregates)
            return safe and _is_plain(pattern.pattern)
        case n.Graph() | n.Service() | n.OrderBy() | n.Slice():
            return False
        case _:
            return all(map(_is_plain, n.children(pattern)))


_SAFE = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
"""Aggregates whose value does not depend on the order of solutions."""


def _tests(pattern: n.Pattern) -> Iterator[ast.Expr]:
    """The expressions of a pattern and its operands."""
    yield from expressions(pattern)
    for operand in n.children(pattern):
        yield from _tests(operand)


def _depends_on_query(expr: ast.Expr) -> bool:
    """Whether the value of an expression, or its failure, may depend on the query."""
    return is_volatile(expr) or any(
        isinstance(node, ast.Aggregate | ast.Prev | ast.Timestamp | ast.SubSelect)
        or (isinstance(node, ast.Call) and node.function == "NOW")
        or (isinstance(node, ast.FunctionCall) and node.function.value not in CASTS)
        for node in walk(expr)
    )


def _parameter(number: int) -> str:
    """The variable for a constant; no query can write it."""
    return f"{MARK}{number}"


class _Renaming:
    """Gives the variables of a pattern names in order of their occurrence."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.constants: list[str] = []

    def pattern(self, pattern: n.Pattern, takes: bool) -> n.Pattern:
        """The pattern with canonical names; with `takes`, constants become parameters."""
        match pattern:
            case n.BGP(triples):
                return n.BGP(tuple(self._triple(triple, takes) for triple in triples))
            case n.Path(subject, path, target):
                return n.Path(self._term(subject, False), path, self._term(target, False))
            case n.Join(left, right):
                return n.Join(self.pattern(left, takes), self.pattern(right, takes))
            case n.LeftJoin(left, right, expr):
                first, second = self.pattern(left, takes), self.pattern(right, False)
                return n.LeftJoin(first, second, None if expr is None else self.expr(expr))
            case n.Union(left, right):
                return n.Union(self.pattern(left, False), self.pattern(right, False))
            case n.Minus(left, right):
                return n.Minus(self.pattern(left, takes), self.pattern(right, False))
            case n.Filter(expr, inner):
                renamed = self.pattern(inner, takes)
                return n.Filter(self.expr(expr), renamed)
            case n.Extend(inner, variable, expr):
                renamed = self.pattern(inner, takes)
                return n.Extend(renamed, self._name(variable), self.expr(expr))
            case n.Table(variables, rows):
                return n.Table(tuple(map(self._name, variables)), rows)
            case _:
                return self._selected(pattern)

    def _selected(self, pattern: n.Pattern) -> n.Pattern:
        """A part of a sub-SELECT with canonical names."""
        match pattern:
            case n.Project(inner, variables):
                renamed = self.pattern(inner, False)
                return n.Project(renamed, tuple(map(self._name, variables)))
            case n.Distinct(inner):
                return n.Distinct(self.pattern(inner, False))
            case n.Group(inner, keys, aggregates):
                renamed = self.pattern(inner, False)
                made = ((self._name(name), self.expr(each)) for name, each in aggregates)
                return n.Group(renamed, tuple(map(self._name, keys)), tuple(made))
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

    def expr(self, expr: NodeT) -> NodeT:
        """An expression with canonical names."""

        def change(node: ast.Node) -> ast.Node | None:
            return ast.Var(self._name(node.name)) if isinstance(node, ast.Var) else None

        return rewritten(expr, change)
