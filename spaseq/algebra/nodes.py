"""The SPARQL algebra of graph patterns, with the names of SPARQL 1.1 section 18.2, and the
variables in scope of a pattern: which some solution may bind, and which every solution binds.

Constants are canonical N-Triples texts. Blank nodes of a pattern are variables whose names begin
with `_:`; they, like any other name that begins with `_:`, never leave the pattern they stand in.
Nodes are frozen and hashable; an expression keeps its syntax tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.lang import ast
from spaseq.records import record

Names = frozenset[str]


def mapped(pattern: n.Pattern, change: Callable[[n.Pattern], n.Pattern]) -> n.Pattern:
    """The pattern with its operands changed; a leaf as it is."""
    match pattern:
        case n.BGP() | n.Path() | n.Table() | n.Given() | n.EventName():
            return pattern
        case n.Join(left, right) | n.Union(left, right) | n.Minus(left, right):
            return type(pattern)(change(left), change(right))
        case n.LeftJoin(left, right, expr):
            return n.LeftJoin(change(left), change(right), expr)
        case _:
            return replace(pattern, pattern=change(pattern.pattern))


def expressions(pattern: n.Pattern) -> Iterator[ast.Expr]:
    """The expressions of a node itself, not of its operands."""
    match pattern:
        case n.Filter(expr) | n.Extend(expr=expr):
            yield expr
        case n.LeftJoin(expr=ast.Node() as expr):
            yield expr
        case n.OrderBy(_, conditions):
            yield from (c.expr for c in conditions)
        case n.Group(_, _, aggregates):
            yield from (a.operand for _, a in aggregates if a.operand is not None)


def with_expressions(pattern: n.Pattern, change: Callable[[ast.Expr], ast.Expr]) -> n.Pattern:
    """The pattern with the expressions of a node itself changed."""
    match pattern:
        case n.Filter(expr, inner):
            return n.Filter(change(expr), inner)
        case n.Extend(inner, variable, expr):
            return n.Extend(inner, variable, change(expr))
        case n.LeftJoin(left, right, ast.Node() as expr):
            return n.LeftJoin(left, right, change(expr))
        case n.OrderBy(inner, conditions):
            return n.OrderBy(inner, tuple(replace(c, expr=change(c.expr)) for c in conditions))
        case n.Group(inner, keys, aggregates):
            changed = tuple(
                (name, a if a.operand is None else replace(a, operand=change(a.operand)))
                for name, a in aggregates
            )
            return n.Group(inner, keys, changed)
        case _:
            return pattern


PatternTerm: TypeAlias = ast.Var | str
"""A variable, or the N-Triples text of a constant."""

RESERVED = "_:"
"""How the names of variables begin that are not part of a pattern's solutions."""


def parameter(number: int) -> str:
    """A variable for PREV, TIMESTAMP, NOW or an aggregate of a correlated GPM."""
    return f"{RESERVED}={number}"


def is_parameter(name: str) -> bool:
    """Whether a variable is a `parameter`. It is known everywhere, in a sub-SELECT too."""
    return name.startswith(f"{RESERVED}=")


def is_reserved(name: str) -> bool:
    """Whether a variable is a blank node or was made by the translation."""
    return name.startswith(RESERVED)


@record
class TriplePattern:
    """A triple whose terms may be variables."""

    subject: PatternTerm
    predicate: PatternTerm
    object: PatternTerm

    @property
    def terms(self) -> tuple[PatternTerm, PatternTerm, PatternTerm]:
        return self.subject, self.predicate, self.object


@record
class BGP:
    """A basic graph pattern; without triples it has one solution, which binds nothing."""

    triples: tuple[TriplePattern, ...] = ()


@record
class Path:
    """A property path that is more than a sequence of predicates (section 18.2.2.4)."""

    subject: PatternTerm
    path: ast.Path
    object: PatternTerm


@record
class Join:
    """Each pair of solutions that agree on their shared variables (section 18.5)."""

    left: Pattern
    right: Pattern


@record
class LeftJoin:
    """OPTIONAL; `expr` None is true."""

    left: Pattern
    right: Pattern
    expr: ast.Expr | None = None


@record
class Filter:
    """The solutions for which the expression is true."""

    expr: ast.Expr
    pattern: Pattern


@record
class Union:
    """The solutions of both patterns."""

    left: Pattern
    right: Pattern


@record
class Minus:
    """The left solutions that agree with no right solution that shares a variable with them."""

    left: Pattern
    right: Pattern


@record
class Graph:
    """A pattern over a named graph of the knowledge base; `name` is an IRI's text or a variable."""

    name: PatternTerm
    pattern: Pattern


@record
class Service:
    """A pattern that a SPARQL endpoint evaluates; `name` is its IRI's text or a variable."""

    name: PatternTerm
    pattern: Pattern
    silent: bool = False


@record
class EventBlock:
    """EVENT: a pattern over the events of a window, one by one.

    `stream` is the name of the stream whose events count, None for all; `number` distinguishes the
    blocks of a GPM.
    """

    pattern: Pattern
    stream: str | None
    number: int


@record
class EventName:
    """The graph IRI and the time of each event, as values of variables; without an IRI none."""

    event: str | None
    time: str | None

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(name for name in (self.event, self.time) if name is not None)


@record
class Extend:
    """BIND: `variable` gets the expression's value, or stays unbound if that is an error."""

    pattern: Pattern
    variable: str
    expr: ast.Expr


@record
class Table:
    """VALUES: solutions written out; None in a row is UNDEF."""

    variables: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@record
class Given:
    """One solution: the values that variables have when the pattern is evaluated."""

    variables: tuple[str, ...]


@record
class Project:
    """A sub-SELECT's projection: other variables are hidden from the pattern around it."""

    pattern: Pattern
    variables: tuple[str, ...]


@record
class Distinct:
    """Each solution once."""

    pattern: Pattern


@record
class OrderBy:
    """The solutions in the order of the conditions, the first of which counts most."""

    pattern: Pattern
    conditions: tuple[ast.OrderCondition, ...]


@record
class Slice:
    """The `limit` solutions (None: all) that follow the first `offset` ones."""

    pattern: Pattern
    offset: int
    limit: int | None


@record
class Group:
    """GROUP BY and the aggregates over each group (Group and AggregateJoin of section 18.2.4.1).

    Each aggregate's value goes into its variable; without keys all solutions are one group.
    """

    pattern: Pattern
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, ast.Aggregate], ...]


Pattern: TypeAlias = (
    BGP
    | Path
    | Join
    | LeftJoin
    | Filter
    | Union
    | Minus
    | Graph
    | Service
    | EventBlock
    | EventName
    | Extend
    | Table
    | Given
    | Project
    | Distinct
    | OrderBy
    | Slice
    | Group
)

UNIT = BGP()
"""The pattern with one solution that binds nothing."""


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly inside a pattern."""
    match pattern:
        case BGP() | Path() | Table() | Given() | EventName():
            return ()
        case Join(left, right) | Union(left, right) | Minus(left, right):
            return left, right
        case LeftJoin(left, right):
            return left, right
        case Filter(pattern=inner) | Graph(pattern=inner) | Service(pattern=inner):
            return (inner,)
        case EventBlock(inner):
            return (inner,)
        case Extend(inner) | Project(inner) | Distinct(inner) | OrderBy(inner):
            return (inner,)
        case Slice(inner) | Group(inner):
            return (inner,)


def term_variables(*terms: PatternTerm) -> Names:
    """Names of the variables among some pattern terms."""
    return frozenset(t.name for t in terms if isinstance(t, ast.Var))


def triple_variables(triple: TriplePattern) -> Names:
    """Names of a triple pattern's variables."""
    return term_variables(*triple.terms)


def possible(pattern: Pattern) -> Names:
    """Variables that some solution may bind, reserved ones included."""
    match pattern:
        case BGP(triples):
            terms = [term for triple in triples for term in triple.terms]
            return frozenset([term.name for term in terms if isinstance(term, ast.Var)])
        case Path(subject, _, object_):
            return term_variables(subject, object_)
        case Join(left, right) | Union(left, right) | LeftJoin(left, right):
            return possible(left) | possible(right)
        case Graph(name, inner) | Service(name, inner):
            return possible(inner) | term_variables(name)
        case Extend(inner, variable, _):
            return possible(inner) | {variable}
        case Table(variables) | Given(variables) | EventName(variables=variables):
            return frozenset(variables)
        case EventBlock(inner):
            return possible(inner)
        case Project(_, variables):
            return frozenset(variables)
        case Group(_, keys, aggregates):
            return frozenset(keys) | {name for name, _ in aggregates}
        case Filter(_, inner) | Minus(inner, _) | Distinct(inner) | OrderBy(inner) | Slice(inner):
            return possible(inner)


def certain(pattern: Pattern) -> Names:
    """Variables that every solution binds, reserved ones included."""
    while isinstance(pattern, LeftJoin | Minus):  # a query may have a thousand OPTIONALs
        pattern = pattern.left
    match pattern:
        case BGP() | Path() | Given() | EventName():
            return possible(pattern)
        case EventBlock(inner):
            return certain(inner)
        case Join(left, right):
            return certain(left) | certain(right)
        case Union(left, right):
            return certain(left) & certain(right)
        case Service(silent=True):  # if it fails, it binds nothing
            return frozenset()
        case Graph(name, inner) | Service(name, inner):
            return certain(inner) | term_variables(name)
        case Table(variables, rows):
            return frozenset(v for i, v in enumerate(variables) if all(row[i] for row in rows))
        case Project(inner, variables):
            return certain(inner) & frozenset(variables)
        case Group(inner, keys, _):
            return certain(inner) & frozenset(keys)
        case Filter(_, inner) | Extend(inner) | Distinct(inner) | OrderBy(inner) | Slice(inner):
            return certain(inner)


def visible(names: Names) -> Names:
    """The names without the reserved ones."""
    return frozenset(n for n in names if not is_reserved(n))
