"""From the streams of a call to files: paths as they are, events of the program spooled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from spaseq.api.match import to_ms
from spaseq.api.push import Event
from spaseq.errors import UsageError
from spaseq.options import RunOptions
from spaseq.rdf.in_memory.program_events import Triple, triples_of
from spaseq.rdf.in_memory.spool import write_spool
from spaseq.rdf.readers import StreamOptions, reading_threads, resolve_paths

StreamInput: TypeAlias = str | Path | Sequence[str | Path] | Iterable[Event]
"""A path (file, directory, glob), several paths, or events in order of arrival."""


def stream_options(
    iri: str, paths: Sequence[str], options: RunOptions, form: str | None = None
) -> StreamOptions:
    """How one stream is read; `form` is the format of paths whose names do not tell it."""
    reading, local = options.reading, options.runtime.name == "local"
    return StreamOptions(
        iri,
        tuple(paths),
        time_predicate=reading.time_predicate,
        triples_per_event=reading.triples_per_event,
        base=reading.base,
        format=form,
        threads=(reading.threads or reading_threads()) if local else 1,
    )


def bounded_streams(
    streams: Mapping[str, StreamInput], options: RunOptions, directory: Path
) -> tuple[StreamOptions, ...]:
    """How streams that end are read; events of the program are written into `directory` first.

    Raises:
        InputError: a path leads to no file.
        UsageError: a stream holds something other than events or paths.
    """
    inputs = []
    for number, (iri, given) in enumerate(streams.items()):
        paths, form = _paths(given, iri, directory / f"{number}.spool")
        inputs.append(stream_options(iri, paths, options, form))
        resolve_paths(inputs[-1])
    return tuple(inputs)


def _paths(given: StreamInput, iri: str, spool: Path) -> tuple[tuple[str, ...], str | None]:
    """The paths of a stream and, for spooled events, their format."""
    if isinstance(given, str | Path):
        return (str(given),), None
    items = iter(given)
    first = next(items, None)
    if isinstance(first, str | Path):
        return (str(first), *map(str, items)), None
    write_spool(spool, iri, _events(first, items))
    return (str(spool),), "spool"


def _events(
    first: object, rest: Iterable[object]
) -> Iterator[tuple[int, str | None, list[Triple]]]:
    for event in chain((first,), rest) if first is not None else ():
        if not isinstance(event, Event):
            kind = type(event).__name__
            raise UsageError(f"a stream is paths or spaseq.Event objects, not {kind}")
        yield to_ms(event.time), event.iri, triples_of(event.graph)
