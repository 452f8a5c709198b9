"""SPARQL 1.1 Query Results CSV Format: plain values, for spreadsheets."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from spaseq.rdf.terms.term import plain_text
from spaseq.sinks.table_sink import TableSink

if TYPE_CHECKING:
    from spaseq.algebra.answer_batch import AnswerBatch
    from spaseq.sinks.text_columns import Syntax

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
