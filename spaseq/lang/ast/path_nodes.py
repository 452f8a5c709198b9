"""Property paths (SPARQL 1.1 section 9)."""

from __future__ import annotations

from typing import Literal as L
from typing import TypeAlias

from spaseq.lang.ast.term_nodes import Iri, Node
from spaseq.records import record


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
