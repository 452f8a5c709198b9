"""Windows: how far apart the first and last event of a match may be (LANGUAGE section 3).

A window works on a *measure* of events: their time for WITHIN d, their position among the
partition's events for WITHIN n EVENTS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from spaseq.compiled.arrays import Int64s

Measures = TypeVar("Measures", int, "Int64s")
"""One measure, or many."""


@dataclass(frozen=True, slots=True)
class Sliding:
    """WITHIN d: tau(last) - tau(first) <= d milliseconds."""

    length_ms: int

    @property
    def horizon(self) -> int:
        """How far back, in the measure, the first event of a live run may be."""
        return self.length_ms

    def holds(self, first: int, last: int) -> bool:
        """Whether first and last, given by their measures, lie in one window."""
        return last - first <= self.length_ms

    def earliest(self, last: Measures) -> Measures:
        """The least measure of a first event in one window with a last event."""
        return last - self.length_ms

    def close(self, first: int) -> int:
        """The time at which the window of a match that began at `first` closes."""
        return first + self.length_ms


@dataclass(frozen=True, slots=True)
class Tumbling:
    """WITHIN d TUMBLING: first and last in one interval [origin + i d, origin + (i + 1) d)."""

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
        """The least measure of a first event in one window with a last event."""
        return last - (last - self.origin_ms) % self.length_ms

    def close(self, first: int) -> int:
        """The end of the interval in which a match that began at `first` lies."""
        number = (first - self.origin_ms) // self.length_ms
        return self.origin_ms + (number + 1) * self.length_ms


@dataclass(frozen=True, slots=True)
class Counted:
    """WITHIN n EVENTS: at most n events of the partition from first to last, both counted."""

    events: int

    @property
    def horizon(self) -> int:
        return self.events

    def holds(self, first: int, last: int) -> bool:
        return last - first <= self.events

    def earliest(self, last: Measures) -> Measures:
        """The least measure of a first event in one window with a last event."""
        return last - self.events


Window: TypeAlias = Sliding | Tumbling | Counted
