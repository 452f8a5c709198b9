"""Base of the W3C SPARQL 1.1 result formats: one table whose variables are known first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.rdf.terms.times import time_literal
from spaseq.sinks.base import Sink

if TYPE_CHECKING:
    from spaseq.algebra.answer_batch import AnswerBatch
    from spaseq.rdf.columns.term_columns import TermColumn, TextArray

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
        self._check_query(query)
        if answer.graph is not None:
            raise UsageError(
                f"{self.form} holds a table, and {query} is a CONSTRUCT query; use jsonl"
                " or a format of graphs"
            )
        row = dict(answer.bindings)
        for name in self._times:
            row[name] = time_literal(TIMES[name](answer))
        self.write_row(row)

    def _check_query(self, query: str) -> None:
        if self._query is None:
            self._query = query
        if query != self._query:
            raise UsageError(
                f"{self.form} holds one table, not the answers of both {self._query} and {query};"
                " use jsonl"
            )

    def columns(
        self,
        query: str,
        answers: AnswerBatch,
        terms: Callable[[TermColumn], TextArray],
        around: tuple[str, str],
    ) -> list[TextArray]:
        """The texts of the table's columns, null where a variable is unbound.

        `terms` gives the texts of a column of terms. The text of a time stands between `around`.
        """
        from spaseq.sinks.text_columns import joined, time_texts

        self._check_query(query)
        places = {"start": answers.first, "end": answers.last}
        columns = []
        for name in self.variables:
            if name in self._times:
                texts = time_texts(answers.rows.time[places[name]])
                columns.append(joined([around[0], texts, around[1]], len(answers)))
            elif name in answers.names.projected:
                columns.append(terms(answers.column(name)))
            else:
                columns.append(joined([""], len(answers)))
        return columns

    @abstractmethod
    def write_row(self, bindings: dict[str, str]) -> None:
        """Write one solution: the N-Triples text of each bound variable."""
