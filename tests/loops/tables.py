"""Rows of a stream, and the files that hold them: N-Quads, or tables with their lifts."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import feather, parquet

Row: TypeAlias = dict[str, Any]
Instant: TypeAlias = tuple[int, int]

NS = "http://t/"
START = 1_700_000_000_000
"""ms of the first row."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FORMATS = ("csv", "jsonl", "nq")
TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow")


HEAD = """PREFIX : <http://t/>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""


@dataclass(frozen=True)
class Table:
    """The rows of a stream in order of time; each has `id`, `t` in ms, and the given fields.

    `things` are fields whose values name things, `numbers` have integers. A row is an event
    `http://t/NAME/ID`, whose subject is the thing of the first field.
    """

    name: str
    things: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: Sequence[Row]

    @property
    def iri(self) -> str:
        return f"{NS}stream/{self.name}"

    def event(self, row: Row) -> str:
        return f"{NS}{self.name}/{row['id']}"

    def instants(self) -> list[Instant]:
        """(time, number of rows before it with this time) of each row."""
        ties: Counter[int] = Counter()
        found = []
        for row in self.rows:
            found.append((row["t"], ties[row["t"]]))
            ties[row["t"]] += 1
        return found

    def lift(self, form: str) -> str:
        """The lift of the rows in a table of this form; Parquet's times are timestamps."""
        subject, *others = self.things
        triples = [f":has{subject} ?{subject}_iri"]
        triples += [f":{f} ?{f}_iri" for f in others] + [f":{f} ?{f}_value" for f in self.numbers]
        iris = [f'BIND (IRI(CONCAT("{NS}{f}/", STR(?{f}))) AS ?{f}_iri)' for f in self.things]
        values = [f"BIND (xsd:integer(?{f}) AS ?{f}_value)" for f in self.numbers]
        when = "xsd:dateTime(?t)" if form == "jsonl" else "xsd:integer(?t)"
        body = [
            f'BIND (IRI(CONCAT("{NS}{self.name}/", STR(?id))) AS ?e)',
            *iris,
            *values,
            "BIND (?t AS ?when)" if form == "parquet" else f"BIND ({when} AS ?when)",
        ]
        return (
            f"{HEAD}CONSTRUCT {{ GRAPH ?e {{ ?{subject}_iri {' ; '.join(triples)} }}\n"
            f"  ?e prov:generatedAtTime ?when }}\nWHERE {{ {chr(10).join(body)} }}\n"
        )

    def write(self, form: str, directory: Path) -> tuple[Path, Path | None]:
        """Write the rows; gives the file and the file of its lift."""
        path = directory / f"{self.name}.{form}"
        if form == "nq":
            self._write_quads(path)
            return path, None
        lift = directory / f"{self.name}.lift.rq"
        lift.write_text(self.lift(form), encoding="utf-8")
        if form in ("parquet", "arrow"):
            self._write_columns(path, form)
        elif form == "jsonl":
            lines = (json.dumps({**row, "t": iso(row["t"])}) + "\n" for row in self.rows)
            path.write_text("".join(lines), encoding="utf-8")
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                fields = ["id", "t", *self.things, *self.numbers]
                writer = csv.DictWriter(file, fields, delimiter="\t" if form == "tsv" else ",")
                writer.writeheader()
                writer.writerows(self.rows)
        return path, lift

    def _write_columns(self, path: Path, form: str) -> None:
        table = pa.Table.from_pylist(list(self.rows))
        if form == "parquet":
            times = table.column("t").cast(pa.timestamp("ms", "UTC"))
            table = table.set_column(table.column_names.index("t"), "t", times)
            parquet.write_table(table, path, row_group_size=len(self.rows) // 3 + 1)
        else:
            feather.write_feather(table, path)

    def _write_quads(self, path: Path) -> None:
        subject, *others = self.things
        integer = "http://www.w3.org/2001/XMLSchema#integer"
        with path.open("w", encoding="utf-8") as file:
            for row in self.rows:
                event, thing = f"<{self.event(row)}>", f"<{NS}{subject}/{row[subject]}>"
                file.write(f"{thing} <{NS}has{subject}> {thing} {event} .\n")
                for f in others:
                    file.write(f"{thing} <{NS}{f}> <{NS}{f}/{row[f]}> {event} .\n")
                for f in self.numbers:
                    file.write(f'{thing} <{NS}{f}> "{row[f]}"^^<{integer}> {event} .\n')
                stamp = f'"{iso(row["t"])}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
                file.write(f"{event} <http://www.w3.org/ns/prov#generatedAtTime> {stamp} .\n")


def iso(ms: int) -> str:
    """A time in ms as dateTime, with as few digits as it needs."""
    text = (EPOCH + timedelta(milliseconds=ms)).isoformat().removesuffix("+00:00")
    return (text.rstrip("0") if "." in text else text) + "Z"


def milliseconds(value: str | datetime) -> int:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(milliseconds=1)
