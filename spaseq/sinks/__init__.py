"""Sinks: where answers are written, one format per file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from spaseq.errors import UsageError
from spaseq.sinks.base import Sink
from spaseq.sinks.csv_results import CsvResults
from spaseq.sinks.graph import GraphSink
from spaseq.sinks.json_results import JsonResults
from spaseq.sinks.jsonl import JsonLines
from spaseq.sinks.nquads import NQuads
from spaseq.sinks.table import TableSink
from spaseq.sinks.trig import TriG
from spaseq.sinks.tsv_results import TsvResults

__all__ = ["FORMATS", "GRAPHS", "TABLES", "Sink", "open_sink"]

_TABLES: dict[str, type[TableSink]] = {"json": JsonResults, "csv": CsvResults, "tsv": TsvResults}
_GRAPHS: dict[str, type[GraphSink]] = {"nquads": NQuads, "trig": TriG}

TABLES = tuple(_TABLES)
"""The formats of SELECT queries alone, one query each."""

GRAPHS = tuple(_GRAPHS)
"""The formats of CONSTRUCT queries alone."""

FORMATS = ("jsonl", *TABLES, *GRAPHS)
"""The names of the formats; jsonl is for all queries."""


def open_sink(form: str, out: TextIO, variables: Sequence[str]) -> Sink:
    """A sink for a format's name, to be used as a context manager.

    `variables` are the projected variables without `?`, in order; only the tables need them.
    """
    if form == "jsonl":
        return JsonLines(out)
    if form in _GRAPHS:
        return _GRAPHS[form](out)
    if form not in _TABLES:
        raise UsageError(f"unknown answer format {form!r}; formats are {', '.join(FORMATS)}")
    return _TABLES[form](out, variables)
