"""What `spaseq init` knows of a user's file, and a first rule that has an answer in this sample,
found by a plain loop.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spaseq.first_steps.field_types import FieldType
from spaseq.rdf.terms.term import RDF
from spaseq.records import record

SUBJECT = "the subject"
"""The field of RDF that is no predicate: what an event is about."""

_KEY = re.compile(
    r"(?i)(^|_)(id|name|key|sensor|device|station|ticker|symbol|customer|user|road)|(id|name)$"
)
_WINDOWS = (
    (60_000, "1 MINUTES"),
    (900_000, "15 MINUTES"),
    (3_600_000, "1 HOURS"),
    (86_400_000, "1 DAYS"),
    (7 * 86_400_000, "7 DAYS"),
    (30 * 86_400_000, "30 DAYS"),
    (365 * 86_400_000, "365 DAYS"),
)
_AHEAD = 500
"""Rows after one in which the loop looks for the other."""


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


@record
class FirstRule:
    """A rule, and the rows of one answer.

    Attributes:
        key: the field that both rows share; None if there is none.
        value: the field that grows from the first row to the second; None if there is none.
        window: the length of WITHIN.
        rows: the two rows of an answer, or the one.
    """

    key: str | None
    value: str | None
    window: str
    rows: tuple[Seen, ...]

    @property
    def has_labels(self) -> bool:
        """Whether the knowledge base has labels for the keys."""
        return self.key is not None and len(self.rows) > 1


def first_rule(sample: Sample) -> FirstRule:
    """The first of these rules that has an answer: growing values of one key, growing values,
    a key that comes again, and any row."""
    keys, values = keys_of(sample), _values_of(sample)
    ordered = sorted(sample.seen, key=lambda seen: seen.time or 0)
    wanted: list[tuple[str | None, str | None]] = [(k, v) for v in values for k in keys if k != v]
    wanted += [(None, v) for v in values] + [(k, None) for k in keys]
    for key, value in wanted:
        for limit, window in _WINDOWS:
            pair = next(_pairs(ordered, key, value, limit), None)
            if pair is not None:
                return FirstRule(key, value, window, pair)
    field = max(sample.types, key=lambda name: _telling(name, ordered))
    row = next((seen for seen in ordered if field in seen.values), ordered[0])
    return FirstRule(field, None, _WINDOWS[0][1], (row,))


def _telling(name: str, rows: list[Seen]) -> tuple[int, bool, int, bool]:
    """How much a field tells of rows: how many have it, with how many values."""
    values = [row.values[name] for row in rows if name in row.values]
    return len(values), name != f"{RDF}type", len(set(values)), bool(_KEY.search(name))


def keys_of(sample: Sample) -> list[str]:
    """The fields that may tell what a row is about, the likeliest first."""
    ranked: list[tuple[int, bool, int, str]] = []
    for name, kind in sample.types.items():
        if kind.name in ("number", "time", "clock") or name == f"{RDF}type":
            continue
        counts = Counter(seen.values[name] for seen in sample.seen if name in seen.values)
        again = sum(counts.values()) - len(counts)
        if again and len(counts) > (0 if kind.name == "iri" else 1):
            likely = bool(_KEY.search(name)) + (kind.name == "iri" and len(counts) > 1)
            likely += 2 * (name == SUBJECT)
            ranked.append((-likely, kind.name == "integer", len(ranked), name))
    return [name for *_, name in sorted(ranked)]


def _values_of(sample: Sample) -> list[str]:
    numbers = [n for n, kind in sample.types.items() if kind.name == "number"]
    numbers += [n for n, kind in sample.types.items() if kind.name == "integer"]
    return [n for n in numbers if len({s.values.get(n) for s in sample.seen} - {None}) > 1]


def _pairs(
    rows: list[Seen], key: str | None, value: str | None, limit: int
) -> Iterator[tuple[Seen, Seen]]:
    """The pairs of rows that the query answers, at most `limit` ms apart."""
    groups: dict[Any, list[Seen]] = defaultdict(list)
    for row in rows:
        if (key is None or key in row.values) and (value is None or value in row.values):
            groups[None if key is None else row.values[key]].append(row)
    for group in groups.values():
        for number, one in enumerate(group):
            for other in group[number + 1 : number + _AHEAD]:
                apart = (other.time or 0) - (one.time or 0)
                if apart > limit:
                    break
                if apart > 0 and (value is None or other.values[value] > one.values[value]):
                    yield one, other
