"""SPARQL 1.1 Query Results CSV Format: plain values, for spreadsheets."""

from __future__ import annotations

from spaseq.rdf.terms.term import kind_of, split_literal
from spaseq.sinks.table import TableSink

_QUOTED = frozenset('",\r\n')


class CsvResults(TableSink):
    """IRIs without brackets, literals as their lexical form, `_:label` for blank nodes.

    An unbound variable and an empty literal look the same: the format does not tell them apart.
    """

    def open(self) -> None:
        self._line(list(self.variables))

    def write_row(self, bindings: dict[str, str]) -> None:
        self._line([_value(bindings[v]) if v in bindings else "" for v in self.variables])

    def _line(self, fields: list[str]) -> None:
        self.out.write(",".join(map(_field, fields)) + "\r\n")


def _value(text: str) -> str:
    match kind_of(text):
        case "iri":
            return text[1:-1]
        case "bnode":
            return text
        case _:
            return split_literal(text)[0]


def _field(value: str) -> str:
    """RFC 4180: a field with a comma, quote or line end is quoted, its quotes doubled."""
    if _QUOTED.isdisjoint(value):
        return value
    return '"' + value.replace('"', '""') + '"'
