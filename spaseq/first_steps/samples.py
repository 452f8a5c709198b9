"""What `spaseq init` knows of a user's file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spaseq.first_steps.field_types import FieldType
from spaseq.records import record

SUBJECT = "the subject"
"""The field of RDF that is no predicate: what an event is about."""


@record
class Seen:
    """An event: the number of its row from 1, its time in ms, its values, and what makes it.

    `values` are numbers or texts by field or predicate. `given` is the row, or Turtle.
    """

    number: int
    time: int | None
    values: Mapping[str, Any]
    given: Any


@record
class EventKind:
    """An event that each row of a file is.

    Attributes:
        name: "" if a row is one event, else the object of the row that the event is about.
        time: the field of its time; None if rows have none.
        fields: the fields of its graph.
        clock: the field of the time of day, if the time is only a date.
    """

    name: str
    time: str | None
    fields: tuple[str, ...]
    clock: str | None = None


@record
class Sample:
    """The first events of a file.

    Attributes:
        path: the file.
        seen: the events with a time.
        types: of the fields, or of the predicates of RDF.
        kinds: the events of each row; none for RDF, which needs no lift.
        names: the variables of all fields, also of those without a type.
        records: the objects that a document lists, as JSON lines; None if the file has rows itself.
        csv: what `--csv` says of the file; "" if nothing.
        time_predicate: of the events of RDF, if it is another one than usual.
        format: the name of a format of messages, which the server must be told; "" if it need not.

    In formats of messages a field is a path, its predicates with `>/<` between them, from what the
    event is about, which is the field SUBJECT.
    """

    path: str
    seen: tuple[Seen, ...]
    types: Mapping[str, FieldType]
    kinds: tuple[EventKind, ...]
    names: frozenset[str] = frozenset()
    records: str | None = None
    csv: str = ""
    time_predicate: str | None = None
    format: str = ""

    @property
    def is_rdf(self) -> bool:
        """Whether the file is RDF."""
        return not self.kinds

    @property
    def times(self) -> frozenset[str]:
        """The fields that are times of events."""
        return frozenset(kind.time for kind in self.kinds if kind.time is not None)

    def path_in(self, directory: Path) -> str:
        """The file of the events, once the files of a directory have been written."""
        return self.path if self.records is None else str(directory / f"{self.name}.jsonl")

    @property
    def name(self) -> str:
        """The name of the stream, after the file."""
        stem = Path(self.path.removesuffix(".gz")).stem
        plain = unicodedata.normalize("NFKD", stem.replace("ß", "ss"))
        plain = "".join(c for c in plain if not unicodedata.combining(c))
        name = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")
        return name[:1].upper() + name[1:] if name[:1].isalpha() else f"S{name}"
