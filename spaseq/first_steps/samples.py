"""The sample of a user's file for `spaseq init`, and a first rule that has an answer in it.

The sample of an RDF file is its first events with the types of their predicates. A plain loop finds
the rule.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from spaseq.diagnosis.diagnose import misplaced_time, time_predicate
from spaseq.errors import InputError
from spaseq.first_steps.field_types import INTEGER, NUMBER, TEXT, FieldType
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.formats import Format, format_of
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.terms.term import GENERATED_AT_TIME, RDF, XSD, Triple, split_literal
from spaseq.records import record
from spaseq.sources import source_of

SUBJECT = "the subject"
"""The field of RDF that is no predicate: the subject of an event."""

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

_EVENTS = 2000
_NUMBERS = ("integer", "decimal", "double", "float", "int", "long")
_IRI = FieldType("iri", ".*", "{0}")
_ABOUT = ".ngsild", ".cloudevents"
"""Endings of files whose events are each about one thing, with values behind blank nodes."""

_TOLD = {Format.NGSILD: "ngsild", Format.SOSA: "sosa"}
"""Formats that a server cannot recognise by a media type."""

Paths: TypeAlias = "list[tuple[str, str]]"
"""(predicate or path in angle brackets, term) of an event."""


@record
class Seen:
    """An event: the number of its row from 1, its time in ms, its values, and its source.

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
        csv: the value of `--csv` for the file; "" if none.
        time_predicate: of the events of RDF, if it is another one than usual.
        format: the name of a format of messages that the server's configuration needs; "" if none.

    In formats of messages a field is a path, its predicates with `>/<` between them, from the
    subject of the event, which is the field SUBJECT.
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
    """The value of a field as a key of rows: the number of rows and of distinct values."""
    values = [row.values[name] for row in rows if name in row.values]
    return len(values), name != f"{RDF}type", len(set(values)), bool(_KEY.search(name))


def keys_of(sample: Sample) -> list[str]:
    """The fields that may be keys of rows, the likeliest first."""
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


def sampled_events(path: Path) -> Sample:
    """The first events of a file.

    Raises:
        InputError: none of them has a time, or it cannot be read.
    """
    predicate, bad = None, list[BadInput]()
    seen, types = _seen(path, GENERATED_AT_TIME, bad)
    if not seen:
        predicate = time_predicate(str(path))
        if predicate is not None:
            seen, types = _seen(path, predicate, [])
    if not seen:
        cause = misplaced_time(str(path)) or (bad[0].reason if bad else None)
        reason = "" if cause is None else f": {cause}"
        raise InputError(f"no named graph of {path} has a time, so none is an event{reason}")
    form = _TOLD.get(format_of(path.name) or Format.NQUADS, "")
    few = tuple(seen[:_EVENTS])
    return Sample(str(path), few, types, (), time_predicate=predicate, format=form)


def _about(triples: Sequence[Triple], event: str) -> Paths:
    """The statements of an event about the first node in it that is neither the event nor a blank
    node.
    """
    thing = next((s for s, _, _ in triples if s[0] == "<" and s != event), event)
    subjects = dict.fromkeys(s for s, _, _ in triples)
    paths, waiting = [(f"<{SUBJECT}>", thing)], [(thing, "")]
    while waiting:
        subject, before = waiting.pop(0)
        for s, predicate, term in triples:
            path = f"{before}/{predicate}" if before else predicate
            if s == subject and term.startswith("_:") and term in subjects and path.count("/<") < 3:
                waiting.append((term, path))
            elif s == subject:
                paths.append((path, term))
    return paths


def _seen(
    path: Path, time_predicate: str, bad: list[BadInput]
) -> tuple[list[Seen], dict[str, FieldType]]:
    """The first events, with their times by a predicate; and the types of the other predicates."""
    options = StreamOptions("http://example/s", (str(path),), time_predicate=time_predicate)
    source = source_of([str(path)], options)
    source.check()
    seen: list[Seen] = []
    types: dict[str, FieldType] = {}
    for batch in source.open(bad.append):
        for event in range(len(batch)):
            rows = range(int(batch.start[event]), int(batch.start[event + 1]))
            triples = [_triple(batch, row) for row in rows]
            values: dict[str, Any] = {}
            said = [(p, o) for _, p, o in triples]
            if path.name.lower().removesuffix(".gz").endswith(_ABOUT):
                said = _about(triples, f"<{batch.graph[event]}>")
            for predicate, term in said:
                kind, value = _value(term)
                if predicate not in types or types[predicate] is kind:
                    values.setdefault(predicate[1:-1], value)
                    types.setdefault(predicate, kind)
            turtle = "\n".join(f"{s} {p} {o} ." for s, p, o in triples)
            seen.append(Seen(len(seen) + 1, int(batch.time[event]), values, turtle))
        if len(seen) >= _EVENTS:
            break
    return seen, {p[1:-1]: kind for p, kind in types.items() if p[1:-1] != time_predicate}


def _triple(batch: EventBatch, row: int) -> Triple:
    s, p, o = (str(batch.terms[column[row]]) for column in (batch.s, batch.p, batch.o))
    return s, p, o


def _value(term: str) -> tuple[FieldType, Any]:
    """(type, value) of a term; a term that is no literal is its own value."""
    if not term.startswith('"'):
        return _IRI, term
    text, datatype, _ = split_literal(term)
    local = str(datatype).removeprefix(XSD)
    kind = INTEGER if local == "integer" else NUMBER if local in _NUMBERS else TEXT
    return kind, kind.value(text) if kind is not TEXT else term
