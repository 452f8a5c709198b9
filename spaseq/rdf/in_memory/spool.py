"""Spool files: events of a program in a file that workers read as a stream.

The file is a sequence of pickled `EventBatch` objects. One run writes and reads it; it is not an
exchange format.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.in_memory.program_events import Triple, batch_from_events

_EVENTS_PER_BATCH = 4096


def write_spool(
    path: Path, stream: str, events: Iterable[tuple[int, str | None, list[Triple]]]
) -> None:
    """Write events (time in ms, graph IRI or None, triples) in order of arrival."""
    source, counter = iter(events), InstantCounter()
    with path.open("wb") as file:
        while some := list(islice(source, _EVENTS_PER_BATCH)):
            pickle.dump(batch_from_events(stream, some, counter), file)


def read_spool(path: str, stream: str) -> Iterator[EventBatch]:
    """The batches of a spool file, as events of `stream`."""
    with open(path, "rb") as file:
        while True:
            try:
                batch: EventBatch = pickle.load(file)
            except EOFError:
                return
            yield replace(batch, stream=stream)
