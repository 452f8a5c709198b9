"""Group graph patterns and sub-queries (SPARQL 1.1 sections 5 to 12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from spaseq.lang.ast.expression_nodes import Expr
from spaseq.lang.ast.path_nodes import Path
from spaseq.lang.ast.term_nodes import Iri, Literal, Node, Term, Var


@dataclass(frozen=True, slots=True)
class Triple(Node):
    """A triple pattern; its predicate may be a property path."""

    subject: Term
    predicate: Var | Path
    object: Term


@dataclass(frozen=True, slots=True)
class Triples(Node):
    """A block of triple patterns, in the order of the text."""

    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """A FILTER; it applies to the whole group."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class OptionalGraphPattern(Node):
    """`OPTIONAL { ... }`"""

    pattern: GroupGraphPattern


@dataclass(frozen=True, slots=True)
class GroupOrUnionGraphPattern(Node):
    """`{ ... } UNION { ... } ...`"""

    alternatives: tuple[GroupGraphPattern, ...]  # two or more; one group alone stays a group


@dataclass(frozen=True, slots=True)
class MinusGraphPattern(Node):
    """`MINUS { ... }`"""

    pattern: GroupGraphPattern


@dataclass(frozen=True, slots=True)
class GraphGraphPattern(Node):
    """`GRAPH name { ... }`"""

    name: Var | Iri
    pattern: GroupGraphPattern


@dataclass(frozen=True, slots=True)
class ServiceGraphPattern(Node):
    """`SERVICE [SILENT] name { ... }`"""

    name: Var | Iri
    pattern: GroupGraphPattern
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Bind(Node):
    """`BIND(expr AS ?v)`"""

    expr: Expr
    var: Var


@dataclass(frozen=True, slots=True)
class Values(Node):
    """Inline data: a row of values for the variables, per solution."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]  # None: UNDEF


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """`?v` (expr None), `(expr AS ?v)`, or in GROUP BY a bare expression (var None)."""

    var: Var | None
    expr: Expr | None = None


@dataclass(frozen=True, slots=True)
class OrderCondition(Node):
    """A condition of ORDER BY."""

    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SubSelect(Node):
    """A sub-query, with the VALUES that may follow it."""

    items: tuple[SelectItem, ...] | None  # None: *
    pattern: GroupGraphPattern
    distinct: bool = False
    reduced: bool = False
    group_by: tuple[SelectItem, ...] = ()  # an expression without AS has var None
    having: tuple[Expr, ...] = ()
    order_by: tuple[OrderCondition, ...] = ()
    limit: int | None = None
    offset: int | None = None
    values: Values | None = None


@dataclass(frozen=True, slots=True)
class GroupGraphPattern(Node):
    """`{ ... }`, its elements in the order of the text."""

    elements: tuple[Element, ...]


Element: TypeAlias = (
    Triples
    | Filter
    | OptionalGraphPattern
    | GroupOrUnionGraphPattern
    | MinusGraphPattern
    | GraphGraphPattern
    | ServiceGraphPattern
    | Bind
    | Values
    | SubSelect
    | GroupGraphPattern
)
