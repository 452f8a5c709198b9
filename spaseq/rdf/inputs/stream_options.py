"""How a stream is read."""

from __future__ import annotations

import os

from spaseq.errors import UsageError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.inputs.contexts import NO_CONTEXTS, JsonLdContexts
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT, CsvDialect
from spaseq.rdf.inputs.message_options import DEFAULT_MESSAGES, MessageOptions
from spaseq.rdf.terms.term import is_absolute_iri
from spaseq.rdf.terms.times import TIME_UNITS
from spaseq.rdf.terms.vocabulary import GENERATED_AT_TIME
from spaseq.records import record


@record
class StreamOptions:
    """How to read one stream.

    Attributes:
        iri: the stream's IRI.
        paths: files, directories, globs, or `-` for standard input. `.gz` files are unpacked.
        time_predicate: IRI of the predicate whose object is an event's time.
        time_unit: the unit of integer times, a name of `TIME_UNITS`.
        triples_per_event: number of triples in an event, for formats without graphs.
        arrival_time: in formats without graphs, the time of an event is its time of arrival.
        format: name or extension of the format, where file names do not tell it.
        batch_events: most events in one batch.
        larger: batches are this many times as large as usual, for many queries.
        threads: threads that tokenize N-Quads and N-Triples.
        predicates: IRIs of the only predicates to keep, for N-Quads and N-Triples. Other triples
            are checked and counted, but not kept. None keeps all.
        limits: bounds on nesting and sizes.
        contexts: the JSON-LD contexts of NDJSON-LD; if they have one of their own, messages of
            brokers are read with it, too.
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
