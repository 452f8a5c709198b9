"""Graphs of a knowledge base as sets of texts."""

from __future__ import annotations

from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.terms.term import Triple


def triples(knowledge: KnowledgeBase, iri: str) -> set[Triple]:
    """The triples of a graph."""
    text = knowledge.terms.text
    return {
        (text(s), text(p), text(o))
        for p, own in knowledge.graphs[iri].items()
        for s, o in zip(own.s.tolist(), own.o.tolist(), strict=True)
    }
