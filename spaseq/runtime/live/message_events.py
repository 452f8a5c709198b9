"""From messages to events.

A message has the events of one text in N-Quads or another format: the one that its stream has, or
else the one that its media type says, or else N-Quads. An event never spans two messages. A message
in a format without graphs, and a JSON object without any, is one event.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import IO

from spaseq.errors import InputError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.logs.stream_log import Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.file_messages import part_of_file
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import AS_MESSAGES, Format
from spaseq.rdf.inputs.message_formats import (
    LOG_TYPES,
    MEDIA_TYPES,
    format_of_media,
    message_format,
)
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.readers import ArrivalClock, read_file
from spaseq.records import record
from spaseq.runtime.live.given_times import given_time, with_times

__all__ = ["LOG_TYPES", "MEDIA_TYPES", "message_events", "name_of"]

_NO_EVENT = "there is no event in it"


@record
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
    for form, some in groupby(messages, partial(_format_of, options=options)):
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
                yield from _single_events(message, form, options, source, on_bad)


def _in_file(bad: BadInput, message: Message) -> BadInput:
    """A report on a message; on the file and the line there, if the message is a part of a file."""
    part = part_of_file(message.media_type)
    if part is None or bad.line is None:
        return bad
    return replace(bad, line=bad.line + part.line - 1)


def name_of(source: str, messages: Sequence[Message]) -> str:
    """The name of messages in reports: their source and their places, or their file."""
    if len(messages) == 1 and part_of_file(messages[0].media_type) is not None:
        return messages[0].topic
    first, last = messages[0], messages[-1]
    place = str(first.offset) if first is last else f"{first.offset} to {last.offset}"
    return f"{source} message {place}" + (
        f" of partition {first.partition}" * bool(first.partition)
    )


def _format_of(message: Message, options: StreamOptions) -> Format | None:
    """The format of a message; None if its media type is unknown."""
    part = part_of_file(message.media_type)
    if part is not None:
        return format_of_media(part.format)
    if options.contexts.own is not None:
        return Format.JSONLD
    given = options.messages.format
    return format_of_media(message.media_type) if given is None else message_format(given)


def _single_events(
    message: Message, form: Format, options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of a message that is read by itself: one, if the format has no graphs."""
    name, payload = name_of(source, [message]), message.payload
    own_context, is_part = options.contexts.own is not None, part_of_file(message.media_type)
    if not is_part and form is Format.JSONLD and (own_context or payload.lstrip()[:1] == b"{"):
        form = Format.NDJSONLD
        message = replace(message, payload=b" ".join(payload.split(b"\n")))  # one message
    elif options.triples_per_event is None and not form.has_graphs:
        if form is Format.RDFXML:
            on_bad(BadInput(name, None, "RDF/XML needs a number of triples per event"))
            return
        form = AS_MESSAGES[form]
    options = replace(options, default_time=given_time(message, options))
    is_silent = True

    def report(bad: BadInput) -> None:
        nonlocal is_silent
        is_silent = False
        on_bad(_in_file(bad, message))

    for batch in _events([message], form, options, source, report):
        is_silent = is_silent and not len(batch)
        yield batch
    if is_silent and not is_part:
        on_bad(BadInput(name, None, _NO_EVENT))


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
    if found and options.messages.time is not None:
        messages_then, found_then = with_times(messages, found, options)
        if len(found_then) < len(found) and (not found_then or len(messages) == 1):
            batches = list(_events(messages_then, Format.NQUADS, options, source, _ignore))
            found = found_then
    if not found:
        yield from batches
    elif len(messages) == 1:
        for bad in found:
            on_bad(_in_file(bad, messages[0]))
        yield from batches
    else:
        half = len(messages) // 2
        yield from _halved(messages[:half], options, source, on_bad)
        yield from _halved(messages[half:], options, source, on_bad)


def _ignore(_: BadInput) -> None:
    """Ignore what is reported already."""


def _events(
    messages: Sequence[Message], form: Format, options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    name = name_of(source, messages)
    if not all(message.payload.strip() for message in messages):
        on_bad(BadInput(name, None, _NO_EVENT))
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
    text = payload.strip()
    return _graph(text.split(b"\n", 1)[0]), _graph(text.rsplit(b"\n", 1)[-1])


def _graph(line: bytes) -> bytes | None:
    """The graph at the end of a line; None if it is not plainly an IRI."""
    line = line.rstrip(b" \t\r")
    body = line[:-1].rstrip(b" \t") if line.endswith(b".") else b""
    begin = body.rfind(b"<")
    graph = body[begin:]
    plain = begin > 0 and graph.endswith(b">") and b"\\" not in graph and b'"' not in graph
    return graph if plain else None
