"""Times for events of N-Quads messages whose graphs have none.

The time becomes a timestamp beside the event, so that it is read like any other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from spaseq.logs.messages import Message
from spaseq.rdf.events.open_event import NO_TIME
from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.terms.term import iri_text
from spaseq.rdf.terms.times import time_literal


def given_time(message: Message, options: StreamOptions) -> int | None:
    """The time (ms) that a message gives to events without one; None if it gives none."""
    match options.messages.time:
        case "message":
            return message.time
        case "arrival":
            return message.arrival
    return None


def with_times(
    messages: Sequence[Message], complaints: Iterable[BadInput], options: StreamOptions
) -> tuple[list[Message], list[BadInput]]:
    """Messages with timestamps for the events that lack one, and what is bad all the same.

    Args:
        messages: N-Quads, which were read together, joined by line ends.
        complaints: what was found then, in the order of lines.
        options: how their stream is read.
    """
    found, rest = list(messages), list[BadInput]()
    ends = list(accumulate(message.payload.count(b"\n") + 1 for message in messages))
    for bad in reversed(list(complaints)):  # from the last line on: the others stay where they are
        if bad.reason == NO_TIME and bad.line is not None:
            number = bisect_right(ends, bad.line - 1)
            line = bad.line - 1 - (ends[number - 1] if number else 0)
            timed = _with_time(found[number], line, bad.text, options)
            if timed is not None:
                found[number] = timed
                continue
        rest.append(bad)
    return found, rest[::-1]


def _with_time(message: Message, line: int, graph: str, options: StreamOptions) -> Message | None:
    """A message with a timestamp before the event that begins in a line, counted from 0.

    None if the message gives no time, or the graph's name is too long for its complaint.
    """
    time = given_time(message, options)
    if time is None or not (graph.startswith("_:") or graph.endswith(">")):
        return None
    stamp = f"{graph} {iri_text(options.time_predicate)} {time_literal(time)} ."
    lines = message.payload.split(b"\n")
    lines.insert(line, stamp.encode())
    return replace(message, payload=b"\n".join(lines))
