"""JSON-LD: an array with a graph object for each answer, and its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from spaseq.rdf.terms.term import Triple, iri_text
from spaseq.rdf.terms.times import time_literal
from spaseq.rdf.terms.vocabulary import GENERATED_AT_TIME
from spaseq.sinks.graph_sink import GraphSink

_TIME = iri_text(GENERATED_AT_TIME)


class JsonLdGraphs(GraphSink):
    """Expanded JSON-LD, written answer by answer."""

    form = suffix = "jsonld"
    about = "the same as JSON-LD"
    ends = True

    def __init__(self, out: TextIO, variables: Sequence[str] = ()) -> None:
        super().__init__(out, variables)
        self._separator = "\n"  # stands before the next object

    def open(self) -> None:
        self.out.write("[")

    def write_event(self, iri: str, triples: Sequence[Triple], time_ms: int) -> None:
        import pyoxigraph as ox  # SELECT queries need not wait for it

        graph = iri_text(iri)
        lines = [f"{s} {p} {o} {graph} ." for s, p, o in triples]
        lines.append(f"{graph} {_TIME} {time_literal(time_ms)} .")
        quads = ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS)
        made = ox.serialize(quads, format=ox.RdfFormat.JSON_LD)
        assert made is not None
        self.out.write(self._separator + made.decode().strip()[1:-1])
        self._separator = ",\n"

    def close(self) -> None:
        self.out.write("\n]\n")
