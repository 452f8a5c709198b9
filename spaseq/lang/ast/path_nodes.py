"""Property paths (SPARQL 1.1 section 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as L
from typing import TypeAlias

from spaseq.lang.ast.term_nodes import Iri, Node


@dataclass(frozen=True, slots=True)
class PathSequence(Node):
    """`p/q/...`"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathAlternative(Node):
    """`p|q|...`"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathInverse(Node):
    """`^p`"""

    path: Path


@dataclass(frozen=True, slots=True)
class PathFromNode(Node):
    """`path`, where it starts at an IRI or a blank node; the inverses of an ontology entail it.

    The parser never makes this node. Only rewriting for entailment does (`algebra.entailment`).
    """

    path: Path


@dataclass(frozen=True, slots=True)
class PathRepeat(Node):
    """`p*`, `p+` or `p?`."""

    path: Path
    modifier: L["*", "+", "?"]


@dataclass(frozen=True, slots=True)
class PathNegated(Node):
    """A negated property set: `!(:p|^:q)` has :p in `forward` and :q in `inverse`."""

    forward: tuple[Iri, ...]
    inverse: tuple[Iri, ...]


Path: TypeAlias = (
    Iri | PathSequence | PathAlternative | PathInverse | PathFromNode | PathRepeat | PathNegated
)
