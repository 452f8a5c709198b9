"""Sinks: where answers are written, one format per file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from spaseq.errors import UsageError
from spaseq.sinks.base import Sink
from spaseq.sinks.csv_results import CsvResults
from spaseq.sinks.json_results import JsonResults
from spaseq.sinks.jsonl import JsonLines
from spaseq.sinks.table import TableSink
from spaseq.sinks.tsv_results import TsvResults

__all__ = ["FORMATS", "Sink", "open_sink"]

_TABLES: dict[str, type[TableSink]] = {"json": JsonResults, "csv": CsvResults, "tsv": TsvResults}

FORMATS = ("jsonl", *_TABLES)
"""The names of the formats."""


def open_sink(form: str, out: TextIO, variables: Sequence[str]) -> Sink:
    """A sink for a format's name, to be used as a context manager.

    `variables` are the projected variables without `?`, in order; jsonl does not need them.
    """
    if form == "jsonl":
        return JsonLines(out)
    if form not in _TABLES:
        raise UsageError(f"unknown answer format {form!r}; formats are {', '.join(FORMATS)}")
    return _TABLES[form](out, variables)
