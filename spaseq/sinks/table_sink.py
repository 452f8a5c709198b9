"""Base of the W3C SPARQL 1.1 result formats: one table whose variables are known first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TextIO

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.sinks.base import Sink


class TableSink(Sink):
    """Solutions of one SELECT query, one row each."""

    holds = "solutions"
    one_query = True

    def __init__(self, out: TextIO, variables: Sequence[str] = ()) -> None:
        super().__init__(out, variables)
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
        self.write_row(dict(answer.bindings))

    @abstractmethod
    def write_row(self, bindings: dict[str, str]) -> None:
        """Write one solution: the N-Triples text of each bound variable."""
