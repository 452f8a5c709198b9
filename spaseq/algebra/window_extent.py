"""The extent of a window event, which stands in the place of its graph's IRI."""

from __future__ import annotations


def extent_text(begin: int, events: int) -> str:
    """The begin of a window's range (ms) and its number of events, as a text that no IRI is.

    >>> extent_text(1000, 2), extent_of("1000 2"), extent_of("http://e/graph")
    ('1000 2', (1000, 2), None)
    """
    return f"{begin} {events}"


def extent_of(event: str | None) -> tuple[int, int] | None:
    """The begin (ms) and the number of events, if `event` is not the IRI of an event's graph."""
    if event is None or " " not in event:
        return None
    begin, events = event.split(" ")
    return int(begin), int(events)
