"""Nodes that the grammar leaves where a name has yet to be looked up in the prologue.

`spaseq.lang.names` replaces every one of them; none is left in a finished AST. Relative IRIs are
plain `ast.Iri` nodes until then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from spaseq.lang import ast

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"


@dataclass(frozen=True, slots=True)
class PrefixedName(ast.Node):
    """`prefix:local`, with the escapes of the local part taken out."""

    prefix: str
    local: str


WrittenIri: TypeAlias = ast.Iri | PrefixedName


@dataclass(frozen=True, slots=True)
class TypedLiteral(ast.Node):
    """`"lexical"^^datatype`."""

    lexical: str
    datatype: WrittenIri


@dataclass(frozen=True, slots=True)
class BaseClause(ast.Node):
    """`BASE <iri>`."""

    iri: ast.Iri


@dataclass(frozen=True, slots=True)
class PrefixClause(ast.Node):
    """`PREFIX prefix: <iri>`."""

    prefix: str
    iri: ast.Iri
