"""The reading options of a stream, and reports of bad input."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from typing import TypeAlias

from spaseq.errors import UsageError
from spaseq.extras import missing
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.inputs.contexts import NO_CONTEXTS, JsonLdContexts
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT, CsvDialect
from spaseq.rdf.inputs.formats import Format, message_format
from spaseq.rdf.terms.term import GENERATED_AT_TIME, is_absolute_iri
from spaseq.rdf.terms.times import TIME_UNITS
from spaseq.records import record


@record
class BadInput:
    """A part of the input that could not become an event."""

    file: str
    line: int | None  # from 1; None where the format gives no line
    reason: str
    text: str = ""  # the text in question, cut to a few hundred characters
    over_limit: bool = False  # whether a query on it would exceed a limit; its text is well-formed
    lost: tuple[str, int] | None = None  # (field, rows) whose values a cast loses; rows are events.
    # Without rows it is a remark on the field, and nothing is lost.


def over_limit(query: str, reason: str, event: str) -> BadInput:
    """An event on which a query exceeds a limit."""
    return BadInput(query, None, f"exceeds a limit: {reason}", event, over_limit=True)


OnBad: TypeAlias = Callable[[BadInput], None]


def ignore(*_: object) -> None:
    """Drop a report."""


def warn(bad: BadInput) -> None:
    """Log bad input as a warning of the logger `spaseq`."""
    where = bad.file if bad.line is None else f"{bad.file}:{bad.line}"
    logging.getLogger("spaseq").warning("%s: %s %s", where, bad.reason, bad.text)


_TOLD = 3


class FirstWarnings:
    """Logs the first bad inputs of a run, and once that there are more."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, bad: BadInput) -> None:
        """Take bad input."""
        self._count += 1
        if self._count <= _TOLD:
            warn(bad)
        elif self._count == _TOLD + 1:
            more = "there is more bad input: Stats.bad counts it, and on_bad gets each"
            logging.getLogger("spaseq").warning(more)


_WARNED = set[tuple[str, str]]()


def warn_once(bad: BadInput) -> None:
    """Log that a cast loses values of a field, once for each field of a file; a remark once."""
    name, rows = bad.lost or ("", 1)
    key = bad.file if rows else "", name
    if key not in _WARNED:
        _WARNED.add(key)
        warn(bad)


_PLACE = re.compile(r"^Parser error at line \d+ (?:between columns (\d+) and \d+|column (\d+)): ")

_LONGEST = 500  # characters of a reason

REST = "the rest of the file is not read: "
"""Prefix of the reason that ends a file."""


def syntax_reason(error: Exception) -> str:
    """The message of a pyoxigraph error, without the line number: the text was only a part."""
    if isinstance(error, UnicodeEncodeError):
        return f"a character that is none: {error.reason}"
    message = str(error.args[0]) if error.args else str(error)
    if len(message) > _LONGEST:  # it quotes the text
        message = f"{message[:_LONGEST]}..."
    match = _PLACE.match(message)
    if match is None:
        return message
    return f"{message[match.end() :]} (column {match.group(1) or match.group(2)})"


ARRIVAL = "arrival"

TIME_RULES = ("message", ARRIVAL)
"""The rules for the time of an event without one: its message's, or its arrival."""


@record
class MessageOptions:
    """The reading options of messages, besides `StreamOptions`.

    Attributes:
        format: the format of all messages, whatever their media types: the name or extension of a
            format, or a media type. None: each message has its own format.
        time: a name of `TIME_RULES`; None makes an event without a time bad input.
        dedup_ms: an event is dropped if its graph's IRI was seen in this time before its arrival.
            None drops nothing.
        max_bytes: a larger message is bad input. None: no limit.

    Raises:
        UsageError: a format or a time rule is unknown, or the library of a format is missing.
    """

    format: str | None = None
    time: str | None = None
    dedup_ms: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.time is not None and self.time not in TIME_RULES:
            raise UsageError(f"the time of an event is {' or '.join(TIME_RULES)}, not {self.time}")
        is_jelly = self.format is not None and message_format(self.format) is Format.JELLY
        if is_jelly and missing("jelly"):
            raise UsageError(f"Jelly needs {missing('jelly')}")

    @property
    def identity(self) -> list[str]:
        """The options as text, which must stay the same for a run to resume; empty for the
        defaults.
        """
        given = (self.format, self.time, self.dedup_ms, self.max_bytes)
        return [] if self == DEFAULT_MESSAGES else [repr(given)]


DEFAULT_MESSAGES = MessageOptions()


@record
class StreamOptions:
    """The reading options of one stream.

    Attributes:
        iri: the stream's IRI.
        paths: files, directories, globs, or `-` for standard input. `.gz` files are unpacked.
        time_predicate: IRI of the predicate whose object is an event's time.
        time_unit: the unit of integer times, a name of `TIME_UNITS`.
        triples_per_event: number of triples in an event, for formats without graphs.
        arrival_time: in formats without graphs, the time of an event is its time of arrival.
        format: name or extension of the format, where file names do not tell it.
        batch_events: maximum number of events in one batch.
        larger: batches are this many times as large as usual, for many queries.
        threads: threads that tokenize N-Quads and N-Triples.
        predicates: IRIs of the only predicates to keep, for N-Quads and N-Triples. Other triples
            are checked and counted, but not kept. None keeps all.
        limits: bounds on nesting and sizes.
        contexts: the JSON-LD contexts of NDJSON-LD; a context for every message holds for brokers,
            too.
        messages: how the messages of a broker become events.
        live: the paths are read as messages, while their files grow and others arrive.
        default_time: the time (ms) of an event whose graph has none, in document formats and
            formats of messages. Without it such an event is bad input.
        csv: the dialect of files that are CSV or TSV.
        base: base IRI for relative IRIs in the document formats, unless a document sets its own.
    """

    iri: str
    paths: tuple[str, ...]
    time_predicate: str = GENERATED_AT_TIME
    time_unit: str = "ms"
    triples_per_event: int | None = None
    arrival_time: bool = False
    format: str | None = None
    batch_events: int = 16_384
    larger: int = 1
    threads: int = 1
    predicates: tuple[str, ...] | None = None
    base: str | None = None
    contexts: JsonLdContexts = NO_CONTEXTS
    messages: MessageOptions = DEFAULT_MESSAGES
    live: bool = False
    default_time: int | None = None
    limits: Limits = DEFAULT_LIMITS
    csv: CsvDialect = DEFAULT_DIALECT

    def __post_init__(self) -> None:
        if self.time_unit not in TIME_UNITS:
            raise UsageError(f"the time unit is {' or '.join(TIME_UNITS)}, not {self.time_unit}")
        if self.base is not None and not is_absolute_iri(self.base):
            raise UsageError(f"the base {self.base} is not an absolute IRI")
        if not is_absolute_iri(self.time_predicate):
            raise UsageError(f"the time predicate {self.time_predicate} is not an absolute IRI")


def reading_threads() -> int:
    """Default number of reading threads per stream: two, or one on a single core."""
    return min(2, os.cpu_count() or 1)
