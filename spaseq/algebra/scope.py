"""Variables in scope of patterns: which some solution may bind, and which every solution binds."""

from __future__ import annotations

from spaseq.algebra.nodes import (
    BGP,
    Distinct,
    EventBlock,
    EventName,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    OrderBy,
    Path,
    Pattern,
    PatternTerm,
    Project,
    Service,
    Slice,
    Table,
    TriplePattern,
    Union,
    is_reserved,
)
from spaseq.lang import ast

Names = frozenset[str]


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
        case Table(variables) | EventName(variables=variables):
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
        case BGP() | Path() | EventName():
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
