"""From messages to events.

A message has the events of one text in N-Quads or another format, as its media type says; N-Quads
if it says nothing. An event never spans two messages.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import IO

from spaseq.errors import InputError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.logs.stream_log import Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.readers import ArrivalClock, read_file

MEDIA_TYPES = {
    "": Format.NQUADS,
    "application/n-quads": Format.NQUADS,
    "text/plain": Format.NQUADS,
    "application/trig": Format.TRIG,
    "application/ld+json": Format.JSONLD,
    "application/json": Format.JSONLD,
    "application/x-ld+ndjson": Format.NDJSONLD,
    "application/x-jelly-rdf": Format.JELLY,
}
"""The formats of messages, by media type without parameters."""

LOG_TYPES = {
    "application/n-triples": Format.RDFM,
    "application/n-quads": Format.RDFM,
    "text/turtle": Format.RDFM_TRIG,
    "application/trig": Format.RDFM_TRIG,
}
"""The formats of messages whose media type has a version that ends in `-messages`."""

_LOG = re.compile(r""";\s*version\s*=\s*"?[\w.-]*-messages\b""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _MessageText(InputFile):
    """Bytes that are read like a file; `path` names them in messages."""

    data: bytes

    def open(self, limits: Limits = DEFAULT_LIMITS) -> AbstractContextManager[IO[bytes]]:
        return io.BytesIO(self.data)


def message_events(
    messages: Sequence[Message], options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of messages, in their order.

    Args:
        messages: in order of arrival.
        options: how their stream is read.
        source: names the source in reports of bad input.
        on_bad: called for each part of a message that cannot become an event.
    """
    options = replace(options, threads=1)
    json = options.contexts.own is not None
    for form, some in groupby(messages, _is_json if json else _format_of):
        together = list(some)
        if form is Format.NQUADS:
            yield from _line_events(together, options, source, on_bad)
            continue
        for message in together:
            if form is None:
                reason = f"its media type {message.media_type[:100]} is not one of "
                names = ", ".join(filter(None, MEDIA_TYPES))
                on_bad(BadInput(name_of(source, [message]), None, reason + names))
            else:
                if json:  # an object in one line, so that it is one message
                    message = replace(message, payload=b" ".join(message.payload.split(b"\n")))
                yield from _events([message], form, options, source, on_bad)


def name_of(source: str, messages: Sequence[Message]) -> str:
    """The name of messages in reports: their source and their places."""
    first, last = messages[0], messages[-1]
    place = str(first.offset) if first is last else f"{first.offset} to {last.offset}"
    return f"{source} message {place}" + (
        f" of partition {first.partition}" * bool(first.partition)
    )


def _is_json(message: Message) -> Format | None:
    """The format of messages that have a context from outside, whatever their media type says."""
    return Format.NDJSONLD


def _format_of(message: Message) -> Format | None:
    name, _, parameters = message.media_type.partition(";")
    name = name.strip().lower()
    if parameters and name in LOG_TYPES and _LOG.search(message.media_type):
        return LOG_TYPES[name]
    return MEDIA_TYPES.get(name)


def _line_events(
    messages: list[Message], options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of N-Quads messages. They are read together as long as nothing in them is bad."""
    for run in _separable(messages):
        yield from _halved(run, options, source, on_bad)


def _halved(
    messages: list[Message], options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of messages, of which a bad one is found by halving."""
    found: list[BadInput] = []
    batches = list(_events(messages, Format.NQUADS, options, source, found.append))
    if not found:
        yield from batches
    elif len(messages) == 1:
        for bad in found:
            on_bad(bad)
        yield from batches
    else:
        half = len(messages) // 2
        yield from _halved(messages[:half], options, source, on_bad)
        yield from _halved(messages[half:], options, source, on_bad)


def _events(
    messages: Sequence[Message], form: Format, options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    name = name_of(source, messages)
    if not all(message.payload.strip() for message in messages):
        on_bad(BadInput(name, None, "there is no event in it"))
    data = b"\n".join(message.payload for message in messages)
    text = _MessageText(name, form, data)
    try:
        yield from read_file(text, options, on_bad, InstantCounter(), ArrivalClock())
    except InputError as error:
        on_bad(BadInput(name, None, str(error)))


def _separable(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Runs of messages in which no message ends with the graph that the next one begins with.

    Read together, they give the events that they give one by one.
    """
    run: list[Message] = []
    last: bytes | None = None
    for message in messages:
        first, following = _outer_graphs(message.payload)
        if run and (first is None or last is None or first == last):
            yield run
            run = []
        run.append(message)
        last = following
    if run:
        yield run


def _outer_graphs(payload: bytes) -> tuple[bytes | None, bytes | None]:
    """The graphs of the first and the last line of a message, as written; None if unclear."""
    lines = payload.strip().split(b"\n")
    first = _graph(lines[0])
    return first, first if len(lines) == 1 else _graph(lines[-1])


def _graph(line: bytes) -> bytes | None:
    """The graph at the end of a line; None if it is not plainly an IRI."""
    line = line.rstrip(b" \t\r")
    body = line[:-1].rstrip(b" \t") if line.endswith(b".") else b""
    begin = body.rfind(b"<")
    graph = body[begin:]
    plain = begin > 0 and graph.endswith(b">") and b"\\" not in graph and b'"' not in graph
    return graph if plain else None
