"""The size of the event that is being read, bounded by `Limits.event_bytes`."""

from __future__ import annotations

from spaseq.limits import Limits
from spaseq.rdf.columns.quad_block import QuadBlock
from spaseq.rdf.events.open_event import OpenEvent
from spaseq.rdf.inputs.sizes import long_event


class EventSizes:
    """Marks the open event of a document once it exceeds the limit; its rows may then be dropped.

    The size is that of the event's terms in N-Triples, repeated terms included. An event that
    begins within a block has its share of the block.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._event: OpenEvent | None = None
        self._size = 0

    def add(self, block: QuadBlock, event: OpenEvent | None) -> None:
        """Count a block whose last rows are those of the open event, if there is one."""
        if event is None:
            self._event = None
            return
        if event is not self._event:
            self._event, self._size = event, 0
        rows = min(event.end - event.first, len(block))
        self._size += block.size * rows // max(len(block), 1)
        if self._size > self._limits.event_bytes:
            event.excess = long_event(self._limits)
