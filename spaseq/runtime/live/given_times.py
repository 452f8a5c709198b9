"""Times for events that have none: that of their message, or that of their arrival.

The time of a message becomes a timestamp beside the event, so that it is read like any other. An
event of a stream that takes its times from the clock has the time of its arrival, but at least the
greatest time of its stream before it. So it is never late. Readers mark it with `UNTIMED`, because
only the clock of its stream knows that time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.logs.messages import Message
from spaseq.rdf.events.graph_times import NO_TIME
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.terms.term import iri_text
from spaseq.rdf.terms.times import UNTIMED, time_literal
from spaseq.runtime.arrivals.horizon import Horizon


def arrival_times(
    times: Int64s, arrival: int, least: int | None, horizon: Horizon, latest: int | None
) -> Int64s:
    """The times (ms, int64[n]) of events that arrived together, in order.

    Args:
        times: as they were read, `UNTIMED` for events without one.
        arrival: when they arrived, ms.
        least: an event without a time has at least this one, ms; None sets no bound.
        horizon: an event with a time behind it is bad, so later ones need not wait for it.
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

    If it is that of arrival, the clock of the stream sets it later, see `arrival_times`.
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
    """Messages with timestamps for the events that lack one, and what is bad all the same.

    Args:
        messages: N-Quads, which were read together, joined by line ends.
        complaints: what was found then, in the order of lines.
        options: how their stream is read.
    """
    found, rest = list(messages), list[BadInput]()
    ends = list(accumulate(message.payload.count(b"\n") + 1 for message in messages))
    stamps: dict[int, list[tuple[int, bytes]]] = {}
    for bad in complaints:
        if bad.reason == NO_TIME and bad.line is not None:
            number = bisect_right(ends, bad.line - 1)
            stamp = _stamp(found[number], bad.text, options)
            if stamp is not None:
                line = bad.line - 1 - (ends[number - 1] if number else 0)
                stamps.setdefault(number, []).append((line, stamp))
                continue
        rest.append(bad)
    for number, own in stamps.items():
        found[number] = _stamped(found[number], own)
    return found, rest


def _stamp(message: Message, graph: str, options: StreamOptions) -> bytes | None:
    """The timestamp of an event.

    None if the message gives no time, or the graph's name is too long for its complaint.
    """
    time = given_time(message, options)
    if time is None or not (graph.startswith("_:") or graph.endswith(">")):
        return None
    return f"{graph} {iri_text(options.time_predicate)} {time_literal(time)} .".encode()


def _stamped(message: Message, stamps: Sequence[tuple[int, bytes]]) -> Message:
    """A message with timestamps before the events that begin in some lines, counted from 0."""
    before = defaultdict[int, list[bytes]](list)
    for line, stamp in stamps:
        before[line].append(stamp)
    lines = enumerate(message.payload.split(b"\n"))
    payload = b"\n".join(part for at, line in lines for part in (*before.get(at, ()), line))
    return replace(message, payload=payload)
