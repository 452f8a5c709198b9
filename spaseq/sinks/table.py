"""What the W3C SPARQL 1.1 result formats have in common: one table, its variables known first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TextIO

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.sinks.base import Sink


class TableSink(Sink):
    """Solutions of one query; `variables` are its projected ones, in order, without `?`."""

    def __init__(self, out: TextIO, variables: Sequence[str]) -> None:
        super().__init__(out)
        self.variables = tuple(variables)
        self._query: str | None = None

    def write(self, query: str, answer: Answer) -> None:
        if self._query is None:
            self._query = query
        if query != self._query:
            raise UsageError(
                f"this format has one table, so it cannot hold both {self._query} and {query};"
                " use jsonl"
            )
        if answer.graph is not None:
            raise UsageError(
                f"this format has a table, and {query} is a CONSTRUCT query; use jsonl"
            )
        self.write_row(dict(answer.bindings))

    @abstractmethod
    def write_row(self, bindings: dict[str, str]) -> None:
        """Write one solution: the N-Triples texts of the variables that are bound."""
