"""Windows: how far apart the first and last event of a match may be (docs/meaning.md#window).

A window compares *measures* of events. The measure is the time (ms) under WITHIN d, and the event's
number in the partition under WITHIN n EVENTS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from spaseq.records import record

if TYPE_CHECKING:
    from spaseq.compiled.arrays import Int64s

Measures = TypeVar("Measures", int, "Int64s")
"""One measure, or an array of measures."""


_NEVER = 2**63 - 1
"""A measure after all others."""


class _Measured:
    """The earliest event of a window decides whether the window contains two events."""

    __slots__ = ()

    def earliest(self, last: Measures) -> Measures:
        raise NotImplementedError

    def holds(self, first: int, last: int) -> bool:
        """Whether two events, given by their measures, lie in one window."""
        return first >= self.earliest(last)


@record
class Sliding(_Measured):
    """WITHIN d: tau(last) - tau(first) <= d milliseconds."""

    length_ms: int

    @property
    def horizon(self) -> int:
        """Maximum distance, in measures, back to the first event of a live run."""
        return self.length_ms

    def earliest(self, last: Measures) -> Measures:
        """The least measure of a first event that shares a window with a last event."""
        return last - self.length_ms

    def close(self, first: Measures) -> Measures:
        """The time (ms) at which the window of a match that began at `first` closes."""
        return first + self.length_ms

    def closed(self, until: int | None) -> int:
        """Matches that began before this measure have windows that closed by a time (ms).

        None closes all windows.
        """
        return _NEVER if until is None else until - self.length_ms + 1


@record
class Tumbling(_Measured):
    """WITHIN d TUMBLING: both events in one interval [origin + i d, origin + (i + 1) d)."""

    length_ms: int
    origin_ms: int = 0

    @property
    def horizon(self) -> int:
        return self.length_ms

    def holds(self, first: int, last: int) -> bool:
        return (first - self.origin_ms) // self.length_ms == (
            last - self.origin_ms
        ) // self.length_ms

    def earliest(self, last: Measures) -> Measures:
        """The least measure of a first event that shares a window with a last event."""
        return last - (last - self.origin_ms) % self.length_ms

    def close(self, first: Measures) -> Measures:
        """The end (ms) of the interval of a match that began at `first`."""
        number = (first - self.origin_ms) // self.length_ms
        return self.origin_ms + (number + 1) * self.length_ms

    def closed(self, until: int | None) -> int:
        """Matches that began before this measure have windows that closed by a time (ms).

        None closes all windows.
        """
        return _NEVER if until is None else self.earliest(until)


@record
class Counted(_Measured):
    """WITHIN n EVENTS: at most n events of the partition from first to last, both included."""

    events: int

    @property
    def horizon(self) -> int:
        return self.events

    def earliest(self, last: Measures) -> Measures:
        """The least measure of a first event that shares a window with a last event."""
        return last - self.events


Window: TypeAlias = Sliding | Tumbling | Counted
