"""Heartbeats that somebody gives: a request, or a message of a broker."""

from __future__ import annotations

from spaseq.connectors.heartbeat_messages import heartbeat_time
from spaseq.errors import UsageError
from spaseq.logs.messages import MessageColumns
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.live.live_stream import LiveStream
from spaseq.runtime.live.message_events import name_of


class HeartbeatTooFar(UsageError):
    """A heartbeat is too far ahead of the clock."""


def check_heartbeat(stream: LiveStream, time: int, now: int, watermark: int | None) -> None:
    """Check that no event of a stream at or before a time (ms) may follow.

    Args:
        stream: the stream.
        time: of the heartbeat.
        now: what the clock shows, or when the heartbeat arrived, ms.
        watermark: of the stream or the partition, ms.

    Raises:
        HeartbeatTooFar: it is more than `max_ahead` after the clock.
        UsageError: it is behind the watermark, or the stream's times are the clock's.
    """
    if stream.takes_clock:
        raise UsageError(
            f"stream {stream.name} takes its times from the clock, so it has heartbeats by itself"
        )
    ahead = stream.settings.max_ahead_ms
    if time - now > ahead:
        raise HeartbeatTooFar(
            f"the heartbeat {format_time(time)} is more than {ahead} ms after the clock, which "
            f"shows {format_time(now)} (max_ahead)"
        )
    if watermark is not None and time < watermark:
        raise UsageError(
            f"the heartbeat {format_time(time)} is behind the watermark {format_time(watermark)} "
            f"of stream {stream.name}: time has come further already"
        )


def take_heartbeats(
    stream: LiveStream, messages: MessageColumns, clock: StreamClock, on_bad: OnBad
) -> None:
    """Take messages of one partition that are heartbeats; one that says nothing new is no news."""
    for message in messages:
        time, watermark = heartbeat_time(message.media_type), clock.watermark
        if time is not None and watermark is not None and time < watermark:
            continue
        try:
            if time is None:
                raise UsageError("the time of a heartbeat is no xsd:dateTime, nor milliseconds")
            check_heartbeat(stream, time, message.arrival, watermark)
        except UsageError as error:
            on_bad(BadInput(name_of(stream.source.describe(), [message]), None, str(error)))
        else:
            clock.raise_to(time + 1)


def is_below(watermark: int | None, time: int) -> bool:
    """Whether a heartbeat at a time (ms) moves a watermark."""
    return watermark is None or watermark <= time
