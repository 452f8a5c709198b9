"""SPARQL 1.1 Query Results TSV Format: terms in the syntax of SPARQL and Turtle."""

from __future__ import annotations

from spaseq.sinks.table_sink import TableSink


class TsvResults(TableSink):
    """Terms are N-Triples texts, which escape tabs and line ends; unbound variables are empty."""

    form = suffix = "tsv"
    about = "W3C SPARQL 1.1 results of one SELECT query"

    def open(self) -> None:
        self._line([f"?{v}" for v in self.variables])

    def write_row(self, bindings: dict[str, str]) -> None:
        self._line([bindings.get(v, "") for v in self.variables])

    def _line(self, fields: list[str]) -> None:
        self.out.write("\t".join(fields) + "\n")
