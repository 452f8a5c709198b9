"""Base of the formats with named graphs: each answer is a graph and its time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.rdf.terms.term import Triple
from spaseq.sinks.base import Sink


class GraphSink(Sink):
    """Events that CONSTRUCT queries make, in a form that streams are read from.

    The time of an event stands in the default graph, right after the event's graph.
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
