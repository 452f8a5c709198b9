"""RDF Messages: N-Quads with a delimiter after each answer."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.rdf.messages.written import MESSAGE_END, VERSION
from spaseq.rdf.terms.term import Triple
from spaseq.sinks.nquads_graphs import NQuads


class RdfMessages(NQuads):
    """A log of RDF Messages. A message has the graph of one answer, and its time.

    A delimiter stands after each message, so a log may be appended to another.
    """

    form = suffix = "rdfm"
    about = "the same as RDF Messages, one for each graph"

    def open(self) -> None:
        self.out.write(VERSION)

    def write_event(self, iri: str, triples: Sequence[Triple], time_ms: int) -> None:
        super().write_event(iri, triples, time_ms)
        self.out.write(MESSAGE_END)
