"""The formats with named graphs, N-Quads, TriG, JSON-LD and RDF Messages: each answer is a graph
and its time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, TextIO

from spaseq.algebra.answers import Answer
from spaseq.errors import RunError, UsageError
from spaseq.rdf.inputs.formats import MESSAGE_END, VERSION
from spaseq.rdf.terms.term import GENERATED_AT_TIME, Triple, iri_text
from spaseq.rdf.terms.times import format_time, time_literal
from spaseq.sinks.base import Sink

if TYPE_CHECKING:
    from spaseq.algebra.graph_batch import GraphBatch


class GraphSink(Sink):
    """Events of CONSTRUCT queries, in a format of streams.

    The time of an event is in the default graph, right after the event's graph.
    """

    holds = "graphs"

    def write(self, query: str, answer: Answer) -> None:
        if answer.graph is None or answer.event is None:
            raise UsageError(
                f"{self.form} holds graphs, and {query} is a SELECT query; use jsonl or a table"
            )
        self.write_event(answer.event, answer.graph, answer.end[0])

    @abstractmethod
    def write_event(self, iri: str, triples: Sequence[Triple], time_ms: int) -> None:
        """Write one event: its graph's IRI, its triples (at least one), its time."""


_TIME = iri_text(GENERATED_AT_TIME)


class NQuads(GraphSink):
    """Canonical N-Quads, a line for each triple."""

    form = "nquads"
    suffix = "nq"
    about = "the graphs of CONSTRUCT queries with their times, readable as a stream"
    after: ClassVar[str] = ""
    """The text after each event."""

    def write_event(self, iri: str, triples: Sequence[Triple], time_ms: int) -> None:
        graph = iri_text(iri)
        lines = [f"{s} {p} {o} {graph} .\n" for s, p, o in triples]
        lines.append(f"{graph} {_TIME} {time_literal(time_ms)} .\n{self.after}")
        self.out.write("".join(lines))

    def write_graphs(self, query: str, answers: GraphBatch) -> None:
        from spaseq.sinks.text_columns import triple_lines  # Arrow's functions

        self.write_lines(triple_lines(answers, self.after))


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


class JsonLdGraphs(GraphSink):
    """Expanded JSON-LD, written answer by answer."""

    form = suffix = "jsonld"
    about = "the same as JSON-LD"
    ends = True

    def __init__(self, out: TextIO, variables: Sequence[str] = ()) -> None:
        super().__init__(out, variables)
        self._separator = "\n"  # before the next object

    def open(self) -> None:
        self.out.write("[")

    def write_event(self, iri: str, triples: Sequence[Triple], time_ms: int) -> None:
        import pyoxigraph as ox  # SELECT queries need not wait for it

        graph = iri_text(iri)
        lines = [f"{s} {p} {o} {graph} ." for s, p, o in triples]
        lines.append(f"{graph} {_TIME} {time_literal(time_ms)} .")
        quads = ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS)
        try:
            made = ox.serialize(quads, format=ox.RdfFormat.JSON_LD)
        except OSError as error:  # of triple terms
            reason = f"cannot write <{iri}> as {self.form}: {error}"
            raise RunError(f"{reason}; use nquads, trig or jsonl") from None
        assert made is not None
        self.out.write(self._separator + made.decode().strip()[1:-1])
        self._separator = ",\n"

    def close(self) -> None:
        self.out.write("\n]\n")


class RdfMessages(NQuads):
    """A log of RDF Messages. A message has the graph of one answer, and its time.

    A delimiter stands after each message, so a log may be appended to another.
    """

    form = suffix = "rdfm"
    about = "the same as RDF Messages, one for each graph"
    after = MESSAGE_END

    def open(self) -> None:
        self.out.write(VERSION)
