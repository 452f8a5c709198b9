"""N-Quads: a named graph for each answer, and its time."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.rdf.terms.term import Triple, iri_text
from spaseq.rdf.terms.times import time_literal
from spaseq.rdf.terms.vocabulary import GENERATED_AT_TIME
from spaseq.sinks.graph_sink import GraphSink

_TIME = iri_text(GENERATED_AT_TIME)


class NQuads(GraphSink):
    """Canonical N-Quads, a line for each triple."""

    form = "nquads"
    suffix = "nq"
    about = "the graphs of CONSTRUCT queries with their times, readable as a stream"

    def write_event(self, iri: str, triples: Sequence[Triple], time_ms: int) -> None:
        graph = iri_text(iri)
        lines = [f"{s} {p} {o} {graph} .\n" for s, p, o in triples]
        lines.append(f"{graph} {_TIME} {time_literal(time_ms)} .\n")
        self.out.write("".join(lines))
