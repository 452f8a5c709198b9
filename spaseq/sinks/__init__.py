"""Sinks: the formats that answers are written in.

A new format is a subclass of `Sink`, and its class in the table below. A resumed run appends to the
document in a file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import StringIO
from pathlib import PurePath
from typing import TextIO

from spaseq.errors import UsageError
from spaseq.sinks.arrow_files import ArrowFile, Parquet
from spaseq.sinks.base import Sink
from spaseq.sinks.graph_sink import JsonLdGraphs, NQuads, RdfMessages, TriG
from spaseq.sinks.jsonl import JsonLines
from spaseq.sinks.table_sink import CsvResults, JsonResults, TsvResults

__all__ = ["FORMATS", "SINKS", "Sink", "form_of_path", "open_sink"]

SINKS: dict[str, type[Sink]] = {
    sink.form: sink
    for sink in (
        JsonLines,
        JsonResults,
        CsvResults,
        TsvResults,
        NQuads,
        TriG,
        RdfMessages,
        JsonLdGraphs,
        Parquet,
        ArrowFile,
    )
}
"""The class of each format, by its name."""

FORMATS = tuple(SINKS)
"""The names of the formats."""


def form_of_path(path: str) -> str:
    """The name of the format that the ending of a path says, before a `.gz` if there is one.

    A path without an ending, such as `-` or `/dev/stderr`, gets `jsonl`.

    Raises:
        UsageError: the ending is unknown, or the format is compressed already.

    >>> form_of_path("alerts.csv"), form_of_path("alerts.nq.gz"), form_of_path("alerts")
    ('csv', 'nquads', 'jsonl')
    """
    whole = path.removesuffix(".gz")
    ending = PurePath(whole).suffix[1:].lower()
    if not ending:
        return JsonLines.form
    forms = {sink.suffix: form for form, sink in SINKS.items()}
    if ending not in forms:
        endings = ", ".join(f".{suffix}" for suffix in forms)
        raise UsageError(
            f"{path}: .{ending} is the ending of no format of answers: {endings}, also with .gz "
            "behind it; or give --format"
        )
    if whole != path and SINKS[forms[ending]].binary:
        raise UsageError(f"{path}: {forms[ending]} is compressed by itself; leave .gz out")
    return forms[ending]


def open_sink(form: str, out: TextIO, variables: Sequence[str]) -> Sink:
    """The sink of a format, to be used as a context manager.

    Args:
        form: the name of the format.
        out: the text stream that it writes to.
        variables: the projected variables in order, without `?`; only tables need them. In tables
            of text, `+start` and `+end` are the times of an answer.

    Raises:
        UsageError: there is no such format.

    >>> import sys
    >>> from spaseq.algebra.answers import Answer
    >>> with open_sink("tsv", sys.stdout, ["road"]) as sink:
    ...     sink.write("jams", Answer((0, 0), (1000, 0), (), (("road", "<http://e/a1>"),)))
    ?road
    <http://e/a1>
    """
    if form not in SINKS:
        raise UsageError(f"unknown answer format {form!r}; formats are {', '.join(FORMATS)}")
    return SINKS[form](out, variables)


def begins_now(path: str, form: str, columns: Sequence[str]) -> bool:
    """Whether the next answer begins a document; otherwise the file has its beginning already.

    A beginning that a killed run left half written is taken away.

    Args:
        path: the file; it need not exist.
        form: the format of the document.
        columns: the columns of a table, as for `open_sink`.

    Raises:
        UsageError: the file is a table with other columns.
    """
    if not os.path.isfile(path):
        return True
    text = StringIO(newline="")
    open_sink(form, text, columns).open()
    beginning = text.getvalue().encode()
    with open(path, "rb") as file:
        start = file.read(len(beginning) + 1)
    if len(start) < len(beginning) and beginning.startswith(start):
        os.truncate(path, 0)
        return True
    if not start.startswith(beginning):
        raise UsageError(f"{path} has other columns; a run that resumes needs the same --columns")
    return not start
