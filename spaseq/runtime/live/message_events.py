"""From messages to events.

A message has the events of one text in N-Quads or another format: the one that its stream has, or
else the one that its media type says, or else N-Quads. An event never spans two messages. A message
in a format without graphs, and a JSON object without any, is one event.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import IO

import numpy as np

from spaseq.errors import InputError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.logs.messages import Message, MessageColumns
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import AS_MESSAGES, Format
from spaseq.rdf.inputs.message_formats import (
    LOG_TYPES,
    MEDIA_TYPES,
    format_of_media,
    message_format,
    part_of_file,
)
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.rdf.kernels.message_graphs import find_apart
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
    for some in MessageColumns.of(messages).runs_of_types():
        form = _format_of(some.media_type[0], options)
        if form is Format.NQUADS:
            yield from _line_events(some, options, source, on_bad)
            continue
        for message in some:
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
    place = str(first.offset) if len(messages) == 1 else f"{first.offset} to {last.offset}"
    return f"{source} message {place}" + (
        f" of partition {first.partition}" * bool(first.partition)
    )


def _format_of(media_type: str, options: StreamOptions) -> Format | None:
    """The format of messages of a media type; None if it is unknown."""
    part = part_of_file(media_type)
    if part is not None:
        return format_of_media(part.format)
    if options.contexts.own is not None:
        return Format.JSONLD
    given = options.messages.format
    return format_of_media(media_type) if given is None else message_format(given)


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

    for batch in _events(MessageColumns.of([message]), form, options, source, report):
        is_silent = is_silent and not len(batch)
        yield batch
    if is_silent and not is_part:
        on_bad(BadInput(name, None, _NO_EVENT))


def _line_events(
    messages: MessageColumns, options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of N-Quads messages. They are read together as long as nothing in them is bad."""
    payload, apart = messages.payload, np.empty(len(messages), bool)
    find_apart(np.frombuffer(payload.data, np.uint8), payload.begins, payload.ends, apart)
    for together in messages.split(np.flatnonzero(apart[1:]) + 1):
        yield from _halved(together, options, source, on_bad)


def _halved(
    messages: MessageColumns, options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of messages, of which a bad one is found by halving."""
    found: list[BadInput] = []
    batches = list(_events(messages, Format.NQUADS, options, source, found.append))
    if found and options.messages.time is not None:
        messages_then, found_then = with_times(messages, found, options)
        if len(found_then) < len(found) and (not found_then or len(messages) == 1):
            then = MessageColumns.of(messages_then)
            batches = list(_events(then, Format.NQUADS, options, source, _ignore))
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
    messages: MessageColumns, form: Format, options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of a message, or of several that all have some."""
    name, data = name_of(source, messages), messages.payload.joined
    if len(messages) == 1 and not data.strip():
        on_bad(BadInput(name, None, _NO_EVENT))
    text = _MessageText(name, form, data)
    try:
        yield from read_file(text, options, on_bad, InstantCounter(), ArrivalClock())
    except InputError as error:
        on_bad(BadInput(name, None, str(error)))
