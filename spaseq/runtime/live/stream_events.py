"""The events of one stream of a live run, from what its log has.

What is dropped and what time an event gets depends on the log alone, so a restart that reads the
same messages again gives the same events again.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, groupby
from typing import Any

import numpy as np

from spaseq.connectors.heartbeat_messages import is_heartbeat
from spaseq.lift.lifted_messages import LiftedBroker, events_of_part
from spaseq.logs.messages import Message, MessageColumns
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.message_formats import part_of_file
from spaseq.rdf.inputs.stream_options import BadInput, MessageOptions, OnBad
from spaseq.runtime.live.message_events import message_events, name_of
from spaseq.sources.broker_stream import BrokerStream

_SIGHTING = struct.Struct("<16sq")
_PIECE = 4096  # sightings


class SeenGraphs:
    """Remembers which graphs were seen, for `window_ms`."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._now = -(2**62)  # ms, the greatest arrival so far
        self._last: OrderedDict[bytes, int] = OrderedDict()  # by digest, ascending
        self._pieces: list[bytes] = []
        self._open: list[bytes] = []

    def advance(self, arrival: int) -> None:
        """Take note that messages arrive at a time (ms), and forget what is too long ago."""
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
        """Take note that these graphs are seen now."""
        for name in names:
            self.is_new(name)

    def is_new(self, name: str) -> bool:
        """Whether a graph has not been seen; it has from now on."""
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
        """The memory as a value for a state; `restore` takes it."""
        return [self._now, [*self._pieces, b"".join(self._open)]]

    def restore(self, value: list[Any]) -> None:
        """Remember what `as_json` gave."""
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
    """Makes the events of a stream, and remembers the graphs that it has seen.

    Attributes:
        duplicates: how many events were dropped, because their graph was seen before.
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
        """Those of the events that came at a time (ms) whose graphs have not been seen."""
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
        """The events whose graphs have not been seen for so long; those without a name, too."""
        seen.advance(arrival)
        for batch in batches:
            names = batch.names(np.arange(len(batch))).texts()
            kept = [at for at, name in enumerate(names) if name is None or seen.is_new(name)]
            self.duplicates += len(names) - len(kept)
            yield batch if len(kept) == len(names) else batch.take(np.array(kept, np.int64))

    def as_json(self) -> list[Any]:
        """What it remembers, as a value for a state; `restore` takes it."""
        return [self.duplicates, None if self._seen is None else self._seen.as_json()]

    def restore(self, value: list[Any]) -> None:
        """Go on from what `as_json` gave."""
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
