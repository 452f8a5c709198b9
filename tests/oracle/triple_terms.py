"""Triple terms for the oracle: rdflib has none.

A triple term is an IRI that knows its terms. A graph that has it also has three triples about it,
one for each term, and a triple term of a pattern is a blank node with such triples.
"""

from __future__ import annotations

from collections.abc import Iterator

from rdflib import URIRef
from rdflib.term import Identifier

SUBJECT, PREDICATE, OBJECT = PLACES = tuple(
    URIRef(f"urn:oracle:{place}") for place in ("subject", "predicate", "object")
)
REIFIES = URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies")


class TripleTerm(URIRef):
    """The term of a triple. Equal triples have equal terms."""

    terms: tuple[Identifier, Identifier, Identifier]


def triple_term(s: Identifier, p: Identifier, o: Identifier) -> TripleTerm:
    key = "\0".join(f"{type(t).__name__} {t.n3()}" for t in (s, p, o))
    made = TripleTerm(f"urn:oracle:triple:{key.encode().hex()}")
    made.terms = s, p, o
    return made


def parts(term: Identifier) -> Iterator[tuple[Identifier, Identifier, Identifier]]:
    """The triples about a triple term, and about the triple terms inside it."""
    if isinstance(term, TripleTerm):
        for place, inner in zip(PLACES, term.terms, strict=True):
            yield term, place, inner
            yield from parts(inner)
