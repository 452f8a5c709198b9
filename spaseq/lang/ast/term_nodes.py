"""Base class of the nodes, the RDF terms and variables of a query, and property paths (SPARQL 1.1
section 9).
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal as L
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
    language: str | None = None  # lower case, with the base direction: `en`, `ar--rtl`


@record
class BlankNode(Node):
    """A blank node."""

    label: str  # unique per written label or per [] within the query


@record
class TripleTerm(Node):
    """`<<( s p o )>>`: a triple as a term; its terms may be variables.

    Its predicate is a path only until `spaseq.lang.parser` has refused that.
    """

    subject: Term
    predicate: Term
    object: Term

    @property
    def terms(self) -> tuple[Term, Term, Term]:
        return self.subject, self.predicate, self.object


Term: TypeAlias = Var | Iri | Literal | BlankNode | TripleTerm


@record
class PathSequence(Node):
    """`p/q/...`"""

    parts: tuple[Path, ...]


@record
class PathAlternative(Node):
    """`p|q|...`"""

    parts: tuple[Path, ...]


@record
class PathInverse(Node):
    """`^p`"""

    path: Path


@record
class PathFromNode(Node):
    """`path`, where it starts at an IRI or a blank node; the inverses of an ontology entail it.

    The parser never makes this node. Only rewriting for entailment does (`algebra.entailment`).
    """

    path: Path


@record
class PathRepeat(Node):
    """`p*`, `p+` or `p?`."""

    path: Path
    modifier: L["*", "+", "?"]


@record
class PathNegated(Node):
    """A negated property set: `!(:p|^:q)` has :p in `forward` and :q in `inverse`."""

    forward: tuple[Iri, ...]
    inverse: tuple[Iri, ...]


Path: TypeAlias = (
    Iri | PathSequence | PathAlternative | PathInverse | PathFromNode | PathRepeat | PathNegated
)
