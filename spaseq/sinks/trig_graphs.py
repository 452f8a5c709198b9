"""TriG: a named graph for each answer, and its time; triples of one subject stand together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from spaseq.rdf.terms.term import Triple, iri_text
from spaseq.rdf.terms.times import format_time
from spaseq.sinks.graph_sink import GraphSink

_PREFIXES = """@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


class TriG(GraphSink):
    """Terms are written in full: which prefixes the events use is not known before the last."""

    form = suffix = "trig"
    about = "the graphs of CONSTRUCT queries with their times, readable as a stream"

    def open(self) -> None:
        self.out.write(_PREFIXES)

    def write_event(self, iri: str, triples: Sequence[Triple], time_ms: int) -> None:
        graph = iri_text(iri)
        body = "".join(_statements(triples))
        time = f'{graph} prov:generatedAtTime "{format_time(time_ms)}"^^xsd:dateTime .'
        self.out.write(f"\n{graph} {{\n{body}}}\n{time}\n")


def _statements(triples: Sequence[Triple]) -> Iterator[str]:
    """One statement for each run of triples with the same subject."""
    for subject, stretch in groupby(triples, key=lambda triple: triple[0]):
        yield f"  {subject} " + " ;\n    ".join(f"{p} {o}" for _, p, o in stretch) + " .\n"
