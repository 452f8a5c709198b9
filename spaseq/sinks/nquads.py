"""N-Quads: a named graph per answer, and its time."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.rdf.events import Triple
from spaseq.rdf.terms import iri_text
from spaseq.rdf.times import time_literal
from spaseq.rdf.vocabulary import GENERATED_AT_TIME
from spaseq.sinks.graph import GraphSink

_TIME = iri_text(GENERATED_AT_TIME)


class NQuads(GraphSink):
    """Canonical N-Quads, a line per triple."""

    def write_event(self, iri: str, triples: Sequence[Triple], time_ms: int) -> None:
        graph = iri_text(iri)
        lines = [f"{s} {p} {o} {graph} .\n" for s, p, o in triples]
        lines.append(f"{graph} {_TIME} {time_literal(time_ms)} .\n")
        self.out.write("".join(lines))
