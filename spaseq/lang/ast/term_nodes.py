"""Base class of the nodes, and the RDF terms and variables of a query."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from spaseq.errors import NOWHERE, Span
from spaseq.records import record


@record
class Node:
    """A node of the tree, with the span of its text in the query."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@record
class Var(Node):
    """A variable."""

    name: str  # without ? or $


@record
class Iri(Node):
    """An IRI."""

    value: str  # absolute, without angle brackets


@record
class Literal(Node):
    """An RDF literal."""

    lexical: str
    datatype: str | None = None  # None: xsd:string, or rdf:langString when language is given
    language: str | None = None  # lower case


@record
class BlankNode(Node):
    """A blank node."""

    label: str  # unique per written label or per [] within the query


Term: TypeAlias = Var | Iri | Literal | BlankNode
