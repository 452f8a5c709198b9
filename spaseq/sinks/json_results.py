"""SPARQL 1.1 Query Results JSON Format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TextIO

from spaseq.rdf.terms.term import Term
from spaseq.sinks.table_sink import TableSink


class JsonResults(TableSink):
    """One JSON document, written solution by solution."""

    form = suffix = "json"
    about = "W3C SPARQL 1.1 results of one SELECT query"
    ends = True

    def __init__(self, out: TextIO, variables: Sequence[str] = ()) -> None:
        super().__init__(out, variables)
        self._separator = "\n"  # stands before the next solution

    def open(self) -> None:
        head = json.dumps({"vars": list(self.variables)}, ensure_ascii=False)
        self.out.write(f'{{"head": {head}, "results": {{"bindings": [')

    def write_row(self, bindings: dict[str, str]) -> None:
        row = {v: Term(bindings[v]).to_sparql_json() for v in self.variables if v in bindings}
        self.out.write(self._separator + json.dumps(row, ensure_ascii=False))
        self._separator = ",\n"

    def close(self) -> None:
        self.out.write("\n]}}\n")
