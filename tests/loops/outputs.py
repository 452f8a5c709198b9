"""Answers in every output format as values that can be compared with what a loop finds."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyoxigraph as ox
from pyarrow import feather, parquet

from tests.loops.scenarios import Found
from tests.loops.tables import milliseconds

Told: TypeAlias = tuple[Any, ...]
"""Values of the variables, start and end in ms, and the trace, or None where a format has none."""

TABLES = ("csv", "tsv", "json")
"""Formats whose columns are named."""

FORMATS = ("jsonl", *TABLES, "parquet", "arrow")
GRAPHS = ("nquads", "trig", "rdfm")


def told(found: Found, variables: Sequence[str], traced: bool) -> Told:
    """An answer of a loop."""
    values = tuple(value(found.values[v]) for v in variables)
    trace = tuple((gpm, event, instant[0]) for instant, gpm, event in found.trace)
    return values, found.trace[0][0][0], found.end[0], trace if traced else None


def value(text: Any) -> Any:
    """A number to nine digits; other terms as text, without the brackets of an IRI."""
    if isinstance(text, str):
        text = text.removeprefix("<").removesuffix(">")
        text = text.partition('"^^')[0].removeprefix('"')
    try:
        return f"{float(text):.9g}"
    except ValueError:
        return text


def read(path: Path, form: str, variables: Sequence[str]) -> list[Told]:
    """The answers in a file, in order."""
    return list(READERS[form](path, variables))


def _jsonl(path: Path, variables: Sequence[str]) -> Iterator[Told]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield _traced(json.loads(line), variables)


def _traced(row: dict[str, Any], variables: Sequence[str]) -> Told:
    values = tuple(value(row["bindings"][v]["value"]) for v in variables)
    trace = tuple((i["gpm"], i["event"], milliseconds(i["time"])) for i in row["trace"])
    return values, milliseconds(row["start"]), milliseconds(row["end"]), trace


def _json(path: Path, variables: Sequence[str]) -> Iterator[Told]:
    for row in json.loads(path.read_text(encoding="utf-8"))["results"]["bindings"]:
        cells = {name: cell["value"] for name, cell in row.items()}
        yield _cells(cells, variables)


def _delimited(path: Path, variables: Sequence[str]) -> Iterator[Told]:
    with path.open(newline="", encoding="utf-8") as file:
        if path.suffix == ".tsv":
            reader = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        else:
            reader = csv.DictReader(file)
        for row in reader:
            yield _cells({name.lstrip("?"): cell for name, cell in row.items()}, variables)


def _cells(cells: dict[str, str], variables: Sequence[str]) -> Told:
    start, end = (milliseconds(value(cells[name])) for name in ("start", "end"))
    return tuple(value(cells[v]) for v in variables), start, end, None


def _table(path: Path, variables: Sequence[str]) -> Iterator[Told]:
    table: pa.Table = (feather if path.suffix == ".arrow" else parquet).read_table(path)
    for row in table.to_pylist():
        trace = tuple((i["gpm"], i["event"], _moment(i["time"])) for i in row["trace"])
        values = tuple(value(row[v]) for v in variables)
        yield values, _moment(row["start"]), _moment(row["end"]), trace


def _moment(moment: datetime | str) -> int:
    return milliseconds(moment)


READERS: dict[str, Callable[[Path, Sequence[str]], Iterator[Told]]] = {
    "jsonl": _jsonl,
    "json": _json,
    "csv": _delimited,
    "tsv": _delimited,
    "parquet": _table,
    "arrow": _table,
}


def graphs(path: Path, form: str) -> list[tuple[str, str, str]]:
    """The triples of CONSTRUCT queries' answers, times included, in order."""
    text = path.read_text(encoding="utf-8")
    if form == "rdfm":  # N-Quads between lines of its own
        lines = text.splitlines(keepends=True)
        text = "".join(line for line in lines if not line.startswith(("VERSION", "MESSAGE")))
    quads = ox.parse(text, ox.RdfFormat.TRIG if form == "trig" else ox.RdfFormat.N_QUADS)
    return [(q.subject.value, q.predicate.value, value(str(q.object))) for q in quads]
