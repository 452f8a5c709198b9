"""Base of the W3C SPARQL 1.1 result formats: one table whose variables are known first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TextIO

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.rdf.terms.times import time_literal
from spaseq.sinks.base import Sink

TIMES: dict[str, Callable[[Answer], int]] = {
    "start": lambda answer: answer.first[0],
    "end": lambda answer: answer.end[0],
}
"""The columns that a table may have beside the variables: times (ms) of an answer."""


class TableSink(Sink):
    """Solutions of one SELECT query, one row each.

    Among the variables, `+start` and `+end` stand for the times of an answer, as `xsd:dateTime`.
    """

    holds = "solutions"
    one_query = True

    def __init__(self, out: TextIO, variables: Sequence[str] = ()) -> None:
        super().__init__(out, [name.removeprefix("+") for name in variables])
        self._times = [name[1:] for name in variables if name.startswith("+")]
        self._query: str | None = None

    def write(self, query: str, answer: Answer) -> None:
        if self._query is None:
            self._query = query
        if query != self._query:
            raise UsageError(
                f"{self.form} holds one table, not the answers of both {self._query} and {query};"
                " use jsonl"
            )
        if answer.graph is not None:
            raise UsageError(
                f"{self.form} holds a table, and {query} is a CONSTRUCT query; use jsonl"
                " or a format of graphs"
            )
        row = dict(answer.bindings)
        for name in self._times:
            row[name] = time_literal(TIMES[name](answer))
        self.write_row(row)

    @abstractmethod
    def write_row(self, bindings: dict[str, str]) -> None:
        """Write one solution: the N-Triples text of each bound variable."""
