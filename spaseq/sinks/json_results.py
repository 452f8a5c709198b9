"""SPARQL 1.1 Query Results JSON Format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TextIO

from spaseq.rdf.terms.term import Term
from spaseq.sinks.table import TableSink


class JsonResults(TableSink):
    """One JSON document, written solution by solution."""

    def __init__(self, out: TextIO, variables: Sequence[str]) -> None:
        super().__init__(out, variables)
        self._before = "\n"  # what goes before the next solution

    def open(self) -> None:
        head = json.dumps({"vars": list(self.variables)}, ensure_ascii=False)
        self.out.write(f'{{"head": {head}, "results": {{"bindings": [')

    def write_row(self, bindings: dict[str, str]) -> None:
        row = {v: Term(bindings[v]).to_sparql_json() for v in self.variables if v in bindings}
        self.out.write(self._before + json.dumps(row, ensure_ascii=False))
        self._before = ",\n"

    def close(self) -> None:
        self.out.write("\n]}}\n")
