"""SPARQL 1.1 Query Results TSV Format: terms in the syntax of SPARQL and Turtle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.rdf.terms.vocabulary import XSD_DATE_TIME
from spaseq.sinks.table_sink import TableSink

if TYPE_CHECKING:
    from spaseq.algebra.answer_batch import AnswerBatch


class TsvResults(TableSink):
    """Terms are N-Triples texts, which escape tabs and line ends; unbound variables are empty."""

    form = suffix = "tsv"
    about = "W3C SPARQL 1.1 results of one SELECT query"

    def open(self) -> None:
        self._line([f"?{v}" for v in self.variables])

    def write_row(self, bindings: dict[str, str]) -> None:
        self._line([bindings.get(v, "") for v in self.variables])

    def write_batch(self, query: str, answers: AnswerBatch) -> None:
        from spaseq.rdf.columns.term_columns import TermColumn
        from spaseq.sinks.text_columns import joined_fields

        around = '"', f'"^^<{XSD_DATE_TIME}>'
        columns = self.columns(query, answers, TermColumn.strings, around)
        self.write_lines(joined_fields(columns, "\t", "\n", len(answers)))

    def _line(self, fields: list[str]) -> None:
        self.out.write("\t".join(fields) + "\n")
