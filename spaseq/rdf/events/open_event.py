"""An event whose last row and time are not known yet."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.rdf.events.time_terms import TimeTerms
from spaseq.rdf.inputs.bad_input import BadInput

NO_TIME = "event without a timestamp"
LOST_QUAD = "event that has lost a quad to a line that cannot be read"


@dataclass(slots=True)
class OpenEvent:
    """An event under construction: rows first:end so far, and its time if known (ms)."""

    graph: str  # N-Triples text, empty where the format has none
    first: int
    end: int
    line: int
    time: int | None = None
    unreadable: str | None = None  # text of a time that cannot be read
    excess: str | None = None  # the limit that it exceeds; its rows are not needed then
    lost: bool = False  # whether a quad of it could not be read

    def offer(self, text: str, times: TimeTerms) -> None:
        """Give the event a time. The first readable one counts."""
        if self.time is None:
            self.time = times.read(text)
            if self.time is None:
                self.unreadable = text

    def default(self, time: int | None) -> None:
        """Give the event a time (ms), if its graph has none."""
        if self.time is None and self.unreadable is None:
            self.time = time

    @property
    def name(self) -> str | None:
        """The graph's IRI, None if it is a blank node or the format has no graphs."""
        return self.graph[1:-1] if self.graph[:1] == "<" else None

    @property
    def keep(self) -> int:
        """The first row that the event needs."""
        return self.first if self.excess is None else self.end

    def complaint(self, file: str) -> BadInput:
        """The report of an event that exceeds a limit, has lost a quad or has no time."""
        reason = NO_TIME
        if self.excess is not None:
            reason = self.excess
        elif self.time is not None and self.lost:
            reason = LOST_QUAD
        elif self.unreadable is not None:
            reason = f"event without a readable timestamp: {self.unreadable[:200]}"
        return BadInput(file, self.line or None, reason, self.graph[:300])


def left_over(file: str, line: int, left: int, size: int) -> BadInput:
    """The report of `left` triples, the first in `line`, that are fewer than `size`, an event."""
    triples = "1 triple is" if left == 1 else f"{left} triples are"
    reason = f"{triples} left at the end of the file; {size} make an event"
    return BadInput(file, line or None, reason)
