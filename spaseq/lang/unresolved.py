"""Nodes with names that the prologue has yet to resolve.

The grammar makes these nodes, and `spaseq.lang.names` replaces all of them. A relative IRI is an
`ast.Iri` node until then.
"""

from __future__ import annotations

from typing import TypeAlias

from spaseq.lang import ast
from spaseq.records import record

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
REIFIES = RDF + "reifies"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"


@record
class PrefixedName(ast.Node):
    """`prefix:local`, the local name without escapes."""

    prefix: str
    local: str


WrittenIri: TypeAlias = ast.Iri | PrefixedName


@record
class TypedLiteral(ast.Node):
    """`"lexical"^^datatype`."""

    lexical: str
    datatype: WrittenIri


@record
class VersionClause(ast.Node):
    """`VERSION "1.2"`."""

    version: str


@record
class BaseClause(ast.Node):
    """`BASE <iri>`."""

    iri: ast.Iri


@record
class PrefixClause(ast.Node):
    """`PREFIX prefix: <iri>`."""

    prefix: str
    iri: ast.Iri
