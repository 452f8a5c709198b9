"""The sources of the streams of a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from spaseq.errors import UsageError
from spaseq.lift.lifted import Lifted, lifted_source
from spaseq.options import RunOptions
from spaseq.rdf.inputs.stream_options import DEFAULT_MESSAGES, StreamOptions, reading_threads
from spaseq.sources import source_of
from spaseq.sources.base import Source
from spaseq.sources.iterables import Event
from spaseq.sources.json_ld import JsonLd, json_ld_source, named_contexts

StreamInput: TypeAlias = (
    str | PathLike[str] | Sequence[str | PathLike[str]] | Iterable[Event] | Lifted | JsonLd
)
"""A path (file, directory, glob), several paths, events in order of arrival, lifted rows, or JSON
with its context."""


def stream_options(iri: str, options: RunOptions) -> StreamOptions:
    """The reading options of one stream."""
    reading, local = options.reading, options.runtime.name == "local"
    return StreamOptions(
        iri,
        (),
        time_predicate=reading.time_predicate,
        time_unit=reading.time_unit,
        triples_per_event=reading.triples_per_event,
        base=reading.base,
        contexts=named_contexts(reading.context_map, options.limits),
        limits=options.limits,
        threads=(reading.threads or reading_threads()) if local else 1,
        messages=DEFAULT_MESSAGES if options.follow is None else options.follow.messages,
        live=options.follow is not None and local,
    )


def lifted_inputs(
    streams: Mapping[str, Any], lifts: Mapping[str, str | Path] | None
) -> Mapping[str, Any]:
    """The inputs by stream, as `Lifted` where there is a lift.

    Raises:
        UsageError: a lift is for no stream.
    """
    if not lifts or not isinstance(streams, Mapping):
        return streams
    for name in lifts:
        if name not in streams:
            raise UsageError(f"lifts: {name} is no stream of this call; {', '.join(streams)} are")
    return {
        name: Lifted(given, lifts[name])
        if name in lifts and not isinstance(given, Lifted)
        else given
        for name, given in streams.items()
    }


def stream_source(iri: str, given: StreamInput, options: RunOptions) -> Source:
    """The source of one stream."""
    how = stream_options(iri, options)
    match given:
        case Lifted():
            return lifted_source(given, how)
        case JsonLd():
            return json_ld_source(given, how)
    return source_of(given, how)


def sources_if_any(
    streams: Mapping[str, StreamInput], options: RunOptions
) -> Iterator[Source | None]:
    """The sources of streams; None for those that can be read only once."""
    for iri, given in streams.items():
        known = isinstance(given, str | PathLike | Sequence | JsonLd)
        yield stream_source(iri, given, options) if known else None


def bounded_sources(streams: Mapping[str, StreamInput], options: RunOptions) -> tuple[Source, ...]:
    """The sources of bounded streams.

    Args:
        streams: the user's inputs, by stream IRI.
        options: the run's.

    Raises:
        InputError: a path leads to no file.
        UsageError: a stream is neither paths nor events.
    """
    sources = []
    for iri, given in streams.items():
        sources.append(stream_source(iri, given, options))
        sources[-1].check()
    return tuple(sources)
