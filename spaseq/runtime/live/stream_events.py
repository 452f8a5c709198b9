"""The events of one stream of a live run, from the messages that its log has.

A message has the events of one text in N-Quads or another format: the format of its stream, or else
of its media type, or else N-Quads. An event never spans two messages. A message in a format without
graphs, and a JSON object without any, is one event. The times of events, and the choice of dropped
ones, depend on the log alone, so a restart that reads the same messages again gives the same events
again.

An event without a time gets the time of its message, as a timestamp beside it, or the time of its
arrival, but at least the greatest earlier time of its stream. So it is never late. Readers mark it
with `UNTIMED`, because only the clock of its stream knows that time.
"""

from __future__ import annotations

import io
import struct
from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import blake2b
from itertools import accumulate, chain, groupby
from typing import IO, Any

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.connectors.base import is_heartbeat
from spaseq.errors import InputError
from spaseq.lift.lifted_messages import LiftedBroker, events_of_part
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.logs.messages import Message, MessageColumns
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.graph_times import NO_TIME
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import (
    AS_MESSAGES,
    LOG_TYPES,
    MEDIA_TYPES,
    Format,
    format_of_media,
    message_format,
    part_of_file,
)
from spaseq.rdf.inputs.stream_options import BadInput, MessageOptions, OnBad, StreamOptions, ignore
from spaseq.rdf.kernels.message_graphs import find_apart
from spaseq.rdf.ranges import ArrivalClock, read_file
from spaseq.rdf.terms.term import iri_text
from spaseq.rdf.terms.times import UNTIMED, time_literal
from spaseq.records import record
from spaseq.runtime.arrivals.stream_clock import Horizon
from spaseq.sources.broker_stream import BrokerStream


def arrival_times(
    times: Int64s, arrival: int, least: int | None, horizon: Horizon, latest: int | None
) -> Int64s:
    """The times (ms, int64[n]) of events that arrived together, in order.

    Args:
        times: in the input, `UNTIMED` for events without one.
        arrival: time of arrival, ms.
        least: minimum time of an event without a time, ms; None for no minimum.
        horizon: an event with a time beyond it is bad, so later ones need not follow it.
        latest: the greatest time of the stream before, ms.
    """
    untimed = times == UNTIMED
    if not untimed.any():
        return times
    base = arrival if least is None else max(arrival, least)
    known = np.where(untimed, base, times)
    seen = np.where(horizon.admits(latest, known), known, base)
    reached = np.maximum(np.maximum.accumulate(seen), base)
    return np.where(untimed, reached, times)


def given_time(message: Message, options: StreamOptions) -> int | None:
    """The time (ms) that a message gives to events without one; None if it gives none.

    The clock of the stream sets times of arrival later, see `arrival_times`.
    """
    match options.messages.time:
        case "message":
            return message.time
        case "arrival":
            return UNTIMED
    return None


def with_times(
    messages: Sequence[Message], complaints: Iterable[BadInput], options: StreamOptions
) -> tuple[list[Message], list[BadInput]]:
    """Messages with timestamps for the events that lack one, and the remaining complaints.

    Args:
        messages: N-Quads, which were read together, joined by line ends.
        complaints: the complaints of that reading, in the order of lines.
        options: the reading options of their stream.
    """
    stamped, rest = list(messages), list[BadInput]()
    ends = list(accumulate(message.payload.count(b"\n") + 1 for message in messages))
    stamps: dict[int, list[tuple[int, bytes]]] = {}
    for bad in complaints:
        if bad.reason == NO_TIME and bad.line is not None:
            number = bisect_right(ends, bad.line - 1)
            stamp = _stamp(stamped[number], bad.text, options)
            if stamp is not None:
                line = bad.line - 1 - (ends[number - 1] if number else 0)
                stamps.setdefault(number, []).append((line, stamp))
                continue
        rest.append(bad)
    for number, stamp_text in stamps.items():
        stamped[number] = _stamped(stamped[number], stamp_text)
    return stamped, rest


def _stamp(message: Message, graph: str, options: StreamOptions) -> bytes | None:
    """The timestamp of an event.

    None if the message gives no time, or the graph's name is too long for its complaint.
    """
    time = given_time(message, options)
    if time is None or not (graph.startswith("_:") or graph.endswith(">")):
        return None
    return f"{graph} {iri_text(options.time_predicate)} {time_literal(time)} .".encode()


def _stamped(message: Message, stamps: Sequence[tuple[int, bytes]]) -> Message:
    """A message with timestamps before the events that begin at some lines, counted from 0."""
    before = defaultdict[int, list[bytes]](list)
    for line, stamp in stamps:
        before[line].append(stamp)
    lines = enumerate(message.payload.split(b"\n"))
    payload = b"\n".join(part for at, line in lines for part in (*before.get(at, ()), line))
    return replace(message, payload=payload)


__all__ = ["LOG_TYPES", "MEDIA_TYPES", "message_events", "name_of"]

_NO_EVENT = "there is no event in it"


@record
class _MessageText(InputFile):
    """Bytes as a file; `path` names them in messages."""

    data: bytes

    def open(self, limits: Limits = DEFAULT_LIMITS) -> AbstractContextManager[IO[bytes]]:
        return io.BytesIO(self.data)


def message_events(
    messages: Sequence[Message], options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of messages, in their order.

    Args:
        messages: in order of arrival.
        options: the reading options of their stream.
        source: names the source in reports of bad input.
        on_bad: called for each part of a message that cannot become an event.
    """
    options = replace(options, threads=1)
    for some in MessageColumns.of(messages).runs_of_types():
        form = _format_of(some.media_type[0], options)
        if form is Format.NQUADS:
            payload, apart = some.payload, np.empty(len(some), bool)
            find_apart(np.frombuffer(payload.data, np.uint8), payload.begins, payload.ends, apart)
            for together in some.split(np.flatnonzero(apart[1:]) + 1):
                yield from _halved(together, options, source, on_bad)
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
    """The name of messages in reports: their source and their positions, or their file."""
    if len(messages) == 1 and part_of_file(messages[0].media_type) is not None:
        return messages[0].topic
    first, last = messages[0], messages[-1]
    offsets = str(first.offset) if len(messages) == 1 else f"{first.offset} to {last.offset}"
    return f"{source} message {offsets}" + (
        f" of partition {first.partition}" * bool(first.partition)
    )


def _format_of(media_type: str, options: StreamOptions) -> Format | None:
    """The format of messages of a media type; None if it is unknown."""
    part = part_of_file(media_type)
    if part is not None:
        return message_format(part.format)
    if options.contexts.own is not None:
        return Format.JSONLD
    given = options.messages.format
    return format_of_media(media_type) if given is None else message_format(given)


def _single_events(
    message: Message, form: Format, options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of a message that is read alone: one, if the format has no graphs."""
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


def _halved(
    messages: MessageColumns, options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of messages; bad ones are found by halving."""
    bad_inputs: list[BadInput] = []
    batches = list(_events(messages, Format.NQUADS, options, source, bad_inputs.append))
    if bad_inputs and options.messages.time is not None:
        messages_then, bad_then = with_times(messages, bad_inputs, options)
        if len(bad_then) < len(bad_inputs) and (not bad_then or len(messages) == 1):
            then = MessageColumns.of(messages_then)
            batches = list(_events(then, Format.NQUADS, options, source, ignore))
            bad_inputs = bad_then
    if not bad_inputs:
        yield from batches
    elif len(messages) == 1:
        for bad in bad_inputs:
            on_bad(_in_file(bad, messages[0]))
        yield from batches
    else:
        half = len(messages) // 2
        yield from _halved(messages[:half], options, source, on_bad)
        yield from _halved(messages[half:], options, source, on_bad)


def _events(
    messages: MessageColumns, form: Format, options: StreamOptions, source: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of a message, or of several that each have some."""
    name, data = name_of(source, messages), messages.payload.joined
    if len(messages) == 1 and not data.strip():
        on_bad(BadInput(name, None, _NO_EVENT))
    text = _MessageText(name, form, data)
    try:
        yield from read_file(text, options, on_bad, InstantCounter(), ArrivalClock())
    except InputError as error:
        on_bad(BadInput(name, None, str(error)))


_SIGHTING = struct.Struct("<16sq")
_PIECE = 4096  # sightings


class SeenGraphs:
    """The graphs seen in the last `window_ms`."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._now = -(2**62)  # ms, the greatest arrival so far
        self._last: OrderedDict[bytes, int] = OrderedDict()  # by digest, ascending
        self._pieces: list[bytes] = []
        self._open: list[bytes] = []

    def advance(self, arrival: int) -> None:
        """Record that messages arrive at a time (ms), and drop older graphs."""
        self._now = max(self._now, arrival)
        until = self._now - self._window_ms
        while self._last and next(iter(self._last.values())) <= until:
            self._last.popitem(last=False)
        while self._pieces and _end(self._pieces[0]) <= until:
            del self._pieces[0]

    def has(self, name: str) -> bool:
        """Whether a graph has been seen."""
        return _digest(name) in self._last

    def see(self, names: Iterable[str]) -> None:
        """Record that these graphs are seen now."""
        for name in names:
            self.is_new(name)

    def is_new(self, name: str) -> bool:
        """Whether a graph is new; then record it."""
        digest = _digest(name)
        before = len(self._last)
        self._see(digest, self._now)
        self._open.append(_SIGHTING.pack(digest, self._now))
        if len(self._open) == _PIECE:
            self._pieces.append(b"".join(self._open))
            self._open.clear()
        return len(self._last) > before

    def _see(self, digest: bytes, at: int) -> None:
        self._last[digest] = at
        self._last.move_to_end(digest)

    def as_json(self) -> list[Any]:
        """The graphs as a value for a state; `restore` takes it."""
        return [self._now, [*self._pieces, b"".join(self._open)]]

    def restore(self, value: list[Any]) -> None:
        """Restore a result of `as_json`."""
        self._now, pieces = value
        *self._pieces, rest = pieces
        self._open = [rest[at : at + _SIGHTING.size] for at in range(0, len(rest), _SIGHTING.size)]
        self._last.clear()
        for piece in pieces:
            for digest, at in _SIGHTING.iter_unpack(piece):
                self._see(digest, at)
        self.advance(self._now)


def _digest(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=16).digest()


def _end(piece: bytes) -> int:
    """The time (ms) of the last sighting of a piece."""
    at: int = _SIGHTING.unpack_from(piece, len(piece) - _SIGHTING.size)[1]
    return at


class StreamEvents:
    """Makes the events of a stream, and records the graphs that it has seen.

    Attributes:
        duplicates: number of events that were dropped because their graph was seen before.
    """

    def __init__(self, how: MessageOptions) -> None:
        self._how = how
        self._seen = None if how.dedup_ms is None else SeenGraphs(how.dedup_ms)
        self.duplicates = 0

    def read(
        self, source: BrokerStream, messages: Sequence[Message], on_bad: OnBad
    ) -> Iterator[EventBatch]:
        """The events of messages that arrived together, in their order."""
        name, arrival = source.describe(), messages[0].arrival
        small = self._small(MessageColumns.of(messages), name, on_bad)
        if isinstance(source, LiftedBroker):
            batches = _lifted(source, small, name, on_bad)
        else:
            batches = message_events(small, source.options, name, on_bad)
        return self.kept(batches, arrival)

    def kept(self, batches: Iterator[EventBatch], arrival: int) -> Iterator[EventBatch]:
        """The events that arrived at a time (ms) with graphs that have not been seen."""
        return batches if self._seen is None else self._first_ones(batches, arrival, self._seen)

    def _small(self, messages: MessageColumns, source: str, on_bad: OnBad) -> MessageColumns:
        """The messages that are not too large, and no heartbeats."""
        if any(map(is_heartbeat, set(messages.media_type))):
            kept = [at for at, media in enumerate(messages.media_type) if not is_heartbeat(media)]
            messages = messages.rows(np.array(kept, np.int64))
        most, sizes = self._how.max_bytes, messages.payload.sizes
        if most is None:
            return messages
        for row in np.flatnonzero(sizes > most).tolist():
            reason = f"it has {sizes[row]} bytes, and a message of this stream has at most {most}"
            on_bad(BadInput(name_of(source, messages[row : row + 1]), None, reason))
        return messages.rows(np.flatnonzero(sizes <= most))

    def _first_ones(
        self, batches: Iterator[EventBatch], arrival: int, seen: SeenGraphs
    ) -> Iterator[EventBatch]:
        """The events whose graphs have not been seen for the window, and events without a name."""
        seen.advance(arrival)
        for batch in batches:
            names = batch.names(np.arange(len(batch))).texts()
            kept = [at for at, name in enumerate(names) if name is None or seen.is_new(name)]
            self.duplicates += len(names) - len(kept)
            yield batch if len(kept) == len(names) else batch.take(np.array(kept, np.int64))

    def as_json(self) -> list[Any]:
        """Its graphs as a value for a state; `restore` takes it."""
        return [self.duplicates, None if self._seen is None else self._seen.as_json()]

    def restore(self, value: list[Any]) -> None:
        """Restore a result of `as_json`."""
        self.duplicates, seen = value
        if self._seen is not None and seen is not None:
            self._seen.restore(seen)


def _lifted(
    source: LiftedBroker, messages: MessageColumns, name: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of a lifted stream."""
    for is_part, some in groupby(messages.runs_of_types(), _is_part):
        if not is_part:
            yield from source.events(MessageColumns.concat(list(some)), name, on_bad)
            continue
        for message in chain.from_iterable(some):
            part = part_of_file(message.media_type)
            assert part is not None
            yield from events_of_part(source, message, part, on_bad)


def _is_part(messages: MessageColumns) -> bool:
    return part_of_file(messages.media_type[0]) is not None
