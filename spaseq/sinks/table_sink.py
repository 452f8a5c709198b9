"""The W3C SPARQL 1.1 result formats CSV, TSV and JSON: one table, whose variables come first."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TextIO

from spaseq.algebra.answers import Answer
from spaseq.errors import UsageError
from spaseq.rdf.terms.term import XSD_DATE_TIME, Term, plain_text
from spaseq.rdf.terms.times import time_literal
from spaseq.sinks.base import Sink

if TYPE_CHECKING:
    from spaseq.algebra.answer_batch import AnswerBatch
    from spaseq.algebra.joined_texts import Part, PlacedTexts
    from spaseq.rdf.columns.term_columns import TermColumn
    from spaseq.sinks.text_columns import Syntax


TIMES: dict[str, Callable[[Answer], int]] = {
    "start": lambda answer: answer.first[0],
    "end": lambda answer: answer.end[0],
}
"""The columns that a table may have beside the variables: times (ms) of an answer."""


class TableSink(Sink):
    """Solutions of one SELECT query, one row each.

    Among the variables, `+start` and `+end` are the times of an answer, as `xsd:dateTime`.
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
        terms: Callable[[TermColumn], PlacedTexts],
        around: tuple[str, str],
    ) -> list[Part]:
        """The texts of the table's columns, none where a variable is unbound.

        `terms` returns the texts of a column of terms. The text of a time is between `around`.
        """
        from spaseq.algebra.joined_texts import joined
        from spaseq.sinks.text_columns import time_texts

        self._check_query(query)
        places = {"start": answers.first, "end": answers.last}
        columns: list[Part] = []
        for name in self.variables:
            if name in self._times:
                texts = time_texts(answers.rows.time[places[name]])
                columns.append(joined([around[0], texts, around[1]], len(answers)))
            elif name in answers.names.projected:
                columns.append(terms(answers.column(name)))
            else:
                columns.append("")
        return columns

    @abstractmethod
    def write_row(self, bindings: dict[str, str]) -> None:
        """Write one solution: the N-Triples text of each bound variable."""


_QUOTED = frozenset('",\r\n')


class CsvResults(TableSink):
    """IRIs have no brackets, literals are their lexical forms, blank nodes are `_:label`.
    A triple term is N-Triples text.

    The format writes an unbound variable and an empty literal in the same way.
    """

    form = suffix = "csv"
    about = "W3C SPARQL 1.1 results of one SELECT query"

    def open(self) -> None:
        self._line(list(self.variables))

    def write_row(self, bindings: dict[str, str]) -> None:
        self._line([plain_text(bindings[v]) if v in bindings else "" for v in self.variables])

    def write_batch(self, query: str, answers: AnswerBatch) -> None:
        from spaseq.sinks.text_columns import joined_fields

        columns = self.columns(query, answers, csv_syntax().texts, ("", ""))
        self.write_lines(joined_fields(columns, ",", "\r\n", len(answers)))

    def _line(self, fields: list[str]) -> None:
        self.out.write(",".join(map(_field, fields)) + "\r\n")


def csv_term(text: str) -> str:
    """A term as a field."""
    return _field(plain_text(text))


def _field(value: str) -> str:
    """A field by RFC 4180: quoted, with its quotes doubled, if it has special characters."""
    if _QUOTED.isdisjoint(value):
        return value
    return '"' + value.replace('"', '""') + '"'


@cache
def csv_syntax() -> Syntax:
    """How columns of terms become fields."""
    from spaseq.sinks.text_columns import Syntax, bytes_table

    return Syntax(csv_term, bytes_table(b'",\\<'))


class TsvResults(TableSink):
    """Terms are N-Triples texts, which escape tabs and line ends; unbound variables are empty."""

    form = suffix = "tsv"
    about = "W3C SPARQL 1.1 results of one SELECT query"

    def open(self) -> None:
        self._line([f"?{v}" for v in self.variables])

    def write_row(self, bindings: dict[str, str]) -> None:
        self._line([bindings.get(v, "") for v in self.variables])

    def write_batch(self, query: str, answers: AnswerBatch) -> None:
        from spaseq.algebra.joined_texts import PlacedTexts
        from spaseq.sinks.text_columns import joined_fields

        around = '"', f'"^^<{XSD_DATE_TIME}>'
        columns = self.columns(query, answers, PlacedTexts.of, around)
        self.write_lines(joined_fields(columns, "\t", "\n", len(answers)))

    def _line(self, fields: list[str]) -> None:
        self.out.write("\t".join(fields) + "\n")


class JsonResults(TableSink):
    """One JSON document, written solution by solution."""

    form = suffix = "json"
    about = "W3C SPARQL 1.1 results of one SELECT query"
    ends = True

    def __init__(self, out: TextIO, variables: Sequence[str] = ()) -> None:
        super().__init__(out, variables)
        self._separator = "\n"  # before the next solution

    def open(self) -> None:
        head = json.dumps({"vars": list(self.variables)}, ensure_ascii=False)
        self.out.write(f'{{"head": {head}, "results": {{"bindings": [')

    def write_row(self, bindings: dict[str, str]) -> None:
        row = {v: Term(bindings[v]).to_sparql_json() for v in self.variables if v in bindings}
        self.out.write(self._separator + json.dumps(row, ensure_ascii=False))
        self._separator = ",\n"

    def close(self) -> None:
        self.out.write("\n]}}\n")
