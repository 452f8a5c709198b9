"""The sources of streams; `base.Source` is the contract."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from itertools import chain, islice
from os import PathLike, fspath

from spaseq.errors import UsageError
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.sources.base import Source
from spaseq.sources.broker_stream import BrokerStream
from spaseq.sources.feed_files import FeedFiles
from spaseq.sources.files import FileSource, StdinSource
from spaseq.sources.iterables import EventSource, rows_without_a_lift

__all__ = ["SOURCES", "Source", "source_of"]

SOURCES: tuple[type[Source], ...] = (
    *(StdinSource, FeedFiles, BrokerStream),
    *(FileSource, EventSource),
)
"""The kinds of sources; the first one that accepts the user's input is used."""


def source_of(given: object, options: StreamOptions) -> Source:
    """The source for a user's input of a stream.

    Args:
        given: a path, several paths, or an iterable of `Event`s. A path is a file, a directory, a
            glob, or `-` for standard input.
        options: the reading options of the stream; its `paths` are ignored.

    Raises:
        UsageError: no source takes this input.

    >>> source_of("events.nq", StreamOptions("http://example/s", ())).describe()
    'events.nq'
    """
    if hasattr(given, "__arrow_c_stream__") or (
        type(given).__module__.partition(".")[0] == "pandas"
    ):
        raise rows_without_a_lift(f"{type(given).__name__} is rows", options.iri)
    given = _paths_or_items(given)
    for kind in SOURCES:
        source = kind.of(given, options)
        if source is not None:
            return source
    hint = "; spaseq.run_async takes it" if isinstance(given, AsyncIterable) else ""
    kind_of_given = type(given).__name__
    raise UsageError(f"a stream is paths or spaseq.Event objects, not {kind_of_given}{hint}")


def _paths_or_items(given: object) -> object:
    """A tuple of paths as texts if the first item is a path; otherwise an equal iterable."""
    if isinstance(given, str | PathLike):
        return (fspath(given),)
    if not isinstance(given, Iterable):
        return given
    items = iter(given)
    some = [*islice(items, 1)]
    if some and isinstance(some[0], str | PathLike):
        return (fspath(some[0]), *(str(item) for item in items))
    return chain(some, items)
