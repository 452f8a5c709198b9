"""Short functions that write a stream to a file and read it back."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.ranges import read_stream

STREAM = "http://e/stream"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True)
class Event:
    """An event in a form that is convenient for tests."""

    time: int
    k: int
    graph: str | None
    triples: tuple[tuple[str, str, str], ...]


def at(seconds: int) -> str:
    """A time literal, given in seconds after the epoch."""
    return f'"1970-01-01T00:00:{seconds:02}Z"^^<{XSD}dateTime>'


def events_of(batches: Iterator[EventBatch]) -> Iterator[Event]:
    """The events of batches, with terms as texts."""
    for b in batches:
        for i in range(len(b)):
            rows = range(b.start[i], b.start[i + 1])
            triples = tuple((b.terms[b.s[r]], b.terms[b.p[r]], b.terms[b.o[r]]) for r in rows)
            yield Event(int(b.time[i]), int(b.k[i]), b.graph[i], triples)


def write(path: Path, text: str | bytes) -> Path:
    """Write a file with this text, compressed if its name ends in .gz."""
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read(*paths: Path | str, **options: Any) -> tuple[list[Event], list[BadInput]]:
    """All events of a stream, and all bad inputs."""
    bad: list[BadInput] = []
    stream = StreamOptions(STREAM, tuple(map(str, paths)), **options)
    return list(events_of(read_stream(stream, bad.append))), bad
