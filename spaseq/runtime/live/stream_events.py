"""The events of one stream of a live run, from what its log has.

What is dropped and what time an event gets depends on the log alone, so a restart that reads the
same messages again gives the same events again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from spaseq.lift.lifted_messages import LiftedBroker
from spaseq.lift.lifted_parts import events_of_part
from spaseq.logs.stream_log import Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.file_messages import PartOfFile, part_of_file
from spaseq.rdf.inputs.message_options import MessageOptions
from spaseq.runtime.live.message_events import message_events, name_of
from spaseq.runtime.live.seen_graphs import SeenGraphs
from spaseq.sources.broker_stream import BrokerStream


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
        small = [m for m in messages if self._is_small(m, name, on_bad)]
        if isinstance(source, LiftedBroker):
            batches = _lifted(source, small, name, on_bad)
        else:
            batches = message_events(small, source.options, name, on_bad)
        return batches if self._seen is None else self._first_ones(batches, arrival, self._seen)

    def _is_small(self, message: Message, source: str, on_bad: OnBad) -> bool:
        size, most = len(message.payload), self._how.max_bytes
        if most is None or size <= most:
            return True
        reason = f"it has {size} bytes, and a message of this stream has at most {most}"
        on_bad(BadInput(name_of(source, [message]), None, reason))
        return False

    def _first_ones(
        self, batches: Iterator[EventBatch], arrival: int, seen: SeenGraphs
    ) -> Iterator[EventBatch]:
        """The events whose graphs have not been seen for so long; those without a name, too."""
        seen.advance(arrival)
        for batch in batches:
            names = batch.names(np.arange(len(batch))).to_pylist()
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
    source: LiftedBroker, messages: Sequence[Message], name: str, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of a lifted stream."""
    for part, some in groupby(messages, _part):
        if part is None:
            yield from source.events(list(some), name, on_bad)
        else:
            for message in some:
                yield from events_of_part(source, message, part, on_bad)


def _part(message: Message) -> PartOfFile | None:
    return part_of_file(message.media_type)
