"""Group graph patterns and sub-queries (SPARQL 1.1 sections 5 to 12)."""

from __future__ import annotations

from typing import TypeAlias

from spaseq.lang.ast.expression_nodes import Expr
from spaseq.lang.ast.path_nodes import Path
from spaseq.lang.ast.term_nodes import Iri, Literal, Node, Term, Var
from spaseq.records import record


@record
class Triple(Node):
    """A triple pattern; its predicate may be a property path."""

    subject: Term
    predicate: Var | Path
    object: Term


@record
class Triples(Node):
    """A block of triple patterns, in the order of the text."""

    triples: tuple[Triple, ...]


@record
class Filter(Node):
    """A FILTER; it applies to the whole group."""

    expr: Expr


@record
class OptionalGraphPattern(Node):
    """`OPTIONAL { ... }`"""

    pattern: GroupGraphPattern


@record
class GroupOrUnionGraphPattern(Node):
    """`{ ... } UNION { ... } ...`"""

    alternatives: tuple[GroupGraphPattern, ...]  # two or more; one group alone stays a group


@record
class MinusGraphPattern(Node):
    """`MINUS { ... }`"""

    pattern: GroupGraphPattern


@record
class GraphGraphPattern(Node):
    """`GRAPH name { ... }`"""

    name: Var | Iri
    pattern: GroupGraphPattern


@record
class ServiceGraphPattern(Node):
    """`SERVICE [SILENT] name { ... }`"""

    name: Var | Iri
    pattern: GroupGraphPattern
    silent: bool = False


@record
class Bind(Node):
    """`BIND(expr AS ?v)`"""

    expr: Expr
    var: Var


@record
class Values(Node):
    """Inline data: a row of values for the variables, per solution."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]  # None: UNDEF


@record
class SelectItem(Node):
    """`?v` (expr None), `(expr AS ?v)`, or in GROUP BY a bare expression (var None)."""

    var: Var | None
    expr: Expr | None = None


@record
class OrderCondition(Node):
    """A condition of ORDER BY."""

    expr: Expr
    descending: bool = False


@record
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


@record
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
