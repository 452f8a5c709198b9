"""How a stream is read."""

from __future__ import annotations

import os
from dataclasses import dataclass

from spaseq.errors import UsageError
from spaseq.rdf.terms.term import is_absolute_iri
from spaseq.rdf.terms.vocabulary import GENERATED_AT_TIME


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How one stream is read.

    `paths` are files, directories, globs, or `-` (N-Quads on standard input); a `.gz` ending is
    unpacked. `time_predicate` is an IRI. `format` is a format's or an extension's name for files
    whose name does not tell. `triples_per_event` is the n of the formats without graphs, whose
    events take the time of their arrival if `arrival_time` says so. `batch_events` bounds the
    events of one batch. `threads` tokenize N-Quads and N-Triples. If `predicates` (IRIs) are given,
    those formats' triples with others are checked and counted, but not kept. `base` is the IRI that
    relative IRIs of the other formats are relative to, where the document names none.
    """

    iri: str
    paths: tuple[str, ...]
    time_predicate: str = GENERATED_AT_TIME
    triples_per_event: int | None = None
    arrival_time: bool = False
    format: str | None = None
    batch_events: int = 16_384
    threads: int = 1
    predicates: tuple[str, ...] | None = None
    base: str | None = None

    def __post_init__(self) -> None:
        if self.base is not None and not is_absolute_iri(self.base):
            raise UsageError(f"the base {self.base} is no absolute IRI")


def reading_threads() -> int:
    """How many threads read a stream unless it is said: two, where there are two cores."""
    return min(2, os.cpu_count() or 1)
